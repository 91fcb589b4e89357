"""The report of a search for given evidence: sentence, reasons, next step, figures and charts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from chainmark.compare.bisect import FAILING, Known, SearchTarget
from chainmark.compare.bisect_result import Searched, bisect_report
from chainmark.core.bisect_report import BisectReport, BisectStep, RevisionLevel, SideState, Way
from chainmark.core.caveats import Caveats
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import Breakdown, Comparison, Followed, Scale, Splits
from chainmark.core.verdict import Verdict
from chainmark.stats.change_place import SearchedRevisions, SearchedRuns
from chainmark.stats.intervals import Working

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.searched_runs import CHANGE, LAST, InMemory
from tests.unit.lab.line_system import LineSystem
from tests.unit.report.samples import sample

ID = "line-bisect-quick-20260120T080000-0001"
RELATIVE, ABSOLUTE = SearchTarget(metric(), "mean", Working.LOG), SearchTarget(metric(), "mean", Working.DIFFERENCE)
SHARE, FAILURES = SearchTarget(metric(unit="fraction"), "mean", Working.DIFFERENCE), SearchTarget()
FOUND, RANGE, UNDECIDED, NO_CHANGE, UNCLEAR = Way.FOUND, Way.RANGE, Way.UNDECIDED, Way.NO_CHANGE, Way.UNCLEAR
FIX = f"commit{CHANGE} (Let writers settle before a block is executed)"


@dataclass(frozen=True)
class Evidence(Known):
    """Evidence with given levels."""

    given: dict[int, RevisionLevel] = field(default_factory=dict)

    def levels(self) -> dict[int, RevisionLevel]:
        """The given levels."""
        return self.given


def _level(place: int, change: float) -> RevisionLevel:
    return RevisionLevel(place=place, runs=4, change=change, low=change - 0.03, high=change + 0.03)


def _known(
    chances: dict[int, float], levels: dict[int, float] | None = None, followed: SearchTarget = RELATIVE, **row: Any
) -> Known:
    """Evidence with the probabilities of some places, and the changes of some."""
    values = np.array([chances.get(place, 0.0) for place in range(1, LAST + 1)])
    seen = SearchedRuns(np.array([0, LAST]), np.array([0, 0]), np.array([0.0, 1.0]))
    given = {place: _level(place, change) for place, change in (levels or {}).items()}
    return Evidence(SearchedRevisions(LAST, **row), seen, values, followed, given)


def _ends(**changes: object) -> Comparison:
    words = {"sentence": "commit12 is worse", "reasons": ["a reason"], "advice": ["more runs"]}
    return sample().model_copy(update={**words, **changes})


def _report(
    way: Way,
    known: Known | None = None,
    metric_name: str | None = None,
    skipped: dict[int, str] | None = None,
    **parts: Any,
) -> BisectReport:
    """The report of a search with a run of each end."""
    search = InMemory(LineSystem(), skipped or {}, most_runs=40)
    search.made.record.profile = {"name": "line/quick"}
    search.made.record.order.metric = metric_name
    search.run(0)
    search.run(LAST)
    return bisect_report(Searched(search.made, way=way, known=known, **{"ends": _ends(), **parts}), "1.2.3")


SURE = {CHANGE: 0.99, CHANGE - 1: 0.01}
CHANGED = "x +31.0 % (90 % interval +28.0 … +34.0 %)"


@pytest.mark.parametrize(
    ("way", "metric_name", "expected"),
    [
        (NO_CHANGE, None, "there is no regression to search for: commit12 is not worse than commit0"),
        (NO_CHANGE, "m", "there is no change to search for: `m` of commit12 does not differ from that of commit0"),
        (UNCLEAR, None, "whether commit12 is worse than commit0 is undecided, so the search cannot start yet"),
        (
            UNCLEAR, "m",
            "whether `m` of commit12 differs from that of commit0 is undecided, so the search cannot start yet",
        ),
    ],
)  # fmt: skip
def test_a_search_without_a_change_says_why_it_does_not_begin(way: Way, metric_name: str | None, expected: str) -> None:
    report = _report(way, metric_name=metric_name)
    assert (report.sentence, report.reasons) == (expected, ["commit12 is worse", "a reason"])
    assert (report.verdict, report.way) == (Verdict.INCONCLUSIVE, way)


@pytest.mark.parametrize(
    ("way", "known", "verdict", "expected"),
    [
        (FOUND, _known(SURE, {CHANGE: 0.31, LAST: 0.5}), Verdict.PASS,
         f"the change was introduced by {FIX}: {CHANGED}; probability 99.0 %"),
        (FOUND, _known({CHANGE: 0.999}, {LAST: 0.31}), Verdict.PASS,
         f"the change was introduced by {FIX}: {CHANGED}; probability above 99.9 %"),
        (FOUND, _known({CHANGE: 0.9989}, {}), Verdict.PASS,
         f"the change was introduced by {FIX}: x; probability 99.9 %"),
        (FOUND, _known(SURE, {CHANGE: 0.031}, ABSOLUTE), Verdict.PASS,
         f"the change was introduced by {FIX}: x +31.0 ms (90 % interval +1.0 … +61.0 ms); probability 99.0 %"),
        (FOUND, _known(SURE, {CHANGE: 0.031}, SHARE), Verdict.PASS,
         f"the change was introduced by {FIX}: x +3.10 pp (90 % interval +0.10 … +6.10 pp); probability 99.0 %"),
        (FOUND, _known(SURE, {CHANGE: 0.98}), Verdict.PASS,
         f"the change was introduced by {FIX}: x +98 % (90 % interval +95 … +101 %); probability 99.0 %"),
        (FOUND, _known(SURE, {}, FAILURES), Verdict.PASS,
         f"the change was introduced by {FIX}: {FAILING}; probability 99.0 %"),
        (RANGE, _known({CHANGE: 0.6, CHANGE - 1: 0.4}, {CHANGE: 0.31}, skipped=frozenset({CHANGE - 1})), Verdict.PASS,
         f"the change was introduced by one of 2 revisions, commit7 to commit8, probability above 99.9 %: {CHANGED}"),
        (UNDECIDED, _known({6: 0.3, 7: 0.3, 8: 0.37, 9: 0.03}, {CHANGE: 0.31}), Verdict.INCONCLUSIVE,
         "after 2 runs, 3 revisions may have introduced the change, commit6 to commit8, probability 97.0 %"),
    ],
)  # fmt: skip
def test_the_sentence_names_the_likely_revisions_with_the_probability(
    way: Way, known: Known, verdict: Verdict, expected: str
) -> None:
    report = _report(way, known)
    assert (report.sentence, report.verdict, report.way) == (expected, verdict, way)


USES = "the search uses x, +31.0 % (90 % interval +28.0 … +34.0 %) on the bad side"
CLEAREST = "the gating metric with the clearest regression"


@pytest.mark.parametrize(
    ("known", "metric_name", "skipped", "expected"),
    [
        (_known(SURE, {LAST: 0.31}), None, {}, [f"{USES}; {CLEAREST}"]),
        (_known(SURE, {LAST: 0.31}), "x_s", {}, [f"{USES}; as requested"]),
        (_known(SURE, {CHANGE: 0.31}), None, {}, [f"the search uses x; {CLEAREST}"]),
        (_known(SURE, {}, FAILURES), None, {3: "no", 5: "no"},
         [f"the search uses {FAILING}; runs of the bad side fail",
          "2 revisions skipped; they could not be measured"]),
    ],
)  # fmt: skip
def test_the_reasons_say_what_the_search_used_and_skipped(
    known: Known, metric_name: str | None, skipped: dict[int, str], expected: list[str]
) -> None:
    report = _report(FOUND, known, metric_name, skipped)
    assert report.reasons == ["commit12 is worse", *expected]
    assert report.skipped == skipped


@pytest.mark.parametrize(
    ("levels", "share"),
    [
        ({LAST: 0.5, CHANGE: 0.375}, None),  # exactly the required share
        ({LAST: 0.4, CHANGE: 0.28}, "70 %"),
        ({LAST: 0.4, CHANGE: 0.32, CHANGE - 1: 0.12}, "50 %"),
        ({LAST: 0.4, CHANGE: 0.32, CHANGE - 1: -0.08}, None),
        ({LAST: 0.4, CHANGE: -0.1}, "0 %"),
        ({LAST: 0.4, CHANGE: 0.0}, "0 %"),
        ({LAST: -0.5, CHANGE: -0.375}, None),
        ({LAST: -0.4, CHANGE: -0.28}, "70 %"),
        ({LAST: -0.4, CHANGE: 0.1}, "0 %"),
        ({LAST: 0.0, CHANGE: 0.1}, None),
        ({LAST: 0.4}, None),
        ({CHANGE: 0.1}, None),
    ],
)
def test_a_revision_that_accounts_for_a_part_of_the_change_is_not_the_only_one(
    levels: dict[int, float], share: str | None
) -> None:
    note = f"this revision accounts for only {share} of the whole change: another revision probably contributes to it"
    assert _report(FOUND, _known(SURE, levels)).reasons[2:] == ([] if share is None else [note])
    assert len(_report(UNDECIDED, _known(SURE, levels)).reasons) == 2, "no revision was found"


@pytest.mark.parametrize(
    ("way", "known", "expected"),
    [
        (UNCLEAR, None,
         ["more runs",
          "use a longer load (`--set load.duration_s=…`), or search by a specific metric: `--metric M`"]),
        (NO_CHANGE, None,
         ["search by a metric that differs (`--metric M`), use a profile that shows the change, or check "
          "`--good` and `--bad`"]),
        (UNDECIDED, _known({6: 0.5, 8: 0.5}), [f"continue with `chainmark bisect --resume {ID} --most-runs 80`"]),
        (FOUND, _known(SURE),
         [f"compare all metrics of both revisions with `chainmark compare {ID}/commit7 {ID}/commit8`"]),
    ],
)  # fmt: skip
def test_the_next_step_can_be_pasted(way: Way, known: Known | None, expected: list[str]) -> None:
    assert _report(way, known).advice == expected


def test_the_report_has_the_figures_of_the_search() -> None:
    known = _known(SURE, {LAST: 0.5, CHANGE: 0.31, 2: 0.01})
    steps = [BisectStep(place=6, pairs=2, outcome=SideState.GOOD)]
    caveats = Caveats(badges=("SYNTHETIC",), sentences=("a simulation",))
    report = _report(FOUND, known, ends=_ends(caveats=caveats), steps=steps, stat=["a.go | 7 +"])
    assert report.title == "Search for the change between commit0 and commit12"
    assert report.subtitle == f"profile line/quick · 13 revisions · 2 runs · {ID}"
    assert (report.tool_version, report.date, report.experiment) == ("1.2.3", "2026-01-20", ID)
    assert (report.profile_name, report.order) == ("line/quick", "commits of the main line (first parents)")
    assert [revision.label for revision in report.revisions] == [f"commit{place}" for place in range(13)]
    assert (report.error, report.runs, report.most_runs) == (0.05, 2, 40)
    assert (report.metric_id, report.statistic, report.followed) == ("x_s", "mean", "x")
    assert (report.scale, report.unit, report.effect) == (Scale.RELATIVE, "s", _level(LAST, 0.5))
    assert report.levels == [_level(2, 0.01), _level(CHANGE, 0.31), _level(LAST, 0.5)]
    assert (report.steps, report.stat, report.caveats) == (steps, ["a.go | 7 +"], caveats)
    assert report.chances == [*[0.0] * 6, 0.01, 0.99, *[0.0] * 4]
    assert (report.first, report.last, report.chance) == (CHANGE, CHANGE, 0.99)
    assert report.references == [f"{ID}/commit7", f"{ID}/commit8"]
    assert report.step_across is None


def test_a_search_by_failing_runs_has_no_metric_and_an_earlier_end_no_figures() -> None:
    report = _report(FOUND, _known({CHANGE: 1.0 + 1e-12}, {}, FAILURES), skipped={5: "b", 3: "a"})
    assert (report.metric_id, report.statistic, report.followed, report.unit) == ("", "", FAILING, "")
    assert (report.scale, report.effect, report.levels) == (Scale.ABSOLUTE, None, [])
    assert report.chance == 1.0, "rounding does not make it more than certain"
    assert list(report.skipped) == [3, 5]
    nothing = _report(NO_CHANGE)
    assert (nothing.followed, nothing.chances, nothing.first, nothing.references) == ("", [], None, [])


def test_a_search_without_runs_or_a_named_profile_has_an_empty_date_and_name() -> None:
    made = InMemory(LineSystem(), {}).made
    made.record.profile = {}
    report = bisect_report(Searched(made, _ends(), UNCLEAR), "1.2.3")
    assert (report.date, report.profile_name, report.runs) == ("", "", 0)
    assert report.subtitle == f"profile  · 13 revisions · 0 runs · {ID}"
    assert (report.steps, report.stat, report.step_across) == ([], [], None)


BREAKDOWN = Breakdown.model_validate({
    **{name: [] for name in ("values", "baseline", "candidate", "baseline_n", "candidate_n", "change", "z")},
    "metric_id": "x_s", "key": "host", "scale": Scale.RELATIVE, "stands_out": [],
    "median_baseline": None, "median_candidate": None,
})  # fmt: skip


def _full(*charts: tuple[str, ChartKind]) -> Comparison:
    """A comparison with all parts, and charts of these metrics."""
    (chart, *_) = sample().charts
    return sample().model_copy(
        update={
            "charts": [
                chart.model_copy(update={"id": f"{metric_id}-{kind}", "metric_id": metric_id, "kind": kind})
                for metric_id, kind in charts
            ],
            "breakdowns": [BREAKDOWN],
            "followed": Followed(),
            "splits": Splits(title="parts"),
        }
    )


def test_only_charts_of_the_tracked_metric_for_summaries_are_kept() -> None:
    kinds = [("x_s", ChartKind.CDF), ("x_s", ChartKind.SERIES), ("y_s", ChartKind.CDF), ("x_s", ChartKind.SHIFT)]
    full = _full(*kinds)
    report = _report(FOUND, _known(SURE), ends=full, step_across=full)
    assert report.step_across is not None
    assert [chart.id for chart in report.step_across.charts] == ["x_s-cdf", "x_s-shift"]
    assert report.ends.charts == []
    for comparison in (report.ends, report.step_across):
        assert (comparison.breakdowns, comparison.distributions, comparison.effect_sizes) == ([], [], [])
        assert (comparison.followed, comparison.splits) == (None, None)
        assert comparison.judgements == full.judgements
    for known in (_known(SURE, {}, FAILURES), None):
        across = _report(FOUND, known, step_across=full).step_across
        assert across is not None
        assert across.charts == []
