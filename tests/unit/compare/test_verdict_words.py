"""Reasons and advice of a verdict. Each is tested with its own cause and computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainmark.compare import family as families
from chainmark.compare.failures import RunFailures
from chainmark.compare.family import Family
from chainmark.compare.headline import effect
from chainmark.compare.sides import SelectedRuns
from chainmark.compare.verdict import (
    CATALOGUE_MARGINS,
    OwnMargins,
    VerdictFinding,
    adjust,
    find,
    is_failure,
    with_failures,
    without_metrics,
)
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome, Scale, SideValue
from chainmark.core.manifest import Gate, GateKind, GateStatus
from chainmark.core.metric import Better, Metric, MetricGroup, Population
from chainmark.core.verdict import Verdict
from chainmark.stats.sequential import Looks

from tests.unit.compare.metric_cases import loaded_run, metric

EQUAL, BETTER, WORSE = Outcome.EQUAL, Outcome.BETTER, Outcome.WORSE
LOGS = "check the logs of the failed runs (`raw/logs` of each) before you repeat them"


def item(name: str, outcome: Outcome, **changes: Any) -> Judgement:
    """A gating judgement of ``name``: +5 % (3 to 7 %), a margin of 10 %, p = 0.01 alone and with all others."""
    fields: dict[str, Any] = {
        "metric_id": f"{name}_s",
        "statistic": "mean",
        "gating": True,
        "baseline": SideValue(value=1.0, per_run=[1.0], samples=10),
        "candidate": SideValue(value=1.05, per_run=[1.05], samples=10),
        "scale": Scale.RELATIVE,
        "change": 0.05,
        "low": 0.03,
        "high": 0.07,
        "margin_low": -0.1,
        "margin_high": 0.1,
        "outcome": outcome,
        "p_worse": 0.01,
        "p_worse_adjusted": 0.01,
        "p_different": 0.01,
        "noise": "between 3 + 3 runs",
        "note": "",
    }
    return Judgement.model_validate(fields | changes)


def described(names: list[str], **settings: Any) -> Catalogue:
    metrics = [metric(id=f"{name}_s", label=f"metric {name}", gating=True, **settings) for name in names]
    populations = [Population(id="block", label="blocks", keys=["height"])]
    return Catalogue(
        system="x", title="X", populations=populations, tables=[MetricGroup(id="all", title="All")], metrics=metrics
    )


def selected(name: str, runs: int, excluded: dict[str, str] | None = None) -> SelectedRuns:
    loaded = [loaded_run("v", 1.0, number) for number in range(runs)]
    return SelectedRuns(name, loaded, excluded or {})


# The number of runs per side of a new experiment, if a test sets one.
ANEW: dict[str, int] = {}


class Foretold(families.RunTable):
    """A table with a given number of runs per side for a decision."""

    enough: int | None

    @classmethod
    def after(cls, enough: int | None) -> Foretold:
        """A table that returns ``enough``."""
        nothing = np.empty((0, 0))
        result = cls(nothing, nothing, nothing, Looks(((3, 3),), 3), nothing)
        object.__setattr__(result, "enough", enough)
        return result

    def runs_to_decide(self) -> int | None:
        """The given number."""
        return self.enough

    def runs_for_equal(self) -> int | None:
        """The number in ``ANEW``, or None."""
        return ANEW.get("runs")


def family_around(items: list[Judgement], enough: int | None = None, together: tuple[int, ...] = ()) -> Family:
    gating = [item for item in items if item.gating]
    is_worse = bool(together) or any(is_failure(judgement) for judgement in gating)
    return Family(
        tuple(judgement.p_worse_adjusted for judgement in gating), 0.05, is_worse, together, Foretold.after(enough)
    )


def finding(
    items: list[Judgement],
    *,
    runs: tuple[int, int] = (3, 3),
    gates: list[Gate] | None = None,
    excluded: dict[str, str] | None = None,
    catalogue: Catalogue | None = None,
    enough: int | None = None,
    together: tuple[int, ...] = (),
    by_history: bool = False,
    own: OwnMargins = CATALOGUE_MARGINS,
) -> VerdictFinding:
    names = [item.metric_id.removesuffix("_s") for item in items]
    pair = (selected("baseline", runs[0]), selected("candidate", runs[1], excluded))
    family = family_around(items, enough, together)
    known = catalogue or described(names)
    return find((items, family), gates or [], pair, ("A", "B"), known, by_history=by_history, own=own)


CHANGE = "+5.0 % (90 % interval +3.0 … +7.0 %)"
DECIDE = "more runs per side will decide this with 80 % probability, if the noise and the changes are as measured"
HOPELESS = "50 runs per side would not decide this with 80 % probability: use a longer load, reduce the noise of"


def test_all_equal_is_a_pass_without_advice() -> None:
    result = finding([item("a", EQUAL), item("b", EQUAL), item("c", EQUAL)], enough=7)
    assert result.verdict is Verdict.PASS
    assert result.sentence == "All 3 gating metrics of B are shown to be within 10 % of A or better"
    assert result.reasons == [
        "3 gating metrics judged by 90 % intervals adjusted for interim analyses; none is worse by more than its margin"
    ]
    assert result.advice == []


def test_improvements_are_named_in_a_pass() -> None:
    result = finding([item("a", BETTER, change=-0.2, low=-0.25, high=-0.15), item("b", EQUAL)])
    assert result.verdict is Verdict.PASS
    assert result.reasons[1:] == ["better: metric a −20.0 % (90 % interval −25.0 … −15.0 %)"]


@pytest.mark.parametrize(
    ("words", "second", "sentence"),
    [
        ({"rises": "blocks come {} later", "falls": "blocks come {} sooner"}, EQUAL,
         "B is better than A: blocks come 20.0 % sooner (90 % interval 15.0–25.0 %); all 2 gating metrics are shown to "
         "be within 10 % or better"),
        ({"rises": "blocks come {} later", "falls": "blocks come {} sooner"}, BETTER,
         "B is better than A in all 2 gating metrics: blocks come 20.0 % sooner (90 % interval 15.0–25.0 %), "
         "blocks come 20.0 % sooner (90 % interval 15.0–25.0 %)"),
        ({"rises": "blocks come {} later"}, EQUAL,
         "All 2 gating metrics of B are shown to be within 10 % of A or better"),
        ({"falls": "blocks come {} sooner"}, EQUAL,
         "All 2 gating metrics of B are shown to be within 10 % of A or better"),
    ],
)  # fmt: skip
def test_improvements_that_users_notice_come_first_in_a_pass(
    words: dict[str, str], second: Outcome, sentence: str
) -> None:
    better = {"change": -0.2, "low": -0.25, "high": -0.15}
    items = [item("a", BETTER, **better), item("b", second, **(better if second is BETTER else {}))]
    assert finding(items, catalogue=described(["a", "b"], **words)).sentence == sentence


def test_the_only_gating_metric_is_not_called_all_of_them() -> None:
    better = [item("a", BETTER, change=-0.2, low=-0.25, high=-0.15)]
    catalogue = described(["a"], rises="blocks come {} later", falls="blocks come {} sooner")
    assert finding(better, catalogue=catalogue).sentence == (
        "B is better than A: blocks come 20.0 % sooner (90 % interval 15.0–25.0 %)"
    )


@pytest.mark.parametrize(("anew", "is_reported"), [(30, True), (4, True), (3, False), (2, False)])
def test_a_new_experiment_is_advised_only_if_it_is_longer(
    monkeypatch: pytest.MonkeyPatch, anew: int, is_reported: bool
) -> None:
    """If three runs per side left a change at its margin undecided, another three do not help."""
    monkeypatch.setitem(ANEW, "runs", anew)
    advice = finding([item("b", Outcome.INCONCLUSIVE, low=-0.2, high=0.2)]).advice
    words = (
        f"with this noise, {anew} runs per side are required to pass an equal release with 80 % probability, in a new "
        f"experiment (`--repeat {anew}`): adding runs to this one has less power"
    )
    assert advice[1:] == ([words] if is_reported else [])


def test_the_noisiest_metrics_are_named_if_no_number_of_runs_would_decide() -> None:
    """These have the widest interval relative to their margin. The widest interval of all has a matching margin."""
    items = [
        item("a", EQUAL),
        item("b", Outcome.INCONCLUSIVE, low=-0.2, high=0.2),
        item("c", Outcome.INCONCLUSIVE, low=-0.4, high=0.4, margin_high=1.0, margin_low=-1.0),
        item("d", Outcome.INCONCLUSIVE, low=-0.1, high=0.2),
    ]
    assert finding(items).advice == [f"{HOPELESS} metric b and metric d, or widen their margins"]


@pytest.mark.parametrize("unknown", ["low", "high", "margin_high"])
def test_a_metric_without_an_interval_is_not_the_noisiest(unknown: str) -> None:
    """Less noise cannot be measured in a metric without an interval."""
    narrow = {"low": 0.0, "high": 0.001}
    items = [item(name, Outcome.INCONCLUSIVE, **narrow) for name in "bc"]
    assert finding([item("a", Outcome.INCONCLUSIVE, **{unknown: None}), *items]).advice == [
        f"{HOPELESS} metric b and metric c, or widen their margins"
    ]


def test_the_required_number_of_runs_is_reported_only_for_judged_metrics() -> None:
    """Without a p-value of a gating metric nothing was judged and nothing can be predicted.

    Diagnostics do not count.
    """
    absent: dict[str, Any] = {"p_worse": None, "p_worse_adjusted": None, "note": "candidate: no samples"}
    items = [item("a", Outcome.INCONCLUSIVE), item("b", Outcome.NO_DATA, **absent), item("c", EQUAL, gating=False)]
    assert finding(items, enough=5).advice[0] == f"2 {DECIDE}"
    nobody = finding([item("b", Outcome.NO_DATA, **absent), item("c", EQUAL, gating=False)], enough=5)
    assert not any("80 %" in text for text in nobody.advice)


def test_no_number_of_runs_is_predicted_without_known_noise() -> None:
    items = [item("a", Outcome.INCONCLUSIVE)]
    family = Family((1.0,), 0.05, is_worse=False)
    pair = (selected("baseline", 1), selected("candidate", 1))
    result = find((items, family), [], pair, ("A", "B"), described(["a"]), by_history=False)
    assert result.advice == []
    assert result.sentence == f"B may be worse than A by more than the margin: metric a {CHANGE}"


def test_metrics_that_are_only_jointly_worse_are_a_failure() -> None:
    items = [
        item("d", WORSE, gating=False),
        *(item(name, Outcome.INCONCLUSIVE, p_worse_adjusted=0.2) for name in "abc"),
    ]
    result = finding(items, together=(0, 2), catalogue=described(list("dabc")))
    assert result.verdict is Verdict.FAIL
    named = f"metric a {CHANGE}, metric c {CHANGE}"
    assert result.sentence.startswith("B is worse than A in at least one of metric a")
    assert result.reasons[0] == f"together these are worse than their margins, although none is on its own: {named}"
    assert result.reasons[1:] == [f"metric b is undecided: {CHANGE} extends beyond the margin of 10 %"]
    assert result.advice == []


def test_changes_without_an_interval_are_undecided_for_their_own_reason() -> None:
    unknown = {"change": None, "low": None, "high": None, "note": "the sides share no hour of the day"}
    items = [
        item("a", Outcome.INCONCLUSIVE),
        *(item(name, Outcome.INCONCLUSIVE, **unknown) for name in "bc"),
        item("d", Outcome.INCONCLUSIVE, **(unknown | {"note": "too few samples"})),
    ]
    assert finding(items, catalogue=described(list("abcd"))).reasons[:3] == [
        "metric b and metric c are undecided: the sides share no hour of the day",
        "metric d is undecided: too few samples",
        f"metric a is undecided: {CHANGE} extends beyond the margin of 10 %",
    ]


def test_a_change_without_an_interval_or_a_note_is_reported_as_not_estimable() -> None:
    unknown = {"change": None, "low": None, "high": None}
    assert finding([item("a", Outcome.INCONCLUSIVE, **unknown)]).reasons[0] == (
        "metric a is undecided: the change is not estimable"
    )


@pytest.mark.parametrize(
    ("names", "reasons"),
    [
        ("abcde", [f"metric {name} is undecided: {CHANGE} extends beyond the margin of 10 %" for name in "abcde"]),
        ("abcdef", ["6 gating metrics are undecided, because their intervals extend beyond the margin: "
                    "metric a, metric b, metric c, metric d, metric e and metric f"]),
    ],
)  # fmt: skip
def test_many_undecided_metrics_are_one_reason(names: str, reasons: list[str]) -> None:
    result = finding([item(name, Outcome.INCONCLUSIVE) for name in names]).reasons
    assert [text for text in result if "undecided" in text] == reasons


def test_individual_margins_are_listed_after_the_most_common_one() -> None:
    wide: dict[str, Any] = {"margin_high": 0.25, "margin_low": -0.25}
    result = finding([item("a", EQUAL), item("b", EQUAL, **wide), item("c", EQUAL)])
    assert "within their margins (10 % for 2 of 3) of A or better" in result.sentence
    assert result.reasons[1:] == ["margins of individual metrics (from the catalogue's margin or floor): metric b 25 %"]
    unknown = finding([item("a", EQUAL, margin_high=None, margin_low=None)])
    assert unknown.sentence == "The only gating metric of B is shown to be within their margins of A or better"
    assert unknown.reasons[1:] == []


def test_configured_margins_are_distinguished_from_those_of_the_catalogue() -> None:
    """The most common margin is that of the catalogue. A configured one is named even if most metrics have it."""
    wide: dict[str, Any] = {"margin_high": 0.25, "margin_low": -0.25}
    own: dict[str, Any] = {"margin_high": 0.3, "margin_low": -0.3}
    items = [item("a", EQUAL, **wide), item("b", EQUAL), item("c", EQUAL, **own), item("d", EQUAL, **wide)]
    set_ = OwnMargins(frozenset({"a_s", "d_s", "e_s"}))
    result = finding([*items, item("e", EQUAL, **wide)], own=set_)
    assert result.reasons[1:] == [
        "margins set for this comparison: metric a 25 %, metric d 25 %, metric e 25 %",
        "margins of individual metrics (from the catalogue's margin or floor): metric c 30 %",
    ]
    alone = finding([item("a", EQUAL, **wide)], own=OwnMargins(frozenset({"a_s"})))
    assert alone.reasons[1:] == ["margins set for this comparison: metric a 25 %"]


def test_margins_in_the_metrics_own_unit_are_shown_with_it() -> None:
    """A margin of a difference without its unit would be read as a share."""
    absolute: dict[str, Any] = {"scale": Scale.ABSOLUTE, "margin_high": 0.5, "margin_low": -0.5}
    other = absolute | {"margin_high": 0.25, "margin_low": -0.25}
    items = [item("a", EQUAL, **absolute), item("b", EQUAL, **other), item("c", EQUAL, **other)]
    result = finding([*items, item("d", EQUAL, **absolute), item("e", EQUAL, **absolute), item("f", EQUAL)])
    assert "within their margins (500 ms for 3 of 6) of A or better" in result.sentence
    assert result.reasons[1:] == [
        "margins of individual metrics (from the catalogue's margin or floor): metric b 250 ms, metric c 250 ms, "
        "metric f 10 %"
    ]
    undecided = finding([item("a", Outcome.INCONCLUSIVE, runs_needed=5, **absolute)])
    assert undecided.reasons[0].endswith("extends beyond the margin of 500 ms")


def test_all_improvements_are_named_in_one_sentence() -> None:
    result = finding([item("a", BETTER), item("b", BETTER)])
    assert result.reasons[1:] == [f"better: metric a {CHANGE}, metric b {CHANGE}"]


def test_a_failure_is_named_together_with_undecided_metrics() -> None:
    items = [
        item("a", WORSE),
        item("b", Outcome.INCONCLUSIVE, p_worse_adjusted=1.0),
        item("c", WORSE, p_worse_adjusted=0.2),
        item("d", EQUAL, trend=True),
    ]
    result = finding(items)
    assert result.verdict is Verdict.FAIL
    assert result.sentence == f"B is worse than A: metric a {CHANGE}"
    assert result.reasons == [
        f"worse: metric a {CHANGE}",
        f"metric b is undecided: {CHANGE} extends beyond the margin of 10 %",
        f"metric c is worse on its own, {CHANGE}, but not when 4 gating metrics are judged together "
        "(adjusted p = 0.200, required 0.050)",
        f"metric d is within its margin, but worse by more than noise: {CHANGE}",
    ]
    assert result.advice == []


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({}, True),
        ({"p_worse_adjusted": 0.05}, True),
        ({"p_worse_adjusted": 0.0501}, False),
        ({"p_worse_adjusted": None}, False),
        ({"p_worse_adjusted": 0.02, "worse_level": 0.01}, False),
        ({"p_worse_adjusted": 0.01, "worse_level": 0.01}, True),
        ({"gating": False}, False),
        ({"outcome": EQUAL}, False),
        ({"outcome": Outcome.INCONCLUSIVE}, False),
    ],
)
def test_only_a_gating_metric_that_is_worse_among_all_others_fails(changes: dict[str, Any], *, failure: bool) -> None:
    outcome = changes.pop("outcome", WORSE) if "outcome" in changes else WORSE
    assert is_failure(item("a", outcome, **changes)) == failure


def test_a_diagnostic_that_is_worse_does_not_fail_a_release() -> None:
    result = finding([item("a", EQUAL), item("b", WORSE, gating=False)])
    assert (result.verdict, result.sentence.split(" of B")[0]) == (Verdict.PASS, "The only gating metric")


def test_everything_that_keeps_a_verdict_undecided_is_a_reason() -> None:
    items = [
        item("a", Outcome.NO_DATA, note="candidate: no samples", p_worse=None, p_worse_adjusted=None),
        item("b", Outcome.NOT_COMPARABLE, note="not comparable: time differs", p_worse=None, p_worse_adjusted=None),
        item("c", Outcome.INCONCLUSIVE),
        item("d", BETTER),
        item("e", Outcome.NO_DATA, note="baseline: no samples", p_worse=None, p_worse_adjusted=None),
    ]
    result = finding(items, runs=(4, 2), excluded=None)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.sentence == (
        f"B may be worse than A by more than the margin: metric c {CHANGE}; "
        "3 more of 5 gating metrics are undecided: metric a, metric b and metric e; "
        "more runs alone would not decide it: use a longer load, reduce the noise of metric c, or widen its margin"
    )
    assert result.reasons == [
        "metric a has no data (candidate: no samples): a missing metric is never a pass",
        "metric b is not comparable: time differs",
        f"metric c is undecided: {CHANGE} extends beyond the margin of 10 %",
        "metric e has no data (baseline: no samples): a missing metric is never a pass",
    ]
    assert result.advice[:2] == [
        f"{HOPELESS} metric c, or widen its margin",
        "find out why metric a and metric e has no data; the runs' accounting lists what was read and skipped",
    ]


@pytest.mark.parametrize("blocked", [Outcome.NO_DATA, Outcome.NOT_COMPARABLE, Outcome.INCONCLUSIVE, WORSE])
def test_one_undecided_metric_among_equal_ones_prevents_a_pass(blocked: Outcome) -> None:
    result = finding([item("a", EQUAL), item("b", blocked, note="x", p_worse_adjusted=0.2), item("c", BETTER)])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "metric b" in result.sentence
    assert "metric a" not in result.sentence


@pytest.mark.parametrize(
    ("runs", "enough", "advice"),
    [
        ((3, 3), 5, f"2 {DECIDE}"),
        ((3, 9), 4, "1 more run per side"),
        ((9, 3), 4, "1 more run per side"),
        ((4, 4), 50, "46 more"),
    ],
)
def test_the_number_of_additional_runs_that_would_decide_is_stated(
    runs: tuple[int, int], enough: int, advice: str
) -> None:
    """The number is counted from the side that has fewer runs."""
    result = finding([item("a", Outcome.INCONCLUSIVE)], runs=runs, enough=enough)
    assert result.advice[0].startswith(advice)


def test_assumed_noise_is_mentioned_once() -> None:
    items = [item("a", EQUAL, noise="assumed noise, 10 % between runs"), item("b", EQUAL)]
    words = (
        "the noise between runs is assumed, not measured: use at least 3 runs per side, or store re-runs of one version"
    )
    assert finding(items).advice.count(words) == 1
    assert words not in finding(items[1:]).advice
    diagnostic = item("a", EQUAL, noise="assumed noise, 10 % between runs", gating=False)
    assert words not in finding([diagnostic, items[1]]).advice


def test_one_run_per_side_is_mentioned_if_it_left_the_verdict_undecided() -> None:
    """This tells the reader to make a second run instead of looking for the source of noise."""
    assumed: dict[str, Any] = {"noise": "assumed noise, 10 % between runs"}
    open_, settled = item("a", Outcome.INCONCLUSIVE, **assumed), item("b", EQUAL, **assumed)
    expected = f"B may be worse than A by more than the margin: metric a {CHANGE}"
    assert finding([open_, settled]).sentence == f"{expected}; run each version at least 3 times"
    assert finding([item("a", Outcome.INCONCLUSIVE), settled]).sentence.startswith(f"{expected}; more runs alone ")


def test_a_change_within_noise_is_not_called_worse() -> None:
    """If the interval contains zero, a reader must not see a regression."""
    unclear = item("a", Outcome.INCONCLUSIVE, low=-0.1, high=0.2)
    assert finding([unclear, item("b", EQUAL)]).sentence.startswith(
        "B against A is undecided: 1 of 2 gating metrics is undecided: metric a; the clearest change, within noise, is "
    )
    # An interval over several looks may contain zero although re-runs move the metric less: the table says so.
    beyond = unclear.model_copy(update={"beyond_noise": True})
    assert "; the clearest change is metric a" in finding([beyond, item("b", EQUAL)]).sentence
    assert "noise" not in finding([beyond]).sentence.partition(";")[0]


def test_the_effect_of_a_change_is_stated_in_the_catalogues_words() -> None:
    words = {"rises": "blocks reach half of the hosts {} later", "falls": "blocks reach half of the hosts {} sooner"}
    catalogue = described(["a"], **words)
    assert effect(item("a", WORSE), catalogue) == (
        "blocks reach half of the hosts 5.0 % later (90 % interval 3.0–7.0 %)"
    )
    falls = item("a", BETTER, change=-0.05, low=-0.07, high=-0.03, statistic="p99")
    assert effect(falls, catalogue) == "blocks reach half of the hosts 5.0 % sooner at p99 (90 % interval 3.0–7.0 %)"
    assert effect(item("a", WORSE, low=-0.01), catalogue).endswith("later (90 % interval −1.0 … +7.0 %)")


def test_remarks_of_judged_runs_that_fail_nothing_are_reasons() -> None:
    """For example a node of either side that needed three attempts to start. Faults of the instrument are omitted."""

    def warned(
        name: str, *, seen: str, kind: GateKind = GateKind.SUBJECT, status: GateStatus = GateStatus.WARN
    ) -> Gate:
        return Gate(id=name, label=f"label {name}", status=status, measured=seen, limit="once", kind=kind)

    pair = selected("baseline", 2), selected("candidate", 4, {"v-3": "x: 1"})
    pair[0].runs[1].manifest.gates = [warned("start", seen="twice")]
    for number in (0, 2, 3):
        pair[1].runs[number].manifest.gates = [
            warned("calm", seen="busy", kind=GateKind.INSTRUMENT),
            warned("fine", seen="once", status=GateStatus.PASS),
            warned("start", seen=f"{3 + number} times"),
        ]
    pair[1].runs[2].manifest.gates.append(warned("sync", seen="late"))
    items = [item("a", EQUAL)]
    result = find((items, family_around(items)), [], pair, ("A", "B"), described(["a"]), by_history=False)
    assert result.reasons[1:] == [
        "the candidate's run v-3 is not judged: x: 1",
        "the baseline did not meet in 1 of 2 runs: label start (twice)",
        "the candidate did not meet in 2 of 3 runs: label start (3 times)",
        "the candidate did not meet in 1 of 3 runs: label sync (late)",
    ]


METRICS = {verdict: VerdictFinding(verdict, f"metrics {verdict}", ["metric"], ["measure"]) for verdict in Verdict}


def test_the_metrics_decide_if_no_run_failed() -> None:
    for finding in METRICS.values():
        assert with_failures(finding, RunFailures(None, "", [])) is finding


@pytest.mark.parametrize(
    ("of_metrics", "of_runs", "verdict", "sentence"),
    [
        (Verdict.PASS, Verdict.FAIL, Verdict.FAIL, "runs"),
        (Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.FAIL, "runs"),
        (Verdict.FAIL, Verdict.FAIL, Verdict.FAIL, "runs; and metrics fail"),
        (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, "runs"),
        (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, "runs"),
    ],
)
def test_failed_runs_that_decide_are_reported_first(
    of_metrics: Verdict, of_runs: Verdict, verdict: Verdict, sentence: str
) -> None:
    """A release that crashed must not pass by the figures of the runs that it survived."""
    result = with_failures(METRICS[of_metrics], RunFailures(of_runs, "runs", ["run"]))
    assert result == VerdictFinding(verdict, sentence, ["run", f"metrics {of_metrics}", "metric"], [LOGS, "measure"])


@pytest.mark.parametrize(
    ("of_metrics", "of_runs"),
    [
        (Verdict.PASS, None),
        (Verdict.INCONCLUSIVE, None),
        (Verdict.FAIL, None),
        (Verdict.FAIL, Verdict.INCONCLUSIVE),
    ],
)
def test_failed_runs_that_do_not_decide_are_still_reported(of_metrics: Verdict, of_runs: Verdict | None) -> None:
    result = with_failures(METRICS[of_metrics], RunFailures(of_runs, "runs", ["run"]))
    words = f"metrics {of_metrics}; however, runs"
    assert result == VerdictFinding(of_metrics, words, ["run", "metric"], [LOGS, "measure"])


@pytest.mark.parametrize("of_metrics", [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL])
def test_a_scenario_that_only_failed_runs_decide_passes_without_a_judged_metric(of_metrics: Verdict) -> None:
    reasons = ["only failed runs decide here, no metric", "metric"]
    passed = VerdictFinding(Verdict.PASS, "B passed its runs", reasons, [])
    assert without_metrics(METRICS[of_metrics], ("A", "B")) == passed


def test_sides_that_must_not_be_compared_stay_invalid_if_only_failed_runs_decide() -> None:
    assert without_metrics(METRICS[Verdict.INVALID], ("A", "B")) is METRICS[Verdict.INVALID]


@pytest.mark.parametrize("of_runs", [Verdict.FAIL, None])
def test_failed_runs_do_not_make_sides_comparable(of_runs: Verdict | None) -> None:
    result = with_failures(METRICS[Verdict.INVALID], RunFailures(of_runs, "runs", ["run"]))
    assert result == VerdictFinding(Verdict.INVALID, "metrics invalid", ["metric", "runs", "run"], ["measure"])


def gate(name: str, status: GateStatus = GateStatus.FAIL) -> Gate:
    return Gate(id=name, label=f"label {name}", status=status, measured=f"measured {name}", limit="limit")


def test_only_judged_runs_count_towards_the_required_number() -> None:
    """Two of the candidate's four runs are judged, so the advice is three more runs and not one."""
    excluded = {"v-0": "x: 1", "v-3": "y: 2"}
    result = finding([item("a", Outcome.INCONCLUSIVE)], runs=(4, 4), excluded=excluded, enough=5)
    assert result.advice[0] == f"3 {DECIDE}"
    assert result.reasons[1:] == [
        "the candidate's run v-0 is not judged: x: 1",
        "the candidate's run v-3 is not judged: y: 2",
    ]
    entries, catalogue = [item("a", Outcome.INCONCLUSIVE)], described(["a"])
    pair = (SelectedRuns("baseline", selected("baseline", 4).runs, excluded), selected("candidate", 4))
    assert (
        find((entries, family_around(entries, 5)), [], pair, ("A", "B"), catalogue, by_history=False).advice[0]
        == result.advice[0]
    )


