"""Comparing runs, and following one sample to what happened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.context import as_margins, store_at
from chainmark.api.publishing import Side, is_document, published
from chainmark.api.runs import select
from chainmark.compare import compare as compare_runs
from chainmark.compare.assemble import Follow
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.catalogue import NO_MARGINS, Margins
from chainmark.core.errors import UsageError
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import followable


def compared(sides: Sequence[Sequence[SealedRun]], store: Store, margins: Margins = NO_MARGINS) -> Document:
    """The comparison of two sides, or of every further one with the first; the store's other runs show the noise."""
    history, follow, tool = store.alike(run for side in sides for run in side), _follow(sides), tool_version()
    if len(sides) > 2:
        beside = compare_side_by_side(sides, history=history, follow=follow, margins=margins, tool_version=tool)
        return document_of(beside)
    pair = compare_runs(*sides, history=history, follow=follow, margins=margins, tool_version=tool)
    return document_of(pair)


def _follow(sides: Sequence[Sequence[SealedRun]]) -> Follow | None:
    """How the runs' system follows their samples; None where their catalogues say nothing of it, or it is not there."""
    run = next((run for side in sides for run in side if run.catalogue.trails), None)
    if run is None or run.manifest.subject.system not in system_names():
        return None
    return followable(load_system(run.manifest.subject.system)).tails


def compare(
    baseline: Side,
    *candidates: Side,
    margins: Margins | Sequence[str] | None = None,
    style: str = "own",
    era: str | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """Compare candidates with a baseline: pass, fail, inconclusive or invalid.

    Args:
        baseline: a run, runs, a version, an experiment or one of its sides (``EXPERIMENT/baseline``).
        candidates: the same, one or more; none where ``baseline`` is an experiment with two sides.
        margins: by metric id, the relative change to accept instead of the catalogue's: ``{"tx_latency_s": 0.15}``.
        style: "own" for chainmark's own document, "published" for the one that is published for the system.
        era: which of the styles that the system's published reports have had; None: that of today.
        store: where the runs are.

    Raises:
        UsageError: nothing matches, the sides are of different systems, or a margin is of no metric that is judged.

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
    document = next((one for one in references if isinstance(one, str) and is_document(one)), None)
    if document is not None:
        raise UsageError(
            f"`{document}` is a file: its printed values cannot be judged",
            "add `--style published`; to compare two versions with a verdict, name runs (`chainmark runs list`)",
        )
    return compared(select(references, kept), kept, as_margins(margins))
