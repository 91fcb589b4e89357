"""The next step of a failed comparison and its wording. Each kind of evidence is tested alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chainmark.compare.next_step import Clues, with_next_step
from chainmark.compare.sides import SelectedRuns, select
from chainmark.compare.verdict import VerdictFinding
from chainmark.core.build import BuildDifferences, Commit
from chainmark.core.comparison import (
    Breakdown,
    ConfigurationDifference,
    Judgement,
    Outcome,
    Scale,
    Split,
    SplitPart,
    Splits,
)
from chainmark.core.manifest import ExperimentPlace, Gate, GateKind, GateStatus, Status, Subject
from chainmark.core.profiled import FunctionChange, ProfileChange, Profiled
from chainmark.core.verdict import Verdict

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun
from tests.unit.compare.test_verdict_words import described, item

WORSE, BETTER, UNDECIDED = Outcome.WORSE, Outcome.BETTER, Outcome.INCONCLUSIVE
SLOWER = VerdictFinding(Verdict.FAIL, "it is slower", ["because"], ["repeat it"])
NAMES = ["a", "b", "c"]
GOOD, BAD = "0123456789abcdef" * 2, "fedcba9876543210" * 2
SAME_OPTIONS = ", with the `--set` options of these runs, if any"
ITS_ROW = "check the value of metric a in each run"


def _runs(side: str, version: str, number: int = 2, **changes: Any) -> list[SyntheticRun]:
    """Runs of an experiment with a profile that is not part of chainmark."""
    runs = []
    for at in range(number):
        run = stub_run(version, 1.0, at)
        place = ExperimentPlace(id="e", side=side, repetition=at + 1, position=at)
        run.manifest = run.manifest.model_copy(update={"experiment": place, "profile_name": "own", **changes})
        runs.append(run)
    return runs


def _pair(versions: tuple[str, str] = ("v1.0.0", "v1.1.0"), **changes: Any) -> tuple[SelectedRuns, SelectedRuns]:
    return select("baseline", _runs("baseline", versions[0], **changes)), select(
        "candidate", _runs("candidate", versions[1], **changes)
    )


NOTHING = Clues(_pair(), [], None, [], None, None, frozenset())


def _next(clues: Clues, items: Sequence[Judgement] | None = None, finding: VerdictFinding = SLOWER) -> VerdictFinding:
    return with_next_step(finding, items or [item("a", WORSE)], described(NAMES), clues)


def _step(clues: Clues, items: Sequence[Judgement] | None = None) -> tuple[str, str]:
    """The end of the sentence, and the additional text of the first advice."""
    finding = _next(clues, items)
    sentence, _, step = finding.sentence.partition("; ")
    assert (sentence, finding.verdict, finding.reasons) == ("it is slower", Verdict.FAIL, ["because"])
    assert finding.advice[1:] == ["repeat it"]
    assert finding.advice[0].startswith(step)
    return step, finding.advice[0].removeprefix(step)


def test_without_any_evidence_the_row_of_the_worse_metric_is_named() -> None:
    assert _step(NOTHING) == (ITS_ROW, "")
    assert _step(replace(NOTHING, charted=frozenset({"a_s"}))) == (
        "check the chart of metric a to find which samples moved", ""
    )  # fmt: skip
    assert _step(replace(NOTHING, charted=frozenset({"b_s"}))) == (ITS_ROW, "")


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.INVALID])
def test_a_verdict_that_is_not_a_failure_has_no_next_step(verdict: Verdict) -> None:
    """A release that passed needs no step, and an undecided one has its own advice."""
    finding = replace(SLOWER, verdict=verdict)
    assert _next(NOTHING, finding=finding) == finding


def test_the_next_step_is_about_the_most_clearly_worse_metric() -> None:
    """The clearest is the one with the largest change per interval width.

    Undecided metrics count only if none is worse.
    """
    a, b = item("a", WORSE, low=0.0, high=0.1), item("b", WORSE, low=0.04, high=0.06)
    assert _step(NOTHING, [a, b])[0].endswith("value of metric b in each run")
    assert _step(NOTHING, [b, a])[0].endswith("value of metric b in each run")
    open_ = item("b", UNDECIDED, low=0.04, high=0.06)
    assert _step(NOTHING, [a, open_])[0].endswith("value of metric a in each run")
    together = item("a", UNDECIDED, low=0.0, high=0.1)
    assert _step(NOTHING, [together, open_])[0].endswith("value of metric b in each run")


def test_metrics_that_passed_or_were_not_judged_are_never_the_next_step() -> None:
    clear: dict[str, Any] = {"low": 0.049, "high": 0.051}
    others = [
        item("b", BETTER, **clear),
        item("b", Outcome.EQUAL, **clear),
        item("b", WORSE, gating=False, **clear),
        item("b", UNDECIDED, change=None, low=0.0, high=1e-9),
    ]
    for other in others:
        assert _step(NOTHING, [other, item("a", UNDECIDED)])[0].endswith("value of metric a in each run")
        assert _next(NOTHING, [other]) == SLOWER, "without evidence there is no suggestion"


def _failing(side: str, version: str) -> list[SyntheticRun]:
    gate = Gate(id="g", label="g", status=GateStatus.FAIL, measured="1", limit="2", kind=GateKind.SUBJECT)
    first, second = _runs(side, version)
    failed = second.manifest.model_copy(update={"gates": [gate], "status": Status.FAILED})
    return [first, replace(second, manifest=failed)]


def test_failed_runs_alone_suggest_the_logs_of_the_candidates_first_failed_run() -> None:
    """If a metric is worse as well, the step is about this metric, because it is the clearer evidence."""
    sides = select("baseline", _failing("baseline", "v1")), select("candidate", _failing("candidate", "v2"))
    clues = replace(NOTHING, sides=sides)
    finding = _next(clues, [item("a", UNDECIDED)])
    assert finding.sentence == "it is slower; look at `raw/logs` of the run v2-1"
    assert finding.advice == ["repeat it"], "the advice about failed runs is not repeated"
    assert _step(clues)[0] == ITS_ROW


def test_hosts_that_are_the_only_changed_ones_come_first() -> None:
    hosts = [f"n{number}" for number in range(6)]
    changes: list[float | None] = [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    means: list[float | None] = [1.0] * 6
    counts, nothing = [1] * 6, [""] * 6
    by_host = Breakdown(
        metric_id="a_s", key="host", scale=Scale.RELATIVE, values=hosts, baseline=means, candidate=means,
        baseline_n=counts, candidate_n=counts, change=changes, z=[None] * 6, stands_out=nothing,
        median_baseline=1.0, median_candidate=1.0,
    )  # fmt: skip
    known = described(NAMES)
    (population,) = known.populations
    known = known.model_copy(update={"populations": [population.model_copy(update={"average_over": ["host"]})]})
    worse = item("a", WORSE, change=0.2, low=0.15, high=0.25)
    clues = replace(NOTHING, breakdowns=[by_host], profiled=_profiled(_function("f", 1.0)))
    finding = with_next_step(SLOWER, [worse], known, clues)
    assert finding.sentence == "it is slower; look at n0, unlike the other 5 hosts"
    assert finding.advice == ["look at n0, unlike the other 5 hosts", "repeat it"]


def _function(name: str, change: float, low: float | None = 0.1) -> FunctionChange:
    return FunctionChange(function=name, baseline=1.0, candidate=1.0 + change, low=low, high=9.0)


def _profiled(*functions: FunctionChange, candidate: float = 2.0) -> Profiled:
    change = ProfileChange(
        kind="cpu", label="CPU", unit="s", per="node", baseline=1.0, candidate=candidate,
        functions=list(functions), functions_in_all=len(functions), basis="",
    )  # fmt: skip
    return Profiled(runs={}, changes=[change])


def test_functions_that_use_clearly_more_are_named_in_descending_order() -> None:
    setting = ConfigurationDifference(file="c", key="k", is_default_change=False)
    grown = _profiled(
        _function("github.com/x/y.small", 0.5), _function("github.com/x/y.zlast", 2.0),
        _function("y.alike", 2.0), _function("y.noise", 5.0, low=0.0), _function("y.alone", 5.0, low=None),
    )  # fmt: skip
    clues = replace(NOTHING, profiled=grown, differences=[setting])
    assert _step(clues) == ("start with `y.zlast`, `y.alike` and 1 more, which clearly use more than before", "")
    less = replace(clues, profiled=_profiled(_function("f", 1.0), candidate=1.0))
    assert _step(less)[0].startswith("repeat with equal settings"), "the total use does not increase"


def test_changed_settings_are_named() -> None:
    """Differences between the versions' own defaults belong to the release and are not named."""
    keys = [ConfigurationDifference(file="c", key=key, is_default_change=key == "default") for key in
            ("default", "k", "l", "m", "n")]  # fmt: skip

    def step(number: int) -> tuple[str, str]:
        return _step(replace(NOTHING, differences=keys[:number], builds=_builds(1)))

    assert step(1)[0].startswith("look at the only commit")
    assert step(2) == ("repeat with equal settings first: `k` differs between the sides", "")
    assert step(3) == ("repeat with equal settings first: `k`, `l` differ between the sides", "")
    assert step(5)[0].endswith("first: `k`, `l` and 2 more settings differ between the sides")


