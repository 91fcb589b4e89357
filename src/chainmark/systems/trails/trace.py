"""The story of one thing, such as a block: what happened to it at every place, and which log lines say so."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.manifest import Fact

SCHEMA_VERSION = 2
_OWN_COMMANDS = ("block", "transaction", "request")


class TracePlace(BaseModel):
    """What happened at one place. Every list follows the story's stages.

    Attributes:
        role: what the place did: "forger", "observer"; "" where that is not known.
        seconds: when the stage was told, s after the story's base; None: not told.
        steps: s since the stage before, the nearest earlier one that the place told and that had come by then; negative
            where none had; None for the first one.
        files: index into the story's files; None: no line is known.
        lines: line of that file, from 1.
        facts: one value for each of the story's place facts; "" where there is none.
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
    """A stage that some places did not tell although others in the same role did."""

    model_config = ConfigDict(extra="forbid")

    stage: int
    places: list[str]


class Neighbour(BaseModel):
    """Another thing with the same number: the other side of a fork."""

    model_config = ConfigDict(extra="forbid")

    key: str
    places: int
    facts: list[Fact]


class LogLine(BaseModel):
    """A line of a log that tells a stage. ``problem`` says why it may not be what was read; "" if all is well."""

    model_config = ConfigDict(extra="forbid")

    place: str
    stage: int
    file: str
    line: int
    text: str = ""
    problem: str = ""


class RegionOfMap(BaseModel):
    """A region: how many places it has, and when the first of them told the story's last stage."""

    model_config = ConfigDict(extra="forbid")

    name: str
    places: int
    first_s: float | None


class RegionHop(BaseModel):
    """How long the thing took from the places of one region to those of another, s.

    Attributes:
        places: that got it over this hop.
        round_trip_s: between the regions, as measured or stated; None where nobody did.
    """

    model_config = ConfigDict(extra="forbid")

    origin: str
    region: str
    places: int
    median_s: float
    longest_s: float
    round_trip_s: float | None = None


class RegionMap(BaseModel):
    """The thing's way over the regions. ``unknown`` places got it from nobody knows whom."""

    model_config = ConfigDict(extra="forbid")

    regions: list[RegionOfMap]
    hops: list[RegionHop]
    unknown: int = 0


class Trace(BaseModel):
    """One thing's way through a run. What is not of several places has one without a name and no ``place_label``.

    Attributes:
        subject: whose run it is: "Cardano 10.6.2".
        label: what such a thing is called: "block".
        key: names the thing; ``number`` finds it, too, but several things may share one.
        base_label: what the times are counted from; ``base_ns`` is when that was, ns since the epoch, None if unknown.
        stages: their labels, in the order in which they happen.
        end: index of the stage that the places are ordered by, the last that most of them told.
        median_s: of the times at which places told that stage, s after the base; None where fewer than three did.
        alias: what also finds it: its hash.
        outcome: how it ended; ``is_done`` where it got to the end, or the run does not say.
        usual_s: per stage, s after the base, the median over the run's things (that count) of their medians over
            places; empty where there are fewer than three of them. ``counted_label`` says which count.
        facts: of the thing; ``place_facts`` are the labels of what differs from place to place.
        files: of the places' log lines, relative to the folder that was imported.
        places: in the order of their last stage, those that did not tell it at the end.
        slowest: indices into ``places``: for every stage the place with the longest step, None where none is longest.
        shown: the places that were asked for; empty: all of them are shown.
        absent: places of the run that say nothing of the thing.
        log_lines: the lines themselves, where they were asked for.
        region_map: the way over the regions; None where it is not known or was not asked for.
        no_map: why there is no map.
        command: shows this story again.
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
    untold: list[MissingStage] = []
    neighbours: list[Neighbour] = []
    log_lines: list[LogLine] = []
    region_map: RegionMap | None = None
    no_map: str = ""
    command: str

    @property
    def name(self) -> str:
        """What it is called: "block 1234"; without a number, by the beginning of its key."""
        return f"{self.label} {short_key(self.key) if self.number is None else self.number}"

    @property
    def last(self) -> int:
        """The stage that the thing got to: the last one that any place told."""
        told = [stage for place in self.places for stage, second in enumerate(place.seconds) if second is not None]
        return max(told, default=0)

    @property
    def rows(self) -> list[int]:
        """Indices of the places that are shown."""
        return [index for index, place in enumerate(self.places) if not self.shown or place.place in self.shown]


def short_key(key: str) -> str:
    """The beginning of a long key: enough to tell it from all others of a run."""
    return key if len(key) <= 20 else key[:16]


class SlowestTraces(BaseModel):
    """The things of a run that took longest to the end, and some of those that did not get there.

    Attributes:
        total: how many things the run has.
        outcomes: how many of them ended how; empty where the run does not say. ``done`` is that of those that got to
            the end.
        counted: how many count, of which the slowest are chosen; ``counted_label`` says what they are.
        slowest: the slowest first, each with the medians of the run.
        others: the first ones that ended in another way.
        listed: labels of the facts that are listed with them.
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
    """The command that shows the story of a thing; without one, the slowest."""
    order = f"{trail_id} {run_id}" if trail_id in _OWN_COMMANDS else f"trail {run_id} {trail_id}"
    return f"chainmark {order} {shlex.quote(short_key(key))}" if key else f"chainmark {order}"


def follow_address(trail_id: str, run_id: str, key: str = "") -> str:
    """The dashboard's page of a thing; without one, of the slowest."""
    return f"/follow?{urlencode({'run': run_id, 'trail': trail_id} | ({'key': key} if key else {}))}"
