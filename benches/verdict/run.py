"""How often the verdict decides and how often it is wrong, by simulated experiments with known truth.

``python -m benches.verdict.run [EXPERIMENTS]`` prints a table for Markdown, with standard errors; it asserts nothing.
The product's own functions judge every experiment after 2, 3, 4 … runs per side until it is decided.

The setting: seven gating metrics as in the CometBFT systems. Five are positive with log-normal noise between runs and
pairwise correlation 0.5, one is a throughput with a noise of 0.3 %, and one is a share that is always 100 %.
Seeds are fixed: the same number of experiments gives the same table on any number of cores.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool

import numpy as np

from chainmark.compare.estimates import SideEstimates
from chainmark.compare.family import Family, Gated, family_of
from chainmark.compare.judge import Bench, judge
from chainmark.compare.noise import Archive, ArchiveSpread, Column
from chainmark.core.comparison import Outcome
from chainmark.core.metric import Better, Kind, Metric
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import Working
from chainmark.stats.sequential import FIRST_LOOK, Looks

SEED = 13
MOST_RUNS = 12  # per side
NOISES = (0.02, 0.03, 0.05, 0.10)
CORRELATION = 0.5
THROUGHPUT_NOISE = 0.003
SENT = 6_000  # transactions per run
NOISY = 5  # metrics with noise
SURELY_NOT_WORSE = 0.2
PASSED = (Outcome.EQUAL, Outcome.BETTER)


def _metric(name: str, **settings: object) -> Metric:
    plain: dict[str, object] = {
        "id": name, "label": name, "unit": "s", "kind": Kind.POSITIVE, "better": Better.LOWER, "statistics": ["mean"],
        "judged_by": ["mean"], "table": "all", "order": 1, "population": "block", "description": name,
        "source": ["simulated"], "gating": True,
    }  # fmt: skip
    return Metric.model_validate(plain | settings)


METRICS = [
    *(_metric(name) for name in ("latency_p50", "latency_p99", "block_interval", "cpu", "rss")),
    _metric("committed_tx_per_s", better=Better.HIGHER),
    _metric("committed_share", kind=Kind.PROPORTION, better=Better.HIGHER, margin=0.001),
]
MARGIN = math.log(1.1)
WORSE = math.log(1.2)


@dataclass(frozen=True)
class Case:
    """The true change of the candidate: of the logarithm of each noisy metric, and of the throughput."""

    name: str
    noisy: tuple[float, ...] = ()
    throughput: float = 0.0

    @property
    def changes(self) -> FloatArray:
        """The changes of all noisy metrics and of the throughput, shape (6,)."""
        return np.array([*self.noisy, *[0.0] * (NOISY - len(self.noisy)), self.throughput])


EQUAL = Case("equal")
THREE = Case("+20 % on three", (WORSE,) * 3)
ONE = Case("+20 % on one", (WORSE,))
ONE_AT_MARGIN = Case("one at its margin", (MARGIN,))
ALL_AT_MARGIN = Case("all at their margins", (MARGIN,) * NOISY, math.log(0.9))


@dataclass(frozen=True)
class Lab:
    """The noise of the runs, and the size of the archive.

    Attributes:
        noise: between runs, of the logarithm.
        archive: degrees of freedom of the archive's noise.
        archive_noise: the archive's own noise, if it differs.
    """

    noise: float
    archive: int
    archive_noise: float | None = None


class KnownArchive(Archive):
    """An archive of one group of equal builds, given as the logarithms of its runs' values."""

    def __init__(self, logs: FloatArray) -> None:
        # Rows with a mean of zero, as from `deviations`: they have as many degrees of freedom as rows.
        self._rows = {metric.id: logs[:, place] for place, metric in enumerate(METRICS[:-1])}
        self._rows[METRICS[-1].id] = np.zeros(len(logs))

    def spread(self, metric_id: str, statistic: str, working: Working) -> ArchiveSpread | None:
        """As in an archive; ``statistic`` and ``working`` are those of the metric."""
        rows = self._rows[metric_id]
        return ArchiveSpread(float(np.square(rows).sum()), float(len(rows)), len(rows) + 1) if len(rows) else None

    def deviations(self, columns: Sequence[Column]) -> FloatArray:
        """As in an archive."""
        return np.stack([self._rows[metric_id] for metric_id, *_ in columns], axis=1)


def drawn(generator: np.random.Generator, runs: int, noise: float) -> FloatArray:
    """Logarithms of the runs' values of the noisy metrics and the throughput, shape (runs, 6)."""
    shared, own = generator.standard_normal((runs, 1)), generator.standard_normal((runs, NOISY))
    noisy = noise * (math.sqrt(CORRELATION) * shared + math.sqrt(1.0 - CORRELATION) * own)
    return np.concatenate([noisy, THROUGHPUT_NOISE * generator.standard_normal((runs, 1))], axis=1)


def _sides(logs: FloatArray) -> list[SideEstimates]:
    """The estimates of every metric, from the logarithms of the runs' values."""
    runs = len(logs)
    nothing = [0.0] * runs
    values = [[math.exp(log) for log in column] for column in logs.T]
    noisy = [SideEstimates(list(of), of, nothing, nothing, 0.0, SENT * runs, "") for of in values]
    shares = [1.0] * runs
    return [*noisy, SideEstimates(list(shares), shares, nothing, nothing, float(SENT * runs), SENT * runs, "")]