def _builds(added: int, removed: int = 0, unknown_reason: str = "") -> BuildDifferences:
    commits = [Commit(id=BAD, subject="Sleep"), Commit(id=GOOD, subject="Wake")][:added]
    return BuildDifferences(
        facts=[], added=commits, added_in_all=added, removed_in_all=removed, unknown_reason=unknown_reason
    )


def test_the_only_commit_between_two_builds_is_named() -> None:
    only = replace(NOTHING, builds=_builds(1))
    assert _step(only) == ("look at the only commit between them, fedcba987654: Sleep", "")
    for builds in (_builds(1, removed=1), _builds(1, unknown_reason="too old"), _builds(0)):
        assert _step(replace(NOTHING, builds=builds)) == (ITS_ROW, "")


def _shipped(versions: tuple[str, str] = ("v1.0.0", "v1.1.0"), **changes: Any) -> Clues:
    return replace(NOTHING, sides=_pair(versions, profile_name="cometbft/demo", **changes))


def test_the_search_for_a_release_is_a_command_that_can_be_pasted() -> None:
    """The remark is omitted from the sentence, which is long enough without it."""
    command = "`chainmark bisect cometbft/demo --good v1.0.0 --bad v1.1.0`"
    assert _step(_shipped()) == (f"search for the release that introduced it: {command}", SAME_OPTIONS)
    assert _step(NOTHING)[0] == ITS_ROW, "a user's own profile cannot be run by its name"


