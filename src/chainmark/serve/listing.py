"""The runs of a store by facets: the values of each, their frequencies, and the matching runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from chainmark.core.tool import tool_version
from chainmark.serve.reading import Moment
from chainmark.store.index import DAMAGED
from chainmark.store.listing import ListedRun, row_of

PAGE = 100


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


def all_runs(moment: Moment) -> list[ListedRun]:
    """Every folder of the store, newest first, preceded by unfinished and unreadable ones."""
    broken = [ListedRun(name) for name in moment.unfinished]
    broken += [ListedRun(name, status=DAMAGED) for name in moment.damaged]
    return [*broken, *(row_of(entry, moment.notes, moment.verdicts) for entry in reversed(moment.whole))]


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
