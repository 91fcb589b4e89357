"""The metric that a search follows, tested with single values instead of compared runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from chainmark.compare.bisect import (
    FAILING,
    Known,
    SearchTarget,
    archived,
    differs,
    followed_of,
    is_equal,
    judgement_of,
    steps_of,
)
from chainmark.compare.decide import Decided, decide
from chainmark.core.bisect_report import SideState
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome, Scale, SideValue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import ExperimentPlace, Gate, GateKind, GateStatus, Status
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.core.verdict import Verdict
from chainmark.lab.bisecting import Bisection, Built, Visit
from chainmark.stats.change_place import DOUBT, SearchedRevisions, SearchedRuns
from chainmark.stats.intervals import Spread, Working
from chainmark.store.sealed import SealedRun

from tests.unit.compare.metric_cases import metric, stub_run
from tests.unit.compare.searched_runs import InMemory
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest
from tests.unit.lab.line_system import LineSystem


def _judgement(**settings: Any) -> Judgement:
    nothing = SideValue(value=None, per_run=[], samples=0)
    fields = {
        "metric_id": "a_s",
        "statistic": "mean",
        "gating": True,
        "scale": Scale.RELATIVE,
        "outcome": Outcome.EQUAL,
    }
    return Judgement.model_validate({"baseline": nothing, "candidate": nothing, **fields, **settings})


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.01, 0.2, True), (-0.2, -0.01, True), (-0.1, 0.1, False), (0.0, 0.1, False), (-0.1, 0.0, False),
        (None, -0.1, False), (0.1, None, False), (None, None, False),
    ],
)  # fmt: skip
def test_a_change_is_known_if_its_interval_excludes_no_change(
    low: float | None, high: float | None, expected: bool
) -> None:
    assert differs(_judgement(low=low, high=high)) is expected


def test_sides_are_equal_if_shown_to_be_equivalent_and_not_known_to_differ() -> None:
    within: dict[str, Any] = {"equivalent": True, "low": -0.01, "high": 0.01}
    assert is_equal(_judgement(**within))
    assert not is_equal(_judgement(**within | {"low": 0.005}))
    assert not is_equal(_judgement(**within | {"equivalent": False}))
    assert not is_equal(_judgement(**within | {"outcome": Outcome.BETTER}))


def test_a_metric_is_selected_by_name_or_statistic_and_an_unknown_one_lists_the_gating_ones() -> None:
    items = [
        _judgement(statistic="p50"),
        _judgement(statistic="p99"),
        _judgement(metric_id="b_s", gating=False),
        _judgement(metric_id="c_s"),
    ]
    decided = Decided.__new__(Decided)
    object.__setattr__(decided, "judgements", items)
    assert judgement_of(decided, "a_s") is items[0]
    assert judgement_of(decided, "a_s.p50") is items[0]
    assert judgement_of(decided, "a_s.p99") is items[1]
    assert judgement_of(decided, "b_s") is items[2]
    with pytest.raises(UsageError, match=r"^`d_s` is not a judged metric$") as refused:
        judgement_of(decided, "d_s")
    assert refused.value.hint == "gating metrics: a_s, c_s"


def test_a_value_increases_towards_the_bad_side_on_the_scale_of_comparison() -> None:
    run = stub_run("v1", 4.0, 1)
    assert SearchTarget(metric(), "mean", Working.LOG, 1.0).value(run) == pytest.approx(math.log(4.0))
    assert SearchTarget(metric(), "mean", Working.DIFFERENCE, -1.0).value(run) == -4.0
    assert SearchTarget(metric(), "p99", Working.LOG, 1.0).value(run) is None


@pytest.mark.parametrize(
    ("value", "working", "expected"),
    [
        (0.0, Working.LOG, None), (-1.0, Working.LOG, None), (math.inf, Working.DIFFERENCE, None),
        (0.0, Working.DIFFERENCE, 0.0), (-1.0, Working.DIFFERENCE, -1.0), (0.5, Working.LOG, math.log(0.5)),
    ],
)  # fmt: skip
def test_a_run_without_a_value_on_the_scale_has_none(value: float, working: Working, expected: float | None) -> None:
    assert SearchTarget(metric(), "mean", working).value(stub_run("v1", value, 1)) == expected


def test_an_invalid_run_has_no_value_and_counts_if_failures_are_followed() -> None:
    run = stub_run("v1", 4.0, 1)
    assert SearchTarget().value(run) == 0.0
    run.manifest.status = Status.FAILED
    assert SearchTarget().value(run) == 1.0
    assert SearchTarget(metric(), "mean", Working.LOG).value(run) is None
    run.manifest.status = Status.INVALID
    assert SearchTarget().value(run) is None, "an invalid run is not evidence about its subject"
    assert SearchTarget(metric(), "mean", Working.LOG).value(run) is None


def test_a_change_is_reported_as_a_share_or_in_its_unit_with_its_sign() -> None:
    ratio = SearchTarget(metric(label="size", statistics=["mean", "p99"]), "p99", Working.LOG, -1.0)
    assert (ratio.name, ratio.scale) == ("size p99", Scale.RELATIVE)
    assert ratio.reported_change(math.log(2.0)) == pytest.approx(-0.5)
    plain = SearchTarget(metric(), "mean", Working.DIFFERENCE, -1.0)
    assert (plain.scale, plain.reported_change(3.0)) == (Scale.ABSOLUTE, -3.0)
    assert (SearchTarget().name, SearchTarget().scale, SearchTarget().reported_change(1.0)) == (
        FAILING,
        Scale.ABSOLUTE,
        1.0,
    )


NOISE = (-1.0, 0.0, 1.0)


def _runs(
    version: str, metrics: Sequence[Metric], values: dict[str, tuple[float, float]], lost: Collection[str] = ()
) -> list[SyntheticRun]:
    """Three runs without samples. ``values`` has the middle value and the deviation, by metric and statistic.

    ``lost`` names values that a run lacks, for example ``v0-1 x_s``.

    """
    catalogue = Catalogue(
        system="cometbft",
        title="CometBFT",
        populations=[Population(id="block", label="blocks", keys=["height"])],
        tables=[MetricGroup(id="all", title="All")],
        metrics=list(metrics),
    )
    runs = []
    for number, step in enumerate(NOISE):
        summaries = {
            metric.id: MetricSummary(
                metric_id=metric.id,
                distribution=None,
                samples=100,
                total=100 * values.get(f"{metric.id}.mean", (0.0, 0.0))[0],
                estimates={
                    name: Estimate(value=middle + step * deviation, standard_error=None, method="stub")
                    for name in metric.statistics
                    if f"{version}-{number} {metric.id}" not in lost
                    and (moments := values.get(f"{metric.id}.{name}")) is not None
                    for middle, deviation in [moments]
                },
            )
            for metric in metrics
        }
        described = manifest(version, number, run_id=f"{version}-{number}", gates=[], conditions={})
        described.experiment = None
        runs.append(SyntheticRun(described, catalogue, {}, summaries))
    return runs


def _decided(
    metrics: Sequence[Metric], *lost: str, **values: tuple[tuple[float, float], tuple[float, float]]
) -> Decided:
    """The decision on values of a metric's mean (``x_s``) or another statistic (``x_s__p99``): first good, then bad."""
    named = {f"{name}.mean" if "__" not in name else name.replace("__", "."): level for name, level in values.items()}
    sides = [{name: level[place] for name, level in named.items()} for place in (0, 1)]
    return decide(_runs("v0", metrics, sides[0], lost), _runs("v1", metrics, sides[1], lost))