def test_a_failure_alone_requires_no_confirmation() -> None:
    result = finding([item("a", WORSE), item("b", EQUAL)])
    assert result.advice == []
    both = finding([item("a", WORSE), item("b", WORSE)])
    assert both.sentence == f"B is worse than A: metric a {CHANGE}, metric b {CHANGE}"


def test_two_equal_gating_metrics_are_reported_as_all_2() -> None:
    result = finding([item("a", EQUAL), item("b", EQUAL)])
    assert result.sentence == "All 2 gating metrics of B are shown to be within 10 % of A or better"


def test_a_comparison_without_gating_metrics_does_not_pass() -> None:
    result = finding([item("a", EQUAL, gating=False)])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.sentence == "B against A is undecided: the catalogue has no gating metric"


@pytest.mark.parametrize(
    ("name", "problem", "remedy"),
    [
        (
            *("workload_equal", "the workloads differ"),
            "repeat one side with the other's workload, then compare again",
        ),
        (
            *("window_equal", "the analysis windows differ"),
            "analyse both sides over the same window, then compare again",
        ),
        (
            *("hardware_equal", "the hardware differs"),
            "repeat one side on the other's hardware class, then compare again",
        ),
        (
            *("rules_equal", "the sides use different averaging rules"),
            "analyse one side again with the rules of the other, then compare again",
        ),
        (
            *("baseline_runs_valid", "too few runs of the baseline are valid"),
            "repeat the runs that failed a gate, then compare again",
        ),
        (
            *("candidate_runs_valid", "too few runs of the candidate are valid"),
            "repeat the runs that failed a gate, then compare again",
        ),
        ("other", "label other: not met", "repeat the runs that failed a gate, then compare again"),
    ],
)
def test_a_failed_gate_makes_a_comparison_invalid_whatever_was_judged(name: str, problem: str, remedy: str) -> None:
    result = finding([item("a", WORSE)], gates=[gate("fine", GateStatus.PASS), gate(name)], excluded={"v-1": "x: 1"})
    assert result.verdict is Verdict.INVALID
    assert result.sentence == f"B and A cannot be compared: {problem} (measured {name}); {remedy}"
    assert result.reasons == [
        f"{problem}: measured {name}, required limit",
        "the candidate's run v-1 is not judged: x: 1",
    ]
    assert result.advice == [remedy]


