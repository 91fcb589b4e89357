"""From a block's hash to its trace: a run's events, filtered to one item and sorted."""

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
from chainmark.stats.description import joined_key
from chainmark.trails.trace import (
    MissingStage,
    Neighbour,
    Trace,
    TracePlace,
    follow_command,
    short_key,
)
from chainmark.trails.trail import Trail

_NS_PER_S = 1_000_000_000
_MOST_DIGITS = 18  # of a number that fits a 64-bit column
_NAMED = 3
_FEWEST_USUAL = 3
_COUNT = "things"
_FIRST_EVENT = "first event"
_TOOK, _PLACE = "time to the end", "the place"
_HASH_PREFIX = "0x"
Row = dict[str, Any]


class Follower:
    """Follows the items of one trail through one run.

    Args:
        events: the trail's events, one row per item and place; only the needed columns are read.
        trail: defines the columns.
        manifest: of the run.

    Raises:
        InvalidRunError: the events lack the column that names the item, or the one that names the place.
    """

    def __init__(self, events: pl.LazyFrame, trail: Trail, manifest: Manifest) -> None:
        self._trail = trail
        self._manifest = manifest
        self._columns = set(events.collect_schema().names())
        needed = [*trail.key_columns, *([trail.place] if trail.place else [])]
        lacking = next((name for name in needed if name not in self._columns), None)
        if lacking is not None:
            raise InvalidRunError(
                f"the events `{trail.events}` of run `{manifest.run_id}` have no column `{lacking}`",
                f"`chainmark runs verify {manifest.run_id}` shows what changed",
            )
        self._key, self._place_column = "-".join(trail.key_columns), trail.place or _PLACE
        place = pl.lit("").alias(_PLACE) if trail.place is None else pl.col(trail.place).cast(pl.String)
        self._events = events.with_columns(joined_key(trail.key_columns, self._key), place)
        self._everywhere: list[str] | None = None

    @property
    def subject(self) -> str:
        """The subject of the run: "NAME 10.6.2"."""
        return f"{self._manifest.subject.name} {self._manifest.subject.version}"

    @property
    def has_places(self) -> bool:
        """Whether an item is reported by several places."""
        return self._trail.place is not None

    def find(self, reference: str) -> str:
        """The key of the item with that key or number, or with a key or alias that begins with the text.

        Of several with one number it is the main one, otherwise the one that most places know.

        Raises:
            UsageError: there is none, or several match.
        """
        key = pl.col(self._key)
        if self._keys(key == reference):
            return reference
        number = self._number_column
        if number and reference.isdecimal() and len(reference) <= _MOST_DIGITS:
            rows = self._read(pl.col(number) == int(reference))
            if rows:
                return self._ranked(rows)[0]
        result = self._keys(self._begins(reference)) if reference else []
        label = self._trail.label
        if not result:
            raise UsageError(f"run `{self._manifest.run_id}` has no {label} `{reference}`", self._range_hint())
        if len(result) > 1:
            names = ", ".join(short_key(name) for name in result[:_NAMED])
            raise UsageError(
                f"`{reference}` is the beginning of {len(result)} {label}s: {names} …", "give more characters"
            )
        return result[0]

    def trace(self, key: str) -> Trace:
        """The trace of an existing item."""
        return self.traces([key])[key]

    def traces(self, keys: Iterable[str]) -> dict[str, Trace]:
        """The traces of the existing ones of the keys, in two scans of the events however many they are."""
        wanted = sorted(set(keys))
        where = pl.col(self._key).is_in(wanted)
        if self._number_column:
            numbers = self._events.filter(where).select(self._number_column).unique().collect().to_series().drop_nulls()
            where |= pl.col(self._number_column).is_in(numbers.sort().to_list())
        by_key = _grouped(self._read(where), self._key)
        return {key: self._trace(key, by_key) for key in wanted if key in by_key}

    def of_places(self, key: str, column: str | None) -> dict[str, str]:
        """The values of a column at the places of an item, where there are any."""
        if column is None or column not in self._columns:
            return {}
        rows = self._events.filter(pl.col(self._key) == key, pl.col(column).is_not_null())
        return dict(rows.select(self._place_column, pl.col(column).cast(pl.String)).collect().rows())

    def usual_s(self) -> list[float | None]:
        """Time of each stage, s after the base: the median over all counted items of their medians over places.

        Empty if there are fewer than three, or if the base is unknown.
        """
        base = self._known(self._trail.base)
        if base is None or self._trail.only_slowest:
            return []
        stages = [stage.time for stage in self._trail.stages]
        messages = [name for name in stages if name in self._columns]
        if self._trail.place is None:
            things = self._counted().select(pl.col(name) - pl.col(base) for name in messages)
        else:
            by_key = self._counted().group_by(self._key)
            things = by_key.agg(pl.col(name).median() - pl.col(base).min() for name in messages)
        (row,) = (
            things.select(pl.len().alias(_COUNT), *(pl.col(name).median() for name in messages)).collect().to_dicts()
        )
        if row[_COUNT] < _FEWEST_USUAL:
            return []
        return [None if row.get(name) is None else row[name] / _NS_PER_S for name in stages]

    def slowest(self, most: int) -> list[str]:
        """The keys of the items with the longest time from the base to the last stage that most reach, slowest first.

        The time of an item with several places is that of the last of them.
        """
        base, end = self._known(self._trail.base), self._usual_end()
        if base is None or end is None:
            return []
        if self._trail.place is None:
            took = self._counted().select(self._key, (pl.col(end) - pl.col(base)).alias(_TOOK))
        else:
            by_key = self._counted().group_by(self._key)
            took = by_key.agg((pl.col(end).max() - pl.col(base).min()).alias(_TOOK))
        known = took.filter(pl.col(_TOOK).is_not_null()).sort(_TOOK, self._key, descending=[True, False])
        return list(known.head(most).collect()[self._key])

    def others(self, most: int) -> list[str]:
        """The keys of the first items that did not end normally."""
        outcome, base = self._known(self._trail.outcome), self._known(self._trail.base)
        if outcome is None or base is None:
            return []
        rows = self._events.filter(pl.col(outcome).ne_missing(self._trail.done)).sort(base, self._key)
        return list(rows.select(self._key).unique(maintain_order=True).head(most).collect()[self._key])

    def outcomes(self) -> dict[str, int]:
        """The number of items per outcome, the normal one first; empty if the run does not record outcomes."""
        if (outcome := self._known(self._trail.outcome)) is None:
            return {}
        counts = dict(self._events.group_by(outcome).agg(self._things()).collect().rows())
        return dict(sorted(counts.items(), key=lambda item: (item[0] != self._trail.done, -item[1], item[0])))

    def size(self) -> tuple[int, int]:
        """The number of items, and of counted ones."""
        total, counted = (
            int(events.select(self._things()).collect().item()) for events in (self._events, self._counted())
        )
        return total, counted

    def _things(self) -> pl.Expr:
        """The number of items among rows."""
        return pl.len() if self._trail.place is None else pl.col(self._key).n_unique()

    def _counted(self) -> pl.LazyFrame:
        """The events of the counted items."""
        main = self._known(self._trail.main)
        return self._events if main is None else self._events.filter(pl.col(main))

    def _usual_end(self) -> str | None:
        """The last stage that at least half of the rows of the counted items report."""
        stages = [stage.time for stage in self._trail.stages if stage.time in self._columns]
        counts = self._counted().select(pl.len().alias(_COUNT), *(pl.col(name).count() for name in stages))
        (row,) = counts.collect().to_dicts()
        return next((name for name in reversed(stages) if row[name] and 2 * row[name] >= row[_COUNT]), None)

    def numbers(self, keys: Iterable[str]) -> dict[str, int]:
        """The numbers of those of the keys that have one."""
        number = self._number_column
        if number is None:
            return {}
        where = pl.col(self._key).is_in(sorted(set(keys))) & pl.col(number).is_not_null()
        rows = self._events.filter(where).select(self._key, number).unique().collect().rows()
        return dict(sorted(rows))

    @property
    def _number_column(self) -> str | None:
        return self._known(self._trail.number)

    def _known(self, column: str | None) -> str | None:
        return column if column in self._columns else None

    def _keys(self, where: pl.Expr) -> list[str]:
        results: list[str] = self._events.filter(where).select(self._key).unique().collect().to_series().to_list()
        return sorted(results)

    def _begins(self, reference: str) -> pl.Expr:
        """Whether an item's key begins with the text, or its alias, which is a hash: case-insensitive."""
        alias = self._known(self._trail.alias)
        begins = pl.col(self._key).str.starts_with(reference)
        if alias is None:
            return begins
        digits = reference.lower().removeprefix(_HASH_PREFIX)
        is_alias = pl.col(alias).str.to_lowercase().str.starts_with(digits) if digits else pl.lit(value=False)
        # "0-1" is a prefix of "0-10" and "0-11", which is not what a user means.
        return is_alias if len(self._trail.key_columns) > 1 else begins | is_alias

    def _read(self, where: pl.Expr) -> list[Row]:
        trail = self._trail
        stages = [name for stage in trail.stages for name in (stage.time, stage.file, stage.line)]
        wanted = [trail.alias, trail.number, trail.main, trail.role, trail.outcome, trail.base, *trail.facts, *stages]
        known = [name for name in wanted if name is not None and name in self._columns]
        columns = dict.fromkeys([self._key, self._place_column, *known])
        return self._events.filter(where).select(*columns).collect().sort(self._key, self._place_column).to_dicts()

    def _ranked(self, rows: Sequence[Row]) -> list[str]:
        """Keys sorted: the main item first, then those that more places know."""
        by_key = _grouped(rows, self._key)

        def rank(key: str) -> tuple[bool, int, str]:
            is_main = any(row.get(self._trail.main or "") is True for row in by_key[key])
            return (not is_main, -len(by_key[key]), key)

        return sorted(by_key, key=rank)

    def _range_hint(self) -> str:
        label = self._trail.label
        number = self._number_column
        if number is None:
            slowest = follow_command(self._trail.id, self._manifest.run_id)
            return f"give the key of the {label} or the beginning of its hash; `{slowest}` lists the slowest"
        ends = self._events.select(pl.col(number).min().alias("low"), pl.col(number).max().alias("high")).collect()
        low, high = ends.row(0)
        if low is None:
            return f"the run has no {label} events"
        return f"the {self._trail.number_label or 'number'}s of its {label}s are {low} to {high}"

    def _all_places(self) -> list[str]:
        if self._everywhere is None:
            places = self._events.select(self._place_column).unique().collect().to_series().to_list()
            self._everywhere = [] if self._trail.place is None else sorted(places)
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
        end_s = [seconds for place in places if (seconds := place.seconds[end]) is not None]
        others = [
            other for other in by_key if other != key and number is not None and number == self._number(by_key[other])
        ]
        manifest = self._manifest
        return Trace(
            run_id=manifest.run_id,
            subject=self.subject,
            trail_id=trail.id,
            label=trail.label,
            key=key,
            number=number,
            number_label=trail.number_label,
            counted_label=trail.main_label,
            alias=_text(rows[0].get(trail.alias or "")),
            outcome=(outcome := _text(rows[0].get(trail.outcome or ""))),
            is_done=outcome in ("", trail.done),
            place_label=trail.place_label,
            base_label=base_label,
            base_ns=base_ns,
            stages=[stage.label for stage in trail.stages],
            end=end,
            median_s=median(end_s) if len(end_s) > 2 else None,
            medians_s=_medians(places, len(trail.stages)) if trail.place_label else [],
            facts=facts,
            place_facts=list(place_facts.values()),
            files=files.names,
            places=places,
            slowest=[_slowest(places, stage) for stage in range(len(trail.stages))],
            absent=[place for place in self._all_places() if place not in known],
            missing_stages=_missing_stages(places, len(trail.stages)),
            neighbours=[self._neighbour(other, by_key[other]) for other in sorted(others)],
            command=follow_command(trail.id, manifest.run_id, key),
            caveats=caveats_of([manifest]),
        )

    def _number(self, rows: Sequence[Row]) -> int | None:
        return _first(rows, self._number_column)

    def _base(self, rows: Sequence[Row]) -> tuple[int | None, str]:
        """The reference time of all others: if it is unknown, the first reported time."""
        messages = [row[self._trail.base] for row in rows if row.get(self._trail.base) is not None]
        if messages:
            return min(messages), self._trail.base_label
        times = [row.get(stage.time) for row in rows for stage in self._trail.stages]
        return min((time for time in times if time is not None), default=None), _FIRST_EVENT

    def _facts(self, rows: Sequence[Row]) -> tuple[list[Fact], dict[str, str]]:
        """Facts that are the same at every place, and the columns (with labels) of those that differ.

        A fact that few places report belongs to the item only if its origin reports it; an error of one place does not.
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
        """The row with the earliest time."""

        def first(row: Row) -> tuple[bool, int, str]:
            times = [time for stage in self._trail.stages if (time := row.get(stage.time)) is not None]
            return (not times, min(times, default=0), row[self._place_column])

        return min(rows, key=first)

    def _lone_roles(self, rows: Sequence[Row]) -> list[Fact]:
        """The roles that only one place has, such as a block's producer."""
        roles = Counter(_text(row.get(self._trail.role or "")) for row in rows)
        lone = {role for role, places in roles.items() if role and places == 1 and len(roles) > 1}
        results = [(_text(row.get(self._trail.role or "")), row[self._place_column]) for row in rows]
        return [Fact(label=role, value=place) for role, place in sorted(results) if role in lone]

    def _place(self, row: Row, base_ns: int | None, fact_columns: Sequence[str], files: _Files) -> TracePlace:
        stages = self._trail.stages
        times = [row.get(stage.time) for stage in stages]
        place = row[self._place_column]
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
    """The files of a trace's log lines, by their index."""

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
    """Whether a file is of a place's log: in a folder of its name, or named after it."""
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
    """The reference stage of a step: the nearest earlier stage that was reported and had occurred by then.

    If none had occurred by then, the nearest earlier reported one, so that a step back in time is visible; None if none
    was reported.
    """
    time = times[stage]
    messages = [other for other in range(stage) if times[other] is not None]
    if time is None or not messages:
        return None
    by_then = [other for other in messages if (then := times[other]) is not None and then <= time]
    return max(by_then or messages)


