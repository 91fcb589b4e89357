"""A failed comparison suggests a next step that its own evidence supports, and no other step."""

from __future__ import annotations

from chainmark.compare import compare
from chainmark.core.manifest import ExperimentPlace
from chainmark.core.verdict import Verdict

from tests.unit.compare.synthetic_runs import SyntheticRun, sides, with_hosts

SLOWER = {"tx_latency_s": 1.4}
HOSTS = [f"node{index}" for index in range(8)]


def _step(baseline: list[SyntheticRun], candidate: list[SyntheticRun], **more: object) -> str:
    comparison = compare(baseline, candidate, tool_version="0", **more)  # type: ignore[arg-type]
    assert comparison.verdict is Verdict.FAIL
    step = comparison.sentence.rpartition("; ")[2]
    assert comparison.advice[0].startswith(step)
    return step


def test_runs_of_an_experiment_suggest_a_search_among_releases() -> None:
    """The command can be pasted: its profile and versions are those of the runs."""
    baseline, candidate = sides(SLOWER)
    for number, run in enumerate([*baseline, *candidate]):
        side = "baseline" if run in baseline else "candidate"
        run.manifest.experiment = ExperimentPlace(id="e", side=side, repetition=0, position=number)
    command = "`chainmark bisect cometbft/demo --good v0.38.17 --bad v1.0.1`"
    assert _step(baseline, candidate) == f"search for the release that introduced it: {command}"


def test_imported_runs_cannot_be_searched() -> None:
    baseline, candidate = sides(SLOWER)
    for run in [*baseline, *candidate]:
        run.manifest.experiment = None
    assert "bisect" not in _step(baseline, candidate)


def test_a_changed_setting_comes_before_any_search() -> None:
    baseline, candidate = sides(SLOWER)
    for run in candidate:
        effective = {"config.toml": {"mempool.size": 7}}
        run.manifest.configuration = run.manifest.configuration.model_copy(
            update={"effective": effective, "changed": {"config.toml": {"mempool.size": {"default": 1, "used": 7}}}}
        )
    assert "repeat with equal settings first" in (step := _step(baseline, candidate))
    assert "`mempool.size`" in step


def test_hosts_that_are_the_only_worse_ones_come_first() -> None:
    left, right = sides(repetitions=3, seconds=30)
    usual = dict.fromkeys(HOSTS, 0.1)
    baseline = [with_hosts(usual, run) for run in left]
    candidate = [with_hosts({**usual, "node1": 0.3, "node6": 0.22}, run) for run in right]
    assert _step(baseline, candidate) == "look at node1 and node6, unlike the other 6 nodes"
