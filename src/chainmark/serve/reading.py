"""The dashboard's view of a store: damaged runs are omitted and named, and lookups are cached for a second."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import ChainmarkError
from chainmark.core.verdict import Verdict
from chainmark.store.archive import FigureArchive, archives
from chainmark.store.conclusions import Conclusions
from chainmark.store.index import DAMAGED, SEAL, Contents, Entry, Selection, Stamp, stamp_of
from chainmark.store.notes import Notes, read_notes
from chainmark.store.paths import NOTES
from chainmark.store.runs import Store
from chainmark.store.sealed import ArchivedRun, SealedRun

_FRESH_S = 1.0
_MOST_OPEN = 200  # runs with all their figures, about 160 kB each
_MOST_ARCHIVED = 5000  # runs as a history needs them, a third of that


@dataclass(frozen=True)
class Moment:
    """The content of a store at one moment.

    Attributes:
        number: changes when a run is sealed, removed or annotated, or an experiment ends: everything derived from the
            store is then recomputed.
        whole: the sealed runs with readable manifests.
        damaged: the names of the others.
        unfinished: folders without a seal.
        verdicts: of the experiments that have ended, by experiment.
        notes: the notes on runs; ``trouble`` says why they cannot be read.
    """

    number: int
    whole: list[Entry]
    damaged: list[str]
    unfinished: list[str]
    verdicts: dict[str, Verdict]
    notes: Notes
    trouble: str = ""

    @cached_property
    def selection(self) -> Selection:
        """The resolution of references among the readable runs."""
        return Selection(Contents(self.whole, self.unfinished))


class ReadRun(SealedRun):
    """A run whose figures are read once."""

    def __init__(self, path: Path, catalogues: dict[bytes, Catalogue]) -> None:
        super().__init__(path)
        self._catalogues = catalogues

    @cached_property
    def catalogue(self) -> Catalogue:
        """The metrics' definitions at the time of the run; hundreds of runs share them."""
        try:
            digest = hashlib.sha256((self.path / "catalogue.json").read_bytes()).digest()
        except OSError:
            return super().catalogue
        if digest not in self._catalogues:
            self._catalogues[digest] = super().catalogue
        return self._catalogues[digest]

    def summaries(self) -> Mapping[str, MetricSummary]:
        """The contents of ``metrics.json`` by metric ID."""
        return self._summaries

    @cached_property
    def _summaries(self) -> dict[str, MetricSummary]:
        return dict(super().summaries())  # all of them are checked: a damaged one is detected before a page begins


class HistoricRun(ArchivedRun, ReadRun):
    """A run for a history: values if its workload has an archive of them, and never centiles."""

    def __init__(self, path: Path, catalogues: dict[bytes, Catalogue], archive: FigureArchive | None) -> None:
        ReadRun.__init__(self, path, catalogues)
        self._archive = archive

    @property
    def has_figures(self) -> bool:
        """Whether an archive has its values, so that its ``metrics.json`` was readable."""
        return self._figures is not None

    @cached_property
    def _summaries(self) -> dict[str, MetricSummary]:
        return {row["metric_id"]: _without_centiles(row) for row in self._read_json("metrics.json")["metrics"]}


def _without_centiles(row: dict[str, Any]) -> MetricSummary:
    if row["distribution"] is not None:
        row["distribution"]["centiles"] = []
    return MetricSummary.model_validate(row)


_R = TypeVar("_R", bound=ReadRun)


