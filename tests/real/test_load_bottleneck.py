"""The load test of a real server must name the resource that was exhausted first."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl
import psutil
import pytest

import chainmark as cm
import chainmark.api.loading
from chainmark.capacity.presence import takes_connections
from chainmark.capacity.tables import STEP_SCHEMA
from chainmark.capacity.watched import WATCH_SCHEMA
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.load_report import EndpointEntry, ExhaustedEntry, LoadReport
from chainmark.lab import loading
from chainmark.network.server_watch import BY_ADDRESS, ServerSources
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.real.postgres_server import PASSWORD, free_port, postgres
from tests.support import ATTEMPTS, wait_until
from tests.unit.cli.commands import chainmark as command

pytestmark = pytest.mark.quiet

SERVER = Path(__file__).parent / "servers" / "bounded.py"
PROFILE = """
system = "http"
sla = { p99_s = 0.025, min_requests = 1 }
steps = { longest_s = 1, warm_up_s = 1, cool_down_s = 0, recovery_longest_s = 0, drain_s = 5 }
search = { kinds = [] }
fixed = { times = 1, duration_s = 1, clients = { work = [1, 4, 16] } }

[[request]]
endpoint = "work"
path = "/work"
checks = [{ pointer = "/right", is = true }]
"""

# For servers that hold a place for 100 ms.
HELD = "sla.p99_s=0.15"


@contextmanager
def bounded(kind: str, *more: str) -> Iterator[tuple[str, int]]:
    """Run a server; return its address and its process."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, SERVER, kind, str(port), *more])
    try:
        wait_until(lambda: takes_connections(url), "the server listens")
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile with short steps, and a separate store."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    path = tmp_path / "work.toml"
    path.write_text(PROFILE, encoding="utf-8")
    return path


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore other load on this machine."""
    monkeypatch.setattr(chainmark.api.loading, "Tester", partial(loading.Tester, watching=None))


def _tested(
    profile: Path, url: str, sources: ServerSources = BY_ADDRESS, *more: str
) -> tuple[EndpointEntry, SealedRun]:
    result = cm.load(profile, url, sources=sources, settings=more)
    report = result.documents[0].result
    assert isinstance(report, LoadReport)
    run = next(run for run in _sealed(profile) if run.run_id == report.targets[0].run_id)
    return report.targets[0].endpoints[0], run


def _sealed(profile: Path) -> list[SealedRun]:
    return Store(profile.parent / "store").sealed()


def _exhausted(entry: EndpointEntry) -> ExhaustedEntry:
    (first_exhausted,) = entry.exhausted
    return first_exhausted


def test_the_cpu_of_a_busy_server_is_the_bottleneck(profile: Path) -> None:
    """The server has one core and is found by its address. CPU time of other processes on that core is not counted."""
    with bounded("cpu") as (url, _):
        for _ in range(ATTEMPTS):
            entry, run = _tested(profile, url)
            first_exhausted = _exhausted(entry)
            if first_exhausted.finding == "exhausted":
                break
            if all(step.reason == "waited" for step in entry.steps):
                pytest.skip("others had this machine's processors all the time")
    assert (first_exhausted.finding, first_exhausted.resource) == ("exhausted", "the server's CPU")
    assert "of 1 core from" in first_exhausted.sentence
    frame = run.events("server")
    assert dict(frame.schema) == dict(WATCH_SCHEMA)
    _is_aligned(frame, run)


def _is_aligned(frame: pl.DataFrame, run: SealedRun) -> None:
    """The second in each row must be the one in which the reading was taken."""
    steps = run.events("steps").select("step", "started_ns")
    assert set(STEP_SCHEMA) >= {"step", "started_ns"}
    inside = frame.drop_nulls("step").join(steps, on="step")
    assert set(inside["step"]) == set(steps["step"])
    into_ns = inside["time_ns"] - inside["started_ns"]
    assert (into_ns // 1_000_000_000 == inside["second"]).all()


@pytest.mark.usefixtures("unwatched")
def test_a_small_pool_is_the_bottleneck(profile: Path) -> None:
    with bounded("pool") as (url, pid):
        sources = ServerSources(pids=[pid], scrapes=[f"app={url}/metrics"])
        entry, run = _tested(profile, url, sources, HELD)
    first_exhausted = _exhausted(entry)
    assert (first_exhausted.finding, first_exhausted.resource) == ("exhausted", "the pool (`pool_active`)")
    assert "of 4) from" in first_exhausted.sentence
    assert "CPU " in first_exhausted.sentence
    assert (run.path / "raw" / "metrics" / "app.prom.zst").is_file()


@pytest.mark.usefixtures("unwatched")
def test_a_slow_disk_is_the_bottleneck(profile: Path, tmp_path: Path) -> None:
    with bounded("disk", str(tmp_path)) as (url, _):
        entry, _ = _tested(profile, url)
    if _exhausted(entry).finding in {"generator", "nothing"}:
        pytest.skip("this machine's disk keeps up with all that one core asks of it")
    assert (_exhausted(entry).resource or "").startswith("the disk"), entry.exhausted


@pytest.mark.usefixtures("unwatched")
def test_a_pool_of_real_postgresql_connections_is_found_and_its_password_never_shown(
    profile: Path, tmp_path: Path
) -> None:
    outputs = [tmp_path / f"load.{ending}" for ending in ("html", "md", "json", "xml")]
    options = [part for option, path in zip(("--html", "--md", "--json-file", "--junit"), outputs, strict=True)
               for part in (option, str(path))]  # fmt: skip
    with postgres() as dsn, bounded("postgres", dsn) as (url, _):
        result = command("load", str(profile), "--target", url, "--postgres", dsn, "--set", HELD, *options)
        wrong = dsn.replace(PASSWORD, "another-secret")
        with pytest.raises(EnvironmentFailure) as refused:
            command("load", str(profile), "--target", url, "--postgres", wrong)
    assert "another-secret" not in f"{refused.value.message} {refused.value.hint}"
    (run,) = _sealed(profile)
    report = LoadReport.model_validate_json((run.path / "raw" / loading.REPORT).read_bytes())
    entry = report.targets[0].endpoints[0]
    assert (_exhausted(entry).finding, _exhausted(entry).resource) == ("exhausted", "the connection pool of `bounded`")
    assert "of 4) from" in _exhausted(entry).sentence
    if entry.statements:
        assert entry.statements[0].text.startswith("select pg_sleep(")
        assert "a text of this request" not in (run.path / "raw" / loading.REPORT).read_text(encoding="utf-8")
    written = [*outputs, *(path for path in run.path.rglob("*") if path.is_file())]
    assert len(written) > len(outputs)
    assert not [path for path in written if PASSWORD.encode() in path.read_bytes()]
    assert PASSWORD not in result.output
    assert PASSWORD not in result.stderr


@pytest.mark.usefixtures("unwatched")
def test_no_resource_is_exhausted_and_an_unresponsive_metrics_page_is_counted(profile: Path) -> None:
    """The metrics are those of another, idle server, which exits after the first steps."""
    with bounded("idle") as (url, _), bounded("pool") as (other, pid):
        ended = threading.Timer(3.0, psutil.Process(pid).kill)
        ended.start()
        result = cm.load(profile, url, sources=ServerSources(scrapes=[f"app={other}/metrics"]))
        ended.join()
    report = result.documents[0].result
    assert isinstance(report, LoadReport)
    app = next(source for source in report.targets[0].sources if source.name == "app")
    assert app.read > 0
    assert app.missed > 0
    assert app.why
    first_exhausted = _exhausted(report.targets[0].endpoints[0])
    assert first_exhausted.finding == "nothing"
    assert "no monitored resource was exhausted; the fullest was" in first_exhausted.sentence


def test_an_unobservable_source_is_reported_before_any_request(profile: Path, tmp_path: Path) -> None:
    with bounded("idle") as (url, _):
        nowhere = f"http://127.0.0.1:{free_port()}/metrics"
        with pytest.raises(EnvironmentFailure, match="does not respond"):
            cm.load(profile, url, sources=ServerSources(scrapes=[nowhere]))
        with pytest.raises(EnvironmentFailure, match="does not return a page of metrics"):
            cm.load(profile, url, sources=ServerSources(scrapes=[f"{url}/work"]))
        with pytest.raises(UsageError, match="is not a cgroup v2 directory"):
            cm.load(profile, url, sources=ServerSources(cgroup=tmp_path))
        with pytest.raises(UsageError, match="no process with ID"):
            cm.load(profile, url, sources=ServerSources(pids=[2**22 + 1]))
        with pytest.raises(UsageError, match="not a valid connection string") as refused:
            cm.load(profile, url, sources=ServerSources(postgres="secret words"))
        assert "secret" not in str(refused.value)
        with pytest.raises(UsageError, match="can be monitored for one server only"):
            cm.load(profile, {"a": url, "b": url}, sources=ServerSources(scrapes=[nowhere]))
    assert _sealed(profile) == []
