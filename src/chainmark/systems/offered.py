"""A system's additions to the commands: read from `commands.toml` in its folder, without importing its code.

The file has a table for each command, named as it is typed: `[ingest]`, `["history note"]`. Its `examples` are whole
command lines and its `text` paragraphs of the help; `[[ingest.option]]` adds an option.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from chainmark.core.errors import UsageError
from chainmark.lab.registry import folders

FILE = "commands.toml"
# Shared by the commands that start nodes.
LAUNCH = "launch"


@dataclass(frozen=True)
class Slider:
    """A what-if that is one figure within a range.

    Attributes:
        low, high, step: of the range; at ``neutral`` nothing is changed.
        unit: after the figure.
        behind: suffix of the figure for the model: "%".
        is_change: whether the model needs a sign before it, too.
    """

    low: float
    high: float
    step: float
    neutral: float
    behind: str = ""
    unit: str = ""
    is_change: bool = False


@dataclass(frozen=True)
class ChangeOption:
    """A what-if that a system's model supports, as an option of `chainmark predict`.

    Attributes:
        name: of the option, without its dashes; the key of the model's `Change`.
        help: one sentence with examples.
        amount: placeholder of its value in the help; None if it has no value.
        slider: its slider in the dashboard, if it is a single figure.
    """

    name: str
    help: str
    amount: str | None = None
    slider: Slider | None = None


@dataclass(frozen=True)
class SystemOption:
    """An option that a system adds to a command. The command passes its value to the system.

    Attributes:
        name: of the option, without its dashes.
        help: one sentence with an example.
        amount: placeholder of its value in the help; None: its kind.
        key: of the request's options, or of the profile for an option of `launch`; "": the name with underscores.
        kind: of the value: "text", "number", "file" or "time".
        default: the value if the option is not given; None: the system chooses one, which `chosen` describes.
        minimum: of a number.
        repeated: whether it may be given several times; the value is a list.
    """

    name: str
    help: str
    amount: str | None = None
    key: str = ""
    kind: str = "text"
    default: Any = None
    chosen: str | None = None
    minimum: int | None = None
    repeated: bool = False

    @property
    def parameter(self) -> str:
        """The name of its parameter in the command's function."""
        return self.name.replace("-", "_")

    @property
    def target(self) -> str:
        """The key that it sets."""
        return self.key or self.parameter


@dataclass(frozen=True)
class Addition:
    """One system's additions to one command.

    Attributes:
        examples: command lines with this system.
        text: paragraphs of the help.
        options: for requests to this system.
        changes: of its model, for `chainmark predict`.
    """

    examples: tuple[str, ...] = ()
    text: str = ""
    options: tuple[SystemOption, ...] = ()
    changes: tuple[ChangeOption, ...] = ()


@dataclass(frozen=True)
class Offer:
    """One system's additions, by command."""

    system: str
    commands: Mapping[str, Addition]

    def of(self, command: str) -> Addition:
        """Its additions to a command."""
        return self.commands.get(command, Addition())


@cache
def offers() -> tuple[Offer, ...]:
    """The additions of the installed systems, by name; a system without the file adds nothing."""
    files = ((name, folder / FILE) for name, folder in folders().items())
    read = {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in files if path.exists()}
    return tuple(
        Offer(name, {command: _addition(**table) for command, table in content.items()})
        for name, content in read.items()
    )


def _addition(
    *,
    examples: Sequence[str] = (),
    text: str = "",
    option: Sequence[dict[str, Any]] = (),
    change: Sequence[dict[str, Any]] = (),
) -> Addition:
    options = tuple(SystemOption(**read) for read in option)
    return Addition(tuple(examples), text.strip(), options, tuple(map(_change, change)))


def _change(read: dict[str, Any]) -> ChangeOption:
    slider = read.get("slider")
    return ChangeOption(read["name"], read["help"], read.get("amount"), Slider(**slider) if slider else None)


def options_of(command: str) -> dict[str, tuple[SystemOption, list[str]]]:
    """The options that systems add to a command, by parameter, each with its systems; the first one describes it."""
    result: dict[str, tuple[SystemOption, list[str]]] = {}
    for offer in offers():
        for option in offer.of(command).options:
            result.setdefault(option.parameter, (option, []))[1].append(offer.system)
    return result


def full_help(command: str, text: str) -> str:
    """A command's own help, with the examples and the texts of the systems."""
    first, _, rest = inspect.cleandoc(text).partition("\n\n")
    added = [offer.of(command) for offer in offers()]
    examples = [f"Example: `{example}`" for addition in added for example in addition.examples]
    return "\n\n".join(filter(None, [first, *examples, rest, *(addition.text for addition in added)]))


def values_for(system: str, command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a request to a system: the given ones by key, and the defaults of the others.

    Raises:
        UsageError: the system has no such option.
    """
    options = [option for offer in offers() if offer.system == system for option in offer.of(command).options]
    known = {option.target: option for option in options}
    names = {option.target: f"--{option.name}" for option, _ in options_of(command).values()}
    for key in given.keys() - known.keys():
        own = ", ".join(f"`--{option.name}`" for option in options)
        raise UsageError(
            f"`{names.get(key, key)}` is not an option of `chainmark {command} {system}`",
            f"its own options: {own}" if own else f"`{system}` adds no options to `chainmark {command}`",
        )
    return {**{key: option.default for key, option in known.items() if option.default is not None}, **given}