class ReadStore(Store):
    """A store in which a damaged run does not affect requests for other runs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._lock, self._opening = threading.Lock(), threading.Lock()
        self._looked = 0.0
        self._moment: Moment | None = None
        self._noted: tuple[int, int] | None = None
        self._conclusions = Conclusions(root)
        self._tried: dict[tuple[str, Stamp, bool], bool] = {}
        self._catalogues: dict[bytes, Catalogue] = {}
        self._open: OrderedDict[tuple[str, Stamp], ReadRun] = OrderedDict()
        self._archive: OrderedDict[tuple[str, Stamp], HistoricRun] = OrderedDict()

    def now(self) -> Moment:
        """The content of the store, at most one second old."""
        with self._lock:
            if self._moment is None or time.monotonic() - self._looked > _FRESH_S:
                self._moment = self._look(self._moment)
                self._looked = time.monotonic()
            return self._moment

    def selection(self) -> Selection:
        """Resolve references among the readable runs."""
        return self._held or self.now().selection

    def run(self, run_id: str) -> SealedRun:
        """A run by its full name; it is cached as long as its seal is unchanged and there is room."""
        return self._cached(run_id, self._open, lambda path: ReadRun(path, self._catalogues), _MOST_OPEN)

    def _cached(
        self, run_id: str, ordered_dict: OrderedDict[tuple[str, Stamp], _R], make: Callable[[Path], _R], most: int
    ) -> SealedRun:
        path = f"{self.root}/runs/{run_id}"
        seal = stamp_of(f"{path}/{SEAL}")
        if seal is None:
            return SealedRun(Path(path))
        key = run_id, seal
        with self._opening:
            if (result := ordered_dict.get(key)) is None:
                result = ordered_dict[key] = make(Path(path))
            ordered_dict.move_to_end(key)
            while len(ordered_dict) > most:
                ordered_dict.popitem(last=False)
            return result

    def _opened(self, entries: Iterable[Entry]) -> list[SealedRun]:
        return [self.run(entry.run_id) for entry in entries]

    def alike(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The readable runs that may show the noise between runs like these."""
        return self._archived(self.selection().alike([run.run_id for run in runs]))

    def series(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The readable runs that may belong to the history of runs like these."""
        return self._archived(self.selection().series([run.run_id for run in runs]))

    def _archived(self, entries: Sequence[Entry]) -> list[SealedRun]:
        known = archives(self.root, entries)

        def made(path: Path) -> HistoricRun:
            return HistoricRun(path, self._catalogues, known.get(path.name))

        return self.readable(self._cached(entry.run_id, self._archive, made, _MOST_ARCHIVED) for entry in entries)

    def readable(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The runs whose documents can be read; each is tried once as long as its seal is unchanged."""
        return [run for run in runs if self._is_readable(run)]

    def _is_readable(self, run: SealedRun) -> bool:
        seal = stamp_of(f"{run.path}/{SEAL}")
        if seal is None:
            return False
        key = run.run_id, seal, isinstance(run, HistoricRun)
        if key not in self._tried:
            self._tried[key] = _can_be_read(run)
        return self._tried[key]

    def _look(self, before: Moment | None) -> Moment:
        contents = self._index.contents()
        whole = [entry for entry in contents.sealed if entry.status != DAMAGED]
        damaged = [entry.run_id for entry in contents.sealed if entry.status == DAMAGED]
        stamp, verdicts = self._stamp(), self._conclusions.by_experiment()
        if before is not None and (before.whole, before.damaged, before.verdicts, self._noted) == (
            whole, damaged, verdicts, stamp
        ):  # fmt: skip
            return before if before.unfinished == contents.unfinished else replace(
                before, unfinished=contents.unfinished
            )  # fmt: skip
        self._noted = stamp
        moment = Moment(
            1 if before is None else before.number + 1, whole, damaged, contents.unfinished, verdicts, Notes()
        )
        try:
            return replace(moment, notes=read_notes(self.root))
        except ChainmarkError as error:
            return replace(moment, trouble=error.message)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = (self.root / NOTES).stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size


def _can_be_read(run: SealedRun) -> bool:
    try:
        if run.manifest.run_id == "" or not run.catalogue.metrics:
            return False
        return (isinstance(run, HistoricRun) and run.has_figures) or run.summaries() is not None
    except (ChainmarkError, ValidationError, KeyError, TypeError):
        return False