def test_several_failed_gates_share_a_remedy() -> None:
    names = ["baseline_runs_valid", "candidate_runs_valid", "workload_equal"]
    result = finding([], gates=[gate(name) for name in names])
    assert len(result.reasons) == 3
    assert result.advice == [
        "repeat the runs that failed a gate, then compare again",
        "repeat one side with the other's workload, then compare again",
    ]


def test_a_warning_does_not_make_a_comparison_invalid_and_mixed_builds_are_reported() -> None:
    gates = [gate("one_build_a_side", GateStatus.WARN), gate("hardware_equal", GateStatus.WARN)]
    result = finding([item("a", EQUAL)], gates=gates)
    assert result.verdict is Verdict.PASS
    assert result.reasons[1:] == ["a side mixes builds: measured one_build_a_side"]
    calm = finding([item("a", EQUAL)], gates=[gate("one_build_a_side", GateStatus.PASS)])
    assert calm.reasons[1:] == []


def _moved(base: float | None, other: float | None, *, floor: float = 0.0, p: float = 0.001) -> bool:
    entry: Metric = metric(id="a_s", label="metric a", better=Better.NEITHER, floor=floor)
    sides: dict[str, Any] = {
        "baseline": SideValue(value=base, per_run=[base], samples=1),
        "candidate": SideValue(value=other, per_run=[other], samples=1),
    }
    catalogue = described(["a"]).model_copy(update={"metrics": [entry]})
    nothing_gates = Family((), 0.05, is_worse=False)
    (result,) = adjust([item("a", EQUAL, gating=False, p_different=p, **sides)], nothing_gates, catalogue)
    assert result.q_different == p
    return result.moved


