"""Imports from a real Prometheus server: known samples are read exactly, and errors are reported."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest
import zstandard
from typer.testing import Result

from chainmark.compare import compare as compare_runs
from chainmark.core.comparison import Outcome
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Status
from chainmark.core.times import NS
from chainmark.core.verdict import Verdict
from chainmark.network.prometheus_api import LiveServer, Prometheus, ServerError, StoredResponses, read_recorded
from chainmark.stats.extrapolated_rate import extrapolated_rate
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.real import prometheus_server
from tests.unit.cli.commands import chainmark

BEGIN_S = 1_767_261_600  # 2026-01-01T10:00:00Z
SECONDS = 120
NODES = ("node0", "node1", "node2")
BLOCK_S, BLOCK_TXS, TX_BYTES = 1.25, 50, 1_024
MIB = 1 << 20
# A long counter, for ranges with more points than a server returns at once.
LONG_S = 25_000
LONG_STEP_S = 2


def _height(time_s: float) -> int:
    return 100 + math.floor(time_s / BLOCK_S)


def _lines() -> Iterator[str]:
    """Three nodes for four minutes, scraped every second at different phases; node 2 restarts after 90 s."""
    samples: dict[str, list[str]] = {}
    for index, node in enumerate(NODES):
        labels = f'job="{node}",instance="10.0.0.{index}:26660",chain_id="known",version="v1.0.1"'
        plain = f'job="{node}",instance="10.0.0.{index}:26660"'
        namespace = "tendermint" if index == 1 else "cometbft"
        for second in range(-120, SECONDS + 30):
            time_s = second + 0.2 * index
            height = _height(time_s)
            restarted = index == 2 and time_s >= 90
            values = {
                f"{namespace}_consensus_height{{{labels}}}": height + 1,
                f"{namespace}_consensus_latest_block_height{{{labels}}}": height,
                f"{namespace}_consensus_total_txs{{{labels}}}": BLOCK_TXS * (height - (172 if restarted else 0)),
                f"{namespace}_consensus_num_txs{{{labels}}}": BLOCK_TXS,
                f"{namespace}_consensus_block_size_bytes{{{labels}}}": BLOCK_TXS * TX_BYTES + height,
                f"{namespace}_consensus_rounds{{{labels}}}": 1 if height % 20 == 0 else 0,
                f"{namespace}_mempool_size{{{labels}}}": 10 * index + second % 7,
                f"{namespace}_p2p_peers{{{labels}}}": 2,
                f'{namespace}_p2p_message_send_bytes_total{{{labels},message_type="a"}}': 1_000 * (second + 200),
                f'{namespace}_p2p_message_send_bytes_total{{{labels},message_type="b"}}': 500 * (second + 200),
                f"process_resident_memory_bytes{{{plain}}}": (100 + index) * MIB,
                f"process_cpu_seconds_total{{{plain}}}": 0.25 * (second + 200),
                f"process_start_time_seconds{{{plain}}}": 5_000 if restarted else 1_000,
                f'node_load1{{job="{node}",instance="10.0.0.{index}:9100"}}': 0.5 * index,
            }
            if namespace == "tendermint":  # older releases may not report it
                del values[f"{namespace}_consensus_latest_block_height{{{labels}}}"]
            for name, value in values.items():
                samples.setdefault(name, []).append(f"{name} {value} {BEGIN_S + time_s:.1f}")
    for second in range(0, LONG_S, LONG_STEP_S):
        samples.setdefault("long", []).append(f"long_seconds {second} {BEGIN_S + second}")
    # The format requires all samples of a family to be adjacent.
    for _, lines in sorted(samples.items()):
        yield from lines


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if prometheus_server.programs() is None:
        pytest.skip("no `prometheus` and `promtool` here: `make servers` fetches Debian's package")
    folder = tmp_path_factory.mktemp("prometheus") / "data"
    prometheus_server.fill(folder, _lines())
    with prometheus_server.running(folder) as url:
        yield url


@dataclass
class Here:
    """Runs commands in this process, with a separate store: a process per command would take most of the time."""

    store: Store

    def run(self, *arguments: str, code: int = 0) -> Result:
        """Run a command to its end. An error that it would print is raised."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CHAINMARK_STORE", str(self.store.root))
            result = chainmark(*arguments)
        assert result.exit_code == code, result.output
        return result


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(Store(tmp_path / "store"))


