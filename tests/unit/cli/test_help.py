"""Every command's help shows how it is used."""

from __future__ import annotations

import pytest
import typer

from chainmark.cli.app import app
from chainmark.cli.reference import commands_of


@pytest.mark.parametrize(("path", "text"), [(path, text) for path, text in commands_of(typer.main.get_command(app))])
def test_every_command_carries_an_example_of_itself(path: str, text: str) -> None:
    """Somebody who asks for help wants a line to copy."""
    assert f"Example: `{path}" in text
