"""From the tail of the latency to single transactions, and the details of uncommitted ones."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import chainmark as cm
from chainmark.core.comparison import Comparison
from chainmark.core.errors import UsageError
from chainmark.core.manifest import HostFacts, Manifest, Status, Subject
from chainmark.core.progress import Silent
from chainmark.stats.summarise import summarise
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.cometbft import SYSTEM
from chainmark.systems.cometbft.ingest import ChainReading, balance, collect
from chainmark.systems.cometbft.rpc import RpcClient
from chainmark.trails.followed import Tails
from chainmark.trails.trace import SlowestTraces, Trace

from tests.unit.cli.commands import chainmark
from tests.unit.serve.serving import served
from tests.unit.systems.cometbft.chains import (
    ACCEPTED,
    CHECK_CODE,
    MEMPOOL_FULL,
    OURS,
    TIMEOUT,
    UNSENT,
    Chain,
    measurement,
    records,
    transaction,
)

HOST = HostFacts(cpu_model="c", cores=2, memory_bytes=2**30, kernel="k", operating_system="o")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the shipped runs of real networks, sealed before transactions could be followed."""
    folder = tmp_path_factory.mktemp("timelines")
    cm.import_samples(folder)
    return folder


@pytest.fixture(scope="module")
def run(store: Path) -> SealedRun:
    return cm.open_runs("v1.0.1", store)[0].sealed


def _listed(run: SealedRun, most: int = 10) -> SlowestTraces:
    result = cm.transaction(run.run_id, slowest=most, store=run.path.parents[1]).result
    assert isinstance(result, SlowestTraces)
    return result


def _trace(run: SealedRun, key: str) -> Trace:
    result = cm.transaction(run.run_id, key, store=run.path.parents[1]).result
    assert isinstance(result, Trace)
    return result


def _facts(trace: Trace) -> dict[str, str]:
    return {fact.label: fact.value for fact in trace.facts}


def test_the_slowest_transactions_and_the_median_match_the_latency_metric(run: SealedRun) -> None:
    """Otherwise the tail of a chart would lead to a transaction that is not in it."""
    latency = run.samples("transaction").drop_nulls("tx_latency_s").sort("tx_latency_s", descending=True)
    listed = _listed(run, 5)
    assert (listed.total, listed.counted) == (run.manifest.counts["transactions"]["offered"], latency.height)
    assert listed.outcomes == {"committed": run.manifest.counts["transactions"]["committed"]}
    top = latency.head(5)
    assert [trace.key for trace in listed.slowest] == [
        f"{c}-{s}" for c, s in top.select("connection", "sequence").rows()
    ]
    assert [trace.places[0].seconds[-1] for trace in listed.slowest] == pytest.approx(top["tx_latency_s"].to_list())
    assert listed.slowest[0].usual_s[-1] == pytest.approx(latency["tx_latency_s"].median())


def test_a_transaction_is_shown_by_place_and_hash_with_the_facts_of_its_block(run: SealedRun) -> None:
    slowest = _listed(run, 1).slowest[0]
    trace = _trace(run, slowest.key)
    assert _trace(run, f"0x{trace.alias[:12].lower()}") == trace
    row = run.events("transactions").row(by_predicate=pl.col("hash") == bytes.fromhex(trace.alias), named=True)
    block = run.events("blocks").row(by_predicate=pl.col("height") == row["height"], named=True)
    facts = _facts(trace)
    assert trace.places[0].seconds == pytest.approx(
        [0.0, *((time - row["due_ns"]) / 1e9 for time in (row["sent_ns"], row["answered_ns"], block["observed_ns"]))]
    )
    assert facts["block"] == str(row["height"])
    assert facts["position in the block"] == f"{row['index_in_block'] + 1} of {block['transactions']}"
    ours = run.events("transactions").filter(pl.col("height") == row["height"]).height
    assert facts["transactions of this load in the block"] == str(ours)
    seen = run.events("blocks").filter(pl.col("observed_ns") <= row["sent_ns"])["height"].max()
    assert facts["blocks waited for"] == str(row["height"] - int(str(seen)))


