"""Margins that are learnt from a store's runs, with the decisions that they allow, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.context import as_choice, store_at
from chainmark.compare.decide import Past
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.judge import Bench
from chainmark.compare.margins import learnt_margins, margin_rows, unknown_noise, widened_margins
from chainmark.compare.noise import Archive
from chainmark.compare.releases import Releases
from chainmark.core import units
from chainmark.core.catalogue import Bounds, Margins
from chainmark.core.errors import UsageError
from chainmark.core.margin_report import MarginReport
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.notes import read_notes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

__all__ = ["margins"]

_SURE = 0.80


def margins(
    reference: str,
    accepted: Margins | Sequence[str] | None = None,
    *,
    store: Store | Path | str | None = None,
) -> Document:
    """The decisions that the margins in force and learnt ones allow for the next release, by the currently known noise.

    Args:
        reference: a run, a version or an experiment with the workload and machine of the next comparison.
        accepted: as for `compare`: margins that are set, and ``"learnt:5%,15%"`` for the bounds of the learnt ones.
        store: where the runs are.

    Raises:
        UsageError: nothing matches, or a margin is of a metric that is not judged.

    Example:
        >>> cm.margins("v1.0.1").kind
        'margins'
    """
    run_store = store_at(store)
    chosen = as_choice(accepted)
    run = run_store.select(reference)[-1]
    bench, limits = _bench(run, run_store), chosen.learnt or Bounds()
    catalogue = run.catalogue.with_margins(chosen.margins)
    if bench.releases is not None and chosen.widest is not None:
        catalogue = catalogue.with_widened(widened_margins(catalogue, bench, chosen.widest, chosen.margins))
    rows = margin_rows(catalogue, bench, limits)
    manifest = run.manifest
    return document_of(
        MarginReport(
            tool_version=tool_version(),
            title=f"Margins of {manifest.subject.name} for a release after {manifest.subject.version}",
            subtitle=f"profile {manifest.profile_name} · noise: {rows[0].noise if rows else 'unknown'}",
            date=manifest.started_at[:10],
            sentence=_sentence([min(row.chances.values()) for row in rows], [row.inside_noise for row in rows]),
            rows=rows,
            unknown=unknown_noise(catalogue, rows),
            low=limits.low,
            high=limits.high,
        )
    )


def learnt_before(system: str, workload: object, cpu_model: str, bounds: Bounds, store: Store) -> Margins:
    """Margins for future runs, from runs under the same workload on the same machine.

    Raises:
        UsageError: there are no runs with known noise.
    """
    like = next((run for run in reversed(store.sealed()) if _is_like(run, system, workload, cpu_model)), None)
    result = {} if like is None else learnt_margins(like.catalogue, _bench(like, store), bounds)
    if not result:
        raise UsageError(
            "margins cannot be learnt: the store has no re-runs of one build with this workload on this machine",
            "measure the noise with `chainmark aa`, or set margins: `--margin METRIC=15%`",
        )
    return result


def _is_like(run: SealedRun, system: str, workload: object, cpu_model: str) -> bool:
    manifest = run.manifest
    return manifest.subject.system == system and manifest.workload == workload and manifest.host.cpu_model == cpu_model


def _bench(run: SealedRun, store: Store) -> Bench:
    """The known noise of a future run under the conditions of the given one."""
    history = store.alike([run])
    past = Past(read_notes(store.root).epochs)
    releases = Releases([LoadedRun(run)], history, past.epochs, leave_out=False)
    return Bench(Archive((), run.manifest, history), releases=releases if releases.are_enough else None)


def _sentence(chances: Sequence[float], inside: Sequence[bool]) -> str:
    if not chances:
        return "The noise of all gating metrics is unknown: learning a margin requires re-runs of one build"
    able = sum(chance >= _SURE for chance in chances)
    text = (
        f"With the margins in force, one run per side judges an unchanged release as equal with a probability of at "
        f"least {units.plain_percent(_SURE)} in {able} of {units.plural(len(chances), 'gating metric')}"
    )
    return f"{text}; {units.plural(sum(inside), 'margin is', 'margins are')} inside the noise" if any(inside) else text
