"""The runs of a store by facets: the values of each, their frequencies, and the matching runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from chainmark.capacity.verdict import sla_label
from chainmark.core.errors import ChainmarkError
from chainmark.core.labels import SLA
from chainmark.core.tool import tool_version
from chainmark.core.verdict import PRINTED, PROFILED, SYNTHETIC, Verdict
from chainmark.serve.reading import Moment, ReadStore
from chainmark.store.index import DAMAGED, Entry
from chainmark.store.runs import SealedRun

PAGE = 100
UNFINISHED = "unfinished"
_OF_LOAD_TESTS = {sla_label(verdict): verdict.value for verdict in Verdict}  # by the words of their label


class ListedRun(BaseModel):
    """A run in a list.

    Attributes:
        verdict: of its experiment when that ended, or of its own service level; "" if it was not judged.
    """

    run_id: str
    system: str = ""
    version: str = ""
    profile: str = ""
    machine: str = ""
    status: str
    verdict: str = ""
    source: str = ""
    experiment: str = ""
    side: str = ""
    started_at: str = ""
    notes: str = ""


class RunList(BaseModel):
    """``runs.json``: the runs that match the facets, newest first, and their number."""

    schema_version: int = 1
    tool_version: str
    filters: dict[str, list[str]]
    total: int
    matching: int
    runs: list[ListedRun]


@dataclass(frozen=True)
class Choice:
    """A value of a facet: the number of runs that would match, and whether it is selected."""

    value: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Facet:
    """A property of runs, and its values."""

    name: str
    label: str
    choices: list[Choice]


FACETS: Mapping[str, tuple[str, Callable[[ListedRun], str]]] = {
    "system": ("system", lambda run: run.system),
    "profile": ("profile", lambda run: run.profile),
    "version": ("version", lambda run: run.version),
    "machine": ("machine", lambda run: run.machine),
    "status": ("status", lambda run: run.status),
    "verdict": ("verdict", lambda run: run.verdict),
    "source": ("made by", lambda run: run.source),
}


class MachineNames:
    """The names of the runs' processors; each run is read once."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def name(self, entry: Entry) -> str:
        """The processor of a run."""
        if entry.machine not in self._known:
            try:
                cpu_model = SealedRun(self._store.root / "runs" / entry.run_id).manifest.host.cpu_model
            except (ChainmarkError, ValueError):
                cpu_model = "unknown"
            self._known[entry.machine] = cpu_model
        return self._known[entry.machine]


def all_runs(moment: Moment, machines: MachineNames) -> list[ListedRun]:
    """Every folder of the store, newest first, preceded by unfinished and unreadable ones."""
    broken = [ListedRun(run_id=name, status=UNFINISHED) for name in moment.unfinished]
    broken += [ListedRun(run_id=name, status=DAMAGED) for name in moment.damaged]
    return [*broken, *(_listed(entry, machines, moment) for entry in reversed(moment.whole))]


def _listed(entry: Entry, machines: MachineNames, moment: Moment) -> ListedRun:
    notes = moment.notes
    return ListedRun(
        run_id=entry.run_id,
        system=entry.system,
        version=entry.version,
        profile=entry.profile,
        machine=machines.name(entry),
        status=entry.status,
        verdict=_verdict(entry, moment),
        source=_source(entry),
        experiment=entry.experiment,
        side=entry.side,
        started_at=entry.started_at,
        notes="; ".join(notes.of(entry.noted)) if notes.annotations or notes.epochs else "",
    )


def _verdict(entry: Entry, moment: Moment) -> str:
    if entry.experiment in moment.verdicts:
        return moment.verdicts[entry.experiment].value
    own = next(iter(entry.known_labels.get(SLA, ())), "")
    return _OF_LOAD_TESTS.get(own, "")  # an imported run may have any label


def _source(entry: Entry) -> str:
    words = entry.badges.split(", ")
    return next((word.lower() for word in (SYNTHETIC, PRINTED, PROFILED) if word in words), entry.origin)


def _fits(run: ListedRun, query: Mapping[str, Sequence[str]], without: str = "") -> bool:
    chosen = ((name, values) for name, values in query.items() if name in FACETS and values and name != without)
    return all(FACETS[name][1](run) in values for name, values in chosen)


def _with_words(runs: Sequence[ListedRun], texts: Sequence[str]) -> Sequence[ListedRun]:
    words = [word for text in texts for word in text.casefold().split()]
    return [run for run in runs if _has_words(run, words)] if words else runs


def _has_words(run: ListedRun, words: Sequence[str]) -> bool:
    whole = " ".join([run.run_id, run.version, run.profile, run.machine, run.status, run.verdict, run.source,
                      run.experiment, run.side, run.notes]).casefold()  # fmt: skip
    return all(word in whole for word in words)


def run_list(runs: Sequence[ListedRun], query: Mapping[str, Sequence[str]]) -> RunList:
    """The matching runs."""
    listed_runs = [run for run in _with_words(runs, query.get("q", ())) if _fits(run, query)]
    selection = {name: list(values) for name, values in query.items() if name in FACETS or name == "q"}
    return RunList(
        tool_version=tool_version(), filters=selection, total=len(runs), matching=len(listed_runs), runs=listed_runs
    )


def facets(runs: Sequence[ListedRun], query: Mapping[str, Sequence[str]]) -> list[Facet]:
    """The facets with the number of runs that each value would match, given the selection of the others."""
    results = []
    worded = _with_words(runs, query.get("q", ()))
    for name, (label, value_of) in FACETS.items():
        counts = Counter(value_of(run) for run in worded if _fits(run, query, without=name))
        chosen = set(query.get(name, ()))
        values = sorted({*counts, *chosen} - {""}, key=lambda value: (value not in chosen, -counts[value], value))
        choices = [Choice(value, counts[value], value in chosen) for value in values]
        if len(choices) > 1 or chosen:
            results.append(Facet(name, label, choices))
    return results