@pytest.mark.parametrize(
    ("base", "other", "floor", "moved"),
    [
        (100.0, 103.0, 0.0, True),
        (100.0, 97.0, 0.0, True),  # a fall is also a change
        (-100.0, -103.0, 0.0, True),
        (100.0, 97.99, 0.0, True),  # 2 % of the baseline
        (100.0, 102.03, 0.0, True),
        (100.0, 102.0, 0.0, False),  # 2 % or less is not worth a reader's time
        (-100.0, -101.0, 0.0, False),
        (100.0, 110.0, 10.0, True),
        (100.0, 109.9, 10.0, False),
        (0.0, 0.1, 0.0, True),
        (0.0, 0.0, 0.0, False),
        (None, 5.0, 0.0, False),
        (5.0, None, 0.0, False),
    ],
)
def test_a_diagnostic_has_changed_if_it_exceeds_its_floor(
    base: float | None, other: float | None, floor: float, *, moved: bool
) -> None:
    assert _moved(base, other, floor=floor) == moved


@pytest.mark.parametrize(("p", "moved"), [(0.0, True), (0.05, True), (0.0501, False)])
def test_a_diagnostic_changes_at_five_percent(p: float, *, moved: bool) -> None:
    assert _moved(1.0, 2.0, p=p) == moved


