"""The verdict on real nodes: no false alarm, a slower commit is detected, and different loads are never compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import ANYHOW, QUICK, Lab, changed

# Blocks are so fast that a short load has as many as a usual one. The tested change is a factor of three. Runs next to
# other load are therefore sufficient, and need not be repeated.
SHORT = changed(*ANYHOW, *QUICK, "load.duration_s=4", "gates.blocks_min=5")
DEMO = ("cometbft/demo", "--version", "v1.0.1", *SHORT)
# Runs as short as these differ by 5 to 10 %, and two of them can agree by chance: with margins of 10 %, an equal
# version fails about once in a hundred tests. `benches/verdict` measures the rate with the default margins.
WIDE = tuple(
    part
    for metric in ("tx_latency_s", "block_interval_s", "node_cpu_per_transaction_s")
    for part in ("--margin", f"{metric}=60%")
)


@pytest.fixture(scope="module")
def baseline(shared_lab: Lab) -> str:
    """The experiment id of three runs of v1.0.1."""
    return _experiment(shared_lab, *DEMO, "--repeat", "3")


def _experiment(lab: Lab, *arguments: str) -> str:
    place = lab.runs(*arguments)[0].manifest.experiment
    assert place is not None
    return place.id


def _compare(lab: Lab, baseline: str, candidate: str, *options: str) -> tuple[int, dict[str, Any]]:
    outcome = lab.run("compare", baseline, candidate, *options, "--json", code=None)
    comparison: dict[str, Any] = json.loads(outcome.stdout)
    return outcome.returncode, comparison


def _outcomes(comparison: dict[str, Any]) -> dict[str, str]:
    return {
        f"{judgement['metric_id']} {judgement['statistic']}": judgement["outcome"]
        for judgement in comparison["judgements"]
        if judgement["gating"]
    }


def _worse_together(comparison: dict[str, Any]) -> set[str]:
    """The gating metrics that are worse in the joint test of all; a noisy one may be worse only on its own."""
    return {
        f"{judgement['metric_id']} {judgement['statistic']}"
        for judgement in comparison["judgements"]
        if judgement["gating"]
        and judgement["outcome"] == "worse"
        and judgement["p_worse_adjusted"] <= judgement["worse_level"]
    }


@pytest.mark.quiet  # with its gates off, a network without CPU time next to others is slower
def test_the_same_version_never_fails(shared_lab: Lab) -> None:
    once, again = (_experiment(shared_lab, *DEMO, "--repeat", "2", "--seed", seed) for seed in ("1", "50"))
    code, comparison = _compare(shared_lab, once, again, *WIDE)
    assert comparison["verdict"] in ("pass", "inconclusive"), comparison["sentence"]
    assert code in (0, 3)
    assert "worse" not in _outcomes(comparison).values()


def test_a_longer_timeout_commit_fails_and_names_latency_and_interval(
    shared_lab: Lab, baseline: str, tmp_path: Path
) -> None:
    # Blocks take three times as long: found in three runs per side, or in six beside networks that add noise.
    for repeats in ("3", "6"):
        slow = ("--set", "node.config.consensus.timeout_commit=500ms")
        slower = _experiment(shared_lab, *DEMO, "--repeat", repeats, *slow)
        code, comparison = _compare(shared_lab, baseline, slower)
        if comparison["verdict"] != "inconclusive":
            break
    assert (code, comparison["verdict"]) == (1, "fail")
    outcomes = _outcomes(comparison)
    assert outcomes["block_interval_s mean"] == "worse"
    # Other networks on the machine add to the latency, so it may be worse or undecided.
    assert "equal" not in outcomes["tx_latency_s p50"]
    assert "is worse than" in comparison["sentence"]
    # The sentence names the three clearest changes, the reasons name all of them.
    for name, metric in (("block interval", "block_interval_s mean"), ("tx latency p50", "tx_latency_s p50")):
        message = any(reason.startswith(f"worse: {name}") for reason in comparison["reasons"])
        assert message == (metric in _worse_together(comparison)), comparison["reasons"]
    changed = [difference["key"] for difference in comparison["configuration_differences"]]
    assert changed == ["consensus.timeout_commit"]
    reports = [tmp_path / f"report.{kind}" for kind in ("html", "pdf", "md")]
    options = [part for path in reports for part in (f"--{path.suffix[1:]}", str(path))]
    process = shared_lab.run("compare", baseline, slower, *options, code=1)
    assert "FAIL" in process.stdout
    assert all(path.stat().st_size > 1_000 for path in reports)
    assert "timeout_commit" in reports[0].read_text(encoding="utf-8")


def test_a_different_load_is_invalid(shared_lab: Lab, baseline: str) -> None:
    halved = _experiment(shared_lab, *DEMO, "--set", "load.rate=100")
    code, comparison = _compare(shared_lab, baseline, halved)
    assert (code, comparison["verdict"]) == (4, "invalid")
    assert comparison["workload_differences"] == {"load.rate": [200, 100]}
    assert "equal" not in _outcomes(comparison).values()
