"""Zones: parts of the world, and the packet delays between them.

A table is a TOML file: ``name``, ``source`` (of the figures), ``zones``, and under ``one_way_ms`` a row for each zone
with its one-way delays in milliseconds to all zones, in the order of ``zones``.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chainmark.core.errors import UsageError

LONGEST_MS = 60_000.0


@dataclass(frozen=True)
class ZoneTable:
    """One-way delays between zones, in milliseconds, for every ordered pair of them; 0 within a zone."""

    name: str
    source: str
    zones: tuple[str, ...]
    one_way_ms: Mapping[tuple[str, str], float]

    def assign_in_turn(self, names: Iterable[str]) -> dict[str, str]:
        """A zone for each name, in the order of the table, which repeats from its start."""
        return dict(zip(names, itertools.cycle(self.zones), strict=False))


class _File(BaseModel):
    """The content of a table."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    source: str
    zones: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    one_way_ms: dict[str, list[Annotated[float, Field(ge=0, le=LONGEST_MS, allow_inf_nan=False)]]]


def shipped_zone_tables() -> list[str]:
    """The names of the shipped tables."""
    return sorted(Path(entry.name).stem for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def load_zone_table(reference: str) -> ZoneTable:
    """A shipped table by its name ("aws"), or a user's own by its path.

    Raises:
        UsageError: there is none, or it is invalid.
    """
    if reference in shipped_zone_tables():
        text = (_shipped() / f"{reference}.toml").read_text(encoding="utf-8")
    else:
        text = _read(Path(reference))
    try:
        content = _File.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        reason = _first_reason(error)
        raise UsageError(f"the zone table `{reference}` cannot be used: {reason}", _hint()) from error
    return _table(reference, content)


def _shipped() -> Path:
    # The package is always a folder on disk: it carries an extension module.
    return Path(str(files("chainmark.network"))) / "zones"


def _hint() -> str:
    return f"`{_shipped() / 'aws.toml'}` is an example"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(f"`{name}`" for name in shipped_zone_tables())
        raise UsageError(f"there is no zone table `{path}`", f"chainmark ships with {known}; or give a path") from error


def _first_reason(error: tomllib.TOMLDecodeError | ValidationError) -> str:
    if isinstance(error, tomllib.TOMLDecodeError):
        return str(error)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"`{place}`: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _table(reference: str, content: _File) -> ZoneTable:
    zones = content.zones

    def refuse(reason: str) -> UsageError:
        return UsageError(f"the zone table `{reference}` cannot be used: {reason}", _hint())

    if len(set(zones)) != len(zones):
        raise refuse("a zone is listed twice")
    if set(content.one_way_ms) != set(zones):
        odd = sorted(set(content.one_way_ms) ^ set(zones))[0]
        raise refuse(f"`{odd}` must be in `zones` and have a row in `one_way_ms`")
    one_way_ms: dict[tuple[str, str], float] = {}
    for zone in zones:
        row = content.one_way_ms[zone]
        if len(row) != len(zones):
            raise refuse(f"the row of `{zone}` has {len(row)} values for {len(zones)} zones")
        one_way_ms |= {(zone, other): value for other, value in zip(zones, row, strict=True)}
        if one_way_ms[zone, zone] != 0:
            raise refuse(f"the delay within `{zone}` must be 0")
    return ZoneTable(content.name, content.source, zones, one_way_ms)
