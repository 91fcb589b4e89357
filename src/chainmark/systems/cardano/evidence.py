"""The model's record: its errors against every published run, compared with simpler methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.systems.capabilities import ModelRequest
from chainmark.systems.cardano.calibration import Calibration, calibrate
from chainmark.systems.cardano.figures import ADOPTION, FETCH, Figures
from chainmark.systems.cardano.formula import formula_for
from chainmark.systems.cardano.model.results import EvidenceRow, EvidenceRun, ModelRecord
from chainmark.systems.cardano.published.reader import ReportFigures, is_report
from chainmark.systems.cardano.scenario import PINGS_S
from chainmark.systems.cardano.simulation import Simulate, Simulated, Simulator, simulator_on
from chainmark.systems.cardano.sources import benchmark_scenario

# The model's constants and the formula were fitted to runs before this day, releases up to 10.2.
FITTED_UNTIL = "2025-02-28"
FITTED_RELEASE = (10, 2)
# A run is one of many here, so half the blocks are enough: their error is a fifth of the model's.
BLOCKS_PER_RUN = 1664
MODEL, LATE, FORMULA, PREVIOUS = "model", "with its release's late hosts", "formula", "previous run"
# Shares of late (block, host) pairs, between which that of a release is searched.
LATE_SHARES = (0.0, 0.003, 0.006, 0.012, 0.024)
# [share of late hosts][adoption centile]
Errors = NDArray[np.float64]


@dataclass(frozen=True)
class _Judged:
    """One method's relative errors for one run, by adoption centile."""

    group: str
    method: str
    label: str
    errors: list[float]
    standard_errors: list[float]


def evidence(
    documents: Sequence[Path],
    order: ModelRequest,
    progress: Progress,
    catalogue: Catalogue,
    simulate: Simulate | None = None,
) -> ModelRecord:
    """Fit the model to every run of the reports and compare; a run in several reports counts once.

    Raises:
        UsageError: none of the files is a published report, or one of them has no usable figures.
    """
    known = [path for path in sorted(documents) if is_report(path, catalogue)]
    if not known:
        raise UsageError(
            "none of the files is a published report", "give JSON files of published reports, or a folder of them"
        )
    runs = distinct_runs(known, catalogue)
    complete = [run for run in runs if all(metric in run.values for metric in ADOPTION)]
    judged: list[_Judged] = []
    tried: list[Errors] = []
    progress.stage(f"fitting the model to {len(complete)} runs")
    simulate = simulate or simulator_on(order.machines)
    simulator = Simulator(order.blocks or BLOCKS_PER_RUN, order.threads, simulate=simulate)
    for number, run in enumerate(complete):
        progress.update(number / len(complete), run.label)
        fitted = calibrate(run, benchmark_scenario(run, order.seed), simulator, pings_s=PINGS_S)
        judged.append(_model(run, fitted.simulated))
        tried.append(_by_share(run, fitted, simulator))
    judged += [_with_late_hosts(number, complete, tried, judged[number]) for number in range(len(complete))]
    judged += [opinion for run in complete if (opinion := _formula(run)) is not None]
    judged += _previous(complete)
    return ModelRecord(
        title="The model's record against published runs",
        catalogue=catalogue,
        seed=order.seed,
        metric_ids=list(ADOPTION),
        rows=_rows(judged),
        runs=[
            EvidenceRun(group=item.group, label=item.label, errors=item.errors, standard_errors=item.standard_errors)
            for item in judged
            if item.method == MODEL
        ],
        notes=_notes(len(documents), len(known), runs, complete),
    )


def distinct_runs(documents: Sequence[Path], catalogue: Catalogue) -> list[Figures]:
    """Every run of the reports once, by workload and start; of duplicates the first report's counts."""
    figure_sets: dict[tuple[str, str], Figures] = {}
    for path in documents:
        report = ReportFigures(path, catalogue)
        for version in dict.fromkeys(report.versions):
            figures = report.figures(version)
            figure_sets.setdefault((figures.workload, figures.started or f"{path}: {version}"), figures)
    return [figure_sets[key] for key in sorted(figure_sets)]


def group_of(run: Figures) -> str:
    """Its workload, and whether the model was fitted to runs of its time."""
    workload = run.workload.split()[0] if run.workload else "unknown workload"
    fitted = run.started < FITTED_UNTIL if run.started else run.release[:2] <= FITTED_RELEASE
    return f"{workload}, ≤ 10.2 (fitted)" if fitted else f"{workload}, from 10.3"


