"""One host's log for its operator: page, sample files, following the log, and comparing two days."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.report.blocks import Table
from chainmark.report.chart import Chart
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.documents import StatedGenesis, epoch_slot, resolve_genesis
from chainmark.systems.cardano.host.document import host_document
from chainmark.systems.cardano.host.report import arrival_curves, host_report
from chainmark.systems.cardano.host.sample_files import read_samples

from tests.support import Lab, wait_until
from tests.unit.systems.cardano.clusters import ingest, make_cluster

GENESIS = "genesis/genesis.shelley.json"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", slots=700)


def alone(cluster: Path, folder: Path, host: str = "node-1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "relay.log"
    log.write_bytes((cluster / host / "stdout").read_bytes())
    return log


@pytest.fixture(scope="module")
def run(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    folder = tmp_path_factory.mktemp("alone")
    return ingest(folder / "store", alone(cluster, folder), genesis=cluster / GENESIS, filters=()).run


def test_the_page_shows_delays_under_the_names_that_operators_use(run: SealedRun) -> None:
    document = cm.host(run)
    text = document.text(160)
    assert document.verdict is cm.Verdict.PASS
    assert "of their slots" in document.sentence
    for name in ("headerDelta", "blockReqDelta", "blockRspDelta", "blockAdoptDelta", "block_adopt_delta"):
        assert name in text
    assert "missed slots" in text
    assert document.pdf().count(b"/Type /Page\n") + document.pdf().count(b"/Type /Page ") <= 1


def test_a_pipeline_sees_the_same_gates_as_for_the_run(run: SealedRun) -> None:
    """Which command wrote the JUnit file must not decide whether a missed gate is in it."""
    cases = cm.host(run).suites[0].cases
    assert len(cases) > 1
    assert cases == cm.open_run(run).document().suites[0].cases


def test_no_curve_leaves_the_plot(run: SealedRun) -> None:
    """One late block must not stretch the curve across the page."""
    (chart,) = [block for block in host_document(host_report(run, None)).blocks() if isinstance(block, Chart)]
    assert chart.x is not None
    assert chart.x.domain is not None
    low, high = chart.x.domain
    assert all(low <= x <= high for x in chart.data["points"]["x"])


def test_the_curve_of_few_blocks_ends_with_the_last_of_them(run: SealedRun) -> None:
    """Of five blocks the p99 is not estimable: a curve that is cut there would end at 80 %, and hide one of them."""
    report = host_report(run, None)
    few = report.blocks[:5]
    curves = arrival_curves(few)
    assert curves.adopted[-1] == (max(block.adopted_s for block in few), 1.0)
    assert (curves.edge_s, curves.beyond) == (curves.adopted[-1][0], 0)
    document = host_document(report.model_copy(update={"blocks": few, "curves": curves}))
    (chart,) = [block for block in document.blocks() if isinstance(block, Chart)]
    assert chart.note == ""
    assert chart.data["points"]["y"][-1] == 1.0


def test_the_curve_of_many_blocks_ends_at_their_p99_and_the_note_counts_the_rest(run: SealedRun) -> None:
    report = host_report(run, None)
    many = [report.blocks[0].model_copy(update={"adopted_s": 1.0 + number / 1000.0}) for number in range(300)]
    curves = arrival_curves(many)
    assert curves.edge_s == pytest.approx(1.297)  # nearest rank: the element 297 of 0 to 299
    assert (curves.beyond, curves.adopted[-1]) == (2, (curves.edge_s, 298 / 300))
    document = host_document(report.model_copy(update={"blocks": many, "curves": curves}))
    (chart,) = [block for block in document.blocks() if isinstance(block, Chart)]
    assert chart.note == "The right edge is the p99 of the adoptions; beyond it: the slowest 2 of 300 blocks."


def test_the_deltas_add_up_and_every_block_has_one_class(run: SealedRun) -> None:
    samples = run.samples("received")
    parts = pl.sum_horizontal("header_delay_s", "request_delay_s", "fetch_delay_s", "adopt_delay_s")
    assert samples.select((parts - pl.col("received_adopted_s")).abs().max()).item() < 1e-9
    classes = run.manifest.counts["blocks that the host knew"]
    assert sum(classes.values()) == run.events("block_timelines").height
    assert classes["received and adopted"] == samples.height


def test_a_single_host_is_not_judged_by_cluster_metrics(run: SealedRun, cluster: Path, tmp_path: Path) -> None:
    judged = {metric.population for metric in run.catalogue.metrics if metric.gating}
    assert judged == {"received", "slot_host"}
    whole = ingest(tmp_path / "store", cluster).run
    assert "received" not in {metric.population for metric in whole.catalogue.metrics}
    with pytest.raises(UsageError, match="is not of a single host"):
        cm.host(whole)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_samples_are_written_with_the_tools_names_and_read_back(run: SealedRun, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"samples{suffix}"
    cm.host(run, samples=path)
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert ("blockAdoptDelta" if suffix == ".csv" else '"block_adopt_delta"') in first
    assert len(read_samples(path)) == run.samples("received").height
    assert cm.host(run, against=path).word == "PASS"
    assert cm.verify_against(path, run).word == "PASS"
    with pytest.raises(UsageError, match=r"\.txt"):
        cm.host(run, samples=tmp_path / "samples.txt")


def test_text_figures_masked_peers_and_clamped_adoptions_match_blockperf(run: SealedRun, tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    cm.host(run, samples=path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["header_remote_addr"] = "x.x.x.x"
        row["block_hash"] = f'"{row["block_hash"]}"'
    path.write_text(json.dumps([{name: str(value) for name, value in row.items()} for row in rows]), encoding="utf-8")
    document = cm.host(run, against=path)
    assert document.word == "PASS"
    assert "may be masked" in document.text(160)
    rows[0]["block_size"] += 1
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    differs = cm.host(run, against=path)
    assert differs.verdict is cm.Verdict.FAIL
    assert "block_size" in differs.text(160)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"block_hash": "ab"}', "a,b\n1,2\n", "[1]"])
def test_a_file_without_samples_is_reported(run: SealedRun, tmp_path: Path, content: str) -> None:
    path = tmp_path / "theirs.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"theirs\.json"):
        cm.host(run, against=path)


def _genesis_file(folder: Path, cluster: Path, **values: Any) -> Path:
    content = json.loads((cluster / GENESIS).read_text(encoding="utf-8"))
    path = folder / "shelley-genesis.json"
    path.write_text(json.dumps(content | values), encoding="utf-8")
    return path


def test_mainnet_slots_are_counted_as_by_its_nodes(cluster: Path, tmp_path: Path) -> None:
    """The genesis states the start for slots of 20 s. Slots of 1 s from there would make every delay two years."""
    file = _genesis_file(
        tmp_path, cluster, systemStart="2017-09-23T21:44:51Z", networkMagic=764824073, epochLength=432_000, slotLength=1
    )
    genesis, notes = resolve_genesis(file, StatedGenesis())
    assert genesis.system_start_ns == 1_591_566_291 * 10**9
    assert notes
    assert "20 s" in notes[0]
    stated, _ = resolve_genesis(None, StatedGenesis(network="mainnet"))
    assert stated.system_start_ns == genesis.system_start_ns
    # Epoch 208 was the first with today's slot length, and began with slot 4,492,800.
    slots = pl.DataFrame({"slot": [4_492_800, 4_492_799 + 432_000, 4_492_800 + 432_000]})
    assert slots.select(epoch_slot(stated, pl.col("slot")))["slot"].to_list() == [0, 431_999, 0]


def test_followed_logs_are_kept_if_they_cannot_be_imported(run: SealedRun, cluster: Path, tmp_path: Path) -> None:
    """A node that has run for weeks does not log its version on that day. The data of the day must not be lost."""
    log = alone(cluster, tmp_path / "logs")
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    log.write_text("".join(line for line in lines if "Version.NodeVersion" not in line), encoding="utf-8")
    store, genesis = tmp_path / "store", cluster / GENESIS
    with pytest.raises(UsageError, match="version") as refused:
        cm.follow("cardano", log, lasts="10ms", genesis=genesis, store=store)
    (path,) = store.glob("followed-*/logs/relay.log.zst")
    assert f"chainmark ingest cardano {path}" in (refused.value.hint or "")
    (imported_run,) = cm.ingest("cardano", path, version="10.5.4", genesis=genesis, store=store)
    assert imported_run.samples("received").equals(run.samples("received"))


def test_a_log_is_followed_until_the_timeout_and_the_run_covers_all_of_it(
    run: SealedRun, cluster: Path, tmp_path: Path
) -> None:
    log = alone(cluster, tmp_path / "logs")
    shown: list[Table] = []
    (imported_run,) = cm.follow(
        "cardano", log, lasts="10ms", show=shown.append, genesis=cluster / GENESIS, store=tmp_path / "store"
    )
    assert imported_run.samples("received").equals(run.samples("received"))
    blocks = set(imported_run.samples("received")["block"])
    assert shown
    assert {row.anchor for row in shown[-1].rows} <= blocks
    assert list((tmp_path / "store").glob("following-*")) == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Restore SIGINT as a terminal sends it: a shell that starts tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_stops_following_but_completes_the_run(cluster: Path, tmp_path: Path) -> None:
    log = alone(cluster, tmp_path / "logs")
    raised: list[Table] = []

    def interrupt(rows: Table) -> None:
        if not raised:
            raised.append(rows)
            os.kill(os.getpid(), signal.SIGINT)

    (imported_run,) = cm.follow(
        "cardano", log, lasts="1h", show=interrupt, genesis=cluster / GENESIS, store=tmp_path / "store"
    )
    assert raised
    assert imported_run.is_valid


class CancelAfter:
    """A listener that requests the end of the work when a stage begins other than the following."""

    def __init__(self, cancel: cm.Cancellation | None = None) -> None:
        self.stages: list[str] = []
        self.details: list[str] = []
        self._cancel = cancel

    def stage(self, name: str) -> None:
        """Record the stage, and cancel if requested."""
        self.stages.append(name)
        if self._cancel is not None and not name.startswith("following"):
            self._cancel.cancel()

    def update(self, fraction: float, detail: str = "") -> None:
        """Record the detail."""
        self.details.append(detail)


def test_a_cancellation_ends_following_and_completes_the_run(cluster: Path, tmp_path: Path) -> None:
    """Without this, a notebook's `cancel` has no effect before the period ends, or none at all without a period."""
    log, cancel, listener = alone(cluster, tmp_path / "logs"), cm.Cancellation(), CancelAfter()
    (imported_run,) = cm.follow(
        "cardano",
        log,
        lasts="1h",
        show=lambda _: cancel.cancel(),
        genesis=cluster / GENESIS,
        store=tmp_path / "store",
        progress=listener,
        cancel=cancel,
    )
    assert imported_run.is_valid
    assert listener.stages[0] == "following relay.log"
    assert len(listener.stages) > 1