def _steps(times: Sequence[int | None]) -> list[float | None]:
    """Seconds since the reference stage; None if there is none."""
    steps: list[float | None] = []
    for stage, time in enumerate(times):
        before = _before(times, stage)
        then = None if before is None else times[before]
        steps.append(None if time is None or then is None else (time - then) / _NS_PER_S)
    return steps


def _end_stage(times: Sequence[Sequence[int | None]]) -> int:
    """The last stage that at least half of the places reported; otherwise the last that any reported."""
    stages = len(times[0]) if times else 0
    messages = [sum(row[stage] is not None for row in times) for stage in range(stages)]
    usual = [stage for stage in range(stages) if 2 * messages[stage] >= len(times)]
    return max(usual or [stage for stage in range(stages) if messages[stage]], default=max(0, stages - 1))


def _order(place: TracePlace, end: int) -> tuple[bool, float, float, str]:
    last = place.seconds[end] if place.seconds else None
    reach = max((time for time in place.seconds if time is not None), default=0.0)
    return (last is None, 0.0 if last is None else last, reach, place.place)


def _medians(places: Sequence[TracePlace], stages: int) -> list[float | None]:
    """The median of each stage over the places that reported it."""
    reported = [[second for place in places if (second := place.seconds[stage]) is not None] for stage in range(stages)]
    return [median(seconds) if seconds else None for seconds in reported]


def _slowest(places: Sequence[TracePlace], stage: int) -> int | None:
    """The place with the longest step to a stage, within the largest group with the same reference stage.

    None if fewer than three can be compared, or several are equally slow.
    """
    by_reference: dict[int, list[tuple[float, int]]] = {}
    for index, place in enumerate(places):
        step, before = place.steps[stage], _before(place.seconds, stage)
        if step is not None and before is not None:
            by_reference.setdefault(before, []).append((step, index))
    steps = max(by_reference.values(), key=len, default=[])
    if len(steps) < 3:
        return None
    longest, where = max(steps)
    return where if sum(step == longest for step, _ in steps) == 1 else None


def _missing_stages(places: Sequence[TracePlace], stages: int) -> list[MissingStage]:
    """Per stage, the places that did not report it although at least half of those in their role did."""
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
