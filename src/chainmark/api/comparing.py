"""Comparing runs, and linking one sample to its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from chainmark.api.clusters import cluster_address, machines_at
from chainmark.api.context import Accepted, Cancellation, Relay, as_choice, store_at
from chainmark.api.noting import caveats_noted, with_notes
from chainmark.api.publishing import Side, is_document, printed_sides, published
from chainmark.api.runs import runs_of, select
from chainmark.compare import compare as compare_runs
from chainmark.compare.assemble import Follow
from chainmark.compare.decide import Past
from chainmark.compare.inputs import RunData
from chainmark.compare.profiles import profiled
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.compare.split import PartsOf
from chainmark.compare.workloads import Matched, joined, matched
from chainmark.core.catalogue import Margins
from chainmark.core.caveats import Caveats
from chainmark.core.comparison import Comparison
from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.core.profiled import Profiled
from chainmark.core.progress import Progress
from chainmark.core.question import BaselineKind, ComparisonStyle, Question
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.notes import read_notes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import SplittingSystem, followable

__all__ = ["compare"]

_Named = TypeVar("_Named", bound=StrEnum)
_DESCRIBED_BYTES_PER_S = 2_000_000  # by one processor: two runs of 52 hosts have 2.1 MB of descriptions


def compared(sides: Sequence[Sequence[SealedRun]], store: Store, how: How | None = None) -> Document:
    """The comparison of two sides, or of every further one with the first; the store's other runs show the noise."""
    store, how = store.held(), how or How()
    if len(sides) > 2:
        comparison = compare_side_by_side(
            sides,
            history=store.alike(run for side in sides for run in side),
            past=_past(store, how),
            follow=_follow(sides),
            parts=_parts(sides),
            margins=how.accepted.margins,
            question=how.question,
            machines=how.machines,
            tool_version=tool_version(),
        )
        noted = caveats_noted([run.manifest for side in sides for run in side], store)
        return document_of(comparison.model_copy(update={"caveats": Caveats.joined([comparison.caveats, noted])}))
    return document_of(pair_comparison(sides[0], sides[1], store, how))


def pair_comparison(
    baseline: Sequence[SealedRun], candidate: Sequence[SealedRun], store: Store, how: How
) -> Comparison:
    """Two sides compared; the store's other runs show the noise and the level."""
    comparison = compare_runs(
        baseline,
        candidate,
        history=store.alike([*baseline, *candidate]),
        past=_past(store, how),
        anchor=_anchor(baseline, candidate, store, how),
        follow=_follow([baseline, candidate]),
        parts=_parts([baseline, candidate]),
        why=explained_by([baseline, candidate], store, is_asked=how.why),
        margins=how.accepted.margins,
        question=how.question,
        machines=how.machines,
        tool_version=tool_version(),
    )
    return with_notes(comparison, [run.manifest for run in [*baseline, *candidate]], store)


@dataclass(frozen=True)
class How:
    """How to compare sides.

    Attributes:
        against: the level of the releases up to the baseline, if there are enough of them, or its own run alone.
        anchor: a release that the candidate is also compared with; None: the pinned one.
        accepted: which changes are accepted.
        question: whether the candidate is judged, or its costs are reported.
        why: show the results of profiles even if nothing became worse.
        machines: other machines that describe the samples.
    """

    against: BaselineKind = BaselineKind.HISTORY
    anchor: str | None = None
    accepted: Accepted = field(default_factory=Accepted)
    question: Question = Question.WORSE
    why: bool = False
    machines: Machines | None = None


def explained_by(sides: Sequence[Sequence[SealedRun]], store: Store, *, is_asked: bool = False) -> Profiled | None:
    """The comparison of both sides' profiles: those of the named runs, or of runs in the store that were made alike.

    Args:
        sides: the baseline's runs and the candidate's.
        store: searched for runs with profiles.
        is_asked: show them even if nothing became worse.
    """
    plain = [[run for run in side if not run.manifest.profiles] for side in sides]
    taken = [store.profiled(side) for side in sides]
    if {run.run_id for run in taken[0]} & {run.run_id for run in taken[1]}:
        return None  # the profiles of one version on both sides are indistinguishable
    return profiled(taken[0], taken[1], plain, is_asked=is_asked)