def test_followed_logs_are_kept_if_their_import_is_cancelled(run: SealedRun, cluster: Path, tmp_path: Path) -> None:
    """The data of a day would be lost: the log cannot be followed again."""
    log, cancel, store = alone(cluster, tmp_path / "logs"), cm.Cancellation(), tmp_path / "store"
    listener, genesis = CancelAfter(cancel), cluster / GENESIS
    with pytest.raises(KeyboardInterrupt) as stopped:
        cm.follow("cardano", log, lasts="10ms", genesis=genesis, store=store, progress=listener, cancel=cancel)
    (path,) = store.glob("followed-*/logs/relay.log.zst")
    assert stopped.value.__notes__ == [
        f"the followed log is not lost: import it with `chainmark ingest cardano {path}`"
    ]
    assert "read" in listener.details[0]
    (imported_run,) = cm.ingest("cardano", path, genesis=genesis, store=store)
    assert imported_run.samples("received").equals(run.samples("received"))


def test_followed_logs_are_kept_if_showing_them_fails(cluster: Path, tmp_path: Path) -> None:
    log, store = alone(cluster, tmp_path / "logs"), tmp_path / "store"

    def fail(_: Table) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cm.follow("cardano", log, show=fail, genesis=cluster / GENESIS, store=store)
    assert len(list(store.glob("followed-*/logs/relay.log.zst"))) == 1


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_following_after_blocks_were_shown(lab: Lab, cluster: Path, tmp_path: Path) -> None:
    """Showing blocks loads polars, which resumes interrupted waits."""
    log = alone(cluster, tmp_path / "logs")
    started = lab.start("ingest", "cardano", str(log), "--genesis", str(cluster / GENESIS), "--follow", "--json")
    wait_until(lambda: "UTC" in started.errors(), "a block")
    started.process.send_signal(signal.SIGINT)
    ended = started.finish()
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["status"] == "valid"


