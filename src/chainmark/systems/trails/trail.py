"""What the catalogue says of trails: how a sample can be followed to what happened."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.catalogue import Catalogue


class TrailStage(BaseModel):
    """One stage of a sample's way, and the columns of the events' file that tell when and on which line it was told.

    Attributes:
        time: the column of its time, ns since the epoch; null where it was not told.
        file, line: the columns of the log file and of the line in it; None where no line is known. The file is its
            path below the folder that was imported, or its number among the place's files in their order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    time: str
    file: str | None = None
    line: str | None = None


class Trail(BaseModel):
    """How a sample can be followed to what happened: from a block's adoption time to its life on every host.

    The events have one row per thing (``key``) and place, e.g. per block and host. A system may join them of several
    files; the columns are then those of the joined rows.

    Attributes:
        id: what is followed, as the command calls it: "block".
        label: of one such thing: "block".
        populations: whose samples have ``key`` among their keys.
        events: the name of the events' file.
        key: the column that names the thing, or the columns that do so together, as "0-1234".
        alias: a column of texts that also finds it, such as its hash.
        number: a column that also finds it, by a number; several things may share one.
        main: a column of booleans: of several things that share a number, the one that counts (is on the main chain);
            ``main_label`` says of them what they are: "on the main chain".
        place: the column of the place, None where each thing has one; ``place_label`` says what it is: "host".
        role: a column that says what the place did: "forger", "observer".
        region: the column of the place's region; ``sender`` that of the place from which it got the thing.
        outcome: a column that says how a thing ended; ``done`` is what it says of those that got to the end.
        only_slowest: the rows are of the slowest things alone, so that no median is known.
        base: the column of the time that all others are shown against; ``base_label`` says what it is.
        facts: further columns that say something of the thing or of the place, with their labels.
        listed: those of the facts' columns that a list of things shows.
        stages: in the order in which they happen.
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
        ValueError: one is not sound, or names a population that the catalogue does not have.
    """
    trails = [Trail.model_validate(trail) for trail in catalogue.trails]
    populations = {population.id for population in catalogue.populations}
    for trail in trails:
        stranger = next((name for name in trail.populations if name not in populations), None)
        if stranger is not None:
            raise ValueError(f"trail `{trail.id}` names the unknown population `{stranger}`")
    return trails


def with_trails(catalogue: Catalogue) -> Catalogue:
    """The same catalogue, with all that its trails leave out written out.

    Raises:
        ValueError: a trail is not sound.
    """
    return catalogue.model_copy(update={"trails": [trail.model_dump() for trail in trails_of(catalogue)]})