@dataclass
class Imported:
    """A run, and the result of its import."""

    run: SealedRun
    here: Here
    arguments: tuple[str, ...]


@pytest.fixture(scope="module")
def imported(server: str, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """The first 80 s, without any fault."""
    arguments = ("ingest", "cometbft", server, "--from", "2026-01-01T10:00:00Z", "--duration", "80s", "--as", "v1.0.1")
    own = Here(Store(tmp_path_factory.mktemp("imported") / "store"))
    output = own.run(*arguments).stdout
    assert "gates failed" in output
    return Imported(own.store.sealed()[0], own, arguments)


def test_every_imported_metric_equals_the_written_values(imported: Imported) -> None:
    run = imported.run
    assert run.manifest.status is Status.VALID
    assert run.verify() == []
    hosts = run.samples("host_second")
    assert hosts["host"].unique().sort().to_list() == list(NODES)
    assert hosts.height == 3 * 80
    for index, node in enumerate(NODES):
        own = hosts.filter(pl.col("host") == node)
        assert own["node_mempool_transactions"].to_list() == [10 * index + second % 7 for second in range(80)]
        assert own["node_rss_bytes"].unique().to_list() == [(100 + index) * MIB]
        assert own["node_peers"].unique().to_list() == [2]
        assert np.allclose(own["node_cpu_cores"].to_numpy(), 0.25, rtol=1e-9)
        assert np.allclose(own["node_sent_bytes_per_s"].to_numpy(), 1_500, rtol=1e-9)
        assert own["node_disk_written_bytes_per_s"].null_count() == 80
    per_transaction_s = run.samples("host")["node_cpu_per_transaction_s"]
    assert np.allclose(per_transaction_s.to_numpy(), 0.25 * BLOCK_S / BLOCK_TXS, rtol=0.02)
    seconds = run.samples("second")
    assert seconds["mempool_mean_transactions"].to_list() == [10 + second % 7 for second in range(80)]
    assert seconds["mempool_max_transactions"].to_list() == [20 + second % 7 for second in range(80)]
    assert seconds["machine_load1"].to_list() == [0.5] * 80
    assert seconds["committed_per_s"].mean() == pytest.approx(BLOCK_TXS / BLOCK_S, rel=0.02)


def test_the_imported_blocks_are_the_committed_blocks(imported: Imported) -> None:
    blocks = imported.run.samples("block")
    first, last = _height(0), _height(80)
    assert blocks["height"].to_list() == list(range(first + 1, last + 1)) or blocks["height"][0] in {first, first + 1}
    assert blocks["block_interval_s"].mean() == pytest.approx(BLOCK_S, abs=0.2 / blocks.height * 2)
    assert blocks["block_transactions"].drop_nulls().unique().to_list() == [BLOCK_TXS]
    sizes = blocks.drop_nulls("block_size_bytes")
    assert sizes.height == blocks.height, "with three phases, a scrape comes before each next block"
    assert (sizes["block_size_bytes"] - sizes["height"]).unique().to_list() == [BLOCK_TXS * TX_BYTES]
    rounds = blocks.filter(pl.col("height") % 20 == 0)["block_extra_rounds"].unique().to_list()
    assert rounds == [1.0]
    assert blocks["block_extra_rounds"].sum() == sum(height % 20 == 0 for height in blocks["height"])


def test_metrics_that_prometheus_does_not_export_have_no_data(imported: Imported) -> None:
    summaries = imported.run.summaries()
    for metric in ("tx_latency_s", "tx_committed_share", "start_up_s", "block_missing_votes"):
        assert metric not in summaries or summaries[metric].distribution is None
    assert summaries["node_rss_bytes"].distribution is not None


def test_the_same_range_makes_the_same_run(imported: Imported) -> None:
    assert "already imported" in imported.here.run(*imported.arguments).stdout
    assert len(imported.here.store.sealed()) == 1


def test_a_run_is_reproduced_from_its_stored_responses(imported: Imported, here: Here) -> None:
    here.run("ingest", "cometbft", str(imported.run.path / "raw" / "prometheus"))
    again = here.store.sealed()[0]
    assert again.run_id == imported.run.run_id
    assert (again.path / "SEALED").read_bytes() == (imported.run.path / "SEALED").read_bytes()


def test_a_partial_response_makes_the_run_invalid(imported: Imported, here: Here, tmp_path: Path) -> None:
    """Storage backends report omitted data in a warning."""
    path = tmp_path / "prometheus"
    shutil.copytree(imported.run.path / "raw" / "prometheus", path)
    first = path / "0001.json.zst"
    content = read_recorded(first)
    content["answer"]["warnings"] = ["store-3 did not respond"]
    first.write_bytes(zstandard.compress(json.dumps(content).encode()))
    output = here.run("ingest", "cometbft", str(path), code=4).stdout
    assert "the server's responses were complete: store-3 did not respond" in " ".join(output.split())


def test_responses_that_are_not_stored_are_not_invented(imported: Imported, here: Here) -> None:
    folder = str(imported.run.path / "raw" / "prometheus")
    with pytest.raises(UsageError, match="do not include the query"):
        here.run("ingest", "cometbft", folder, "--set", 'select=chain_id="other"')


def test_rates_over_20_s_equal_the_servers_own(server: str, imported: Imported) -> None:
    """The QA's plots use `rate(…[20s])*60`, including over the restart of node 2."""
    begin_ns, end_ns = BEGIN_S * NS, (BEGIN_S + SECONDS) * NS
    for expression in ("cometbft_consensus_height", "cometbft_consensus_total_txs"):
        with Prometheus(LiveServer(server)) as reader:
            theirs = reader.query_range(f"rate({expression}[20s])", begin_ns, end_ns, NS)
            raw = reader.samples(expression, begin_ns - 20 * NS, end_ns)
        assert len(theirs) == len(raw) == 2
        for series, samples in zip(theirs, raw, strict=True):
            ours = extrapolated_rate(
                np.array(samples.times_ns), np.array(samples.values), np.array(series.times_ns), 20 * NS
            )
            assert np.allclose(ours, series.values, rtol=1e-12)
    rates = imported.run.events("rates")
    assert rates["host"].n_unique() == 3
    assert rates["blocks_per_minute"].mean() == pytest.approx(60 / BLOCK_S, rel=0.02)


def test_a_restarted_node_makes_the_run_invalid(server: str, here: Here) -> None:
    result = here.run("ingest", "cometbft", server, "--from", "2026-01-01T10:00:00Z", "--to", "2026-01-01T10:02:00Z",
                   "--as", "v1.0.1", code=4)  # fmt: skip
    assert "no node restarted: node2" in " ".join(result.stdout.split())
    run = here.store.sealed()[0]
    assert [incident.what for incident in run.manifest.incidents] == ["node2 restarted"]
    # The transaction counter restarted at zero. The rate must not become negative.
    assert run.samples("second")["committed_per_s"].drop_nulls().to_numpy().min() >= 0


def test_a_range_with_missing_scrapes_is_invalid_and_states_where(server: str, here: Here) -> None:
    result = here.run("ingest", "cometbft", server, "--from", "2026-01-01T09:57:00Z", "--duration", "90s", "--as", "v1",
                   code=4)  # fmt: skip
    output = " ".join(result.stdout.split())
    assert "every node was scraped throughout" in output
    assert "node0 was not scraped for 60.0 s" in output


def test_long_ranges_are_queried_in_parts(server: str) -> None:
    """Prometheus rejects more than 11,000 points per query. No sample may be lost or duplicated at the boundaries."""
    begin_ns, end_ns = BEGIN_S * NS, (BEGIN_S + LONG_S) * NS
    whole = {"query": "long_seconds", "start": str(BEGIN_S), "end": str(BEGIN_S + LONG_S), "step": "1"}
    refused = httpx.get(f"{server}/api/v1/query_range", params=whole, trust_env=False).json()
    assert "11,000" in refused["error"], "the range is too short for this test"
    with Prometheus(LiveServer(server)) as reader:
        (raw,) = reader.samples("long_seconds", begin_ns, end_ns)
        (stepped,) = reader.query_range("long_seconds", begin_ns, end_ns, NS)
    assert raw.values == [float(second) for second in range(0, LONG_S, LONG_STEP_S)]
    assert raw.times_ns == [begin_ns + int(value) * NS for value in raw.values]
    assert stepped.values == [float(second // LONG_STEP_S * LONG_STEP_S) for second in range(LONG_S)]


def test_the_servers_own_errors_are_reported(server: str) -> None:
    with Prometheus(LiveServer(server)) as reader, pytest.raises(ServerError, match="bad_data") as caught:
        reader.samples("no{selector", BEGIN_S * NS, (BEGIN_S + 1) * NS)
    assert server in caught.value.message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--from", "2020-01-01T00:00:00Z", "--duration", "90s"), "has no consensus height of CometBFT"),
        ((), "no time range was given"),
        (("--exclude", "node2"), "`--exclude` has no effect on the import of"),
        (("--from", "2026-01-01T10:00:00Z"), "requires two of"),
        (
            ("--from", "2026-01-01T10:00:00Z", "--duration", "80s", "--set", "host_label=chain_id"),
            "does not distinguish",
        ),
        (
            ("--from", "2026-01-01T10:00:00Z", "--duration", "80s", "--set", "hostlabel=job"),
            "did you mean `host_label`",
        ),
    ],
)
def test_mistakes_are_reported(server: str, here: Here, arguments: tuple[str, ...], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        here.run("ingest", "cometbft", server, *arguments, "--as", "v1.0.1")
    assert expected in f"{caught.value.message} {caught.value.hint}"


def test_an_unreachable_prometheus_server_is_reported(here: Here) -> None:
    arguments_of_a_window = ("--from", "2026-01-01T10:00:00Z", "--duration", "80s", "--as", "v1.0.1")
    with pytest.raises(EnvironmentFailure, match="cannot be queried"):
        here.run("ingest", "cometbft", "http://127.21.250.1:9", *arguments_of_a_window)


def test_the_version_must_be_given(server: str, here: Here) -> None:
    with pytest.raises(UsageError) as caught:
        here.run("ingest", "cometbft", server, "--from", "2026-01-01T10:00:00Z", "--duration", "80s")
    assert "--as v1.0.1" in str(caught.value.hint)


def test_the_servers_grid_can_be_used_instead(server: str, here: Here, imported: Imported) -> None:
    """With a step of 1 s the values are those of the scrapes, moved to the grid: equal means except at the edges."""
    here.run(*imported.arguments, "--set", "step_s=1")
    stepped, own = here.store.sealed()[0].summaries(), imported.run.summaries()
    for metric in ("mempool_mean_transactions", "node_rss_bytes", "committed_per_s"):
        left, right = stepped[metric].distribution, own[metric].distribution
        assert left is not None
        assert right is not None
        assert left.mean == pytest.approx(right.mean, rel=0.02)


def test_two_imports_can_be_compared(here: Here, imported: Imported) -> None:
    """The same data under two versions are equal. Metrics without data on either side are reported as such."""
    here.run(*imported.arguments[:-1], "v0.38.17")
    wrong = "the series of node0, node1 and node2 are labelled version v1.0.1, not v0.38.17"
    assert here.store.sealed()[0].manifest.contradictions == [wrong]
    assert imported.run.manifest.contradictions == []
    compared = compare_runs([imported.run], here.store.sealed(), history=[], tool_version="0")
    assert compared.verdict is not Verdict.INVALID
    assert compared.caveats.sentences == (wrong,)
    outcomes = {judgement.metric_id: judgement for judgement in compared.judgements}
    assert outcomes["tx_latency_s"].outcome is Outcome.NO_DATA
    assert outcomes["node_rss_bytes"].outcome is not Outcome.NO_DATA


def test_a_reader_of_stored_responses_rejects_other_files(tmp_path: Path) -> None:
    (tmp_path / "0001.json.zst").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="does not contain a response"):
        StoredResponses(tmp_path)
