"""A search over published versions, with real nodes: broken off, gone on with, and ended before it is sure."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.real.test_cometbft_qa import ANYHOW
from tests.support import Lab, wait_until

SHORT = ("load.warm_up_s=1", "load.duration_s=4", *ANYHOW)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
def test_broken_off_in_the_second_run_it_goes_on_and_says_what_is_left(lab: Lab, number: signal.Signals) -> None:
    """v1.0.1 has more goroutines than v0.38.17; four runs show that, and cannot tell since when."""
    settings = [part for setting in SHORT for part in ("--set", setting)]
    ends = ("--good", "v0.38.17", "--bad", "v1.0.1", "--metric", "node_goroutines", "--most-runs", "4")
    started = lab.start("bisect", "cometbft/demo", *ends, *settings)
    wait_until(lambda: started.errors().count("offering") == 2, "the second run's load")
    os.kill(started.process.pid, number)
    broken = started.finish()
    assert broken.returncode == (130 if number is signal.SIGINT else -signal.SIGKILL)
    wait_until(lambda: not lab.node_processes(), "the end of all nodes")
    (experiment,) = (path.name for path in (lab.store_path / "experiments").iterdir())
    if number is signal.SIGINT:
        assert f"continue with `--resume {experiment}`" in broken.stderr

    ended = lab.run("bisect", "--resume", experiment, "--json", code=3)
    found = json.loads(ended.stdout)
    assert (found["way"], found["runs"], found["metric_id"]) == ("undecided", 4, "node_goroutines")
    assert found["effect"]["low"] > 0.0
    assert found["revisions"][0]["label"] == "v0.38.17"
    assert found["revisions"][-1]["label"] == "v1.0.1"
    assert lab.store.unfinished() == []
