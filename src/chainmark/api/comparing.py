"""Comparing runs, and following one sample to what happened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.context import store_at
from chainmark.api.publishing import Side, is_document, printed_sides, published
from chainmark.api.runs import runs_of, select
from chainmark.compare import compare as compare_runs
from chainmark.compare.assemble import Follow
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.compare.decide import Past
from chainmark.core.epoch import BaselineKind
from chainmark.core.errors import UsageError
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import followable


def compared(
    sides: Sequence[Sequence[SealedRun]], store: Store, baseline: BaselineKind = BaselineKind.HISTORY
) -> Document:
    """The comparison of two sides, or of every further one with the first; the store's other runs show the noise."""
    history = store.alike(run for side in sides for run in side)
    past = Past(baseline=baseline)
    known = {"history": history, "past": past, "follow": _follow(sides), "tool_version": tool_version()}
    if len(sides) > 2:
        return document_of(compare_side_by_side(sides, **known))
    return document_of(compare_runs(sides[0], sides[1], **known))


def _follow(sides: Sequence[Sequence[SealedRun]]) -> Follow | None:
    """How the runs' system follows their samples; None where their catalogues say nothing of it, or it is not there."""
    run = next((run for side in sides for run in side if run.catalogue.trails), None)
    if run is None or run.manifest.subject.system not in system_names():
        return None
    return followable(load_system(run.manifest.subject.system)).tails


def compare(
    baseline: Side,
    *candidates: Side,
    style: str = "own",
    era: str | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """Compare candidates with a baseline: pass, fail, inconclusive or invalid.

    Args:
        baseline: a run, runs, a version, an experiment or one of its sides (``EXPERIMENT/baseline``).
        candidates: the same, one or more; none where ``baseline`` is an experiment with two sides.
        style: "own" for chainmark's own document, "published" for the one that is published for the system.
        era: which of the styles that the system's published reports have had; None: that of today.
        store: where the runs are.

    Raises:
        UsageError: nothing matches, or the sides are of different systems.

    Example:
        >>> document = cm.compare("v0.38.17", "v1.0.1")
        >>> print(document.verdict)
        fail
        >>> document.frame.filter(document.frame["verdict"] == "fail")["id"].to_list()
        ['tx_latency_s.p50', 'tx_latency_s.p99']
    """
    kept = store_at(store)
    references = [baseline, *candidates]
    if style == "published":
        return published(references, era, kept)
    if era is not None:
        raise UsageError("`--era` is one of the published styles", "add `--style published`, or leave `--era` out")
    if any(isinstance(one, str) and is_document(one) for one in references):
        return compared(_with_reports(references, kept), kept)
    return compared(select(references, kept), kept)


def _with_reports(references: Sequence[Side], store: Store) -> list[list[SealedRun]]:
    """The sides, where some are published reports: each of their versions is a side.

    Raises:
        UsageError: there is one version alone, or a reference is nothing that can be compared.
    """
    sides: list[list[SealedRun]] = []
    for one in references:
        if isinstance(one, str) and is_document(one):
            sides += printed_sides(one, store)
        else:
            sides.append(runs_of(one, store))
    if len(sides) < 2:
        raise UsageError(f"`{references[0]}` is one version alone", "name what it is to be compared with, too")
    return sides
