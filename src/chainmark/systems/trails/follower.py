"""From a block's hash to its story: a run's events, filtered to one thing and put in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from statistics import median
from typing import Any

import polars as pl

from chainmark.core import units
from chainmark.core.caveats import caveats_of
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.manifest import Fact, Manifest
from chainmark.systems.trails.trace import (
    Trace,
    MissingStage,
    Neighbour,
    TracePlace,
    follow_command,
    short_key,
)
from chainmark.systems.trails.trail import Trail

_NS_PER_S = 1_000_000_000
_MOST_DIGITS = 18  # of a number that a column of 64 bits can hold
_NAMED = 3
_FEWEST_USUAL = 3
_COUNT = "things"
_FIRST_EVENT = "first event"
Row = dict[str, Any]


class Follower:
    """Follows the things of one trail through one run.

    Args:
        events: the trail's events, one row per thing and place; only what is needed of them is read.
        trail: says what the columns mean.
        manifest: of the run.

    Raises:
        InvalidRunError: the events have no column that names the thing, or none that names the place.
    """

    def __init__(self, events: pl.LazyFrame, trail: Trail, manifest: Manifest) -> None:
        self._trail = trail
        self._manifest = manifest
        self._columns = set(events.collect_schema().names())
        lacking = next((name for name in (trail.key, trail.place) if name not in self._columns), None)
        if lacking is not None:
            raise InvalidRunError(
                f"the events `{trail.events}` of run `{manifest.run_id}` have no column `{lacking}`",
                f"`chainmark runs verify {manifest.run_id}` says what changed",
            )
        self._events = events.with_columns(pl.col(trail.key).cast(pl.String), pl.col(trail.place).cast(pl.String))
        self._everywhere: list[str] | None = None

    def find(self, reference: str) -> str:
        """The key of the thing with that key, that number, or a key that begins like that.

        Of several with one number it is the main one, or else the one that most places know.

        Raises:
            UsageError: there is none, or several begin like that.
        """
        key = pl.col(self._trail.key)
        if self._keys(key == reference):
            return reference
        number = self._number_column
        if number and reference.isdecimal() and len(reference) <= _MOST_DIGITS:
            rows = self._read(pl.col(number) == int(reference))
            if rows:
                return self._ranked(rows)[0]
        result = self._keys(key.str.starts_with(reference)) if reference else []
        label = self._trail.label
        if not result:
            raise UsageError(f"run `{self._manifest.run_id}` has no {label} `{reference}`", self._range_hint())
        if len(result) > 1:
            names = ", ".join(short_key(name) for name in result[:_NAMED])
            raise UsageError(
                f"`{reference}` is the beginning of {len(result)} {label}s: {names} …", "give more of its characters"
            )
        return result[0]

    def story(self, key: str) -> Trace:
        """The story of a thing that is there."""
        return self.stories([key])[key]

    def stories(self, keys: Iterable[str]) -> dict[str, Trace]:
        """The stories of those of the keys that are there, in two readings of the events however many they are."""
        wanted = sorted(set(keys))
        where = pl.col(self._trail.key).is_in(wanted)
        if self._number_column:
            numbers = self._events.filter(where).select(self._number_column).unique().collect().to_series().drop_nulls()
            where |= pl.col(self._number_column).is_in(numbers.sort().to_list())
        by_key = _grouped(self._read(where), self._trail.key)
        return {key: self._trace(key, by_key) for key in wanted if key in by_key}

    def of_places(self, key: str, column: str | None) -> dict[str, str]:
        """What a column says of the places of a thing, where it says something."""
        if column is None or column not in self._columns:
            return {}
        rows = self._events.filter(pl.col(self._trail.key) == key, pl.col(column).is_not_null())
        return dict(rows.select(self._trail.place, pl.col(column).cast(pl.String)).collect().rows())

    def usual_s(self) -> list[float | None]:
        """When each stage is, s after the base: the median over all things that count of their medians over places.

        Empty where there are fewer than three, or nothing is known that the times could be counted from.
        """
        trail, base = self._trail, self._known(self._trail.base)
        if base is None:
            return []
        main = self._known(trail.main)
        events = self._events if main is None else self._events.filter(pl.col(main))
        stages = [stage.time for stage in trail.stages]
        messages = [name for name in stages if name in self._columns]
        things = events.group_by(trail.key).agg(pl.col(name).median() - pl.col(base).min() for name in messages)
        (row,) = (
            things.select(pl.len().alias(_COUNT), *(pl.col(name).median() for name in messages)).collect().to_dicts()
        )
        if row[_COUNT] < _FEWEST_USUAL:
            return []
        return [None if row.get(name) is None else row[name] / _NS_PER_S for name in stages]

    def numbers(self, keys: Iterable[str]) -> dict[str, int]:
        """The numbers of those of the keys that have one."""
        number = self._number_column
        if number is None:
            return {}
        where = pl.col(self._trail.key).is_in(sorted(set(keys))) & pl.col(number).is_not_null()
        rows = self._events.filter(where).select(self._trail.key, number).unique().collect().rows()
        return dict(sorted(rows))

    @property
    def _number_column(self) -> str | None:
        return self._known(self._trail.number)

    def _known(self, column: str | None) -> str | None:
        return column if column in self._columns else None

    def _keys(self, where: pl.Expr) -> list[str]:
        results: list[str] = self._events.filter(where).select(self._trail.key).unique().collect().to_series().to_list()
        return sorted(results)

    def _read(self, where: pl.Expr) -> list[Row]:
        trail = self._trail
        stages = [name for stage in trail.stages for name in (stage.time, stage.file, stage.line)]
        wanted = [trail.key, trail.number, trail.main, trail.place, trail.role, trail.base, *trail.facts, *stages]
        columns = [name for name in dict.fromkeys(wanted) if name is not None and name in self._columns]
        return self._events.filter(where).select(columns).collect().sort(trail.key, trail.place).to_dicts()

    def _ranked(self, rows: Sequence[Row]) -> list[str]:
        """Keys with the main thing first, then those that more places know."""
        by_key = _grouped(rows, self._trail.key)

        def rank(key: str) -> tuple[bool, int, str]:
            is_main = any(row.get(self._trail.main or "") is True for row in by_key[key])
            return (not is_main, -len(by_key[key]), key)

        return sorted(by_key, key=rank)

    def _range_hint(self) -> str:
        label = self._trail.label
        number = self._number_column
        if number is None:
            return f"give the {label}'s key or the beginning of it"
        ends = self._events.select(pl.col(number).min().alias("low"), pl.col(number).max().alias("high")).collect()
        low, high = ends.row(0)
        if low is None:
            return f"the run has events of no {label}"
        return f"its {label}s have the {self._trail.number_label or 'number'}s {low} to {high}"

    def _all_places(self) -> list[str]:
        if self._everywhere is None:
            self._everywhere = sorted(self._events.select(self._trail.place).unique().collect().to_series().to_list())
        return self._everywhere

    def _trace(self, key: str, by_key: Mapping[str, Sequence[Row]]) -> Trace:
        trail, rows = self._trail, by_key[key]
        number = _first(rows, self._number_column)
        base_ns, base_label = self._base(rows)
        facts, place_facts = self._facts(rows)
        end = _end_stage([[row.get(stage.time) for stage in trail.stages] for row in rows])
        files = _Files(self._manifest)
        places = [self._place(row, base_ns, list(place_facts), files) for row in rows]
        places.sort(key=lambda place: _order(place, end))
        known = {place.place for place in places}
        told_s = [seconds for place in places if (seconds := place.seconds[end]) is not None]
        others = [
            other for other in by_key if other != key and number is not None and number == self._number(by_key[other])
        ]
        manifest = self._manifest
        return Trace(
            run_id=manifest.run_id,
            subject=f"{manifest.subject.name} {manifest.subject.version}",
            trail_id=trail.id,
            label=trail.label,
            key=key,
            number=number,
            number_label=trail.number_label,
            place_label=trail.place_label,
            base_label=base_label,
            base_ns=base_ns,
            stages=[stage.label for stage in trail.stages],
            end=end,
            median_s=median(told_s) if len(told_s) > 2 else None,
            facts=facts,
            place_facts=list(place_facts.values()),
            files=files.names,
            places=places,
            slowest=[_slowest(places, stage) for stage in range(len(trail.stages))],
            absent=[place for place in self._all_places() if place not in known],
            untold=_missing_stages(places, len(trail.stages)),
            neighbours=[self._neighbour(other, by_key[other]) for other in sorted(others)],
            command=follow_command(trail.id, manifest.run_id, key),
            caveats=caveats_of([manifest]),
        )

    def _number(self, rows: Sequence[Row]) -> int | None:
        return _first(rows, self._number_column)

    def _base(self, rows: Sequence[Row]) -> tuple[int | None, str]:
        """The time that all others are counted from: where it is not known, the first that was told."""
        messages = [row[self._trail.base] for row in rows if row.get(self._trail.base) is not None]
        if messages:
            return min(messages), self._trail.base_label
        times = [row.get(stage.time) for row in rows for stage in self._trail.stages]
        return min((time for time in times if time is not None), default=None), _FIRST_EVENT

    def _facts(self, rows: Sequence[Row]) -> tuple[list[Fact], dict[str, str]]:
        """What is the same wherever it is told, and the columns (with their labels) of what differs by place.

        What few tell is of the thing only if the place where it began does: an error of one place is not.
        """
        facts = self._lone_roles(rows)
        origin = self._origin(rows)
        differing: dict[str, str] = {}
        for column, label in self._trail.facts.items():
            messages = [text for row in rows if (text := _text(row.get(column)))]
            if len(set(messages)) == 1 and (2 * len(messages) >= len(rows) or _text(origin.get(column))):
                facts.append(Fact(label=label, value=messages[0]))
            elif messages:
                differing[column] = label
        return facts, differing

    def _origin(self, rows: Sequence[Row]) -> Row:
        """The row with the first time of all."""

        def first(row: Row) -> tuple[bool, int, str]:
            times = [time for stage in self._trail.stages if (time := row.get(stage.time)) is not None]
            return (not times, min(times, default=0), row[self._trail.place])

        return min(rows, key=first)

    def _lone_roles(self, rows: Sequence[Row]) -> list[Fact]:
        """The roles that only one place has, such as the forger."""
        roles = Counter(_text(row.get(self._trail.role or "")) for row in rows)
        lone = {role for role, places in roles.items() if role and places == 1 and len(roles) > 1}
        results = [(_text(row.get(self._trail.role or "")), row[self._trail.place]) for row in rows]
        return [Fact(label=role, value=place) for role, place in sorted(results) if role in lone]

    def _place(self, row: Row, base_ns: int | None, fact_columns: Sequence[str], files: _Files) -> TracePlace:
        stages = self._trail.stages
        times = [row.get(stage.time) for stage in stages]
        place = row[self._trail.place]
        lines = [row.get(stage.line or "") for stage in stages]
        named = [row.get(stage.file or "") for stage in stages]
        return TracePlace(
            place=place,
            role=_text(row.get(self._trail.role or "")),
            seconds=[None if time is None or base_ns is None else (time - base_ns) / _NS_PER_S for time in times],
            steps=_steps(times),
            files=[None if line is None else files.index(place, name) for name, line in zip(named, lines, strict=True)],
            lines=lines,
            facts=[_text(row.get(column)) for column in fact_columns],
        )

    def _neighbour(self, key: str, rows: Sequence[Row]) -> Neighbour:
        facts, _ = self._facts(rows)
        return Neighbour(key=key, places=len(rows), facts=facts)


@dataclass
class _Files:
    """The files of a story's log lines, by their index."""

    manifest: Manifest

    def __post_init__(self) -> None:
        self.names: list[str] = []
        self._of_place: dict[str, list[str]] = {}

    def index(self, place: str, file: str | int | None) -> int | None:
        """The index of a file that an event names by its path, or by its number among the place's files."""
        if file is None:
            return None
        name = file if isinstance(file, str) else self._of_number(place, file)
        if name is None:
            return None
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def _of_number(self, place: str, number: int) -> str | None:
        if place not in self._of_place:
            self._of_place[place] = [
                source.path
                for source in self.manifest.sources
                if source.place == place or (source.place is None and _is_of(PurePosixPath(source.path), place))
            ]
        result = self._of_place[place]
        return result[number] if 0 <= number < len(result) else None