def test_families_are_corrected_by_their_own_size() -> None:
    """Gating metrics have the p-values of the family, in its order. Benjamini-Hochberg applies to each group."""
    absent: dict[str, Any] = {"p_worse": None, "p_worse_adjusted": None}
    items = [
        item("d", EQUAL, gating=False, p_different=0.01, **absent),
        item("a", WORSE, p_worse=0.02, p_worse_adjusted=None),
        item("b", EQUAL, p_worse=0.5, p_worse_adjusted=None),
        item("e", EQUAL, gating=False, p_different=0.03, **absent),
        item("c", Outcome.NO_DATA, **absent),
        item("f", Outcome.NO_DATA, gating=False, p_different=None, **absent),
    ]
    result = adjust(items, Family((0.06, 1.0, None), 0.01, is_worse=False), described(list("dabecf")))
    assert [judgement.p_worse_adjusted for judgement in result] == [None, 0.06, 1.0, None, None, None]
    assert [judgement.worse_level for judgement in result if judgement.gating] == [0.01] * 3
    p_values = [0.02, 0.01, 0.01, 0.03, 0.01, None]
    assert [judgement.q_different for judgement in result] == [
        p_value if p_value is None else pytest.approx(p_value) for p_value in p_values
    ]


@pytest.mark.parametrize(("adjusted", "outcome"), [(0.03, WORSE), (0.02, WORSE), (0.0301, Outcome.INCONCLUSIVE)])
def test_metrics_that_the_family_shows_to_be_worse_are_called_worse(adjusted: float, outcome: Outcome) -> None:
    """At its last look the family may spend more error than the metric's own interval. The table must agree with it."""
    family = Family((adjusted,), 0.03, is_worse=adjusted <= 0.03)
    (result,) = adjust([item("a", Outcome.INCONCLUSIVE)], family, described(["a"]))
    assert (result.outcome, is_failure(result)) == (outcome, adjusted <= 0.03)


