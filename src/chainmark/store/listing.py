"""The runs of a store as rows, without the libraries that read samples: a list appears at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from chainmark.core.errors import UsageError
from chainmark.core.labels import SLA, cell_of, sla_label
from chainmark.core.verdict import PRINTED, PROFILED, SYNTHETIC, Verdict
from chainmark.store.conclusions import Conclusions
from chainmark.store.index import DAMAGED, Entry, Index, Selection
from chainmark.store.paths import NOTES

if TYPE_CHECKING:
    from chainmark.store.notes import Notes

UNFINISHED = "unfinished"
# Not from the manifest's model, which takes longer to load than a list.
STATUSES = ("valid", "invalid", "failed", DAMAGED, UNFINISHED)
_OF_LOAD_TESTS = {sla_label(verdict): verdict for verdict in Verdict}


@dataclass(frozen=True)
class ListedRun:
    """One run in a list: the row of data frames, of JSON and of the dashboard.

    Of an unfinished or damaged run only its name and status are known.

    Attributes:
        repetition: 0 without an experiment.
        sla: the SLA of a load test, whether it is met or missed.
        machine: its processor.
        source: "imported", "measured", or the badge that says more about its origin.
        verdict: of its experiment if that ended, or of its own SLA; "" if it was not judged.
    """

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
    machine: str = ""
    source: str = ""
    verdict: str = ""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_unfinished(self) -> bool:
        """Whether it is not sealed."""
        return self.status == UNFINISHED

    @property
    def place(self) -> str:
        """Its side and repetition in an experiment."""
        return f"{self.side} {self.repetition}" if self.experiment else ""

    def plain(self) -> dict[str, object]:
        """As JSON."""
        if self.is_unfinished:
            return {"run_id": self.run_id, "status": self.status}
        row = {name: getattr(self, name) for name in _PLAIN} | {"side": self.place}
        return row | ({"labels": self.labels} if self.labels else {})


_PLAIN = ("run_id", "version", "profile", "experiment", "started_at", "status", "badges", "notes")
_COPIED = {item.name for item in fields(Entry)} & {item.name for item in fields(ListedRun)} - {"labels", "repetition"}


def row_of(entry: Entry, notes: Notes | None, verdicts: Mapping[str, Verdict]) -> ListedRun:
    """The row of a sealed run.

    Args:
        entry: of the run.
        notes: of the store; None without any.
        verdicts: of the experiments that ended.
    """
    sla, badges = entry.known_labels.get(SLA, []), entry.badges.split(", ")
    verdict = verdicts.get(entry.experiment) or _OF_LOAD_TESTS.get("".join(sla[:1]))  # an import may have any label
    return ListedRun(
        **{name: getattr(entry, name) for name in _COPIED},
        notes="; ".join(notes.of(entry.noted)) if notes and (notes.annotations or notes.epochs) else "",
        sla=", ".join(sla),
        cell=" · ".join(cell_of(entry.known_labels).values()),
        repetition=entry.repetition if entry.experiment else 0,
        source=next((badge.lower() for badge in (SYNTHETIC, PRINTED, PROFILED) if badge in badges), entry.origin),
        verdict=verdict.value if verdict else "",
        labels=entry.known_labels,
    )


def listed_runs(
    root: Path, selector: str | None = None, status: str | None = None, since: str | None = None
) -> list[ListedRun]:
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
    contents, notes, verdicts = Index(root).contents(), _notes(root), Conclusions(root).by_experiment()
    sealed = contents.sealed if selector is None else Selection(contents).all_of(selector)
    runs = [
        row_of(entry, notes, verdicts)
        for entry in sealed
        if status in {None, entry.status} and entry.started_at >= (since or "")
    ]
    if selector is None and since is None and status in {None, UNFINISHED}:
        runs += [ListedRun(name) for name in contents.unfinished]
    return runs


def _notes(root: Path) -> Notes | None:
    """The notes of a store. Without any, their model is not loaded, which would take a quarter of a list's time."""
    if not (root / NOTES).exists():
        return None
    from chainmark.store.notes import read_notes  # noqa: PLC0415 - see above

    return read_notes(root)
