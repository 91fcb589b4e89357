"""A real network, run by chainmark and observed by a real Prometheus: both must measure the same."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from chainmark.core.manifest import Status
from chainmark.core.times import NS
from chainmark.network.addresses import loopback_addresses
from chainmark.network.prometheus_api import LiveServer, Prometheus
from chainmark.store.sealed import SealedRun

from tests.machine import first_address, server_address, wait_until_calm
from tests.real import prometheus_server
from tests.real.load_servers import Reply, always, serving
from tests.support import ATTEMPTS, CALM_TIMEOUT_S, Lab, wait_until

EXPOSED_PORT = 9464
SECONDS, WARM_UP_S, RATE = 12, 3, 80
VERSION = "v1.0.1"


@dataclass
class Watched:
    """A run made by chainmark, its import from Prometheus, and the metrics pages exposed during the run."""

    own: SealedRun
    imported: SealedRun
    exposed: list[str]
    server: str


@functools.cache
def _place() -> str:
    """The address at which commands expose their metrics."""
    return f"{server_address()}:{EXPOSED_PORT}"


def _page() -> str | None:
    try:
        return httpx.get(f"http://{_place()}/metrics", headers=_ACCEPT, timeout=5, trust_env=False).text
    except httpx.HTTPError:
        return None


_ACCEPT = {"Accept": "application/openmetrics-text; version=1.0.0"}


def _utc(time_ns: int) -> str:
    """A time in UTC with microseconds, the finest resolution of the command line."""
    return str(pl.Series([time_ns // 1_000]).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")[0])


@pytest.fixture(scope="module")
def watched(shared_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    if prometheus_server.programs() is None:
        pytest.skip("no `prometheus` here: `make servers` fetches Debian's package")
    for attempt in range(1, ATTEMPTS + 1):
        with _watched(shared_lab, tmp_path_factory.mktemp("prometheus") / "data") as run_watched:
            # A Prometheus server that missed scrapes proves nothing about chainmark's measurement.
            if attempt == ATTEMPTS or run_watched.imported.manifest.status is Status.VALID:
                yield run_watched
                return
        for run in shared_lab.store.sealed():
            shared_lab.store.remove(run)
        wait_until_calm(CALM_TIMEOUT_S)


@contextmanager
def _watched(lab: Lab, folder: Path) -> Iterator[Watched]:
    """A run that Prometheus observes, and its import. The server is still running."""
    changes = {
        "network.validators": 2,
        "load.rate": RATE,
        "load.warm_up_s": WARM_UP_S,
        "load.duration_s": SECONDS,
        # Blocks at nearly the scrape interval would be seen at the same phase for most of the run.
        "node.config.consensus.timeout_commit": "300ms",
    }
    settings = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    nodes = {f"node{index}": f"{address}:26660" for index, address in enumerate(loopback_addresses(first_address(), 2))}
    with prometheus_server.running(folder, {**nodes, "chainmark": _place()}) as server:
        started = lab.start("run", "cometbft/demo", "--version", VERSION, *settings, "--expose", _place())
        pages: list[str] = []
        try:
            wait_until(lambda: started.process.poll() is not None or "offering" in started.errors(), "the load")
            wait_until(lambda: _retained(pages) or started.process.poll() is not None, "blocks")
        finally:
            ended = started.finish()
        assert ended.returncode in {0, 4}, ended.stderr
        own = lab.store.sealed()[0]
        due_ns = own.events("transactions")["due_ns"].to_numpy().min()
        begin_ns = int(due_ns) // NS * NS + WARM_UP_S * NS
        arguments = ["--from", _utc(begin_ns), "--duration", f"{SECONDS}s", "--as", VERSION, "--set", "blocks_min=5"]
        lab.run("ingest", "cometbft", server, *arguments, code=(0, 4))
        imported = next(run for run in lab.store.sealed() if run.run_id != own.run_id)
        yield Watched(own, imported, pages, server)


LOAD_PROFILE = """
system = "http"
sla = { p99_s = 10.0 }
steps = { duration_s = 2, longest_s = 2, warm_up_s = 0.1, cool_down_s = 0 }
search = { kinds = ["clients"], clients_first = 2, clients_last = 2, times = 1 }
fixed = { times = 0, duration_s = 1, shares = [0.5] }

