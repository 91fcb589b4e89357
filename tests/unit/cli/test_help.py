"""The help of each command shows how to use it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import chainmark as cm
from chainmark.cli.app import COMMANDS, all_commands
from chainmark.cli.reference import commands_of

from tests.unit.cli.commands import chainmark

FORMATS = {"--html", "--pdf", "--md", "--junit", "--json-file"}
# They print a list or change something, and have no document.
WITHOUT_DOCUMENT = {
    *("synth", "metrics", "profiles", "nodes install", "nodes list", "serve", "history note", "history pin"),
    *("history list", "history remove", "runs list", "runs verify", "runs export", "runs import", "runs remove"),
}


def _commands() -> dict[str, Any]:
    """Every command that is not a group."""
    commands: dict[str, Any] = dict(all_commands().commands)
    while groups := [name for name, command in commands.items() if hasattr(command, "commands")]:
        for group in groups:
            commands |= {f"{group} {name}": command for name, command in commands.pop(group).commands.items()}
    return commands


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


def test_every_option_has_a_help() -> None:
    lacking = [
        (name, option.name) for name, command in _commands().items() for option in command.params if not option.help
    ]
    assert lacking == []


def test_every_command_that_shows_a_document_writes_it_in_every_format() -> None:
    """A pipeline relies on `--junit` and `--json-file`, whatever it runs."""
    options = {
        name: {word for option in command.params for word in option.opts} for name, command in _commands().items()
    }
    assert {name for name, words in options.items() if not words >= FORMATS} == WITHOUT_DOCUMENT


@pytest.mark.parametrize("name", ["run", "experiment", "aa", "qa", "ingest", "load", "saturation", "compare", "block"])
def test_the_help_shows_the_defaults_of_the_library(name: str) -> None:
    """A command passes on what differs from its own defaults, so that another default of the library would apply."""
    function = getattr(cm, {"qa": "qualify"}.get(name, name))
    wanted = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    shown = {option.name: option.default for option in _commands()[name].params if option.default is not None}
    assert {name: default for name, default in shown.items() if default != wanted.get(name, default)} == {}


def test_an_example_is_printed_on_one_line_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell would end the command at a line break."""
    monkeypatch.setenv("COLUMNS", "60")
    example = "chainmark load --plan mesh/matrix --target mid=http://10.0.0.1:8082 --target big=http://10.0.0.2:8082"
    assert f"  Example: {example}\n" in chainmark("load", "--help").stdout


@pytest.mark.parametrize("arguments", [(), ("runs",)])
def test_a_group_without_a_command_prints_its_help_as_a_wrong_usage(arguments: tuple[str, ...]) -> None:
    ended = chainmark(*arguments)
    assert ended.exit_code == 2
    assert ended.stdout == chainmark(*arguments, "--help").stdout
    assert ended.stderr == ""


def test_the_options_of_a_kind_are_under_a_heading_of_their_own() -> None:
    """They would otherwise be lost among the others."""
    text = chainmark("predict", "--help").stdout
    arguments, options, changes = (text.index(heading) for heading in ("Arguments:\n", "Options:\n", "What-ifs ("))
    assert arguments < text.index("  source ") < options < text.index("  --seed ") < changes < text.index("  --rtt ")
