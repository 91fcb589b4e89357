"""A bisection over published versions with real nodes: interrupted, resumed, and ended before its result is certain."""

from __future__ import annotations

import json
import os
import signal
from subprocess import CompletedProcess

from tests.real.test_cometbft_qa import ANYHOW
from tests.support import Lab, Started, wait_until

SHORT = (*ANYHOW, "network.validators=2")


def _broken_off(lab: Lab, started: Started, runs: int, number: signal.Signals) -> CompletedProcess[str]:
    """Interrupt a bisection under the load of its run number ``runs``; return the ended command."""
    wait_until(lambda: started.errors().count("offering") == runs, "the load")
    os.kill(started.process.pid, number)
    broken = started.finish()
    wait_until(lambda: not lab.node_processes(), "the end of all nodes")
    return broken


def test_a_bisection_interrupted_in_two_runs_resumes_and_reports_the_remaining_range(lab: Lab) -> None:
    """v1.0.1 has more goroutines than v0.38.17. Four runs show the difference, but not the first version with it."""
    settings = [part for setting in SHORT for part in ("--set", setting)]
    ends = ("--good", "v0.38.17", "--bad", "v1.0.1", "--metric", "node_goroutines", "--most-runs", "4")
    process = _broken_off(lab, lab.start("bisect", "cometbft/demo", *ends, *settings), 2, signal.SIGINT)
    (experiment,) = (path.name for path in (lab.store_path / "experiments").iterdir())
    assert process.returncode == 130
    assert f"continue with `--resume {experiment}`" in process.stderr
    killed = _broken_off(lab, lab.start("bisect", "--resume", experiment), 1, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    assert len(lab.store.unfinished()) == 1

    ended = lab.run("bisect", "--resume", experiment, "--json", code=3)
    report = json.loads(ended.stdout)
    assert (report["way"], report["runs"], report["metric_id"]) == ("undecided", 4, "node_goroutines")
    assert report["effect"]["low"] > 0.0
    assert report["revisions"][0]["label"] == "v0.38.17"
    assert report["revisions"][-1]["label"] == "v1.0.1"
    assert lab.store.unfinished() == []
