"""CometBFT's own report tool must agree with our report when it reads a stopped node's data of one of our runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from chainmark.core.manifest import GateStatus
from chainmark.store.paths import cache_directory
from chainmark.store.sealed import SealedRun

from tests.support import ANYHOW, COMMAND_TIMEOUT_S, QUICK, Lab, changed

TOOL = "github.com/cometbft/cometbft/test/loadtime/cmd/report@v1.0.1"
BUILD_TIMEOUT_S = 1_800
UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}


@pytest.fixture(scope="session")
def report_tool() -> Path:
    """The path of CometBFT's tool, built once and cached."""
    folder = cache_directory() / "peers" / "loadtime-v1.0.1"
    if not (folder / "report").is_file():
        environment = {**os.environ, "GOBIN": str(folder)}
        subprocess.run(["go", "install", TOOL], env=environment, check=True, timeout=BUILD_TIMEOUT_S, cwd="/")
    return folder / "report"


def _seconds(duration: str) -> float:
    """Parse a duration in Go's format: "1m2.5s", "599.404362ms"."""
    parts = re.findall(r"([\d.]+)(h|ms|m|s|µs|us|ns)", duration)
    return sum(float(number) * UNITS_S[unit] for number, unit in parts)


def _reported(tool: Path, run: SealedRun, database: str) -> dict[str, str]:
    data = run.path / "homes" / "node0" / "data"
    command = [str(tool), "--database-type", database, "--data-dir", str(data)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=COMMAND_TIMEOUT_S).stdout
    return dict(re.findall(r"^\s*([A-Z][A-Za-z ]+): (\S+)$", output, re.MULTILINE))


@pytest.mark.parametrize(("version", "database"), [("v0.38.17", "goleveldb"), ("v1.0.1", "pebbledb")])
def test_latencies_agree_with_the_report_tool(lab: Lab, report_tool: Path, version: str, database: str) -> None:
    # Both count the same transactions, even on a busy machine.
    short = changed(*ANYHOW, *QUICK, "load.warm_up_s=0", "load.duration_s=3")
    run = lab.runs("cometbft/demo", "--version", version, *short, "--keep-homes")[0]
    statuses = {gate.id: gate.status for gate in run.manifest.gates}
    assert statuses["accounting"] is statuses["drained"] is GateStatus.PASS
    reported = _reported(report_tool, run, database)
    blocks = run.events("blocks").select(height=pl.col("height") - 1, next_ns="time_ns")
    # The tool drops the last two blocks. Ours are empty at that time, because draining waits for two more.
    joined = run.events("transactions").join(blocks, on="height", how="inner")
    latency_ns = joined["next_ns"] - joined["due_ns"]
    assert int(reported["Total Valid Tx"]) == latency_ns.len() == 600
    assert int(reported["Total Invalid Tx"]) == 0
    latency_s = latency_ns.to_numpy() / 1e9
    mean_s = float(latency_s.mean())
    assert _seconds(reported["Average Latency"]) == pytest.approx(mean_s, abs=1e-6)
    assert _seconds(reported["Minimum Latency"]) == pytest.approx(latency_s.min(), abs=1e-6)
    assert _seconds(reported["Maximum Latency"]) == pytest.approx(latency_s.max(), abs=1e-6)
    # Without a warm-up the window is the whole load, so the run's own metric has the same value.
    estimate = run.summaries()["tx_latency_next_header_s"].estimates["mean"].value
    assert estimate == pytest.approx(mean_s, abs=1e-6)
    assert (reported["Connections"], reported["Rate"], reported["Size"]) == ("1", "200", "1024")