def test_the_failing_metric_with_the_largest_change_relative_to_its_noise_is_followed() -> None:
    """The metric with the largest change may be so noisy that every step of the search requires many runs."""
    metrics = [metric(id=name, gating=name != "d_s") for name in ("a_s", "b_s", "c_s", "d_s")]
    decided = _decided(
        metrics,
        a_s=((1.0, 0.05), (2.0, 0.1)),
        b_s=((10.0, 0.01), (13.0, 0.01)),
        c_s=((1.0, 0.1), (1.5, 0.1)),
        d_s=((1.0, 0.0001), (9.0, 0.0001)),  # not a gating metric
    )
    followed = followed_of(decided, None)
    assert followed == SearchTarget(decided.catalogue.metric("b_s"), "mean", Working.LOG, 1.0)
    exact = _decided(metrics, a_s=((1.0, 0.0), (2.0, 0.0)), b_s=((1.0, 0.0), (3.0, 0.0)), c_s=((1.0, 0.01), (9.0, 0.1)))
    followed = followed_of(exact, None)
    assert followed is not None
    assert followed.metric is not None
    assert followed.metric.id == "b_s", "metrics without noise are distinguished by the size of their change"


def test_the_noise_of_a_run_combines_both_sides() -> None:
    """One metric is quiet on the good side and noisy on the bad one.

    The other is the opposite, and slightly less noisy.
    """
    metrics = [metric(id=name, gating=True, kind=Kind.DIFFERENCE, margin=0.01) for name in ("a_s", "b_s")]
    for quiet, restless in (((1.0, 2.0), (1.0, 1.5)), ((2.0, 1.0), (1.5, 1.0))):
        decided = _decided(
            metrics, a_s=((0.0, quiet[0]), (100.0, quiet[1])), b_s=((0.0, restless[0]), (100.0, restless[1]))
        )
        followed = followed_of(decided, None)
        assert followed == SearchTarget(decided.catalogue.metric("b_s"), "mean", Working.DIFFERENCE, 1.0)


