"""A saturation test on real nodes: its runs, its document, and resuming after an interruption."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from chainmark.core.errors import ExitCode
from chainmark.core.manifest import Status
from chainmark.systems.cometbft.saturation.document import SaturationReport

from tests.results import result_in
from tests.support import ANYHOW, QUICK, Lab, changed, wait_until

SMALL = (
    "cometbft/saturation", "--version", "v1.0.1",
    "--set", "saturation.connections=[1, 2]", "--set", "saturation.rates=[100]",
    # The machine may be busy with other tests: these tests check loads and counts only.
    *changed(*ANYHOW, *QUICK),
)  # fmt: skip


def test_an_interrupted_sweep_resumes_where_it_stopped(lab: Lab, tmp_path: Path) -> None:
    """Two loads that four validators easily sustain. The sweep is interrupted during the second and resumed."""
    started = lab.start("saturation", *SMALL)
    wait_until(lambda: "run 2 of 2" in started.errors(), "the second load")
    started.process.send_signal(signal.SIGINT)
    ended = started.finish()
    assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stderr
    first = lab.store.sealed()
    assert len(first) == 1
    place = first[0].manifest.experiment
    assert place is not None
    assert f"--resume {place.id}" in ended.stderr
    assert lab.node_processes() == []

    document = tmp_path / "saturation.json"
    done = lab.run("saturation", *SMALL, "--resume", place.id, "--json-file", str(document))
    runs = lab.store.sealed()
    assert [run.run_id for run in runs][:1] == [first[0].run_id]
    assert len(runs) == 2
    assert all(run.manifest.status is Status.VALID for run in runs)
    assert "sustains every tested load" in " ".join(done.stdout.split())

    report = result_in(document.read_text(encoding="utf-8"), SaturationReport)
    (version,) = report.versions
    assert version.chosen.state == "lower bound"
    for cell in version.cells:
        (run,) = cell.runs
        # Three seconds of load, by the schedule.
        assert run.offered == cell.load_per_s * 3 == run.committed
        assert run.unsent == 0
        assert run.latency is not None
        assert run.latency.n == cell.load_per_s * 2
        assert run.pace is not None

    # Resuming a complete sweep runs nothing and gives the same document.
    again = lab.run("saturation", *SMALL, "--resume", place.id, "--json")
    assert json.loads(again.stdout) == json.loads(document.read_text(encoding="utf-8"))
    assert len(lab.store.sealed()) == 2
    other = lab.run("saturation", *SMALL, "--resume", place.id, "--seed", "7", code=2)
    assert "does not match: it differs by the seed 1 instead of 7" in other.stderr


def test_a_binary_search_skips_loads_whose_result_is_known(lab: Lab, tmp_path: Path) -> None:
    """The middle load is sustained, so the lower one need not be run."""
    document = tmp_path / "saturation.json"
    # A few seconds of load show little about the committed rate, so the tolerance is wide.
    settings = ("saturation.tolerance=0.9", "saturation.connections=[1]", "saturation.rates=[50, 100, 150]")
    halves = ("saturation.search=bisect", *settings)
    lab.run("saturation", *SMALL, *changed(*halves), "--json-file", str(document))
    (version,) = result_in(document.read_text(encoding="utf-8"), SaturationReport).versions
    assert [cell.load_per_s for cell in version.cells] == [100, 150]
    assert version.chosen.state == "lower bound"
    assert (version.chosen.low_per_s, version.chosen.rate_per_s) == (150, 150)