@pytest.mark.parametrize(("versions", "is_searched"), [
    (("0.38.17", "1.0.1-rc.1+x"), True), (("v1.0.0", "v1.0.0"), False), (("git:a", "v1.0.0"), False),
    (("v1.0.0", "main"), False), (("v1", "v2"), False),
])  # fmt: skip
def test_only_two_releases_have_releases_between_them(versions: tuple[str, str], *, is_searched: bool) -> None:
    assert ("release" in _step(_shipped(versions))[0]) == is_searched


def _revised(*revisions: str | None) -> tuple[SelectedRuns, SelectedRuns]:
    """Sides with builds of two commits."""
    sides = []
    for side, revision in zip(("baseline", "candidate"), revisions, strict=True):
        subject = Subject(system="cometbft", name="CometBFT", version=f"git:{side}", revision=revision)
        sides.append(select(side, _runs(side, "git", profile_name="cometbft/demo", subject=subject)))
    return sides[0], sides[1]


def test_the_search_for_the_first_bad_of_many_commits_is_a_command() -> None:
    clues = replace(NOTHING, sides=_revised(GOOD, BAD), builds=_builds(12_000))
    command = "`chainmark bisect cometbft/demo --repo CHECKOUT --good 0123456789ab --bad fedcba987654`"
    assert _step(clues) == (f"search the 12,000 commits for the one responsible: {command}", SAME_OPTIONS)
    assert "search the 2 commits" in _step(replace(clues, builds=_builds(2)))[0]
    impossible = [
        replace(clues, builds=_builds(12_000, removed=1)),  # not on one line of commits
        replace(clues, builds=_builds(0)),
        replace(clues, builds=_builds(1, unknown_reason="the history is cut")),
        replace(clues, builds=None),
        replace(clues, sides=_revised(None, BAD)),
        replace(clues, sides=_revised(GOOD, None)),
    ]
    for entry in impossible:
        assert _step(entry) == (ITS_ROW, "")