def _clearest(decided: Decided) -> str:
    followed = followed_of(decided, None)
    assert followed is not None
    assert followed.metric is not None
    return followed.metric.id


def test_the_change_and_not_the_level_is_relevant_on_the_scale_of_comparison() -> None:
    plain = [metric(id=name, gating=True, kind=Kind.DIFFERENCE, margin=0.001) for name in ("a_s", "b_s")]
    assert _clearest(_decided(plain, a_s=((1000.0, 1.0), (1020.0, 1.0)), b_s=((0.0, 1.0), (100.0, 1.0)))) == "b_s"
    # The first metric grows tenfold, with a deviation of a fifth. As a ratio this is clearer than in seconds.
    ratios = [metric(id=name, gating=True) for name in ("a_s", "b_s")]
    assert _clearest(_decided(ratios, a_s=((1.0, 0.01), (10.0, 2.0)), b_s=((10.0, 0.15), (12.0, 0.15)))) == "a_s"


@pytest.mark.parametrize(
    ("lost", "deviations"),
    [
        (["v0-1 a_s", "v1-1 a_s"], (0.012, 0.01)),
        (["v0-1 a_s", "v0-2 a_s", "v1-1 a_s", "v0-1 b_s", "v1-1 b_s"], (0.0122, 0.01)),
    ],
)
def test_runs_without_a_value_do_not_affect_the_noise(lost: list[str], deviations: tuple[float, float]) -> None:
    """Fewer runs have fewer squares, which must not make a metric appear less noisy."""
    metrics = [metric(id=name, gating=True) for name in ("a_s", "b_s")]
    left, right = ({"a_s": (middle, deviations[0] * middle), "b_s": (middle, deviations[1] * middle)}
                   for middle in (1.0, 10.0))  # fmt: skip
    decided = _decided(metrics, *lost, a_s=(left["a_s"], right["a_s"]), b_s=(left["b_s"], right["b_s"]))
    assert _clearest(decided) == "b_s"


