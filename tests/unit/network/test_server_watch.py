"""Readings of a server: counters and their rates, limits by name, control groups, and statements without values."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from chainmark.core.errors import UsageError
from chainmark.network.server_postgres import without_values
from chainmark.network.server_scrape import MetricsPage, page_resources, parse_scrape, without_user
from chainmark.network.server_series import SERVER_SCHEMA, Name, Readings, Resource, SeriesRecorder, Watched
from chainmark.network.server_usage import (
    CgroupUsage,
    DiskUsage,
    NoReading,
    ProcessUsage,
    cgroup_limits,
    process_limits,
)
from chainmark.network.server_watch import BY_ADDRESS, ServerSources, ServerWatch

from tests.support import wait_until

NS = 1_000_000_000
BUSY = "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end: pass"


def _series(name: Name, *values: float) -> Readings:
    """One reading per second."""
    recorder = SeriesRecorder()
    for second, value in enumerate(values):
        recorder.add(second * NS, name, value)
    (readings,) = recorder.series()
    return readings


def test_a_counter_is_reported_as_a_rate() -> None:
    readings = _series(Name("app", "requests_total", "/s", "counter"), 1000.0, 1010.0, 1030.0, 1060.0)
    assert readings.mean(0, 3 * NS) == pytest.approx(20.0)
    assert readings.mean(1.5 * NS, 2.5 * NS) == pytest.approx(25.0)
    assert readings.highest(0, 3 * NS) == pytest.approx(30.0)
    assert readings.stored_points()[1].tolist() == [10.0, 20.0, 30.0]


def test_counts_after_a_counter_reset_are_retained() -> None:
    readings = _series(Name("app", "requests_total", "/s", "counter"), 1000.0, 1010.0, 5.0, 15.0)
    assert readings.stored_points()[1].tolist() == [10.0, 5.0, 10.0]


def test_an_interval_without_readings_has_no_mean() -> None:
    gauge = _series(Name("app", "used"), 1.0, 3.0)
    counter = _series(Name("app", "used_total", "/s", "counter"), 1.0, 3.0)
    assert (gauge.mean(5 * NS, 9 * NS), gauge.highest(5 * NS, 9 * NS)) == (None, None)
    assert counter.mean(5 * NS, 9 * NS) is None
    # The readings cover only a quarter of this time.
    assert counter.mean(0, 4 * NS) is None


def test_all_readings_form_one_table_with_a_fixed_schema() -> None:
    watched = Watched(
        series=(_series(Name("app", "used"), 1.0, 2.0), _series(Name("app", "all", "/s", "counter"), 0, 5))
    )
    frame = watched.frame()
    assert dict(frame.schema) == SERVER_SCHEMA
    assert frame.select("series", "value").rows() == [("used", 1.0), ("all", 5.0), ("used", 2.0)]
    assert Watched().frame().is_empty()
    assert dict(Watched().frame().schema) == SERVER_SCHEMA


@pytest.mark.parametrize(
    ("used", "limit"),
    [
        ('hikaricp_connections_active{pool="db"}', 'hikaricp_connections_max{pool="db"}'),
        ('go_sql_in_use_connections{db_name="app"}', 'go_sql_max_open_connections{db_name="app"}'),
        ("process_open_fds", "process_max_fds"),
        ("tomcat_threads_busy_threads", "tomcat_threads_config_max_threads"),
        ('jvm_memory_used_bytes{area="heap",id="G1 Old Gen"}', 'jvm_memory_max_bytes{area="heap",id="G1 Old Gen"}'),
        ('r2dbc_pool_acquired_connections{name="a"}', "r2dbc_pool_max_allocated_connections"),
        ("pool_active", "pool_max"),
    ],
)
def test_pairs_of_gauges_are_recognised_by_name(used: str, limit: str) -> None:
    others = ("requests_active_seconds", "unrelated_max")
    read = {name: _series(Name("app", name), 3.0) for name in (used, limit, *others)}
    read[limit] = _series(Name("app", limit), 4.0)
    limits = {resource.used.name.series: resource.limit_over(0, NS) for resource in page_resources(read)}
    assert limits == {used: 4.0, **dict.fromkeys(others)}


def test_a_heap_space_that_is_collected_when_full_has_no_limit() -> None:
    eden = '{area="heap",id="G1 Eden Space"}'
    read = {
        name: _series(Name("app", name), 3.0)
        for name in (f"jvm_memory_used_bytes{eden}", f"jvm_memory_max_bytes{eden}")
    }
    assert [resource.limit for resource in page_resources(read)] == [None, None]


def test_a_negative_limit_means_no_limit() -> None:
    """A JVM reports it for memory areas without a maximum."""
    used = _series(Name("app", "jvm_memory_used_bytes"), 3.0)
    assert Resource("memory", used, _series(Name("app", "jvm_memory_max_bytes"), -1.0)).limit_over(0, NS) is None


def test_processor_time_of_a_page_is_limited_by_the_cores_that_it_reports() -> None:
    cpu = _series(Name("app", "process_cpu_seconds_total", "cores", "counter"), 0.0, 1.5)
    read = {"process_cpu_seconds_total": cpu, "go_sched_gomaxprocs_threads": _series(Name("app", "go_…"), 2.0, 2.0)}
    resource = next(resource for resource in page_resources(read) if resource.is_cpu)
    assert (resource.label, resource.limit_over(0, NS)) == ("the server's CPU", 2.0)


def test_page_names_are_parsed() -> None:
    assert parse_scrape("http://10.0.0.1:9100/metrics", ()) == ("10.0.0.1-9100", "http://10.0.0.1:9100/metrics")
    assert parse_scrape("pool=http://h/metrics?a=b", ()) == ("pool", "http://h/metrics?a=b")
    for wrong in ("nothing", "ftp://h/metrics", "a b=http://h/m", "http://"):
        with pytest.raises(UsageError):
            parse_scrape(wrong, ())
    with pytest.raises(UsageError, match="two sources"):
        parse_scrape("pool=http://h/metrics", {"pool"})
    with pytest.raises(UsageError) as refused:
        parse_scrape("ftp://me:hidden-words@h/metrics", ())
    assert "hidden-words" not in refused.value.message
    assert without_user("http://me:hidden-words@h/m") == "http://h/m"


PAGE = b"""# TYPE requests counter
requests_total{code="200"} 7
# TYPE latency_seconds histogram
latency_seconds_bucket{le="1"} 3
latency_seconds_bucket{le="+Inf"} 4
latency_seconds_sum 2.5
latency_seconds_count 4
# TYPE pool_pending gauge
pool_pending 3
pool_active NaN
"""


@pytest.fixture
def page() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as its class calls it
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_is_stored_and_read_back_without_buckets(page: str, tmp_path: Path) -> None:
    metrics_page = MetricsPage("app", page.replace("//", "//me:hidden-words@"), tmp_path)
    recorder = SeriesRecorder()
    metrics_page.read(recorder)
    metrics_page.close()
    assert recorder.series() == []
    metrics_page.parse(recorder)
    names = {each.name.series: each.name.sort for each in recorder.series()}
    assert names == {
        'requests_total{code="200"}': "counter",
        "latency_seconds_sum": "counter",
        "latency_seconds_count": "counter",
        "pool_pending": "waiting",
    }
    assert "hidden-words" not in metrics_page.what
    assert b"hidden-words" not in (tmp_path / "app.prom.zst").read_bytes()


def test_a_process_is_watched_with_its_children() -> None:
    starts = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"
    with subprocess.Popen([sys.executable, "-c", starts], start_new_session=True) as process:
        usage, recorder = ProcessUsage([process.pid]), SeriesRecorder()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            usage.glance()
            usage.read(recorder)
            cpu = next((readings for readings in recorder.series() if readings.name.series == "cpu"), None)
            if cpu is not None and cpu.values[-1] > 0.1:
                break
            time.sleep(0.1)
        os.killpg(process.pid, 9)
        process.wait()
        read = {readings.name.series: readings for readings in recorder.series()}
        assert read["cpu"].values[-1] > 0.1
        assert np.all(np.diff(read["cpu"].values) >= 0)
        assert {"memory", "open files", "threads", "disk written", "threads waiting for the disk"} <= read.keys()
        resources = {resource.label: resource for resource in usage.resources(recorder.series())}
        assert resources["the server's CPU"].limit == len(os.sched_getaffinity(0))
        # The kernel ends the child processes at a later time.
        wait_until(lambda: _is_silent(usage, recorder), "the process and what it started have ended")


def _is_silent(usage: ProcessUsage, recorder: SeriesRecorder) -> bool:
    try:
        usage.read(recorder)
    except NoReading as silent:
        assert "have ended" in str(silent)  # noqa: PT017 - it is asked again until it says so
        return True
    return False


def test_the_limits_of_a_process_follow_its_affinity() -> None:
    (first, *_) = sorted(os.sched_getaffinity(0))
    code = f"import os, sys\nos.sched_setaffinity(0, [{first}])\nprint('ready', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        limits = process_limits(process.pid)
        process.communicate(b"")
    assert limits.cores == 1.0
    assert limits.files is not None
    assert limits.memory_bytes is not None


def _group(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in {"cgroup.procs": f"{os.getpid()}\n", "cpu.stat": "usage_usec 5000000\n", **files}.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="ascii")
    return folder


def test_a_control_group_has_the_limits_of_its_parents(tmp_path: Path) -> None:
    above = _group(tmp_path / "above", cpu_max="150000 100000\n", memory_max="max\n", pids_max="64\n")
    stat = (
        "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n"
    )
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
    folder = _group(
        above / "below", cpu_max="max 100000\n", memory_max="1000\n", memory_current="950\n", io_stat=stat,
        io_pressure=pressure, pids_current="8\n",
    )  # fmt: skip
    usage, recorder = CgroupUsage(folder), SeriesRecorder()
    usage.read(recorder)
    (folder / "cpu.stat").write_text("usage_usec 6500000\n", encoding="ascii")
    usage.read(recorder)
    read = {readings.name.series: readings for readings in recorder.series()}
    assert read["cpu"].values.tolist() == [0.0, 1.5]
    assert read["memory"].values.tolist() == [950.0, 950.0]
    assert {"disk read", "disk written", "time waiting for the disk", "network received", "threads"} <= read.keys()
    limits = {resource.label: resource.limit for resource in usage.resources(recorder.series())}
    assert limits["the server's CPU"] == 1.5
    assert limits["the server's memory"] == 1000.0
    assert limits["the server's threads"] == 64.0
    (folder / "cpu.stat").unlink()
    with pytest.raises(NoReading):
        usage.read(recorder)


def test_a_control_group_may_use_the_cores_of_its_processes(tmp_path: Path) -> None:
    """A server that binds itself to one core has one core, even if its group allows more."""
    (first, *_) = sorted(os.sched_getaffinity(0))
    code = f"import os, sys\nos.sched_setaffinity(0, [{first}])\nprint('ready', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        group = _group(tmp_path / "group", cgroup_procs="", cpu_max="max 100000\n")
        inner = _group(group / "inner", cgroup_procs=f"{process.pid}\n")
        bound = [cgroup_limits(folder) for folder in (group, inner)]
        _group(group / "other")
        free = cgroup_limits(group)
        process.communicate(b"")
    assert [limits.cores for limits in bound] == [1.0, 1.0]
    assert free.cores == len(os.sched_getaffinity(0))


def test_an_invalid_control_group_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a cgroup v2 directory"):
        CgroupUsage(tmp_path)


def test_disk_utilisation_is_a_fraction_of_time() -> None:
    usage, recorder = DiskUsage(), SeriesRecorder()
    usage.read(recorder)
    usage.read(recorder)
    assert all(
        resource.limit == 1.0 and resource.used.name.unit == "fraction"
        for resource in usage.resources(recorder.series())
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("select * from t where id = $1", "select * from t where id = $1"),
        ("alter role app password 'a''b'", "alter role app password ?"),
        ("do $x$ begin perform 'a'; end $x$", "do ?"),
        ("select E'it\\'s',\n   2", "select ?, 2"),
        ("select " + "a, " * 200, ("select " + "a, " * 200)[:199] + "…"),
    ],
)
def test_statements_are_reported_without_literals(text: str, wanted: str) -> None:
    assert without_values(text) == wanted


def test_a_server_in_the_generators_process_is_not_watched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with ServerWatch(BY_ADDRESS, url) as watch:
            watched = watch.finish(tmp_path / "metrics")
    assert watched.sources == ()
    assert not (tmp_path / "metrics").exists()


def test_a_watch_reports_its_sources_and_leaves_no_thread(page: str, tmp_path: Path) -> None:
    sources = ServerSources(pids=[os.getpid()], scrapes=[f"app={page}"])
    with ServerWatch(sources, "http://192.0.2.1") as watch:
        watched = watch.finish(tmp_path / "metrics")
    assert {source.name: source.missed for source in watched.sources} == {"process": 0, "machine": 0, "app": 0}
    assert (tmp_path / "metrics" / "app.prom.zst").is_file()
    assert any(resource.label == "the server's CPU" for resource in watched.resources)


def test_the_connection_string_is_not_shown() -> None:
    assert "hidden-words" not in repr(ServerSources(postgres="postgresql://me:hidden-words@h/db"))


@pytest.mark.parametrize("text", ["tester:passw0rd@host:9090/metrics", "page=ftp://tester:pa@passw0rd@host/metrics"])
def test_an_invalid_page_is_refused_without_showing_its_password(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_scrape(text, ())
    assert "passw0rd" not in refused.value.message


def test_the_name_of_a_page_contains_no_part_of_its_password() -> None:
    assert without_user("http://tester:pa@ss@host:9090/metrics?a=b@c") == "http://host:9090/metrics?a=b@c"