def _is_of(path: PurePosixPath, place: str) -> bool:
    """Whether a place's log lies there: in a folder of its name, or under its name."""
    return place in path.parts[:-1] or path.name.startswith((f"{place}.", f"{place}-", f"{place}_"))


def _grouped(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    return groups


def _first(rows: Sequence[Row], column: str | None) -> int | None:
    return next((row[column] for row in rows if column and row.get(column) is not None), None)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return units.tidy(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)


def _before(times: Sequence[int | float | None], stage: int) -> int | None:
    """The stage that a stage's step is counted from: the nearest earlier one that was told and had come by then.

    Where none had come by then, the nearest earlier one that was told, so that a step back in time is seen; None where
    none was told.
    """
    time = times[stage]
    messages = [other for other in range(stage) if times[other] is not None]
    if time is None or not messages:
        return None
    by_then = [other for other in messages if (then := times[other]) is not None and then <= time]
    return max(by_then or messages)


def _steps(times: Sequence[int | None]) -> list[float | None]:
    """Seconds since the stage before; None where there is none."""
    steps: list[float | None] = []
    for stage, time in enumerate(times):
        before = _before(times, stage)
        then = None if before is None else times[before]
        steps.append(None if time is None or then is None else (time - then) / _NS_PER_S)
    return steps


def _end_stage(times: Sequence[Sequence[int | None]]) -> int:
    """The last stage that at least half of the places told; failing that, the last that any told."""
    stages = len(times[0]) if times else 0
    messages = [sum(row[stage] is not None for row in times) for stage in range(stages)]
    usual = [stage for stage in range(stages) if 2 * messages[stage] >= len(times)]
    return max(usual or [stage for stage in range(stages) if messages[stage]], default=max(0, stages - 1))


def _order(place: TracePlace, end: int) -> tuple[bool, float, float, str]:
    last = place.seconds[end] if place.seconds else None
    reach = max((time for time in place.seconds if time is not None), default=0.0)
    return (last is None, 0.0 if last is None else last, reach, place.place)


def _slowest(places: Sequence[TracePlace], stage: int) -> int | None:
    """The place with the longest step to a stage, among the most that took that step from the same stage.

    None where fewer than three can be compared, or several took as long.
    """
    alike: dict[int, list[tuple[float, int]]] = {}
    for index, place in enumerate(places):
        step, before = place.steps[stage], _before(place.seconds, stage)
        if step is not None and before is not None:
            alike.setdefault(before, []).append((step, index))
    steps = max(alike.values(), key=len, default=[])
    if len(steps) < 3:
        return None
    longest, where = max(steps)
    return where if sum(step == longest for step, _ in steps) == 1 else None


def _missing_stages(places: Sequence[TracePlace], stages: int) -> list[MissingStage]:
    """Per stage, the places that did not tell it although at least half of those in their role did."""
    missing_stages = []
    for stage in range(stages):
        silent = []
        for role in sorted({place.role for place in places}):
            members = [place for place in places if place.role == role]
            quiet = [place.place for place in members if place.seconds[stage] is None]
            if 0 < len(quiet) <= len(members) / 2:
                silent += quiet
        if silent:
            missing_stages.append(MissingStage(stage=stage, places=sorted(silent)))
    return missing_stages