# --- with a series of releases and one run per side ------------------------------------------------------------------

OPEN: dict[str, Any] = {"low": -0.06, "high": 0.16, "change": 0.05}


def _left(*last: Judgement, equal: int = 4) -> list[Judgement]:
    """Gating metrics of which the last ones are undecided."""
    return [*(item(f"e{number}", EQUAL) for number in range(equal)), *last]


def _open(name: str = "o", **changes: Any) -> Judgement:
    return item(name, Outcome.INCONCLUSIVE, p_worse=0.3, p_worse_adjusted=0.3, **{**OPEN, **changes})


def test_one_undecided_metric_of_five_is_due_to_chance_and_named_in_the_pass() -> None:
    passed = finding(_left(_open()), by_history=True)
    assert passed.verdict is Verdict.PASS
    assert passed.sentence == (
        "4 of 5 gating metrics of B are shown to be within 10 % of A or better; "
        "undecided within re-run noise: metric o +5.0 % (90 % interval −6.0 … +16.0 %)"
    )
    assert passed.reasons[0] == (
        "5 gating metrics judged by 90 % intervals adjusted for interim analyses; none of the others is worse by "
        "more than its margin"
    )
    assert finding(_left(_open()), by_history=False).verdict is Verdict.INCONCLUSIVE, (
        "more runs per side would decide it"
    )
    assert finding(_left(_open(), equal=3), by_history=True).verdict is Verdict.INCONCLUSIVE, (
        "one of four may not stay undecided"
    )


