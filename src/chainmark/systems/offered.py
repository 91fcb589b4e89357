"""A system's additions to the commands: read from `commands.toml` in its folder, without importing its code."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from chainmark.lab.registry import folders

FILE = "commands.toml"


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
class LaunchOption:
    """An option of the commands that start nodes, which sets a key of a system's profiles.

    Attributes:
        name: of the option, without its dashes.
        key: of the profile; dots separate sections.
        amount: placeholder of its value in the help.
        help: one sentence with an example.
    """

    name: str
    key: str
    amount: str
    help: str


@dataclass(frozen=True)
class CorpusTexts:
    """A system's additions to the help of `chainmark corpus`.

    Attributes:
        sample: what is sampled from a server, and how it is chosen.
        importing: which files are imported.
    """

    sample: str
    importing: str


@dataclass(frozen=True)
class Offer:
    """One system's additions to the commands."""

    system: str
    changes: tuple[ChangeOption, ...] = ()
    corpus: CorpusTexts | None = None
    launch: tuple[LaunchOption, ...] = ()


@cache
def offers() -> tuple[Offer, ...]:
    """The additions of the installed systems, by name; a system without the file adds nothing."""
    files = ((name, folder / FILE) for name, folder in folders().items())
    return tuple(_offer(name, tomllib.loads(path.read_text(encoding="utf-8"))) for name, path in files if path.exists())


def _offer(system: str, read: dict[str, Any]) -> Offer:
    changes: list[dict[str, Any]] = read.get("predict", {}).get("change", [])
    corpus: dict[str, str] | None = read.get("corpus")
    return Offer(
        system,
        tuple(map(_change, changes)),
        CorpusTexts(**corpus) if corpus is not None else None,
        tuple(LaunchOption(**option) for option in read.get("launch", {}).get("option", [])),
    )


def _change(read: dict[str, Any]) -> ChangeOption:
    slider = read.get("slider")
    return ChangeOption(read["name"], read["help"], read.get("amount"), Slider(**slider) if slider else None)