def test_invalid_input_for_follow_is_refused_before_reading(cluster: Path, tmp_path: Path) -> None:
    log = alone(cluster, tmp_path / "logs")
    with pytest.raises(UsageError, match="no genesis"):
        cm.follow("cardano", log, store=tmp_path / "store")
    with pytest.raises(UsageError, match="is a folder"):
        cm.follow("cardano", cluster, store=tmp_path / "store")
    with pytest.raises(UsageError, match="cannot follow logs"):
        cm.follow("cometbft", log, store=tmp_path / "store")


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[SealedRun]]:
    """Two days with each of two versions on one relay. The networks differ, the node does not."""
    folder = tmp_path_factory.mktemp("days")
    runs_by_day: dict[str, list[SealedRun]] = {"1": [], "2": []}
    for seed, version in ((11, "1"), (12, "1"), (13, "2"), (14, "2")):
        logs = make_cluster(folder / f"logs-{seed}", slots=700, seed=seed)
        log = alone(logs, folder / f"relay-{seed}")
        runs_by_day[version].append(
            ingest(folder / "store", log, genesis=logs / GENESIS, filters=(), version=f"10.5.{version}").run
        )
    return runs_by_day


def test_two_versions_on_one_relay_are_judged_under_equal_conditions(days: dict[str, list[SealedRun]]) -> None:
    comparison = json.loads(cm.compare(days["1"], days["2"]).json)
    judged = {
        judgement["metric_id"]: judgement for judgement in comparison["judgements"] if judgement["statistic"] == "mean"
    }
    own = judged["header_to_adopted_s"]
    assert own["gating"]
    assert own["low"] < own["change"] < own["high"]
    assert own["note"].startswith("at equal time of day, epoch boundary, header delay and block size, unadjusted")
    assert judged["header_delay_s"]["note"].startswith("at equal time of day and epoch boundary")
    assert not judged["header_delay_s"]["gating"]
    assert not judged["adoption_p50_s"]["gating"]
