"""The options that systems add to commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from chainmark.cli.groups import Group
from chainmark.systems.offered import SystemOption, options_of

_KINDS: dict[str, type] = {"text": str, "number": int, "file": Path, "time": datetime}


class Offered(Group):
    """The options that systems add to one command, for each of which there is a derived class.

    Attributes:
        values: those that are given, by their keys; the system reads them.
    """

    command: str

    def __init__(self, **given: Any) -> None:
        options = options_of(self.command)
        self.values = {options[name][0].target: value for name, value in given.items() if value is not None}

    @classmethod
    def options(cls) -> list[Parameter]:
        """The options of all systems, and those that the class has."""
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(option, systems))
            for name, (option, systems) in options_of(cls.command).items()
        ]
        return [*added, *super().options()]


def _annotation(option: SystemOption, systems: Sequence[str]) -> Any:
    kind: Any = _KINDS[option.kind]
    declared = Option(
        f"--{option.name}",
        metavar=option.amount,
        help=option.help,
        min=option.minimum,
        show_default=option.chosen or (False if option.default is None else str(option.default)),
        rich_help_panel=f"Options for {', '.join(systems)}",
    )
    return Annotated[list[kind] | None if option.repeated else kind | None, declared]


class IngestOffered(Offered):
    """Those of `ingest`."""

    command = "ingest"


class SynthOffered(Offered):
    """Those of `synth`."""

    command = "synth"