def test_the_scale_and_the_bad_side_follow_from_the_metric_and_its_change() -> None:
    plain = metric(id="a_s", gating=True, kind=Kind.DIFFERENCE, better=Better.HIGHER, margin=0.01)
    decided = _decided([plain], a_s=((5.0, 0.01), (3.0, 0.01)))
    assert followed_of(decided, None) == SearchTarget(plain, "mean", Working.DIFFERENCE, -1.0)
    below = metric(id="a_s", gating=True, margin=0.01)
    assert followed_of(_decided([below], a_s=((-1.0, 0.01), (4.0, 0.01))), None) == SearchTarget(
        below, "mean", Working.DIFFERENCE, 1.0
    ), "a ratio to a value below 0 is meaningless"
    count = metric(id="a_s", gating=True, kind=Kind.COUNT)
    target = followed_of(_decided([count], a_s=((10.0, 0.1), (20.0, 0.1))), None)
    assert target is not None
    assert target.working is Working.DIFFERENCE
    several = metric(id="a_s", gating=True, statistics=["mean", "p99"], judged_by=["mean", "p99"])
    tail = _decided([several], a_s=((1.0, 0.01), (1.0, 0.01)), a_s__p99=((1.0, 0.01), (2.0, 0.02)))
    assert followed_of(tail, None) == SearchTarget(several, "p99", Working.LOG, 1.0)


def test_a_requested_metric_is_followed_only_if_it_differs() -> None:
    metrics = [metric(id=name, gating=name == "a_s") for name in ("a_s", "b_s", "c_s")]
    decided = _decided(
        metrics, a_s=((1.0, 0.01), (1.0, 0.01)), b_s=((2.0, 0.01), (1.0, 0.01)), c_s=((1.0, 0.3), (1.1, 0.3))
    )
    assert followed_of(decided, None) is None, "the verdict is not a failure"
    assert followed_of(decided, "b_s") == SearchTarget(decided.catalogue.metric("b_s"), "mean", Working.LOG, -1.0)
    assert followed_of(decided, "c_s") is None
    with pytest.raises(UsageError, match="`d_s` is not a judged metric"):
        followed_of(decided, "d_s")


def test_failures_are_followed_if_only_the_runs_fail() -> None:
    good, bad = (_runs(name, [metric(id="a_s", gating=True)], {"a_s.mean": (1.0, 0.01)}) for name in ("v0", "v1"))
    for run in bad:
        gate = Gate(id="g", label="alive", status=GateStatus.FAIL, measured="3", limit="4", kind=GateKind.SUBJECT)
        run.manifest.gates, run.manifest.status = [gate], Status.FAILED
    assert followed_of(decide(good, bad), None) == SearchTarget()


def test_the_clearest_of_metrics_that_are_only_jointly_worse_is_followed() -> None:
    """The family names these metrics by their positions among the gating metrics. No other metric is considered."""
    metrics = [metric(id=f"m{number}_s", gating=number > 0, order=number) for number in range(4)]
    noise = {"m0_s": 0.001, "m1_s": 0.001, "m2_s": 0.02, "m3_s": 0.01}
    decided = _decided(metrics, **{name: ((1.0, deviation), (1.05, deviation)) for name, deviation in noise.items()})
    assert followed_of(decided, None) is None
    finding = replace(decided.finding, verdict=Verdict.FAIL)
    failing = replace(decided, finding=finding, family=replace(decided.family, together=(1, 2)))
    followed = followed_of(failing, None)
    assert followed is not None
    assert followed.metric is not None
    assert followed.metric.id == "m3_s"


def test_failing_runs_have_no_archive_noise_and_no_levels() -> None:
    search = InMemory(LineSystem(), {})
    search.run(0)
    assert archived(search.made, SearchTarget(), []) is None
    known = _known([0, 1, 1, 3], fails=True)
    assert known.levels() == {}


class Retained(SyntheticRun):
    """A run in memory with the id of a sealed run."""

    @property
    def run_id(self) -> str:
        """The id from the manifest."""
        return self.manifest.run_id


