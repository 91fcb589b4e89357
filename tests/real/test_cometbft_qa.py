"""A complete qualification of two releases on real nodes: interrupted, resumed, and reported."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from chainmark.core.qa_report import QaReport
from chainmark.core.verdict import Verdict
from chainmark.network.host import host_facts

from tests.results import result_in
from tests.support import ANYHOW as WHATEVER_THE_MACHINE_DOES
from tests.support import QUICK, Lab, Started, changed, wait_until

PLAN = """
system = "cometbft"
title = "A short one"
description = "Two scenarios, one of which no machine can make."

[[scenario]]
id = "fixed-load"
title = "Fixed load"
question = "Is it slower?"
method = "Two validators under a light load."
profile = "cometbft/demo"
settings = ["network.validators=2"]
repetitions = 1
plots = ["latencies", "peers", "memory", "total_txs_rate"]

[[scenario]]
id = "huge"
title = "A huge network"
question = "At scale?"
method = "On a machine that does not exist."
profile = "cometbft/two-hundred-nodes"
repetitions = 1
gating = false
needs = ["cores:100000"]
"""
# The measured values do not matter here, so the machine may be busy.
ANYHOW = (*WHATEVER_THE_MACHINE_DOES, *QUICK, "gates.achieved_rate_min=0.01", "gates.committed_share_min=0")


def _begun(lab: Lab, folder: Path) -> Started:
    plan = folder / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    versions = ("--baseline", "v0.38.17", "--candidate", "v1.0.1")
    return lab.start("qa", "cometbft", *versions, "--plan", str(plan), *changed(*ANYHOW))


TWO_AT_A_TIME = """
system = "cometbft"
title = "Two at a time"
description = "One scenario whose sides run together."

[[scenario]]
id = "halting"
title = "Halting"
question = "Does it come back?"
method = "One of four validators is restarted under a light load."
profile = "cometbft/perturbations"
settings = ["perturbation=[{kind='restart', nodes=[3], at_s=1}]"]
repetitions = 1
gating = false
cores = 1
"""


@pytest.mark.skipif(host_facts().cores < 2, reason="two networks at a time need two processors")
def test_two_concurrent_networks_are_interrupted_and_resumed(lab: Lab, tmp_path: Path) -> None:
    """Neither network uses the other's addresses. An interruption stops both and stores nothing."""
    plan = tmp_path / "plan.toml"
    plan.write_text(TWO_AT_A_TIME, encoding="utf-8")
    versions = ("--baseline", "v0.38.17", "--candidate", "v1.0.1")
    started = lab.start("qa", "cometbft", *versions, "--plan", str(plan), *changed(*ANYHOW))
    wait_until(lambda: len(lab.node_processes()) == 8, "the nodes of both networks")
    os.kill(started.process.pid, signal.SIGINT)
    assert started.finish().returncode == 130
    assert not lab.node_processes()
    assert lab.store.sealed() == []
    assert lab.store.unfinished() == []

    experiment = next(path.name for path in (lab.store_path / "experiments").iterdir())
    document = tmp_path / "qa.json"
    lab.run("qa", "cometbft", "--resume", experiment, "--json-file", str(document), code=None)
    # If a busy machine makes one of them invalid, it is repeated alone.
    runs = sorted(lab.store.sealed(), key=lambda run: run.manifest.started_at)[:2]
    assert sorted(run.manifest.subject.version for run in runs) == ["v0.38.17", "v1.0.1"]
    began, ended = ([getattr(run.manifest, name) for run in runs] for name in ("started_at", "ended_at"))
    assert max(began) < min(ended)
    report = result_in(document.read_text(encoding="utf-8"), QaReport)
    assert any(line.startswith("In Halting") for line in report.method)


def test_a_qualification_interrupted_twice_in_its_second_run_is_resumed(lab: Lab, tmp_path: Path) -> None:
    """Hours of runs must not be lost, whatever ends the command, and no process may be left running."""
    started = _begun(lab, tmp_path)
    wait_until(lambda: "run 2 of 2" in started.errors(), "the second run")
    wait_until(lambda: started.errors().count("offering") >= 2, "its load")
    os.kill(started.process.pid, signal.SIGINT)
    process = started.finish()
    assert process.returncode == 130
    wait_until(lambda: not lab.node_processes(), "the end of all nodes")
    run_ids = [run.run_id for run in lab.store.sealed()]
    assert len(run_ids) == 1
    assert lab.store.unfinished() == []
    experiment = next(path.name for path in (lab.store_path / "experiments").iterdir())
    assert f"--resume {experiment}" in process.stderr

    resumed_once = lab.start("qa", "cometbft", "--resume", experiment)
    resumed_once.wait_for_load()
    os.kill(resumed_once.process.pid, signal.SIGKILL)
    assert resumed_once.finish().returncode == -signal.SIGKILL
    wait_until(lambda: not lab.node_processes(), "the end of all nodes")
    assert [run.run_id for run in lab.store.sealed()] == run_ids
    assert len(lab.store.unfinished()) == 1

    names = {kind: tmp_path / f"qa.{kind}" for kind in ("html", "pdf", "md", "json", "xml")}
    written = ("--html", names["html"], "--pdf", names["pdf"], "--md", names["md"], "--json-file", names["json"])
    options = [*map(str, written), "--junit", str(names["xml"])]
    resumed = lab.run("qa", "cometbft", "--resume", experiment, *options, code=None)
    assert resumed.returncode in {0, 1, 3}, resumed.stderr
    assert "run 2 of 2" in resumed.stderr
    assert "run 1 of 2" not in resumed.stderr
    assert lab.store.unfinished() == []
    report = result_in(names["json"].read_text(encoding="utf-8"), QaReport)
    fixed, huge = report.scenarios
    assert [(run.side, run.position) for run in fixed.runs] == [("baseline", 0), ("candidate", 1)]
    assert fixed.runs[0].run_id == run_ids[0]
    assert fixed.comparison is not None
    assert {plot.id for plot in fixed.plots} == {"latencies", "peers", "memory", "total_txs_rate"}
    assert {line.side for plot in fixed.plots for line in plot.chart.lines} == {"v0.38.17", "v1.0.1"}
    assert huge.result is Verdict.NOT_RUN
    stored = lab.store_path / "experiments" / fixed.experiment / "verdict.json"
    assert json.loads(stored.read_text(encoding="utf-8"))["verdict"] == fixed.result.value
    assert "100000 processors" in resumed.stdout
    page = names["md"].read_text(encoding="utf-8")
    assert all((tmp_path / "qa-figures" / f"{fixed.id}-{plot.id}.svg").is_file() for plot in fixed.plots)
    assert "qa-figures/fixed-load-latencies.svg" in page

    # Showing the result again gives the same document.
    again = tmp_path / "again.json"
    lab.run("qa", "cometbft", "--resume", experiment, "--json-file", str(again), code=resumed.returncode)
    assert again.read_bytes() == names["json"].read_bytes()
