"""The trace of one item, such as a block: what happened to it at every place, with the log lines as evidence."""

from __future__ import annotations

import shlex
from typing import Annotated
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.former_names import renamed
from chainmark.core.manifest import Fact

SCHEMA_VERSION = 2
_OWN_COMMANDS = ("block", "transaction", "request")


class TracePlace(BaseModel):
    """What happened at one place. Every list follows the trace's stages.

    role: role of the place: "producer", "observer"; "" if unknown.
        role: role of the place: "producer", "observer"; "" if unknown.
        seconds: time of the stage, s after the trace's base; None if not reported.
        steps: s since the nearest earlier stage that the place reported and that had occurred by then; negative where
            none had; None for the first one.
        files: index into the trace's files; None if no line is known.
        lines: line of that file, from 1.
        facts: one value per place fact of the trace; "" if there is none.
    """

    model_config = ConfigDict(extra="forbid")

    place: str
    role: str = ""
    seconds: list[float | None]
    steps: list[float | None]
    files: list[int | None] = []
    lines: list[int | None] = []
    facts: list[str] = []


class MissingStage(BaseModel):
    """A stage that some places did not report although others in the same role did."""

    model_config = ConfigDict(extra="forbid")

    stage: int
    places: list[str]


class Neighbour(BaseModel):
    """Another item with the same number: the other side of a fork."""

    model_config = ConfigDict(extra="forbid")

    key: str
    places: int
    facts: list[Fact]


class LogLine(BaseModel):
    """A log line that reports a stage. ``problem`` says why it may not be the line that was read; "" if it is."""

    model_config = ConfigDict(extra="forbid")

    place: str
    stage: int
    file: str
    line: int
    text: str = ""
    problem: str = ""


class RegionOfMap(BaseModel):
    """A region: its number of places, and when the first of them reported the trace's last stage."""

    model_config = ConfigDict(extra="forbid")

    name: str
    places: int
    first_s: float | None


class RegionHop(BaseModel):
    """How long the item took from the places of one region to those of another, s.

    Attributes:
        places: number of places that received it over this hop.
        round_trip_s: between the regions, as measured or stated; None if unknown.
    """

    model_config = ConfigDict(extra="forbid")

    origin: str
    region: str
    places: int
    median_s: float
    longest_s: float
    round_trip_s: float | None = None


class RegionMap(BaseModel):
    """The path of the item over the regions. ``unknown`` is the number of places whose sender is unknown."""

    model_config = ConfigDict(extra="forbid")

    regions: list[RegionOfMap]
    hops: list[RegionHop]
    unknown: int = 0


class Trace(BaseModel):
    """The path of one item through a run. An item without places has one unnamed place and no ``place_label``.

    Attributes:
        subject: subject of the run: "NAME 10.6.2".
        label: noun for such an item: "block".
        key: identifies the item; ``number`` finds it too, but several items may share one.
        base_label: what the times are relative to; ``base_ns`` is its time, ns since the epoch, None if unknown.
        stages: their labels, in chronological order.
        end: index of the stage that the places are sorted by, the last that most of them reported.
        median_s: median over places of the time of that stage, s after the base; None if fewer than three reported it.
        alias: a second identifier: its hash.
        medians_s: per stage, s after the base, the median over the places that reported it, None if none did; empty for
            an item without places.
        outcome: how it ended; ``is_done`` if it reached the end, or if the run does not record outcomes.
        usual_s: per stage, s after the base, the median over the run's counted items of their medians over places;
            empty if there are fewer than three. ``counted_label`` says which items are counted.
        facts: of the item; ``place_facts`` are the labels of the facts that differ between places.
        files: of the places' log lines, relative to the folder that was imported.
        places: sorted by their last stage, those that did not report it at the end.
        slowest: indices into ``places``: for every stage the place with the longest step, None if there is no unique
            one.
        shown: the selected places; empty: all of them are shown.
        absent: places of the run without any record of the item.
        log_lines: the lines themselves, if requested.
        region_map: the path over the regions; None if it is unknown or was not requested.
        no_map: why there is no map.
        command: shows this trace again.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA_VERSION
    run_id: str
    subject: str
    trail_id: str
    label: str
    key: str
    number: int | None = None
    number_label: str = ""
    caveats: CaveatsField = Caveats()
    place_label: str
    base_label: str
    base_ns: int | None = None
    stages: list[str]
    end: int
    median_s: float | None = None
    medians_s: list[float | None] = Field(default_factory=list, exclude_if=lambda value: not value)
    alias: str = Field(default="", exclude_if=lambda value: not value)
    outcome: str = Field(default="", exclude_if=lambda value: not value)
    is_done: bool = Field(default=True, exclude_if=lambda value: value)
    usual_s: list[float | None] = Field(default_factory=list, exclude_if=lambda value: not value)
    counted_label: str = Field(default="", exclude_if=lambda value: not value)
    facts: list[Fact] = []
    place_facts: list[str] = []
    files: list[str] = []
    places: list[TracePlace]
    slowest: list[int | None] = []
    shown: list[str] = []
    absent: list[str] = []
    missing_stages: Annotated[list[MissingStage], renamed("missing_stages", "untold")] = []
    neighbours: list[Neighbour] = []
    log_lines: list[LogLine] = []
    region_map: RegionMap | None = None
    no_map: str = ""
    command: str

    @property
    def name(self) -> str:
        """The item's title: "block 1234"; without a number, the first characters of its key."""
        return f"{self.label} {short_key(self.key) if self.number is None else self.number}"

    @property
    def last(self) -> int:
        """The last stage that any place reported."""
        reported = [stage for place in self.places for stage, second in enumerate(place.seconds) if second is not None]
        return max(reported, default=0)

    @property
    def rows(self) -> list[int]:
        """Indices of the places that are shown."""
        return [index for index, place in enumerate(self.places) if not self.shown or place.place in self.shown]


def short_key(key: str) -> str:
    """A prefix of a long key that is unique within a run."""
    return key if len(key) <= 20 else key[:16]


class SlowestTraces(BaseModel):
    """The slowest items of a run, and some of those that did not reach the end.

    Attributes:
        total: number of items in the run.
        outcomes: number of items per outcome; empty if the run does not record outcomes. ``done`` is the outcome of the
            items that reached the end.
        counted: number of counted items, among which the slowest are chosen; ``counted_label`` says which items are
            counted.
        slowest: slowest first, each with the medians of the run.
        others: the first items with another outcome.
        listed: labels of the facts in the list.
        command: shows this again.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA_VERSION
    run_id: str
    subject: str
    trail_id: str
    label: str
    caveats: CaveatsField = Caveats()
    total: int
    outcomes: dict[str, int] = {}
    done: str = ""
    counted: int
    counted_label: str = ""
    slowest: list[Trace]
    others: list[Trace] = []
    listed: list[str] = []
    command: str


def follow_command(trail_id: str, run_id: str, key: str = "") -> str:
    """The command that shows the trace of an item; by default the slowest."""
    order = f"{trail_id} {run_id}" if trail_id in _OWN_COMMANDS else f"trail {run_id} {trail_id}"
    return f"chainmark {order} {shlex.quote(short_key(key))}" if key else f"chainmark {order}"


def follow_address(trail_id: str, run_id: str, key: str = "") -> str:
    """The dashboard's page of an item; by default the slowest."""
    return f"/follow?{urlencode({'run': run_id, 'trail': trail_id} | ({'key': key} if key else {}))}"