def _add(bisection: Bisection, place: int, value: float, status: Status = Status.VALID) -> None:
    position, label = len(bisection.runs), bisection.record.revisions[place].label
    run = stub_run(label, value, position)
    run.manifest.experiment = ExperimentPlace(id=bisection.id, side=label, repetition=1, position=position)
    run.manifest.status = status
    bisection.runs[position] = cast(SealedRun, Retained(run.manifest, run.catalogue, run.frames, run.summaries()))


def _search(good: Sequence[float], bad: Sequence[float]) -> Bisection:
    """A search that has runs of both ends with these values."""
    bisection = InMemory(LineSystem(), {}).made
    for place, values in ((0, good), (bisection.last, bad)):
        for value in values:
            _add(bisection, place, value)
    return bisection


def _visited(failed: Status = Status.VALID) -> Bisection:
    """Visits both ends, then 6, 3 (an invalid run), 9, 6 again and 4. From 5 on all values are twice as large."""
    bisection = InMemory(LineSystem(), {}).made
    again = [(12, [0, 12, 12, 0]), (6, [6, 0, 6, 12]), (3, [3]), (9, [9, 0]), (6, [12, 6]), (4, [4, 0, 4, 4, 0, 4])]
    for visit, places in again:
        bisection.record.visits.append(Visit(place=visit, position=len(bisection.runs)))
        for place in places:
            noise = 1.0 + 0.1 * ((len(bisection.runs) * 7) % 5)
            says = Status.INVALID if place == 3 else failed if place >= 5 else Status.VALID
            _add(bisection, place, noise * (2.0 if place >= 5 else 1.0), says)
    return bisection


def test_a_step_shows_what_its_own_and_earlier_runs_established() -> None:
    bisection, followed, archive = _visited(), SearchTarget(metric(), "mean", Working.LOG), Spread(3.0, 30.0)
    steps = steps_of(bisection, followed, archive)
    assert [(step.place, step.pairs) for step in steps] == [(6, 2), (9, 1), (6, 1), (4, 4)]
    for step, visits in zip(steps, (2, 4, 5, 6), strict=True):
        known = Known.of(bisection, followed, archive, visits)
        level = known.levels()[step.place]
        assert (step.change, step.low, step.high) == (level.change, level.low, level.high)
        assert step.chance == known.chance_at(step.place)
        assert step.outcome is known.side_of(step.place)
        likely = known.row.likely(known.chances)
        assert step.left == likely.at - likely.before
    assert steps[0].chance != steps[2].chance
    assert likely.before > 0, "the revision visited last is like the good side"
    first = Known.of(bisection, followed, archive, 2).levels()[6]
    assert (first.place, first.runs) == (6, 2)
    assert first.low < first.change < first.high
    assert first.change == pytest.approx(1.0, abs=0.5)
    alone = Known.of(bisection, followed, None, 2)
    assert alone.levels()[6].low != first.low, "noise of other runs is included"
    assert alone.chance_at(6) != steps[0].chance


def test_steps_based_on_failing_runs_have_no_changes() -> None:
    steps = steps_of(_visited(Status.FAILED), SearchTarget(), None)
    assert [(step.place, step.pairs, step.change, step.low, step.high) for step in steps] == [
        (6, 2, None, None, None), (9, 1, None, None, None), (6, 1, None, None, None),
        (4, 4, None, None, None),
    ]  # fmt: skip
    assert all(step.outcome is SideState.BAD for step in steps[1:3])


def test_known_values_cover_the_given_visits_and_the_measurable_revisions() -> None:
    bisection, followed, archive = _visited(), SearchTarget(metric(), "mean", Working.LOG), Spread(0.02, 30.0)
    known = Known.of(bisection, followed, archive, 1)
    assert known.seen.places.tolist() == [0, 12, 12, 0]
    assert known.seen.values.tolist() == pytest.approx(
        [followed.value(run) for run in list(bisection.runs.values())[:4]]
    )
    assert (known.row.last, known.row.archive, known.row.fails, known.row.equal) == (12, archive, False, ())
    assert Known.of(bisection, SearchTarget(), None).row.fails
    bisection.record.builds = {
        place: Built(version=f"v{place}", sha256=sha) for place, sha in ((4, "a"), (5, "a"), (7, "b"))
    }
    assert Known.of(bisection, followed, None).row.equal == ((4, 5),)
    bisection.record.skipped[5] = "it does not build"
    skipped = Known.of(bisection, followed, None).row
    assert skipped.equal == ()
    assert skipped.skipped == frozenset({5})