@dataclass(frozen=True)
class Decision:
    """The result of an experiment ("pass", "fail" or ""), and its runs per side."""

    verdict: str
    runs: int


def family_at(baseline: FloatArray, candidate: FloatArray, bench: Bench) -> tuple[list[Gated], Family | None]:
    """The judged gating metrics, and their family; None if none is close enough to worse to fail.

    The p-value of a family is no smaller than that of its largest t, nor than that of a mean of three that this t
    bounds. If no p-value of a single metric is below `SURELY_NOT_WORSE`, it is far above every level. This shortcut
    saves most of the time.
    """
    gated = [
        Gated(metric, "mean", left, right, judge(metric, "mean", left, right, bench))
        for metric, left, right in zip(METRICS, _sides(baseline), _sides(candidate), strict=True)
    ]
    if all((item.judgement.p_worse or 0.0) > SURELY_NOT_WORSE for item in gated):
        return gated, None
    return gated, family_of(gated, bench)


def experiment(case: Case, lab: Lab, seed: Sequence[int]) -> Decision:
    """Run one experiment until it is decided or has `MOST_RUNS` per side."""
    generator = np.random.default_rng([SEED, *seed])
    baseline, candidate = (drawn(generator, MOST_RUNS, lab.noise) for _ in range(2))
    candidate += case.changes
    archive = KnownArchive(drawn(generator, lab.archive, lab.archive_noise or lab.noise))
    for runs in range(FIRST_LOOK, MOST_RUNS + 1):
        looks = Looks(tuple((look, look) for look in range(FIRST_LOOK, runs + 1)), MOST_RUNS)
        gated, family = family_at(baseline[:runs], candidate[:runs], Bench(archive, looks))
        if family is not None and family.is_worse:
            return Decision("fail", runs)
        if all(item.judgement.outcome in PASSED for item in gated):
            return Decision("pass", runs)
    return Decision("", MOST_RUNS)


def single_run(noise: float, seed: Sequence[int]) -> Decision:
    """Compare two equal releases with one run each, without an archive."""
    generator = np.random.default_rng([SEED, *seed])
    gated, family = family_at(drawn(generator, 1, noise), drawn(generator, 1, noise), Bench())
    if family is not None and family.is_worse:
        return Decision("fail", 1)
    return Decision("pass" if all(item.judgement.outcome in PASSED for item in gated) else "", 1)


def _share(decisions: Sequence[Decision], verdict: str) -> str:
    """Percentage with the standard error; for 0 and 100 %, the error with one different decision."""
    count = sum(item.verdict == verdict for item in decisions)
    share = min(max(count, 1), len(decisions) - 1) / len(decisions)
    return f"{100 * count / len(decisions):.1f} ± {100 * math.sqrt(share * (1.0 - share) / len(decisions)):.1f}"


def _mean_runs(decisions: Sequence[Decision]) -> str:
    return f"{np.mean([item.runs for item in decisions]):.1f}"


DECIDED = 3  # columns that require a decision and also show its cost
COLUMNS = [(EQUAL, "pass"), (THREE, "fail"), (ONE, "fail"), (ONE_AT_MARGIN, "pass"), (ALL_AT_MARGIN, "fail")]


def _row(pool: Pool, lab: Lab, number: int, experiments: int) -> Iterator[str]:
    for column, (case, verdict) in enumerate(COLUMNS):
        seeds = [(number, column, index) for index in range(experiments)]
        decisions = pool.map(partial(experiment, case, lab), seeds, chunksize=8)
        yield _share(decisions, verdict)
        if column < DECIDED:
            yield _mean_runs(decisions)


LABS = [
    *(Lab(noise, 10) for noise in NOISES),
    *(Lab(noise, 0) for noise in NOISES),
    Lab(0.03, 10, archive_noise=0.02),
    Lab(0.03, 10, archive_noise=0.10),
]


def _power(pool: Pool, experiments: int) -> None:
    heads = [f"{case.name}: {verdict}{' | runs' * (at < DECIDED)}" for at, (case, verdict) in enumerate(COLUMNS)]
    print(f"| noise | archive | {' | '.join(heads)} |\n|{'---|' * 10}", flush=True)
    for number, lab in enumerate(LABS):
        other = f" of {100 * lab.archive_noise:.0f} %" if lab.archive_noise else ""
        print(f"| {100 * lab.noise:.0f} % | {lab.archive}{other}", end="", flush=True)
        for cell in _row(pool, lab, number, experiments):
            print(f" | {cell}", end="", flush=True)
        print(" |", flush=True)


def main(experiments: int) -> None:
    """Print the tables.

    Args:
        experiments: number per row and column; ten times as many with one run per side.
    """
    print(f"One run a side of equal releases, assumed noise, {10 * experiments} experiments a row\n")
    print("| noise | fail | pass |\n|---|---|---|")
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        for number, noise in enumerate(NOISES):
            seeds = [(len(LABS), number, index) for index in range(10 * experiments)]
            decisions = pool.map(partial(single_run, noise), seeds, chunksize=50)
            print(f"| {100 * noise:.0f} % | {_share(decisions, 'fail')} | {_share(decisions, 'pass')} |", flush=True)
        print(f"\n{experiments} experiments a cell, at most {MOST_RUNS} runs a side; percent ± standard error\n")
        _power(pool, experiments)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
