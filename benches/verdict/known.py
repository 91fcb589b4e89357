"""The decisions of `benches.verdict.run` in many more experiments, to distinguish 4 % from 5 %.

``python -m benches.verdict.known [EXPERIMENTS]`` prints the same table. Instead of rotating the table of every
experiment, it draws tables with their average covariance once for all experiments, and never discards the archive.
Everything else is the product's own code.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from benches.verdict.run import COLUMNS, MARGIN, MOST_RUNS, NOISES, NOISY, SEED, SENT, Case, Lab, drawn

from chainmark.stats import sequential
from chainmark.stats.centiles import FloatArray
from chainmark.stats.sequential import FIRST_LOOK, Looks, lone_levels
from chainmark.stats.special import t_quantile

SHARE_MARGIN = 0.001
MARGINS = np.array([*[MARGIN] * NOISY, -math.log(0.9), SHARE_MARGIN])
SIGNS = np.array([*[1.0] * NOISY, -1.0, 1.0])


def covariance(case: Case, lab: Lab, looks: Looks) -> FloatArray:
    """The covariance of the rows of an experiment's table: noise, and the change between the sides, shape (7, 7)."""
    generator = np.random.default_rng(SEED)
    noise = np.cov(drawn(generator, 100_000, lab.noise) * SIGNS[:-1], rowvar=False)
    change = np.array([*case.changes, 0.0]) * SIGNS - MARGINS
    runs = looks.runs[-1][0]
    squares = np.outer(change, change) * runs / 2.0
    squares[:-1, :-1] += noise * (looks.archive + 2 * runs - 1)
    scale = np.sqrt(np.diag(squares))
    return np.asarray(squares / np.outer(scale, scale))


def t_of(table: FloatArray, looks: Looks) -> FloatArray:
    """Student's t for every experiment, look and metric."""
    return sequential._t_values(table, looks.archive, *sequential._contrasts(looks), looks.degrees_of_freedom)


def tables(case: Case, lab: Lab, looks: Looks, experiments: int) -> FloatArray:
    """The experiments' tables: the archive's rows and those of both sides, shape (experiments, rows, 7)."""
    generator = np.random.default_rng([SEED, experiments])
    sizes = (lab.archive, MOST_RUNS, MOST_RUNS)
    parts = [
        drawn(generator, experiments * size, lab.noise).reshape(experiments, size, NOISY + 1) * SIGNS[:-1]
        for size in sizes
    ]
    archive, baseline, candidate = (np.concatenate([part, np.zeros((*part.shape[:2], 1))], axis=2) for part in parts)
    candidate = candidate + np.array([*case.changes, 0.0]) * SIGNS - MARGINS
    rows = sequential._around_mean(sequential._stacked(baseline, candidate, looks.runs))
    return np.concatenate([archive, rows], axis=1)


def failing(t: FloatArray, case: Case, lab: Lab, looks: Looks, draws: int) -> FloatArray:
    """Whether each experiment fails at the last look."""
    # The value for the share if all of so many transactions were successful.
    share = -math.sqrt(SENT * looks.runs[-1][0] * SHARE_MARGIN)
    limits = np.array([*[-math.inf] * (NOISY + 1), share])
    passing = np.zeros(t[:, -1].shape, dtype=bool)
    for row, now in zip(passing, t[:, -1], strict=True):
        row[sequential._in_question(now, looks, limits)] = True
    changes = np.array([*case.changes, math.nan])
    is_failing = np.zeros(len(t), dtype=bool)
    whole = covariance(case, lab, looks)
    # Metrics with the same change are equivalent: only the number of retained ones matters.
    alike = [np.flatnonzero(changes[:NOISY] == change) for change in dict.fromkeys(changes[:NOISY])]
    counts = np.stack(
        [passing[:, places].sum(axis=1) for places in alike] + [passing[:, NOISY], passing[:, NOISY + 1]], axis=1
    )
    for pattern in np.unique(counts, axis=0):
        places = [place for group, count in zip(alike, pattern, strict=False) for place in group[:count]]
        places += [NOISY + extra for extra in (0, 1) if pattern[len(alike) + extra]]
        values, axes = np.linalg.eigh(whole[np.ix_(places, places)])
        rows = np.random.default_rng(SEED).standard_normal(
            (draws, looks.archive + 2 * looks.runs[-1][0] - 1, len(places))
        )
        null = t_of(rows @ (axes * np.sqrt(np.maximum(values, 0.0))).T, looks)
        chosen = np.flatnonzero((counts == pattern).all(axis=1))
        worst = np.sort(np.where(passing[chosen, None], t[chosen], -math.inf), axis=2)[:, :, -len(places) :]
        null_p, found_p = sequential._combined(null, np.nan_to_num(worst, neginf=-1e9))
        level = sequential._thresholds(null_p, sequential._spent_on_worse(looks))[-1]
        is_failing[chosen] = found_p[:, -1] <= level
    return is_failing


def decisions(case: Case, lab: Lab, experiments: int, draws: int) -> tuple[dict[str, FloatArray], FloatArray]:
    """Which of the experiments pass, which fail, and after how many runs per side each ends."""
    plan = Looks(tuple((runs, runs) for runs in range(FIRST_LOOK, MOST_RUNS + 1)), MOST_RUNS, lab.archive)
    t = t_of(tables(case, lab, plan, experiments), plan)
    levels, freedom = lone_levels(plan), plan.degrees_of_freedom
    ends = {name: np.zeros(experiments, dtype=bool) for name in ("pass", "fail")}
    runs = np.full(experiments, float(MOST_RUNS))
    for place in range(len(plan.runs)):
        looks = Looks(plan.runs[: place + 1], MOST_RUNS, lab.archive)
        going = np.flatnonzero(~(ends["pass"] | ends["fail"]))
        near = going[t[going, place].max(axis=1) > 0.0]  # all others cannot fail at this look
        ends["fail"][near] = failing(t[near, : place + 1], case, lab, looks, draws)
        bound = t_quantile(levels[place], float(freedom[place]))
        ends["pass"][going] = ~ends["fail"][going] & (t[going, place].max(axis=1) < bound)
        runs[going[ends["pass"][going] | ends["fail"][going]]] = plan.runs[place][0]
    return ends, runs


def cell(case: Case, verdict: str, lab: Lab, experiments: int) -> str:
    """Percentage and mean number of runs, with their standard errors."""
    ends, runs = decisions(case, lab, experiments, experiments)
    share = float(ends[verdict].mean())
    error = 100.0 * math.sqrt(max(share * (1.0 - share), 1.0 / experiments) / experiments)
    return f"{100.0 * share:.1f} ± {error:.1f} | {runs.mean():.2f} ± {runs.std() / math.sqrt(experiments):.2f}"


def main(experiments: int) -> None:
    """Print the table, one line per row."""
    heads = [f"{case.name}: {verdict} | runs" for case, verdict in COLUMNS]
    print(f"| noise | archive | {' | '.join(heads)} |\n|{'---|' * (2 + 2 * len(COLUMNS))}", flush=True)
    for archive in (10, 0):
        for noise in NOISES:
            texts = [cell(case, verdict, Lab(noise, archive), experiments) for case, verdict in COLUMNS]
            print(f"| {100 * noise:.0f} % | {archive} | {' | '.join(texts)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
