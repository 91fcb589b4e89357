"""An A/A check of one build: noise computed by hand, and the verdicts of all splits of its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from chainmark.compare import aa
from chainmark.compare.aa import aa_report
from chainmark.core.aa_report import AAReport
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Distribution, Estimate, MetricSummary
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.core.verdict import Verdict

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

GATING = metric(gating=True)


def _run(number: int, values: dict[str, float | None], metrics: Sequence[Metric], *, minute: int = 0) -> SyntheticRun:
    """A run without samples whose metrics have these means."""
    started = f"2026-11-20T08:{minute or number:02d}:00Z"
    described = manifest("v1", 1, seed=number, run_id=f"run-{number}", started_at=started, experiment=None)
    described.gates.clear()
    summaries = {
        name: MetricSummary(
            metric_id=name,
            distribution=None,
            estimates={} if value is None else {"mean": Estimate(value=value, standard_error=None, method="stub")},
        )
        for name, value in values.items()
    }
    populations = [Population(id="block", label="blocks", keys=["height"])]
    known = Catalogue(
        system="x",
        title="X",
        populations=populations,
        tables=[MetricGroup(id="all", title="All")],
        metrics=list(metrics),
    )
    return SyntheticRun(described, known, {}, summaries)


def _runs(values: Sequence[float | None], metric: Metric = GATING) -> list[SyntheticRun]:
    return [_run(number, {metric.id: value}, [metric]) for number, value in enumerate(values)]


def _report(values: Sequence[float | None], metric: Metric = GATING) -> AAReport:
    return aa_report(_runs(values, metric), [], "1.2")


@dataclass(frozen=True)
class _Ended:
    """The verdict of a split, with only the attributes that the check reads."""

    verdict: Verdict = Verdict.PASS

    @property
    def finding(self) -> _Ended:
        """The finding. It is the same object, which also has the verdict."""
        return self


def test_a_quiet_build_passes_every_split() -> None:
    """Two of four runs can be selected as the candidate's in six ways."""
    report = _report([1.0, 1.001, 1.0, 1.001])
    assert report.splits == {Verdict.PASS: 6, Verdict.INCONCLUSIVE: 0, Verdict.FAIL: 0}
    assert (report.verdict, report.runs_a_side) == (Verdict.PASS, 2)
    assert report.sentence == (
        "Of 6 comparisons of one half of these runs with the other half, 2 runs per side, 6 pass; the noisiest metric "
        "relative to its margin is x (mean)"
    )
    assert (report.tool_version, report.title) == ("1.2", "CometBFT v1 against itself")
    assert (report.subtitle, report.date) == ("profile cometbft/demo · 4 runs · 2026-11-20", "2026-11-20")
    assert report.runs == ["run-0", "run-1", "run-2", "run-3"]
    assert (report.left_out, report.archive_runs) == ({}, 0)


def test_the_outcomes_of_splits_are_counted() -> None:
    """Two runs at 1 and two at 2: in one split the build is worse than itself. A single such split is not evidence."""
    open_ = _report([1.0, 1.2, 1.4, 1.7])
    assert (open_.verdict, open_.splits[Verdict.FAIL]) == (Verdict.PASS, 0)
    assert open_.splits[Verdict.INCONCLUSIVE] > 0
    assert sum(open_.splits.values()) == 6
    failed = _report([1.0, 1.001, 2.0, 2.001])
    assert failed.verdict is Verdict.PASS
    assert failed.splits[Verdict.FAIL] == 1
    assert failed.sentence == (
        "Of 6 comparisons of one half of these runs with the other half, 2 runs per side, 1 passes, 4 are "
        "inconclusive and 1 fails; the noisiest metric relative to its margin is x (mean); reduce that noise first, or "
        "use more runs per side"
    )


