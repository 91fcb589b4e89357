"""The content of a comparison: what each part is computed from, and the side that it describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chainmark.compare import assemble, compare
from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.next_step import Clues
from chainmark.compare.sample_distributions import SampleDistributions
from chainmark.compare.verdict import VerdictFinding
from chainmark.core.build import BuildDifferences
from chainmark.core.catalogue import Bounds
from chainmark.core.comparison import Breakdown, Comparison, Followed, Scale, Splits
from chainmark.core.epoch import Epoch
from chainmark.core.errors import UsageError
from chainmark.core.false_alarms import FalseAlarms
from chainmark.core.manifest import ConfigChange, ExperimentPlace, Fact, Status
from chainmark.core.profiled import Profiled
from chainmark.core.question import Question
from chainmark.core.verdict import Verdict

from tests.unit.compare import test_releases as releases
from tests.unit.compare.synthetic_runs import SyntheticRun
from tests.unit.compare.test_decide import run as deciding_run
from tests.unit.compare.test_past import noisy
from tests.unit.report.samples import sample

Call = tuple[tuple[Any, ...], dict[str, Any]]
DECIDE = "decide"


class Calls(dict[str, list[Call]]):
    """The arguments with which functions of the module were called, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._monkeypatch = monkeypatch
        self.decided: list[Decided] = []

    def replace(self, name: str, result: Any) -> None:
        """Record the calls of a function, each of which returns this."""

        def record(*arguments: Any, **named: Any) -> Any:
            self.setdefault(name, []).append((arguments, named))
            return result

        self._monkeypatch.setattr(assemble, name, record)

    def observe_verdicts(self) -> None:
        """Record the calls of `decide` and their results."""

        def record(*arguments: Any, **named: Any) -> Decided:
            self.setdefault(DECIDE, []).append((arguments, named))
            self.decided.append(decide(*arguments, **named))
            return self.decided[-1]

        self._monkeypatch.setattr(assemble, DECIDE, record)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Calls of a module that describes no samples, as the runs have none."""
    calls = Calls(monkeypatch)
    calls.replace("describe_samples", SampleDistributions([], [], [], []))
    calls.observe_verdicts()
    return calls


def _run(version: str, number: int, latency_s: float = 1.0, **changes: object) -> SyntheticRun:
    made = deciding_run(version, number, {"latency_s": latency_s, "interval_s": 1.0, "memory_bytes": 1.0})
    made.manifest = made.manifest.model_copy(update={"experiment": None, **changes})
    return made


def _side(version: str, latency_s: float = 1.0, first: int = 0, **changes: object) -> list[SyntheticRun]:
    return [
        _run(version, first + number, latency_s * (1.0 + 0.001 * number), **{"seed": first + number, **changes})
        for number in range(3)
    ]


def _compared(
    baseline: Sequence[SyntheticRun] = (), candidate: Sequence[SyntheticRun] = (), **options: Any
) -> Comparison:
    return compare(baseline or _side("v0"), candidate or _side("v1", first=10), **{"tool_version": "1.2.3", **options})


def test_the_verdict_uses_all_runs_and_options(calls: Calls) -> None:
    """A lost option, such as a margin, would change a verdict silently."""
    baseline, candidate, archive = _side("v0"), _side("v1", first=10), _side("v-1", first=20)
    past = Past()
    margins = {"latency_s": 0.3}
    comparison = _compared(
        baseline, candidate, history=archive, past=past, margins=margins, judges={"latency_s", "interval_s"}
    )
    assert calls[DECIDE] == [
        ((baseline, candidate, archive, past, margins), {"judges": {"latency_s", "interval_s"}})
    ]  # fmt: skip
    (decided,) = calls.decided
    assert comparison.judgements == decided.judgements
    assert comparison.gates == decided.gates
    assert comparison.catalogue == decided.catalogue
    assert comparison.catalogue.metric("latency_s").margin == 0.3
    assert (comparison.verdict, comparison.sentence) == (Verdict.PASS, decided.finding.sentence)
    assert comparison.reasons == decided.finding.reasons
    assert comparison.tool_version == "1.2.3"
    assert (comparison.anchor, comparison.followed, comparison.splits, comparison.profiled) == (None,) * 4
    assert (comparison.false_alarms, comparison.builds, comparison.failed_runs_verdict) == (None,) * 3
    _compared(baseline, candidate)
    assert calls[DECIDE][1] == ((baseline, candidate, (), None, {}), {"judges": None})


def test_descriptions_explanations_and_the_next_step_are_of_both_sides(calls: Calls) -> None:
    shown, why = sample(), Profiled(runs={}, changes=[])
    figures: dict[str, list[Any]] = {
        name: [] for name in ("values", "baseline", "candidate", "baseline_n", "candidate_n", "change", "z")
    }
    nothing = {"key": "node", "scale": Scale.RELATIVE, "median_baseline": None, "median_candidate": None}
    breakdowns = [Breakdown.model_validate({"metric_id": "latency_s", "stands_out": [], **nothing, **figures})]
    built, splits, followed = BuildDifferences(facts=[]), Splits(title="parts"), Followed()
    described = SampleDistributions(shown.distributions, shown.effect_sizes, shown.charts, breakdowns)
    calls.replace("describe_samples", described)
    calls.replace("build_differences", built)
    calls.replace("splits_of", splits)
    calls.replace("located", {"latency_s": "node 3 alone"})
    found = VerdictFinding(Verdict.FAIL, "it is slower", ["a reason"], ["look there"])
    calls.replace("with_next_step", found)
    asked: list[tuple[Any, ...]] = []
    parted, machines = object(), object()

    def parts(*arguments: Any) -> Any:
        asked.append(arguments)
        return parted

    def follow(*arguments: Any) -> Followed:
        asked.append(arguments)
        return followed

    baseline, candidate = _side("v0"), _side("v1", first=10)
    comparison = _compared(baseline, candidate, parts=parts, follow=follow, why=why, machines=machines)
    (decided,) = calls.decided
    pair = (decided.baseline, decided.candidate)
    assert asked == [(pair,), (pair, decided.catalogue)]
    assert calls["describe_samples"] == [((decided.catalogue, pair, ("v0", "v1"), machines), {})]
    assert calls["build_differences"] == [((baseline[0], candidate[0]), {})]
    assert calls["splits_of"] == [((parted, decided.judgements, decided.catalogue), {})]
    assert calls["located"] == [((decided.judgements, breakdowns, decided.catalogue), {})]
    charted = frozenset({"tx_latency_s", "rss_bytes"})
    differences = comparison.configuration_differences
    clues = Clues(pair, breakdowns, why, differences, built, splits, charted)
    assert calls["with_next_step"] == [((decided.finding, decided.judgements, decided.catalogue, clues), {})]
    assert comparison.verdict is found.verdict
    assert (comparison.sentence, comparison.advice) == (found.sentence, found.advice)
    assert comparison.reasons == ["a reason", "node 3 alone"]
    assert (comparison.distributions, comparison.effect_sizes) == (shown.distributions, shown.effect_sizes)
    assert (comparison.charts, comparison.breakdowns) == (shown.charts, breakdowns)
    assert comparison.builds is built
    assert comparison.splits is splits
    assert comparison.profiled is why
    assert comparison.followed is followed


def test_the_setup_is_reported_per_side_and_the_candidates_workload_in_full(calls: Calls) -> None:
    baseline, candidate = _side("v0"), _side("v1", first=10, profile_name="cometbft/other")
    for side, era in ((baseline, "one"), (candidate, "two")):
        for run in side:
            run.manifest.facts = [Fact(label="Era", value=era)]
            changed = {"config.toml": {"key": ConfigChange(default="no", used=era)}}
            run.manifest.configuration = run.manifest.configuration.model_copy(
                update={"changed": changed, "changed_per_node": {f"node-{era}": changed}}
            )
    for run in candidate:
        run.manifest.profile = {"load": "the candidate's"}
        run.manifest.workload = {**run.manifest.workload, "load.rate_tx_per_s": 999}
        run.manifest.synthetic = True
    comparison = _compared(baseline, candidate)
    assert (comparison.baseline.label, comparison.candidate.label) == ("v0", "v1")
    assert [run.run_id for run in comparison.baseline.runs] == ["v0-0", "v0-1", "v0-2"]
    assert [run.run_id for run in comparison.candidate.runs] == ["v1-10", "v1-11", "v1-12"]
    assert (comparison.profile_name, comparison.profile) == ("cometbft/other", {"load": "the candidate's"})
    assert comparison.workload["load.rate_tx_per_s"] == 999
    assert comparison.workload_differences == {"load.rate_tx_per_s": [50, 999]}
    assert comparison.facts == [("Era", "one", "two")]
    sides = comparison.changed_from_default
    assert {side: files["config.toml"]["key"].used for side, files in sides.items()} == {
        "baseline": "one", "candidate": "two",
    }  # fmt: skip
    assert {side: list(nodes) for side, nodes in comparison.changed_per_node.items()} == {
        "baseline": ["node-one"], "candidate": ["node-two"],
    }  # fmt: skip
    (rate,) = [item for item in comparison.configuration_differences if item.key == "p2p.send_rate"]
    assert (rate.baseline, rate.candidate) == (5_120_000, 20_480_000)
    assert comparison.condition_differences == calls.decided[0].condition_differences
    assert comparison.caveats.badges == ("SYNTHETIC",)
    assert comparison.caveats.sentences[0].startswith("synthetic data: 3 of 6 runs: ")


def test_one_build_under_two_names_is_an_a_a(calls: Calls) -> None:
    same: dict[str, Any] = {"subject": _run("v0", 0).manifest.subject.model_copy(update={"binary_sha256": "one"})}
    comparison = _compared(_side("v0", **same), _side("v0", first=10, **same))
    assert comparison.title == "A/A: both sides are the same build, CometBFT v0 (candidate) against v0 (baseline)"
    assert comparison.caveats.badges == ("A/A",)
    assert (comparison.baseline.label, comparison.candidate.label) == ("v0 (baseline)", "v0 (candidate)")
    candidate = _side("v0", first=10, **same)
    candidate[0].manifest.configuration = _run("v1", 0).manifest.configuration
    changed = _compared(_side("v0", **same), candidate)
    assert changed.title == "CometBFT v0 (candidate) against v0 (baseline)"
    assert changed.caveats.sentences == ("both sides are the same build: only its configuration differs, in 4 places",)


def _placed(side: list[SyntheticRun], positions: Sequence[int]) -> None:
    for run, position in zip(side, positions, strict=True):
        run.manifest.experiment = ExperimentPlace(id="e", side="x", repetition=1, position=position)


@pytest.mark.parametrize(
    ("profiles", "positions", "expected"),
    [
        (("a", "a"), None, "profile a · 2 + 3 runs · 2026-12-02"),
        (("b", "a"), None, "profiles b and a · 2 + 3 runs · 2026-12-02"),
        (("a", "a"), ((0, 3, 4), (1, 2, 5)), "profile a · 2 + 3 runs, interleaved · 2026-12-02"),
        (("a", "a"), ((0, 1, 2), (3, 4, 5)), "profile a · 2 + 3 runs · 2026-12-02"),
    ],
)
def test_the_subtitle_has_profiles_judged_runs_their_order_and_the_last_day(
    calls: Calls, profiles: tuple[str, str], positions: tuple[Sequence[int], Sequence[int]] | None, expected: str
) -> None:
    baseline, candidate = (
        _side(version, first=first, profile_name=profile)
        for version, first, profile in (("v0", 0, profiles[0]), ("v1", 10, profiles[1]))
    )
    baseline[0].manifest.started_at = "2026-12-02T23:59:00Z"
    baseline[1].manifest.status = Status.INVALID
    if positions:
        _placed(baseline, positions[0])
        _placed(candidate, positions[1])
    comparison = _compared(baseline, candidate)
    assert comparison.subtitle == expected
    assert comparison.date == "2026-12-02"
    assert comparison.title == "CometBFT v1 against v0"
    candidate[2].manifest.started_at = "2026-12-03T00:00:00Z"
    assert _compared(baseline, candidate).date == "2026-12-03"


def test_the_title_has_the_candidates_name_and_failed_runs_decide(calls: Calls) -> None:
    candidate = _side("v1", first=10)
    for run in candidate:
        run.manifest.subject = run.manifest.subject.model_copy(update={"name": "Renamed"})
        run.manifest.status = Status.FAILED
    comparison = _compared(_side("v0"), candidate)
    assert comparison.title == "Renamed v1 against v0"
    assert comparison.failed_runs_verdict is calls.decided[0].failures.verdict is not None


def test_costs_are_reported_in_place_of_a_verdict_if_they_are_the_question(calls: Calls) -> None:
    slower = _side("v1", 1.5, first=10)
    judged, costs = _compared(candidate=slower), _compared(candidate=slower, question=Question.COST)
    assert (judged.verdict, judged.question) == (Verdict.FAIL, Question.WORSE)
    assert (costs.verdict, costs.question) == (Verdict.INFORMATIONAL, Question.COST)
    assert costs.sentence.startswith("cost of v1 against v0: more: ")


def test_the_anchor_is_compared_by_its_gating_metrics_without_effect_on_the_verdict(calls: Calls) -> None:
    baseline, candidate, anchor, archive = (
        _side(version, value, first=first)
        for version, value, first in (("v0", 1.0, 0), ("v1", 1.0, 10), ("v-9", 0.5, 20), ("v-1", 1.0, 30))
    )
    epochs = [Epoch(system="x", since="2020-11-01T00:00:00Z", text="new hosts")]
    past = Past(epochs, learnt=Bounds(0.01, 0.02), widest=0.4)
    comparison = _compared(baseline, candidate, anchor=anchor, history=archive, past=past)
    assert comparison.verdict is Verdict.PASS
    assert calls[DECIDE][1] == ((anchor, candidate, archive, Past(epochs, widest=0.4)), {})
    assert comparison.anchor is not None
    assert comparison.anchor.side.label == "v-9"
    assert [run.run_id for run in comparison.anchor.side.runs] == ["v-9-20", "v-9-21", "v-9-22"]
    judgements = comparison.anchor.judgements
    assert [(item.metric_id, round(item.change or 0.0, 2)) for item in judgements] == [
        ("interval_s", 0.0), ("latency_s", 1.0),
    ]  # fmt: skip
    _compared(baseline, candidate, anchor=anchor)
    assert calls[DECIDE][3] == ((anchor, candidate, (), None), {})


@pytest.mark.parametrize("past", [None, Past([Epoch(system="cometbft", since="2020-01-01T00:00:00Z", text="x")])])
def test_false_alarms_are_those_of_the_history_that_was_used_for_the_verdict(calls: Calls, past: Past | None) -> None:
    alarms = FalseAlarms(figures=3, moved=1)
    calls.replace("re_run_alarms", alarms)
    runs = noisy()
    invalid, judged = releases.run("v1.99", 98, [1.0] * 6), releases.run("v1.99", 99, [1.0] * 6)
    invalid.manifest.status = Status.INVALID
    comparison = _compared([runs[-1]], [invalid, judged], history=runs, past=past)
    assert comparison.false_alarms is alarms
    assert calls["re_run_alarms"] == [((judged, runs, past or Past()), {})]
    calls.replace("re_run_alarms", FalseAlarms())
    assert _compared([runs[-1]], [judged], history=runs).false_alarms is None
    calls["re_run_alarms"].clear()
    assert _compared([runs[-1]], [judged], history=runs[:3]).false_alarms is None
    assert calls["re_run_alarms"] == [], "the verdict used no history"


def test_a_side_without_runs_is_rejected() -> None:
    with pytest.raises(UsageError, match="the candidate has no runs"):
        compare(_side("v0"), [], tool_version="1")