def test_no_search_is_suggested_for_runs_that_cannot_be_repeated() -> None:
    """Imported runs have no position in an experiment.

    Runs of a sweep and single runs have another kind of position.
    """
    usual = _shipped()
    assert "bisect" in _step(usual)[0]
    lone = ExperimentPlace(id="e", side="run", repetition=1, position=0)
    for place in (None, lone):
        for at in (0, 1):
            manifests = [side.first.model_copy(update={"profile_name": "cometbft/demo"}) for side in usual.sides]
            manifests[at] = manifests[at].model_copy(update={"experiment": place})
            sides = [
                select(side.name, [replace(stub_run("v", 1.0, number), manifest=manifest)])
                for number, (side, manifest) in enumerate(zip(usual.sides, manifests, strict=True))
            ]
            assert _step(replace(usual, sides=(sides[0], sides[1]))) == (ITS_ROW, "")
    other = select("candidate", _runs("candidate", "v1.1.0", profile_name="cometbft/saturation"))
    assert _step(replace(usual, sides=(usual.sides[0], other))) == (ITS_ROW, "")


def _split(*parts: tuple[str, float], change: float = 0.2, low: float = 0.01, high: float = 1.0, of: str = "") -> Clues:
    split_parts = [
        SplitPart(id=name, label=f"the {name}", of=of, change=part, low=low, high=high) for name, part in parts
    ]
    split = Split(metric_id="a_s", statistic="mean", scale=Scale.RELATIVE, change=change, basis="", parts=split_parts)
    return replace(NOTHING, splits=Splits(title="t", splits=[split]), charted=frozenset({"a_s"}))


def test_the_part_with_most_of_a_change_comes_first() -> None:
    step = "look at the network first, which accounts for 75 % of the change"
    assert _step(_split(("node", 0.05), ("network", 0.15))) == (step, "")
    # A part may grow by more than the total if another part shrank. A change may also be a fall.
    assert _step(_split(("node", -0.1), ("network", 0.3)))[0].endswith("accounts for 100 % of the change")
    fall = _split(("node", -0.2), change=-0.2, low=-0.3, high=-0.1)
    assert _step(fall)[0].startswith("look at the node first")


@pytest.mark.parametrize("clues", [
    _split(("node", 0.1), ("network", 0.1)),  # half of the change is not most of it
    _split(("network", 0.15), low=-0.01),
    _split(("network", 0.15), low=0.0),
    _split(("network", -0.15), change=-0.2, low=-0.3, high=0.0),
    _split(("network", 0.15), change=0.0),
    _split(("network", 0.15), of="node"),
    _split(),
])  # fmt: skip
def test_a_part_that_may_be_noise_or_is_not_the_largest_is_not_named(clues: Clues) -> None:
    assert _step(clues)[0].startswith("check the chart of metric a")


def test_printed_figures_suggest_the_logs() -> None:
    """Such figures may belong to either side. A chart of the metric contains more than they do."""
    step = "import the logs of both versions, because printed figures do not show where the change is"
    for at in (0, 1):
        sides = list(_pair())
        name, version = (sides[at].name, sides[at].version)
        sides[at] = select(name, [*_runs(name, version, 1, printed=True), _runs(name, version)[1]])
        clues = replace(NOTHING, sides=(sides[0], sides[1]))
        assert _step(clues) == (step, "")
        assert _step(replace(clues, charted=frozenset({"a_s"})))[0].startswith("check the chart")
