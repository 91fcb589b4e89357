"""The help of each command shows how to use it."""

from __future__ import annotations

import pytest

from chainmark.cli.app import COMMANDS
from chainmark.cli.reference import commands_of


@pytest.mark.parametrize(("path", "text"), commands_of())
def test_every_command_has_an_example(path: str, text: str) -> None:
    """A user who requests help needs a command line to copy."""
    assert f"Example: `{path}" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_summary_of_each_command(name: str) -> None:
    """The list must be shown without loading the commands."""
    summary = dict(commands_of())[f"chainmark {name}"]
    first = " ".join(summary.partition("\n\n")[0].split())
    assert first.partition(" Example: ")[0] == COMMANDS[name].line