def _past(store: Store, how: How) -> Past:
    widest = how.accepted.widest if how.question is Question.WORSE else None  # costs are not compared with a margin
    return Past(read_notes(store.root).epochs, how.against, how.accepted.learnt, widest)


def _anchor(baseline: Sequence[SealedRun], candidate: Sequence[SealedRun], store: Store, how: How) -> list[SealedRun]:
    """The anchor's runs under the candidate's conditions; empty without an anchor, or if it is a side."""
    pinned = how.anchor or read_notes(store.root).anchors.get(candidate[0].manifest.subject.system)
    if pinned is None:
        return []
    pairs = matched(store.groups(pinned), [candidate]).pairs
    compared = {run.run_id for run in [*baseline, *candidate]}
    runs = sealed_runs(pairs[0].baseline) if pairs else []
    return [] if compared & {run.run_id for run in runs} else runs


def _follow(sides: Sequence[Sequence[SealedRun]]) -> Follow | None:
    """How the runs' system links samples to events; None without links in their catalogues, or without the system."""
    run = next((run for side in sides for run in side if run.catalogue.trails), None)
    if run is None or run.manifest.subject.system not in system_names():
        return None
    return followable(load_system(run.manifest.subject.system)).tails


def _parts(sides: Sequence[Sequence[SealedRun]]) -> PartsOf | None:
    """How the runs' system divides changes among causes; None if it does not, or is not installed."""
    name = next((run.manifest.subject.system for side in sides for run in side), "")
    system = load_system(name) if name in system_names() else None
    return system.causes if isinstance(system, SplittingSystem) else None