[[request]]
endpoint = "work"
path = "/work"
"""


def test_a_load_test_can_be_scraped(lab: Lab, tmp_path: Path) -> None:
    profile = tmp_path / "work.toml"
    profile.write_text(LOAD_PROFILE, encoding="utf-8")
    counts: list[float] = []

    def answered() -> bool:
        page = _page()
        if page:
            counts.append(_value(page, "chainmark_load_accepted_total"))
        return any(counts) or started.process.poll() is not None

    with serving(always(Reply(after_s=0.005))) as server:
        started = lab.start("load", str(profile), "--target", server.url, "--expose", _place())
        try:
            wait_until(answered, "answers")
        finally:
            ended = started.finish()
    # 3 or 4: the machine was busy, which does not matter for this test.
    assert ended.returncode in {0, 3, 4}, ended.stderr
    assert max(counts) > 0


def _retained(pages: list[str]) -> bool:
    """Keep the page; return whether it shows committed transactions."""
    page = _page()
    if page:
        pages.append(page)
    return page is not None and _value(page, "chainmark_committed_transactions_total") > 0


def _value(page: str, name: str) -> float:
    families = text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples]
    return max((sample.value for sample in samples if sample.name == name), default=0.0)


def test_the_import_is_valid_and_complete(watched: Watched) -> None:
    assert watched.imported.manifest.status is Status.VALID
    assert watched.imported.samples("host_second")["host"].unique().sort().to_list() == ["node0", "node1"]
    assert [note for note in watched.imported.manifest.warnings if "node_load1" not in note] == []


def test_every_imported_block_equals_the_observed_block(watched: Watched) -> None:
    """Size and transactions of each height are equal in the gauges of Prometheus and in the blocks themselves."""
    own = watched.own.events("blocks").select("height", "transactions", size="size_bytes", rounds="round")
    frame = watched.imported.samples("block").drop_nulls("block_transactions")
    both = frame.join(own, on="height")
    assert both.height == frame.height >= 5
    assert both["block_transactions"].to_list() == both["transactions"].cast(pl.Float64).to_list()
    assert both["block_size_bytes"].to_list() == both["size"].cast(pl.Float64).to_list()


@pytest.mark.parametrize(
    ("metric", "within", "floor"),
    [
        ("node_rss_bytes", 0.1, 0.0),
        ("node_cpu_cores", 0.35, 0.02),
        ("node_peers", 0.0, 0.0),
        ("node_goroutines", 0.1, 2.0),
        ("node_sent_bytes_per_s", 0.35, 0.0),
        ("mempool_mean_transactions", 0.5, 20.0),
        ("committed_per_s", 0.25, 0.0),
        ("block_interval_s", 0.25, 0.0),
    ],
)
def test_metrics_measured_by_both_agree(watched: Watched, metric: str, within: float, floor: float) -> None:
    """Two scrapers with different phases over the same 12 seconds. A valid import may miss 2.5 s at either end."""
    left = watched.own.summaries()[metric].distribution
    right = watched.imported.summaries()[metric].distribution
    assert left is not None
    assert right is not None
    assert right.mean == pytest.approx(left.mean, rel=within, abs=floor)


def test_cpu_per_transaction_agrees_at_the_measured_speed(watched: Watched) -> None:
    """Prometheus does not know the processors' speed: its CPU time is the one counted, not the one at a speed of 1."""
    corrected, speed = (
        watched.own.summaries()[metric].distribution for metric in ("node_cpu_per_transaction_s", "machine_speed")
    )
    counted = watched.imported.summaries()["node_cpu_per_transaction_s"].distribution
    assert corrected is not None
    assert speed is not None
    assert counted is not None
    assert counted.mean * speed.mean == pytest.approx(corrected.mean, rel=0.35)


def test_the_running_experiment_could_be_scraped(watched: Watched) -> None:
    page = watched.exposed[-1]
    assert page.endswith("# EOF\n")
    sent, accepted = _value(page, "chainmark_load_sent_total"), _value(page, "chainmark_load_accepted_total")
    assert _value(page, "chainmark_load_offered_total") >= sent >= accepted > 0
    assert 0 < _value(page, "chainmark_committed_transactions_total") <= sent
    assert _value(page, "chainmark_node_height_blocks") >= 2
    assert f'chainmark_stage_info{{stage="offering {RATE} tx/s"}} 1' in page
    assert f'chainmark_run_info{{side="subject",version="{VERSION}"}} 1' in page
    assert _page() is None, "the metrics page is still served after the command ended"


def test_prometheus_itself_scraped_the_experiment(watched: Watched) -> None:
    """Prometheus' server negotiates OpenMetrics. The stored values end at the counts of the run."""
    begin_ns, end_ns = (
        int(watched.own.events("transactions")["due_ns"].to_numpy().min()) + off * NS for off in (-60, 60)
    )
    with Prometheus(LiveServer(watched.server)) as reader:
        (sent,) = reader.samples('chainmark_load_sent_total{job="chainmark"}', begin_ns, end_ns)
    offered = watched.own.manifest.counts["transactions"]["offered"]
    assert 0 < sent.values[-1] <= offered
    assert sent.values == sorted(sent.values)


def test_raw_responses_are_stored(watched: Watched) -> None:
    path = Path(watched.imported.path) / "raw" / "prometheus"
    assert len(list(path.glob("*.json.zst"))) >= 3
    assert watched.imported.verify() == []