def test_every_split_is_judged_with_the_chosen_half_as_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are in the order in which they were made. With an odd number, the last run belongs to neither side."""
    seen: list[tuple[list[int], list[int]]] = []

    archive = _runs([1.0] * 2)

    def noted(left: Sequence[SyntheticRun], right: Sequence[SyntheticRun], history: object) -> _Ended:
        assert history is archive
        first, second = ([run.manifest.seed for run in side] for side in (left, right))
        seen.append((first, second))
        return _Ended()

    monkeypatch.setattr(aa, "decide", noted)
    aa_report(_runs([1.0] * 5)[::-1], archive, "1")
    assert seen == [([place for place in range(4) if place not in way], list(way)) for way in combinations(range(4), 2)]
    seen.clear()
    report = aa_report(_runs([1.0] * 8), archive, "1")
    every = [list(way) for way in combinations(range(8), 4)]
    assert [right for _, right in seen] == [every[number * 70 // 40] for number in range(40)]
    assert report.splits[Verdict.PASS] == 40


def test_more_splits_fail_than_the_stated_error_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight runs are at most seven independent comparisons. Two failures of seven are too many."""
    ended: list[Verdict] = []

    monkeypatch.setattr(aa, "decide", lambda *_: _Ended(ended.pop()))
    for failed, verdict in ((11, Verdict.PASS), (12, Verdict.FAIL)):
        ended[:] = [Verdict.FAIL] * failed + [Verdict.PASS] * (40 - failed)
        report = _report([1.0] * 8)
        assert report.verdict is verdict
        assert report.sentence.startswith("Too many false alarms: of 40 ") == (verdict is Verdict.FAIL)
    ended[:] = [Verdict.INVALID] * 40
    nothing = _report([1.0] * 8)
    assert (nothing.verdict, nothing.splits[Verdict.INVALID]) == (Verdict.INVALID, 40)
    assert "per side, 40 cannot be judged; " in nothing.sentence


@pytest.mark.parametrize(("failed", "verdict"), [(3, Verdict.PASS), (4, Verdict.FAIL)])
def test_an_odd_last_run_does_not_add_evidence(monkeypatch: pytest.MonkeyPatch, failed: int, verdict: Verdict) -> None:
    """Halves of four runs amount to three independent comparisons.

    Three failures of six splits are one of those three, which may be chance; of four comparisons they would be two.
    """
    ended = [Verdict.FAIL] * failed + [Verdict.PASS] * (6 - failed)
    monkeypatch.setattr(aa, "decide", lambda *_: _Ended(ended.pop()))
    assert _report([1.0] * 5).verdict is verdict