def compare(
    baseline: Side,
    *candidates: Side,
    margins: Margins | Sequence[str] | None = None,
    style: str = "own",
    era: str | None = None,
    against: str = BaselineKind.HISTORY,
    anchor: str | None = None,
    question: str = Question.WORSE,
    why: bool = False,
    on: str | None = None,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Compare candidates with a baseline: pass, fail, inconclusive or invalid.

    Args:
        baseline: a run, runs, a version, an experiment or one of its sides (``EXPERIMENT/baseline``), or a published
            report as a file, each version of which is a side. Two versions are compared under every workload and on
            every machine that both were run under.
        candidates: the same, one or more; none if ``baseline`` is an experiment with two sides.
        margins: by metric id, the relative change to accept instead of the catalogue's: ``{METRIC: 0.15}``;
            ``["learnt:5%,15%"]`` learns those of gating metrics from re-runs, see `margins`. If a series of releases
            shows the noise of single runs, a margin that re-runs alone exceed is widened to their noise, up to
            20 %; ``["widened:15%"]`` sets another limit, ``["catalogue"]`` disables the widening.
        style: "own" for chainmark's own document, "published" for the system's published style.
        era: which of the styles of the system's published reports; None: the current one.
        against: "history" for the level of the releases up to the baseline, if single runs are compared and
            there are enough releases; "run" for the baseline's own run.
        anchor: a release that the candidate is also compared with; None: the pinned one.
        question: "worse" judges the candidate; "cost" measures the cost of a deliberate change, without a judgement.
        why: show the results of profiles even if nothing became worse.
        on: the scheduler of a Dask cluster whose workers describe the samples, "tcp://10.0.0.1:8786"; it is not used if
            that takes less than a second. The workers need not have the runs.
        store: where the runs are.
        progress, cancel: as in `run`.

    Raises:
        UsageError: nothing matches, the sides are of different systems, or a margin is of a metric that is not judged.
        EnvironmentFailure: the cluster cannot be reached.

    Example:
        >>> document = cm.compare("v0.38.17", "v1.0.1")
        >>> print(document.verdict)
        fail
        >>> document.frame.filter(document.frame["verdict"] == "fail")["id"].to_list()
        ['tx_latency_s.p50', 'tx_latency_s.p99']
    """
    run_store = store_at(store)
    references = [baseline, *candidates]
    if _one_of(ComparisonStyle, style, "style") is ComparisonStyle.PUBLISHED:
        if on:
            Relay(progress, cancel).say(f"the published style is made on this machine: the cluster at {on} is not used")
        return published(references, era, run_store)
    if era is not None:
        raise UsageError("`--era` requires the published style", "add `--style published`, or omit `--era`")
    how = How(
        _one_of(BaselineKind, against, "baseline"),
        anchor,
        as_choice(margins),
        _one_of(Question, question, "question"),
        why,
    )
    selected = _selected(references, run_store)
    runs = [run for side in _sides_of(selected) for run in side]
    with _machines_for(runs, on, Relay(progress, cancel)) as machines:
        how = replace(how, machines=machines)
        if not isinstance(selected, Matched):
            return compared(selected, run_store, how)
        comparisons = [
            pair_comparison(sealed_runs(pair.baseline), sealed_runs(pair.candidate), run_store, how)
            for pair in selected.pairs
        ]
        return document_of(joined(selected.pairs, comparisons, selected.alone))


@contextmanager
def _machines_for(runs: Sequence[SealedRun], on: str | None, listener: Relay) -> Iterator[Machines | None]:
    """The requested cluster, if these runs need more than a second to describe."""
    address = cluster_address(on)
    if address and sum(run.description_bytes for run in runs) < _DESCRIBED_BYTES_PER_S:
        if on:
            listener.say(f"this comparison takes less than a second: the cluster at {address} is not used")
        address = None
    with machines_at(address, listener) as machines:
        if machines is not None:
            listener.stage(f"comparing on {address}")
        yield machines


def _one_of(values: type[_Named], text: str, what: str) -> _Named:
    if text not in set(values):
        raise UsageError(f"`{text}` is not a valid {what}", f"valid values: {' and '.join(values)}")
    return values(text)


def _selected(references: Sequence[Side], store: Store) -> list[list[SealedRun]] | Matched:
    """The sides; or for two versions with several workloads or machines, their pairs.

    Runs without a common workload are compared all the same: the gates list the differences.
    """
    if any(isinstance(reference, str) and is_document(reference) for reference in references):
        return _with_reports(references, store)
    store = store.held()
    if len(references) != 2 or not all(isinstance(reference, str) for reference in references):
        return select(references, store)
    groups = [store.groups(str(reference)) for reference in references]
    result = matched(*groups)
    several = max(map(len, groups)) > 1
    if not result.pairs and several and all(group[-1].manifest.cell for side in groups for group in side):
        raise UsageError(
            f"{references[0]} and {references[1]} have no workload and machine in common", "; ".join(result.alone)
        )
    return result if several and result.pairs else [side[-1] for side in groups]


def _sides_of(selected: list[list[SealedRun]] | Matched) -> list[list[SealedRun]]:
    if not isinstance(selected, Matched):
        return selected
    return [sealed_runs(side) for pair in selected.pairs for side in (pair.baseline, pair.candidate)]


def sealed_runs(runs: Sequence[RunData]) -> list[SealedRun]:
    """The runs that are from a store."""
    return [run for run in runs if isinstance(run, SealedRun)]


def _with_reports(references: Sequence[Side], store: Store) -> list[list[SealedRun]]:
    """The sides, if some are published reports: each of their versions is a side.

    Raises:
        UsageError: there is only one version, or a reference cannot be compared.
    """
    sides: list[list[SealedRun]] = []
    for reference in references:
        if isinstance(reference, str) and is_document(reference):
            sides += printed_sides(reference, store)
        else:
            sides.append(runs_of(reference, store))
    if len(sides) < 2:
        raise UsageError(f"`{references[0]}` is only one version", "at least two versions are required")
    return sides
