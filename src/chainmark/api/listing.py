"""The list of a store's runs, without the libraries that read samples: a list appears at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chainmark.core.errors import UsageError
from chainmark.core.labels import SLA, cell_of
from chainmark.store.index import DAMAGED, Index, Selection
from chainmark.store.notes import read_notes

UNFINISHED = "unfinished"
# Not from the manifest's model: pydantic takes longer to load than a list.
STATUSES = ("valid", "invalid", "failed", DAMAGED, UNFINISHED)


@dataclass(frozen=True)
class RunRow:
    """One run in a list; of an unfinished one only the name is known."""

    run_id: str
    system: str = ""
    version: str = ""
    profile: str = ""
    experiment: str = ""
    side: str = ""
    started_at: str = ""
    status: str = UNFINISHED
    badges: str = ""
    notes: str = ""
    sla: str = ""
    cell: str = ""
    repetition: int = 0
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_unfinished(self) -> bool:
        """Whether it is not sealed."""
        return self.status == UNFINISHED


_OF_INDEX = ("run_id", "system", "version", "profile", "experiment", "side", "started_at", "status", "badges")


def listed_runs(
    root: Path, selector: str | None = None, status: str | None = None, since: str | None = None
) -> list[RunRow]:
    """The runs of a store, oldest first; unfinished ones at the end, if nothing is selected or their status is.

    Args:
        root: the store's folder.
        selector: a version, an experiment or labels.
        status: of the runs to list.
        since: list only runs that began on this day or later.

    Raises:
        UsageError: there is no such status, or the selector matches nothing.
    """
    if status is not None and status not in STATUSES:
        raise UsageError(f"`{status}` is not a status of runs", f"valid values: {', '.join(STATUSES)}")
    contents, notes = Index(root).contents(), read_notes(root)
    sealed = contents.sealed if selector is None else Selection(contents).all_of(selector)
    runs = [
        RunRow(
            **{name: getattr(entry, name) for name in _OF_INDEX},
            notes="; ".join(notes.of(entry.noted)),
            sla=", ".join(entry.known_labels.get(SLA, [])),
            cell=" · ".join(cell_of(entry.known_labels).values()),
            repetition=entry.repetition if entry.experiment else 0,
            labels=entry.known_labels,
        )
        for entry in sealed
        if status in {None, entry.status} and entry.started_at >= (since or "")
    ]
    if selector is None and since is None and status in {None, UNFINISHED}:
        runs += [RunRow(name) for name in contents.unfinished]
    return runs
