"""Profiles of real nodes: recorded, stored in the format of Go's own tool, and read into the report's functions."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.comparison import Comparison
from chainmark.core.manifest import GateStatus
from chainmark.network.pprof import read_profiles
from chainmark.store.sealed import SealedRun

from tests.real.mesh_servers import build
from tests.real.test_cometbft_qa import ANYHOW
from tests.support import Lab, changed

# The measured values do not matter here, so the machine may be busy.
RUN = ("cometbft/demo", *changed(*ANYHOW, "network.validators=2", "load.rate=50"))
KINDS = "cpu,heap,goroutine,mutex"


@pytest.fixture(scope="module")
def profiled(shared_lab: Lab) -> list[SealedRun]:
    """A run of each version, with profiles."""
    return [
        run
        for version in ("v0.38.17", "v1.0.1")
        for run in shared_lab.runs(*RUN, "--version", version, "--profile", KINDS)
    ]


def test_go_opens_the_stored_profiles(profiled: list[SealedRun]) -> None:
    for run in profiled:
        folder = run.path / "raw" / "profiles"
        names = {path.name for path in folder.iterdir()}
        assert {f"node{node}.{kind}.pb.gz" for node in (0, 1) for kind in KINDS.split(",")} <= names
        for kind, word in (("cpu", "Type: cpu"), ("heap", "Type: inuse_space"), ("goroutine", "Type: goroutine")):
            shown = _top(folder / f"node0.{kind}.pb.gz")
            assert word in shown
        assert run.verify() == []
        assert run.manifest.profiles == KINDS.split(",")
        assert not [warning for warning in run.manifest.warnings if "profiles" in warning]


def _top(path: Path) -> str:
    command = ["go", "tool", "pprof", "-top", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_the_table_agrees_with_go(profiled: list[SealedRun]) -> None:
    """The total CPU time in seconds, and where it was spent: in the node's own consensus.

    The stored table has the time that processors with a speed of 1 would need, like the metric that it explains.
    """
    run = profiled[1]
    table = read_profiles(run.path / "raw" / "profiles", ["cpu"]).filter(host="node0")
    total = next(
        line for line in _top(run.path / "raw/profiles/node0.cpu.pb.gz").splitlines() if "Total samples" in line
    )
    total_time = total.partition("Total samples = ")[2].split()[0]
    seconds = (
        float(total_time.removesuffix("ms")) / 1e3 if total_time.endswith("ms") else float(total_time.removesuffix("s"))
    )
    assert table["value"].sum() == pytest.approx(seconds, abs=0.006)
    stored = run.events("profiles").filter(kind="cpu", host="node0")
    speeds = run.samples("second")["machine_speed"].drop_nulls().to_numpy()
    assert run.manifest.conditions["cpu_time"] == "corrected for the speed of the processors"
    ratio = float(stored["value"].to_numpy().sum() / table["value"].to_numpy().sum())
    assert speeds.min() * 0.9 < ratio < speeds.max() * 1.1
    goroutines = run.events("profiles").filter(kind="goroutine", moment="end")
    assert any("consensus.(*State).receiveRoutine" in name for name in goroutines["owner"].to_list())


def test_profiled_runs_are_compared_without_being_judged(shared_lab: Lab, profiled: list[SealedRun]) -> None:
    baseline, candidate = ([run.run_id] for run in profiled)
    document = cm.compare(baseline, candidate, why=True, store=shared_lab.store_path)
    result = document.result
    assert isinstance(result, Comparison)
    assert result.profiled is not None
    assert [change.kind for change in result.profiled.changes] == ["cpu", "heap", "goroutine"]
    assert all(change.functions and change.frames for change in result.profiled.changes)
    assert result.candidate.runs[0].excluded_because == (
        "profiles were taken of its nodes (cpu, heap, goroutine, mutex), which slows it down"
    )
    assert any(gate.status is GateStatus.FAIL for gate in result.gates)
    steps = [judgement for judgement in result.judgements if judgement.metric_id == "step_propose_s"]
    assert steps[0].baseline.value is not None


@pytest.mark.quiet  # next to others the application may get no processor, and so no sample, in the second of a profile
def test_an_external_application_is_sampled_if_perf_is_available(shared_lab: Lab) -> None:
    """External applications have no pprof pages. Without perf the run is valid and states what is missing."""
    command = [str(build("faulty-app")), "-address", "{address}", "-node", "{node}", "-home", "{home}", "-busy=300ms"]
    settings = (f"--set=application.command={json.dumps(command)}",)
    (run,) = shared_lab.runs(*RUN, *settings, "--version", "v1.0.1", "--profile", "cpu")
    warnings = [warning for warning in run.manifest.warnings if "node0 application" in warning]
    sampled = run.events("profiles").filter(kind="cpu", host="node0 application")
    if shutil.which("perf") is None:
        assert warnings == ["profiles of node0 application are missing (cpu): `perf` is not installed"]
        assert sampled.is_empty()
    else:
        assert not warnings
        assert any(name.startswith(("main.", "github.com/cometbft")) for name in sampled["owner"].to_list()), sampled
        assert 0.0 < sampled["value"].sum() < 8.0
    assert not run.events("profiles").filter(kind="cpu", host="node0").is_empty()


@pytest.mark.parametrize("kinds", ["cpu,perf", "processor", ""])
def test_an_unknown_kind_of_profile_starts_no_run(lab: Lab, kinds: str) -> None:
    ended = lab.run("run", "cometbft/demo", "--version", "v1.0.1", "--profile", kinds, code=2)
    assert "is not a kind of profile" in ended.stderr
    assert "`cpu`, `heap`, `goroutine`, `mutex` and `block`" in ended.stderr
    assert lab.store.sealed() == []
    assert lab.store.unfinished() == []