def test_two_undecided_metrics_are_more_than_chance() -> None:
    for equal in (3, 4, 8):
        undecided = _left(_open("o"), _open("p"), equal=equal)
        assert finding(undecided, by_history=True).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("blocked", [Outcome.NO_DATA, Outcome.NOT_COMPARABLE])
def test_a_metric_without_data_is_not_attributed_to_chance(blocked: Outcome) -> None:
    lost = item("o", blocked, p_worse=None, p_worse_adjusted=None, **OPEN)
    assert finding(_left(lost), by_history=True).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"change": 0.1}, Verdict.PASS),
        ({"change": -0.1}, Verdict.PASS),
        ({"change": 0.101}, Verdict.INCONCLUSIVE),
        ({"change": -0.101}, Verdict.INCONCLUSIVE),
        # The metric's own margin counts, not the margin widened by re-runs.
        ({"margin_high": 0.2, "margin_low": -0.2, "worse_beyond": 0.1, "change": 0.12}, Verdict.INCONCLUSIVE),
        ({"margin_high": 0.2, "margin_low": -0.2, "change": 0.12}, Verdict.PASS),
        # The interval does not contain zero, so the metric changed.
        ({"low": 0.001}, Verdict.INCONCLUSIVE),
        ({"high": -0.001, "change": -0.03}, Verdict.INCONCLUSIVE),
        ({"low": 0.0}, Verdict.PASS),
        ({"high": 0.0, "change": -0.03}, Verdict.PASS),
        ({"change": 0.0}, Verdict.PASS),
        ({"low": None}, Verdict.INCONCLUSIVE),
        ({"high": None}, Verdict.INCONCLUSIVE),
        ({"margin_low": None, "margin_high": None}, Verdict.INCONCLUSIVE),
    ],
)
def test_a_metric_may_stay_undecided_only_within_its_own_margin_and_around_no_change(
    changes: dict[str, Any], verdict: Verdict
) -> None:
    """Otherwise one run per side would pass a metric that this run shows to be worse."""
    assert finding(_left(_open(**changes)), by_history=True).verdict is verdict