def test_an_uncertain_revision_is_measured_again_before_a_bisecting_one() -> None:
    known = _known([0, 3, 1], [0.3, 0.2, 0.5])
    assert known.turn() == 1
    assert _known([0, 3], [0.3, 0.2, 0.5]).turn() == 2
    assert _known([0, 3, 1, 2, 1], [0.0, 1.0, 0.0]).turn() == 2, "both ends of the answer are measured twice"
    assert _known([0, 3, 1, 2, 1, 2], [0.0, 1.0, 0.0]).turn() is None


def test_noise_of_other_runs_is_used_unless_the_ends_are_noisier() -> None:
    """Noise of runs of equal builds outside the search.

    A quiet archive does not apply to a machine that became noisier.
    """
    bisection = _search([1.0, 1.02], [2.0, 2.04])
    other = [stub_run("old", value, number) for number, value in enumerate((100.0, 104.0))]
    history = [*other, *(cast(SyntheticRun, run) for run in bisection.runs.values())]
    for working, squares in ((Working.LOG, math.log(1.04) ** 2 / 2.0), (Working.DIFFERENCE, 8.0)):
        spread = archived(bisection, SearchTarget(metric(), "mean", working), history)
        assert spread is not None
        assert spread.squares == pytest.approx(squares)
        assert spread.degrees_of_freedom == 1.0
    ratio = SearchTarget(metric(), "mean", Working.LOG)
    assert archived(_search([1.0], [2.0]), ratio, other) is not None
    assert archived(_search([1.0, 1.02], []), ratio, other) is None
    assert archived(_search([], [2.0, 2.04]), ratio, other) is None
    assert archived(_search([], []), ratio, other) is None
    assert archived(bisection, ratio, []) is None
    assert archived(bisection, SearchTarget(metric(), "p99", Working.LOG), history) is None
    quiet = [stub_run("old", 100.0 + 0.001 * number, number) for number in range(30)]
    assert archived(bisection, ratio, quiet) is None
    noisy = [stub_run("old", math.exp(number % 2), number) for number in range(30)]
    assert archived(_search([1.0, 1.001, 1.002], [2.0, 2.002, 2.004]), ratio, noisy) is None


def _known(places: list[int], values: list[float] | None = None, *, fails: bool = False) -> Known:
    """The state of a search among three revisions after the good one."""
    visits = np.zeros(len(places), dtype=int)
    seen = SearchedRuns(np.array(places), visits, np.array([float(place > 1) for place in places]))
    row = SearchedRevisions(3, frozenset(), (), None, fails)
    return Known(row, seen, np.array(values or [1.0, 0.0, 0.0]), SearchTarget())


def test_the_last_revision_between_the_ends_is_the_current_one() -> None:
    assert _known([0, 3, 0]).current is None
    assert _known([0, 3, 1, 2, 0, 3]).current == 2
    assert _known([0, 3, 2, 1, 3]).current == 1


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.0, SideState.GOOD), (DOUBT, SideState.GOOD), (2.0 * DOUBT, SideState.DOUBTFUL), (0.5, SideState.DOUBTFUL),
        (1.0 - 2.0 * DOUBT, SideState.DOUBTFUL), (1.0 - DOUBT, SideState.BAD), (1.0, SideState.BAD),
    ],
)  # fmt: skip
def test_a_revision_is_good_or_bad_if_hardly_any_doubt_remains(chance: float, expected: SideState) -> None:
    known = _known([0, 3], [chance, 1.0 - chance, 0.0])
    assert known.chance_at(1) == pytest.approx(chance)
    assert known.side_of(1) is expected