@pytest.fixture
def _undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the decision, which these tests do not check."""
    monkeypatch.setattr(aa, "decide", lambda *_: _Ended())


@pytest.mark.usefixtures("_undecided")
@pytest.mark.parametrize(
    ("settings", "margin"),
    [
        ({}, 0.1),
        ({"better": Better.HIGHER}, 0.1),
        # A floor that is 30 % of the geometric mean.
        ({"floor": 0.6}, 0.3),
        ({"floor": 0.6, "better": Better.HIGHER}, 0.3),
        # A throughput cannot fall by more than all of it, but a latency can triple.
        ({"floor": 4.0}, 2.0),
        ({"floor": 4.0, "better": Better.HIGHER}, 1.0),
    ],
)
def test_the_noise_of_a_positive_metric_is_a_share_with_an_interval(settings: dict[str, Any], margin: float) -> None:
    values = [2.0 / 1.2, 2.0, 2.0, 2.0 * 1.2]
    (row,) = _report(values, metric(gating=True, **settings)).noise
    deviation = float(np.std(np.log(values), ddof=1))
    assert (row.metric_id, row.label, row.statistic, row.unit, row.is_relative) == ("x_s", "x", "mean", "s", True)
    assert row.values == values
    assert row.mean == pytest.approx(2.0166667)
    assert row.deviation == pytest.approx(deviation)
    assert row.low == pytest.approx(deviation * math.sqrt(3 / stats.chi2.ppf(0.95, 3)))
    assert row.high == pytest.approx(deviation * math.sqrt(3 / stats.chi2.ppf(0.05, 3)))
    assert row.margin == pytest.approx(margin)


@pytest.mark.usefixtures("_undecided")
@pytest.mark.parametrize("kind", [Kind.DIFFERENCE, Kind.COUNT])
def test_the_noise_of_any_other_metric_is_in_its_unit(kind: Kind) -> None:
    """A count is compared by its ratio, but its noise is in its unit."""
    values = [4.0, 5.0, 5.0, 6.0]
    some_metric = metric(kind, gating=True, margin=0.2)
    runs = _runs(values, some_metric)
    for run, value in zip(runs, values, strict=True):
        counted = Distribution(n=2, n_null=0, mean=value, sd=1.0, min=value - 1.0, max=value + 1.0, centiles=[])
        run.summaries()["x_s"] = run.summaries()["x_s"].model_copy(
            update={"distribution": counted, "total": 2.0 * value}
        )
    (row,) = aa_report(runs, [], "1").noise
    assert not row.is_relative
    assert row.deviation == pytest.approx(float(np.std(values, ddof=1)))
    assert row.margin == pytest.approx(0.2 * 5.0)


@pytest.mark.usefixtures("_undecided")
def test_noise_is_reported_only_for_gating_metrics_with_values_in_two_runs() -> None:
    metrics = [
        metric(id="a_s", gating=True, label="quiet", margin=0.5),
        metric(id="b_s", gating=True, label="noisy", order=2),
        metric(id="c_s", gating=True, label="once", order=3),
        metric(id="d_s", gating=False, label="diagnostic", order=4),
        metric(Kind.DIFFERENCE, id="e_s", gating=True, label="without a margin, as its mean is 0", order=5),
        metric(id="f_s", gating=True, label="twice", order=6, margin=0.5),
    ]
    runs = [
        _run(
            number,
            {
                "a_s": value,
                "b_s": value,
                "c_s": None if number else 1.0,
                "d_s": value,
                "e_s": value - 1.0,
                "f_s": None if number < 2 else value,
            },
            metrics,
        )
        for number, value in enumerate([1.0, 1.05, 0.95, 1.0])
    ]
    report = aa_report(runs, [], "1")
    assert [row.metric_id for row in report.noise] == ["a_s", "b_s", "e_s", "f_s"]
    assert report.sentence.endswith("the noisiest metric relative to its margin is noisy (mean)")


@pytest.mark.usefixtures("_undecided")
def test_invalid_runs_are_excluded_and_other_runs_of_the_archive_are_counted() -> None:
    runs = _runs([1.0] * 5)
    late = Gate(id="g", label="in time", status=GateStatus.FAIL, measured="91 %", limit=">= 98 %")
    runs[1].manifest.gates.append(late)
    runs[1].manifest.status = Status.INVALID
    archive = [*runs[:2], *_runs([1.0] * 9)[6:]]
    report = aa_report(runs, archive, "1")
    assert report.runs == ["run-0", "run-2", "run-3", "run-4"]
    assert report.left_out == {"run-1": "in time: 91 %, required >= 98 %"}
    assert report.archive_runs == 3
    assert "· 4 runs ·" in report.subtitle
    with pytest.raises(InvalidRunError, match="only 3 of 4 runs are valid; the noise between runs needs 4") as refused:
        aa_report(runs[:4], [], "1")
    assert refused.value.hint == "in time: 91 %, required >= 98 %"
    with pytest.raises(UsageError) as few:
        aa_report(runs[2:], [], "1")
    assert few.value.hint == "use more runs: `--repeat 8`"
    runs[2].manifest.gates.append(late.model_copy(update={"label": "alive"}))
    runs[2].manifest.status = Status.INVALID
    with pytest.raises(InvalidRunError) as several:
        aa_report(runs, [], "1")
    assert several.value.hint == "in time: 91 %, required >= 98 %; alive: 91 %, required >= 98 %"
    with pytest.raises(UsageError, match="the build has no runs"):
        aa_report([], [], "1")


@pytest.mark.usefixtures("_undecided")
def test_the_first_run_defines_the_gating_metrics_and_all_runs_contribute_caveats() -> None:
    runs = [_run(0, {"x_s": 1.0}, [GATING]), *(_run(number, {"x_s": 1.1}, []) for number in range(1, 4))]
    runs[3].manifest.synthetic = True
    report = aa_report(runs, [], "1")
    assert [row.metric_id for row in report.noise] == ["x_s"]
    assert report.caveats.badges == ("SYNTHETIC",)


@pytest.mark.usefixtures("_undecided")
def test_runs_that_started_in_the_same_second_have_a_defined_order() -> None:
    runs = [_run(number, {"x_s": 1.0}, [GATING], minute=7) for number in range(4)]
    assert aa_report(runs[::-1], [], "1").runs == ["run-0", "run-1", "run-2", "run-3"]