def test_margins_widened_by_re_runs_are_counted_and_not_listed_as_uncommon() -> None:
    wider = item("w", EQUAL, margin_low=-0.2, margin_high=0.2, worse_beyond=0.1)
    passed = finding(_left(wider), by_history=True)
    assert "within their margins (10 % for 4 of 5; 1 widened to re-run noise)" in passed.sentence
    assert not [reason for reason in passed.reasons if reason.startswith("margins ")]
    same = finding([item("w", EQUAL, worse_beyond=0.05)], by_history=True)
    assert "(10 % for 1 of 1; 1 widened to re-run noise)" in same.sentence


def test_own_margins_are_those_that_were_set_and_those_that_were_learnt() -> None:
    assert OwnMargins(frozenset({"a"}), frozenset({"b"})).all == {"a", "b"}


def test_learnt_margins_are_reported_as_such() -> None:
    items = [*(item(name, EQUAL) for name in "ab"), item("c", EQUAL, margin_low=-0.07, margin_high=0.07)]
    assert (
        "margins learnt from re-runs (three standard deviations of the change between re-runs, within the bounds): "
        "metric c 7 %"
    ) in finding(items, own=OwnMargins(learnt=frozenset({"c_s"}))).reasons


def test_margins_inside_the_noise_are_named_with_their_values() -> None:
    """With such margins and so few runs no release can pass."""
    items = [item("a", EQUAL), item("b", EQUAL, inside_noise=True), item("c", EQUAL, inside_noise=True)]
    reasons = [reason for reason in finding(items).reasons if "smaller than the noise" in reason]
    assert reasons == [
        "margins smaller than the noise: metric b 10 %, metric c 10 %; even an identical release could not pass "
        "with these runs"
    ]
    absolute = item("a", EQUAL, inside_noise=True, scale=Scale.ABSOLUTE, margin_low=-2.0, margin_high=2.0)
    assert any("noise: metric a 2 s;" in reason for reason in finding([absolute]).reasons)


def test_an_unchanged_metric_is_not_beyond_noise() -> None:
    """A change is beyond noise if it is beyond chance and beyond its floor, whether the metric gates or not."""
    at_rest = SideValue(value=1.0, per_run=[1.0], samples=10)
    moved, still = item("a", EQUAL, gating=False), item("b", EQUAL, gating=False, candidate=at_rest)
    gating = item("c", EQUAL)
    items = [moved, still, gating]
    adjusted = adjust(items, family_around(items), described(["a", "b", "c"]))
    assert [judgement.beyond_noise for judgement in adjusted] == [True, False, True]
    assert [judgement.moved for judgement in adjusted] == [True, False, False]
    from_zero = item("a", EQUAL, gating=False, baseline=at_rest.model_copy(update={"value": 0.0}), candidate=at_rest)
    tiny = from_zero.model_copy(update={"candidate": at_rest.model_copy(update={"value": 0.01})})
    (alone,) = adjust([tiny], family_around([tiny]), described(["a"]))
    assert alone.moved, "any change from zero counts"
