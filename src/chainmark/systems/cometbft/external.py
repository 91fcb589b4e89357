"""A user's own application, which the nodes reach over a socket: one process per node."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainmark.core.errors import UsageError


@dataclass(frozen=True)
class ExternalApplication:
    """A command with the places ``{address}`` (where it must listen), ``{node}`` (a name) and ``{home}`` (a folder)."""

    parts: tuple[str, ...]

    def address(self, endpoint: str) -> str:
        """Where it listens, in CometBFT's notation."""
        return f"tcp://{endpoint}"

    def command(self, node: str, endpoint: str, home: Path) -> list[str]:
        """The command that starts it for one node."""
        places = {"{address}": self.address(endpoint), "{node}": node, "{home}": str(home)}
        return [_filled(part, places) for part in self.parts]

    def file(self) -> str | None:
        """An existing file that an argument names, or None."""
        return next((part for part in self.parts[1:] if Path(part).is_file()), None)

    def __str__(self) -> str:
        return " ".join([Path(self.parts[0]).name, *self.parts[1:]])


def _filled(part: str, places: dict[str, str]) -> str:
    for place, value in places.items():
        part = part.replace(place, value)
    return part


def application_of(command: Sequence[str]) -> ExternalApplication | None:
    """The application of a profile's `application.command`, if it has one.

    Raises:
        UsageError: there is no such program, or its command lacks the address.
    """
    if not command:
        return None
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"`application.command` names `{command[0]}`, which is not a program", "give its full path")
    if not any("{address}" in part for part in command):
        raise UsageError(
            "`application.command` does not pass the application its address",
            'one of its parts must contain {address}, as in ["./app", "--address", "{address}"]',
        )
    return ExternalApplication((program, *command[1:]))
