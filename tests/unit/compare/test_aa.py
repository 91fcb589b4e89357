"""An A/A check of one build: measured noise is a result, and only too many false alarms are a failure."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from chainmark.compare.aa import aa_report, false_alarms_exceed
from chainmark.core.aa_report import AAReport
from chainmark.core.errors import ExitCode
from chainmark.core.verdict import Verdict
from chainmark.report.layouts import document_of

from tests.unit.compare.synthetic_runs import SyntheticRun, run


def _runs(count: int, noise: float) -> list[SyntheticRun]:
    return [run("v1", number, run_noise=noise, seed=200 + number) for number in range(1, count + 1)]


@pytest.fixture(scope="module")
def noisy() -> AAReport:
    """The report of four runs with 10 % noise, whose splits are all inconclusive."""
    return aa_report(_runs(4, 0.10), [], "0")


def test_a_small_noisy_sample_is_measured_and_not_a_failure(noisy: AAReport) -> None:
    """A user who checks the noise of a lab must get the figure. A pipeline that exits with 3 would never show it."""
    assert noisy.splits[Verdict.INCONCLUSIVE] == sum(noisy.splits.values())
    document = document_of(noisy)
    assert (document.verdict, document.verdict.exit_code, document.word) == (Verdict.PASS, ExitCode.DONE, "PASS")
    latency = next(row for row in noisy.noise if row.metric_id == "tx_latency_s" and row.statistic == "p50")
    assert latency.deviation == pytest.approx(np.std(np.log(latency.values), ddof=1))
    assert latency.low < latency.deviation < latency.high
    assert "6 are inconclusive" in document.sentence


def test_too_many_false_alarms_are_a_failure(noisy: AAReport) -> None:
    """A verdict that calls half of the unchanged releases worse must stop everyone who relies on it."""
    document = document_of(noisy.model_copy(update={"verdict": Verdict.FAIL, "splits": {Verdict.FAIL: 5}}))
    assert (document.verdict.exit_code, document.word) == (ExitCode.FAIL, "FAIL")
    assert "100 % of the splits" in document.suites[0].cases[0].reason


@pytest.mark.parametrize(
    ("runs", "expected_rate", "exceeded"), [(4, 0.6, 0.67), (8, 0.28, 0.29), (16, 0.19, 0.2), (100, 0.19, 0.2)]
)
def test_the_rate_that_exceeds_the_stated_error_is_lower_for_more_runs(
    runs: int, expected_rate: float, exceeded: float
) -> None:
    assert not false_alarms_exceed(0.0, runs)
    assert not false_alarms_exceed(expected_rate, runs)
    assert false_alarms_exceed(exceeded, runs)


@pytest.mark.parametrize("runs", [4, 8, 16])
def test_a_calibrated_verdict_is_hardly_ever_called_uncalibrated(runs: int) -> None:
    """The halves share runs. Treated as independent trials they would reject far more than 5 % of sound labs.

    The metric has no margin, so every half that differs by chance at 5 % is a false alarm.

    """
    draw = np.random.default_rng(7)
    ways = [list(way) for way in combinations(range(runs), runs // 2)]
    chosen = np.zeros((40, runs), bool)
    for row, way in enumerate(ways[number * len(ways) // 40] for number in range(40)):
        chosen[row, way] = True
    values = draw.normal(size=(1500, runs))
    mine = values @ chosen.T / (runs // 2)
    others = values @ ~chosen.T / (runs // 2)
    squares = (values**2).sum(axis=1)[:, None] - (runs // 2) * (mine**2 + others**2)
    t = (mine - others) / np.sqrt(squares / (runs - 2) * 4.0 / runs)
    shares = (t > stats.t.isf(0.05, runs - 2)).mean(axis=1)
    assert shares.mean() == pytest.approx(0.05, abs=0.01)
    assert np.mean([false_alarms_exceed(share, runs) for share in shares]) <= 0.05
