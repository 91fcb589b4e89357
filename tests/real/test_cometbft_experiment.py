"""An experiment with two releases on real nodes, interrupted twice, resumed, and extended by further runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from chainmark.core.comparison import Comparison
from chainmark.core.manifest import ExperimentLength, Status

from tests.real.test_cometbft_qa import ANYHOW
from tests.results import result_in
from tests.support import Lab, Started, wait_until

# The measured values do not matter here, so the machine may be busy.
SETTINGS = (*ANYHOW, "network.validators=1", "load.rate=20")
BEGIN = ("experiment", "cometbft/demo", "--baseline", "v0.38.17", "--candidate", "v1.0.1", "--repeat", "2",
         "--profile", "none", "--margin", "tx_latency_s=60%")  # fmt: skip


def _broken_off(lab: Lab, started: Started, run: str, loads: int, number: signal.Signals) -> str:
    """Interrupt a command under the load of the given run; return its output."""
    wait_until(lambda: run in started.errors() and started.errors().count("offering") >= loads, f"the load of {run}")
    os.kill(started.process.pid, number)
    ended = started.finish()
    assert ended.returncode == (130 if number is signal.SIGINT else -signal.SIGKILL), ended.stderr
    wait_until(lambda: not lab.node_processes(), "the end of all nodes")
    return ended.stderr


def test_an_experiment_interrupted_twice_is_resumed_by_command(lab: Lab, tmp_path: Path) -> None:
    """No finished run is lost or repeated, no node is left running, and added runs count as one more look."""
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    _broken_off(lab, lab.start(*BEGIN, *settings), "run 2 of 4", 2, signal.SIGKILL)
    first = [run.run_id for run in lab.store.sealed()]
    assert len(first) == len(lab.store.unfinished()) == 1
    experiment = next(path.name for path in (lab.store_path / "experiments").iterdir())

    output = _broken_off(lab, lab.start("experiment", "--resume", experiment), "run 3 of 4", 2, signal.SIGINT)
    assert "run 1 of 4" not in output
    assert f"--resume {experiment}" in output
    assert lab.store.unfinished() == []
    assert {run.run_id for run in lab.store.sealed()} > set(first)
    assert len(lab.store.sealed()) == 2

    document = tmp_path / "comparison.json"
    ended = lab.run("experiment", "--resume", experiment, "--more", "1", "--json-file", str(document), code=None)
    assert ended.returncode in {0, 1, 3}, ended.stderr
    assert [f"run {number} of 6" in ended.stderr for number in range(2, 7)] == [False, *[True] * 4]
    assert lab.store.unfinished() == []
    runs = [run.manifest for run in lab.store.sealed()]
    places = sorted((place.position, place.side, run.seed) for run in runs if (place := run.experiment))
    sides = ["baseline", "candidate", "candidate", "baseline", "baseline", "candidate"]
    assert places == [(position, side, 1 + position) for position, side in enumerate(sides)]
    assert {run.status for run in runs} == {Status.VALID}
    lengths = {place.position: place.length for run in runs if (place := run.experiment)}
    planned, added = (ExperimentLength(most=most, stops_early=False) for most in (2, 3))
    assert [lengths[position] for position in range(6)] == [planned] * 4 + [added] * 2
    # The planned look used 4.8 %. The added runs decide with the rest, and not with another 5 %.
    compared = result_in(document.read_text(encoding="utf-8"), Comparison)
    levels = {item.worse_level for item in compared.judgements if item.p_worse_adjusted is not None}
    assert levels
    assert max(levels) < 0.01
    assert compared.catalogue.metric("tx_latency_s").margin == 0.6  # in the order fixed at the start
