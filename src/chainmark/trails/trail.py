"""Trails in the catalogue: how a sample can be traced to its cause."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.catalogue import Catalogue


@dataclass(frozen=True)
class FollowRequest:
    """What to follow through a run, and what to show of it.

    Attributes:
        key: the item's name, a prefix of it, or its number; None lists the slowest.
        trail: the kind of item, by its name in the run's catalogue.
        hosts: to show; empty means all.
        lines: the folder that the run's logs were imported from, to show the lines themselves.
        most: maximum number of the slowest.
    """

    key: str | None
    trail: str
    hosts: tuple[str, ...] = ()
    lines: Path | None = None
    most: int = 10


class TrailStage(BaseModel):
    """One stage of a sample's path, with the event columns of its time and log line.

    Attributes:
        time: the column of its time, ns since the epoch; null if it was not reported.
        file, line: the columns of the log file and of the line in it; None if no line is known. The file is its path
            below the imported folder, or its index among the place's files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    time: str
    file: str | None = None
    line: str | None = None


class Trail(BaseModel):
    """How a sample can be traced to its cause: from a block's delay to its lifecycle on every host.

    The events have one row per item (``key``) and place, e.g. per block and host. A system may join them from several
    files; the columns are then those of the joined rows.

    Attributes:
        id: the kind of item, as the command names it: "block".
        label: noun for one item: "block".
        populations: whose samples have ``key`` among their keys.
        events: the name of the events' file.
        key: the column that names the item, or the columns that do so together, as "0-1234".
        alias: a text column that also identifies it, such as its hash.
        number: a numeric column that also finds it; several items may share one number.
        main: a boolean column: of several items with the same number, the one that counts (is on the main chain);
            ``main_label`` describes it: "on the main chain".
        place: the column of the place, None if each item has one; ``place_label`` is its noun: "host".
        role: a column with the role of the place: "producer", "observer".
        region: the column of the place's region; ``sender`` that of the place from which it received the item.
        outcome: a column with an item's outcome; ``done`` is the outcome of those that reached the end.
        only_slowest: the rows are of the slowest items alone, so that no median is known.
        base: the column of the reference time; ``base_label`` describes it.
        facts: further columns about the item or the place, with their labels.
        listed: those of the facts' columns that a list of items shows.
        stages: in chronological order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    populations: list[str]
    events: str
    key: str | list[str]
    alias: str | None = Field(default=None, exclude_if=lambda value: value is None)
    number: str | None = None
    number_label: str = ""
    main: str | None = None
    main_label: str = Field(default="", exclude_if=lambda value: not value)
    place: str | None = None
    place_label: str = ""
    role: str | None = None
    region: str | None = None
    sender: str | None = None
    outcome: str | None = Field(default=None, exclude_if=lambda value: value is None)
    done: str = Field(default="", exclude_if=lambda value: not value)
    only_slowest: bool = Field(default=False, exclude_if=lambda value: not value)
    base: str
    base_label: str
    facts: dict[str, str] = {}
    listed: list[str] = Field(default_factory=list, exclude_if=lambda value: not value)
    stages: list[TrailStage]

    @property
    def key_columns(self) -> list[str]:
        """The columns of its key."""
        return [self.key] if isinstance(self.key, str) else self.key


def trails_of(catalogue: Catalogue) -> list[Trail]:
    """The trails of a catalogue.

    Raises:
        ValueError: one is invalid, or names a population that the catalogue does not have.
    """
    trails = [Trail.model_validate(trail) for trail in catalogue.trails]
    populations = {population.id for population in catalogue.populations}
    for trail in trails:
        unknown = next((name for name in trail.populations if name not in populations), None)
        if unknown is not None:
            raise ValueError(f"trail `{trail.id}` names the unknown population `{unknown}`")
    return trails


def with_trails(catalogue: Catalogue) -> Catalogue:
    """The same catalogue, with all defaults of its trails written out.

    Raises:
        ValueError: a trail is invalid.
    """
    return catalogue.model_copy(update={"trails": [trail.model_dump() for trail in trails_of(catalogue)]})