def test_the_command_shows_the_list_and_single_transactions_and_reports_errors(
    run: SealedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINMARK_STORE", str(run.path.parents[1]))
    slowest = _listed(run, 1).slowest[0]
    assert slowest.command in " ".join(chainmark("transaction", run.run_id, "--slowest", "3").stdout.split())
    text = " ".join(chainmark("transaction", run.run_id, slowest.key).stdout.split())
    assert f"Transaction {slowest.key} was in a block" in text
    assert "later than the median transaction" in text
    for arguments, message in (
        (("transaction", run.run_id, "0-99999"), "has no transaction `0-99999`"),
        (("block", run.run_id, "3"), "has no trail `block`"),
        (("trail", run.run_id, "transaction", slowest.key, "--host", "node0"), "has no separate hosts"),
    ):
        with pytest.raises(UsageError, match=message):
            chainmark(*arguments)


def _manifest(run_id: str, counts: dict[str, dict[str, int]]) -> Manifest:
    return Manifest(
        run_id=run_id, subject=Subject(system="cometbft", name="CometBFT", version="v9"), profile_name="cometbft/demo",
        profile={}, workload={}, tool_version="0", seed=1, started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:10:00Z", host=HOST, status=Status.VALID, counts=counts,
    )  # fmt: skip


def test_an_uncommitted_transaction_ends_at_its_last_stage_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [transaction(number) for number in range(9)]
    chain = Chain({7: [mine[0], mine[5]], 8: [mine[1]], 9: [mine[8]]}, {},
                  failed={8: {0: {"code": 5, "codespace": "sdk", "log": "no funds"}}})  # fmt: skip
    load = records([
        (mine[0], ACCEPTED), (mine[1], ACCEPTED), (mine[2], MEMPOOL_FULL), (mine[3], CHECK_CODE), (mine[4], TIMEOUT),
        (mine[5], TIMEOUT), (None, UNSENT), (mine[7], ACCEPTED), (mine[8], MEMPOOL_FULL),
    ])  # fmt: skip
    monkeypatch.setattr(RpcClient, "call", lambda self, method, **parameters: chain.call(method, **parameters))
    commits = [
        (height * 10**8, json.dumps({"result": {"data": {"value": {"header": {"height": str(height)}}}}}).encode())
        for height in (7, 8)
    ]
    measured = measurement(load, observed=commits)
    events = collect(measured, ChainReading(OURS, has_results=True), Silent())
    unfinished = Store(tmp_path).create("cometbft", "cometbft/demo", "v9", {"pid": 1})
    events.write(unfinished)
    manifest = _manifest(unfinished.run_id, balance(events, measured, None).counts)
    run = unfinished.seal(manifest, SYSTEM.catalogue(), summarise(SYSTEM.catalogue().sampled({}), {}, 1))
    ends = {
        "0-0": ("committed", 3), "1-0": ("failed in a block", 3), "0-1": ("rejected: mempool full", 2),
        "1-1": ("rejected: check code 33", 2), "0-2": ("no response (timeout)", 1), "1-2": ("committed", 3),
        "0-3": ("not sent", 0), "1-3": ("lost", 2), "0-4": ("rejected: mempool full, but in a block", 2),
    }  # fmt: skip
    block_traces = {key: _trace(run, key) for key in ends}
    assert {key: (trace.outcome, trace.last) for key, trace in block_traces.items()} == ends
    assert _facts(block_traces["1-0"])["why it failed in the block"] == "code 5 of sdk: no funds"
    assert block_traces["0-3"].alias == ""
    listed = _listed(run)
    assert {trace.key for trace in listed.slowest} == {"0-0", "1-2"}
    assert {trace.key for trace in listed.others} == set(ends) - {"0-0", "1-2"}
    document = cm.transaction(run.run_id, "0-1", store=tmp_path)
    assert document.sentence.startswith(
        "Transaction 0-1 ended as “rejected: mempool full”; its last stage was “answered”, 2.00"
    )
    assert "7 transactions of 9 did not reach the last stage" in cm.transaction(run.run_id, store=tmp_path).sentence


def _pair(store: Path) -> list[SealedRun]:
    return [cm.open_runs(version, store)[0].sealed for version in ("v0.38.17", "v1.0.1")]


def _sealed_as_today(run: SealedRun, store: Store) -> SealedRun:
    """The same run as this version would seal it."""
    unfinished = store.create("cometbft", "cometbft/demo", run.manifest.subject.version, {"pid": 1})
    for name in ("transactions", "blocks"):
        unfinished.write_events(name, frame := run.events(name), frame.schema)
    samples = {"transaction": run.samples("transaction")}
    for name, frame in samples.items():
        unfinished.write_samples(name, frame)
    columns = {name: frame.columns for name, frame in samples.items()}
    catalogue = SYSTEM.catalogue().sampled(columns)
    manifest = run.manifest.model_copy(update={"run_id": unfinished.run_id})
    return unfinished.seal(manifest, catalogue, summarise(catalogue, samples, run.manifest.seed))


def test_a_comparison_and_the_dashboard_link_to_the_slowest_transactions(store: Path, tmp_path: Path) -> None:
    new = [_sealed_as_today(run, Store(tmp_path)) for run in _pair(store)]
    comparison = cm.compare(*(run.run_id for run in new), store=tmp_path).result
    assert isinstance(comparison, Comparison)
    tails = comparison.followed
    assert isinstance(tails, Tails)
    assert "tx_committed_share" not in {tail.metric_id for tail in tails.tails}, "all are committed, so none is extreme"
    slowest = _listed(new[1], 1).slowest[0]
    tail = next(tail for tail in tails.tails if tail.metric_id == "tx_latency_s" and tail.side == "candidate")
    assert (tail.samples[0].key, tail.samples[0].command) == (slowest.key, slowest.command)
    assert slowest.key in {trace.key for trace in tails.traces}
    with served(tmp_path) as server:
        page = server.client.get(f"/runs/{new[1].run_id}").text
        link = f"/follow?run={new[1].run_id}&amp;trail=transaction"
        assert f'<a href="{link}">Slowest transactions</a>' in page
        listed = server.client.get(link.replace("&amp;", "&")).text
        assert f'<a href="{link}&amp;key={slowest.key}">' in listed
        shown = server.client.get(f"{link.replace('&amp;', '&')}&key={slowest.key}").text
        assert cm.transaction(new[1].run_id, slowest.key, store=tmp_path).sentence in shown
        assert "Slowest transactions" in shown