def _by_share(run: Figures, fitted: Calibration, simulator: Simulator) -> Errors:
    """The run's errors with every share of late hosts; the mean of the stage is kept."""
    results, scenario = [], fitted.scenario
    for share in LATE_SHARES:
        parameters = scenario.parameters.model_copy(update={"straggler_probability": share})
        is_fitted = parameters == scenario.parameters
        changed = scenario.model_copy(update={"parameters": parameters})
        results.append(_model(run, fitted.simulated if is_fitted else simulator.run(changed)).errors)
    return np.array(results)


def _with_late_hosts(number: int, runs: Sequence[Figures], tried: Sequence[Errors], model: _Judged) -> _Judged:
    """The model's errors with the share of late hosts of the *other* runs of the same release and workload.

    The share is the one that minimises the mean error of the others' last centile; the run's own adoption is not used.
    A run that is the only one of its release keeps the model's share.
    """
    run = runs[number]
    line = (run.workload, run.release[:2])
    others = [
        errors[:, -1]
        for other, errors in enumerate(tried)
        if other != number and (runs[other].workload, runs[other].release[:2]) == line
    ]
    if not others or not run.release:
        return replace(model, method=LATE)
    shares = np.linspace(LATE_SHARES[0], LATE_SHARES[-1], 241)
    mean = np.interp(shares, LATE_SHARES, np.mean(others, axis=0))
    share = float(shares[np.argmin(np.abs(mean))])
    errors = [float(np.interp(share, LATE_SHARES, column)) for column in tried[number].T]
    return replace(model, method=LATE, errors=errors)


def _model(run: Figures, simulated: Simulated) -> _Judged:
    modelled = [simulated.modelled(metric) for metric in ADOPTION]
    measured = [run.values[metric] for metric in ADOPTION]
    return _Judged(
        group=group_of(run),
        method=MODEL,
        label=run.label,
        errors=[result.value / value - 1.0 for result, value in zip(modelled, measured, strict=True)],
        standard_errors=[result.standard_error / value for result, value in zip(modelled, measured, strict=True)],
    )


def _formula(run: Figures) -> _Judged | None:
    formula = formula_for(run.block_bytes)
    if formula is None or FETCH not in run.values:
        return None
    return _simple(run, FORMULA, formula.adoption_s(run.values))


def _previous(runs: Sequence[Figures]) -> list[_Judged]:
    """The prediction "the same as last time" for each run but the first of a workload."""
    return [_simple(run, PREVIOUS, before.values) for before, run in pairwise(runs) if before.workload == run.workload]


def _simple(run: Figures, method: str, given: Mapping[str, float]) -> _Judged:
    errors = [given[metric] / run.values[metric] - 1.0 for metric in ADOPTION]
    return _Judged(group_of(run), method, run.label, errors, [0.0] * len(errors))


def _rows(judged: Sequence[_Judged]) -> list[EvidenceRow]:
    rows = []
    for group in dict.fromkeys(item.group for item in judged):
        for method in (MODEL, LATE, FORMULA, PREVIOUS):
            errors = np.array([item.errors for item in judged if (item.group, item.method) == (group, method)])
            if not len(errors):
                continue
            rows.append(
                EvidenceRow(
                    group=group,
                    method=method,
                    runs=len(errors),
                    mean=[float(value) for value in errors.mean(axis=0)],
                    root_mean_square=[float(value) for value in np.sqrt((errors**2).mean(axis=0))],
                    largest=[float(value) for value in np.abs(errors).max(axis=0)],
                    overall=math.sqrt(float((errors**2).mean())),
                )
            )
    return rows


def _notes(files: int, reports: int, runs: Sequence[Figures], complete: Sequence[Figures]) -> list[str]:
    notes = [
        f"{len(runs)} distinct runs in {reports} reports; a run in several reports counts once",
        "the model is fitted only to each run's stages, not to its adoption; its constants and the formula's "
        "coefficients are fitted to the runs of releases up to 10.2, so the rows from 10.3 on are predictions",
        f"`{LATE}`: the model with as many late hosts as in the other runs of the same release and workload; the "
        "stages of a report do not show late hosts, so they are estimated from other runs",
        f"`{PREVIOUS}`: the figures of the previous run of the same workload; the first run of a workload has none",
    ]
    if files > reports:
        notes.append(f"{files - reports} of {files} files are not published reports and were skipped")
    if len(runs) > len(complete):
        notes.append(f"{len(runs) - len(complete)} runs lack an adoption centile and were excluded")
    return notes
