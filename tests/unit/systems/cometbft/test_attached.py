"""Runs of an external network: what cannot be observed from outside must be reported as unknown, and not as good."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from chainmark._native import ZstdWriter
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, Gate, GateKind, GateStatus, Incident, Subject
from chainmark.core.progress import Silent
from chainmark.lab.protocols import Execution, ExecutionRequest, ExistingNetwork
from chainmark.store.runs import Store
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft import attached
from chainmark.systems.cometbft.applications.adapter import adapter_of
from chainmark.systems.cometbft.applications.loading import Prepared
from chainmark.systems.cometbft.attach import AttachedNetwork, NodeStatus, network_of
from chainmark.systems.cometbft.attached import (
    AttachedCometBft,
    _conditions,
    _facts,
    _known,
    _own_pressure,
    _recorded_findings,
    _unknown_gates,
    _warnings,
)
from chainmark.systems.cometbft.ingest import TransactionCounts
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.rpc import RpcClient, RpcError
from chainmark.systems.cometbft.workload import LoadRequest, Measurement, PendingTransactions

from tests.unit.systems.cometbft.chains import ACCEPTED, Chain, measurement, records, transaction

FIRST = NodeStatus("10.0.0.1:26657", "a", "chain", "1.0.1", "alpha", catching_up=False)
SECOND = NodeStatus("10.0.0.2:26657", "b", "chain", "1.0.2", "beta", catching_up=False)
PAGES = ("http://10.0.0.1:26660/metrics", "http://10.0.0.2:26660/metrics")


class Nodes:
    """Two nodes that others run.

    Attributes:
        chain: what they respond about it.
        silent: the addresses that do not respond.
        reached: the addresses that were given.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chain = Chain({}, {})
        self.silent: set[str] = set()
        self.given: list[object] = []

        def reach(addresses: tuple[str, ...]) -> list[NodeStatus]:
            self.given.append(addresses)
            return [FIRST, SECOND][: len(addresses)]

        def check_pages(pages: tuple[str, ...], nodes: int) -> list[str]:
            self.given.append((pages, nodes))
            return list(pages)

        monkeypatch.setattr(attached, "reach", reach)
        monkeypatch.setattr(attached, "check_pages", check_pages)
        monkeypatch.setattr(RpcClient, "call", lambda client, method, **given: self.call(client.address, method, given))

    def call(self, address: str, method: str, given: Mapping[str, int]) -> dict[str, Any]:
        """The ``result`` of a call."""
        if address in self.silent:
            raise RpcError("silent")
        if method == "status":
            return {"sync_info": {"latest_block_height": "9", "catching_up": False}}
        if method == "validators":
            # The number is in the first page, however many pages there are.
            assert (address, given) == (FIRST.place, {"per_page": 1})
            return {"total": "60"}
        return self.chain.call(method, **given)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    return Nodes(monkeypatch)


def _profile(**load: Any) -> CometBFTProfile:
    return CometBFTProfile.model_validate({"system": "cometbft", "name": "p", "load": load})


def _attached(profile: CometBFTProfile, pages: tuple[str, ...] = (), label: str | None = None) -> AttachedCometBft:
    return AttachedCometBft(profile, ExistingNetwork(("one", "two"), pages, label))


@pytest.mark.parametrize(
    ("targets", "label", "version"), [([1], None, "1.0.2"), ([0, 1], None, "1.0.1"), ([1], "patched", "patched")]
)
def test_the_subject_is_the_version_of_the_loaded_node(
    nodes: Nodes, targets: list[int], label: str | None, version: str
) -> None:
    """Nodes built from one release with any patch report its version, so that it does not identify the build."""
    system = _attached(_profile(targets=targets), PAGES, label)
    subject = Subject(system="cometbft", name="CometBFT", version=version, is_version_unknown=True)
    assert system.install("") == system.install(version) == subject
    assert system.installed() == []
    assert nodes.given == [("one", "two"), (PAGES, 2)]
    with pytest.raises(UsageError, match=f"^the network runs {version}, and not `v2`$"):
        system.install("v2")


@pytest.mark.usefixtures("nodes")
def test_a_profile_that_needs_more_nodes_than_are_attached_is_refused() -> None:
    with pytest.raises(UsageError, match="names node 2, but only 2 are attached"):
        _attached(_profile(targets=[2]))


@pytest.mark.usefixtures("nodes")
def test_the_workload_has_the_load_but_nothing_of_a_network_that_was_not_made() -> None:
    system = _attached(_profile())
    flat = system.workload(_profile(rate=7))
    assert {key: value for key, value in flat.items() if not key.startswith("load.")} == {
        "network.attached": True,
        "network.validators": 60,
    }
    assert flat["load.rate"] == 7
    content = {"system": "cometbft", "name": "p", "application": {"vote_extension_size_bytes": 8}}
    extended = system.workload(CometBFTProfile.model_validate(content))
    assert extended["application.vote_extension_size_bytes"] == 8


@pytest.mark.usefixtures("nodes")
def test_the_workload_has_the_application_its_accounts_and_transactions() -> None:
    """Otherwise runs with other transactions would be compared as if only the version differed."""
    adapter = adapter_of("cosmos-sdk")
    content = {"system": "cometbft", "name": "p", "application": {"adapter": adapter.model_dump()}}
    flat = _attached(_profile()).workload(CometBFTProfile.model_validate(content))
    assert adapter.workload().items() <= flat.items()
    assert {key.partition(".")[0] for key in adapter.workload()} == {"application", "accounts", "transaction"}


def _pages_file(folder: Path) -> Path:
    path = folder / "node0.prom.zst"
    with ZstdWriter(path) as file:
        for second, cpu_s in ((7, 1.0), (8, 1.5)):
            lines = (
                f"# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {cpu_s}\n"
                "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 4096\n"
            )
            file.write(f"# scraped at ns: {second}000000000\n{lines}\n".encode())
    return path


def _pressure(**columns: float) -> pl.DataFrame:
    """Two samples, at 6.5 s and at 7.5 s, by the named columns of the second one; the others are 0."""
    empty = measurement(records([])).pressure
    first = {"time_ns": 65 * 10**8, **{name: 0 for name in empty.columns if name != "time_ns"}}
    second = {**first, "time_ns": 75 * 10**8, "cpu_total_s": 2.0, **columns}
    return pl.DataFrame([first, second], schema=empty.schema)


class Measured:
    """One run of the two nodes whose measurement is given.

    Args:
        pages: of the nodes' metrics.
        rows: the offered transactions; the profile offers eight.
        prepared: transactions that are identified by their hash.
        changes: of the measurement.
    """

    def __init__(
        self,
        nodes: Nodes,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        pages: tuple[str, ...] = (),
        rows: int = 8,
        prepared: Prepared | None = None,
        **changes: Any,
    ) -> None:
        self.run: UnfinishedRun = Store(folder).create("cometbft", "p", "v", {"pid": 1})
        experiment = uuid.uuid5(uuid.NAMESPACE_URL, self.run.run_id).bytes
        ours = [transaction(number, bytes(16) if prepared else experiment) for number in range(rows)]
        nodes.chain = Chain(
            {7: [*ours, transaction(99)], 8: [], 9: [b"not ours"]},
            {},
            failed={7: {0: {"code": 5, "codespace": "sdk", "log": "no funds"}}},
        )
        due = b"".join((7 * 10**9 + number).to_bytes(8, "little") for number in range(rows))
        load = records([(payload, ACCEPTED) for payload in ours], due_ns=due)
        files = {"node0": _pages_file(folder)} if pages else {}
        self.measurement = measurement(
            load, start_ns=6 * 10**9, scrape_files=files, pressure=_pressure(cpu_steal_s=0.02), **changes
        )
        self.profile = _profile(rate=2, connections=2, warm_up_s=1.0, duration_s=1.0)
        self.measured: list[tuple[AttachedNetwork, LoadRequest, Path, object]] = []
        self.made: list[tuple[object, ...]] = []

        def measure(network: AttachedNetwork, order: LoadRequest, raw: Path, progress: object) -> Measurement:
            self.measured.append((network, order, raw, progress))
            return self.measurement

        def make(*arguments: Any) -> AttachedNetwork:
            self.made.append(arguments)
            return replace(network_of(*arguments), prepared=prepared)

        monkeypatch.setattr(attached, "measure", measure)
        monkeypatch.setattr(attached, "network_of", make)
        self.stages: list[str] = []
        self.progress = SimpleNamespace(stage=self.stages.append, update=Silent().update)
        request = ExecutionRequest("1.0.1", seed=5, keep_homes=False)
        self.order = LoadRequest(self.profile, 5, experiment)
        self.execution: Execution = _attached(self.profile, pages).execute(
            self.profile, request, self.run, self.progress
        )
        self.gates = {gate.id: gate for gate in self.execution.gates}


def test_a_run_lists_what_was_observed(nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.silent = {SECOND.place}
    incidents = [Incident(time_ns=1, what="a halt")]
    own = Measured(nodes, tmp_path, monkeypatch, incidents=incidents, scrapes_missed=2)
    execution = own.execution
    assert execution.subject == Subject(system="cometbft", name="CometBFT", version="1.0.1", is_version_unknown=True)
    (network, order, raw, progress) = own.measured[0]
    assert (order, raw, progress) == (own.order, own.run.raw, own.progress)
    assert own.made == [([FIRST, SECOND], [], own.profile, 5, own.run.path)]
    assert network.silent_at_end == ["node1"]
    assert own.gates["nodes_alive"].measured == "node1 did not respond"
    assert execution.configuration == Configuration()
    assert execution.conditions == {"versions": "1 × 1.0.1, 1 × 1.0.2"}
    assert [fact.value for fact in execution.facts] == [
        "chain, attached",
        "10.0.0.1:26657, alpha, 1.0.1",
        "10.0.0.2:26657, beta, 1.0.2",
    ]
    assert execution.incidents == incidents
    assert execution.warnings == [
        "the network had other load, too: 2 transactions in its blocks are not of this run",
        "2 metrics pages did not arrive in time",
        "1 × failed in a block with code 5 of sdk: no funds",
    ]
    chain, counts = execution.counts["chain"], execution.counts["transactions"]
    assert (chain["ours"], chain["of other experiments"], chain["not a payload"]) == (8, 1, 1)
    assert (counts["offered"], counts["committed"], counts["failed"]) == (8, 7, 1)
    measured = "generator and observer 0.0 %, stolen 1.0 % of the time"
    assert (own.gates["accounting"].status, own.gates["pressure"].measured) == (GateStatus.PASS, measured)
    assert execution.samples["transaction"].height == 8
    assert "host" not in execution.samples
    assert own.stages == ["reading the chain", "decoding the scrapes", "analysing"]
    assert {path.stem for path in (own.run.path / "events").iterdir()} == {
        "transactions",
        "blocks",
        "failed",
        "scrapes",
    }


def test_the_metrics_pages_show_the_nodes_processes(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Measured(nodes, tmp_path, monkeypatch, pages=PAGES)
    assert own.made[0][1] == list(PAGES)
    seconds = own.execution.samples["host_second"]
    assert seconds.select("host", "node_rss_bytes").rows() == [("node0", 4096.0)]
    assert own.execution.samples["host"].columns == ["host", "node_cpu_per_transaction_s"]
    assert own.gates["nodes_steady"].status is GateStatus.PASS


def test_prepared_transactions_are_recognised_by_their_hash(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They carry no ID of this run."""
    own = Measured(nodes, tmp_path, monkeypatch, prepared=Prepared())
    assert own.execution.counts["chain"]["ours"] == 8


def test_more_transactions_than_the_profile_offers_are_reported(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Measured(nodes, tmp_path, monkeypatch, rows=9)
    assert own.gates["accounting"].status is GateStatus.FAIL


def test_every_waited_share_beyond_the_profile_is_reported(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Measured(nodes, tmp_path, monkeypatch)
    assert own.gates["pressure"].limit == f"≤ {own.profile.gates.waited_share_max * 100:.1f} %"


def _frames() -> dict[str, pl.DataFrame]:
    """A run's samples, by population, with one column of each kind."""
    columns = {
        "transaction": ["tx_latency_s"],
        "second": [
            *("committed_per_s", "mempool_mean_transactions", "mempool_max_transactions", "machine_steal_share"),
            *("machine_cpu_share", "nodes_run_queue_share", "harness_cpu_cores", "generator_run_queue_share"),
        ],
        "host_second": ["node_cpu_cores", "node_run_queue_share", "node_threads"],
        "host": [
            "node_cpu_per_transaction_s",
            "start_up_s",
            "node_disk_read_bytes_per_s",
            "node_disk_written_bytes_per_s",
        ],
    }
    return {name: pl.DataFrame({column: [1.0] for column in those}) for name, those in columns.items()}


@pytest.mark.parametrize("has_pages", [True, False])
def test_only_what_can_be_observed_from_outside_has_samples(*, has_pages: bool) -> None:
    """This machine's own processors are not the nodes', but time stolen from it delays the load."""
    frames = _frames()
    known = _known(frames, has_pages=has_pages)
    seconds = ["committed_per_s", "machine_steal_share", "generator_run_queue_share"]
    mempools = ["mempool_mean_transactions", "mempool_max_transactions"]
    expected = {"transaction": ["tx_latency_s"], "second": seconds}
    if has_pages:
        expected |= {"second": [seconds[0], *mempools, *seconds[1:]]}
        expected |= {"host_second": ["node_cpu_cores"], "host": ["node_cpu_per_transaction_s"]}
    assert {name: frame.columns for name, frame in known.items()} == expected
    assert frames.keys() == _frames().keys()


def _gate(gate_id: str) -> Gate:
    return Gate(id=gate_id, label="as observed", status=GateStatus.FAIL, measured="m", limit="l")


PRESSURE = _gate("pressure").model_copy(update={"label": "own"})


def _findings(
    *, silent: tuple[str, ...] = (), pages: Mapping[str, str] | None = None, counts: TransactionCounts | None = None,
    **changes: Any,
) -> dict[str, Gate]:  # fmt: skip
    network: Any = SimpleNamespace(silent_at_end=list(silent), pages=lambda: pages or {})
    gates = [_gate(name) for name in ("nodes_alive", "nodes_steady", "drained", "pressure", "observed")]
    counts = counts or TransactionCounts({"transactions": {}}, [])
    found = _recorded_findings(gates, network, counts, measurement(records([]), **changes), PRESSURE)
    assert [gate.id for gate in found] == [gate.id for gate in gates]
    return {gate.id: gate for gate in found}


def test_gates_of_nodes_that_cannot_be_observed_are_unknown() -> None:
    found = _findings()
    assert found["nodes_steady"] == Gate(
        id="nodes_steady",
        label="no node restarted",
        status=GateStatus.UNKNOWN,
        measured="not known from outside",
        limit="known",
        detail="the nodes' metrics pages show restarts: give the pages with `--metrics`",
    )
    assert (found["observed"], found["pressure"], found["drained"]) == (_gate("observed"), PRESSURE, _gate("drained"))
    assert _findings(pages={"node0": "page"})["nodes_steady"] == _gate("nodes_steady")


@pytest.mark.parametrize(
    ("silent", "status", "measured"),
    [((), GateStatus.PASS, "all responded"), (("node0", "node2"), GateStatus.FAIL, "node0, node2 did not respond")],
)
def test_a_node_that_no_longer_responds_is_the_subjects_failure(
    silent: tuple[str, ...], status: GateStatus, measured: str
) -> None:
    """There is no process to watch. Nothing that this machine does can be the cause."""
    assert _findings(silent=silent)["nodes_alive"] == Gate(
        id="nodes_alive",
        label="every node responded until the end",
        status=status,
        measured=measured,
        limit="all respond",
        kind=GateKind.SUBJECT,
        conclusive=bool(silent),
    )


@pytest.mark.parametrize(
    ("drained", "pending", "unsure", "is_ours"),
    [(True, 0, 0, True), (False, 1, 0, True), (False, 0, 1, True), (False, 1, 1, True), (False, 0, 0, False)],
    ids=["drained", "ours pending", "ours perhaps", "both", "others'"],
)
def test_transactions_of_others_may_stay_in_the_mempools(
    pending: int, unsure: int, *, drained: bool, is_ours: bool
) -> None:
    """An external network may never be empty. Its mempools are emptied of our transactions, or the run fails."""
    counts = TransactionCounts({"transactions": {"pending": pending}}, [], unsure=unsure)
    waiting = PendingTransactions(fullest=12_345)
    found = _findings(counts=counts, drained=drained, waiting=waiting)["drained"]
    passed = Gate(
        id="drained",
        label="no transactions of this run are left in the mempools",
        status=GateStatus.PASS,
        measured="12,345 left, none of this run",
        limit="0 of this run left",
    )
    assert found == (_gate("drained") if is_ours else passed)


def test_transactions_that_nobody_counted_do_not_wait() -> None:
    """If no node is left to read the chain from, there is no account of them."""
    assert _findings(drained=False)["drained"].status is GateStatus.PASS


@pytest.mark.parametrize(
    ("waited", "stolen", "status", "measured"),
    [
        ([0.01, 0.03], [0.0, 0.02], GateStatus.PASS, "generator and observer 2.0 %, stolen 1.0 % of the time"),
        ([0.05], [None], GateStatus.PASS, "generator and observer 5.0 % of the time"),
        ([0.06], [0.0], GateStatus.FAIL, "generator and observer 6.0 %, stolen 0.0 % of the time"),
        ([0.0], [0.06], GateStatus.FAIL, "generator and observer 0.0 %, stolen 6.0 % of the time"),
        ([None], [None], GateStatus.UNKNOWN, "not reported by this kernel"),
    ],
)
def test_the_generator_must_not_wait_for_a_processor(
    waited: list[float | None], stolen: list[float | None], status: GateStatus, measured: str
) -> None:
    columns = {"generator_run_queue_share": waited, "machine_steal_share": stolen}
    seconds = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64), strict=False)
    assert _own_pressure(seconds, 0.05) == Gate(
        id="pressure",
        label="waits for a processor, generator and observer",
        status=status,
        measured=measured,
        limit="≤ 5.0 %",
    )


def test_four_gates_are_unknown_with_the_reason() -> None:
    assert [(gate.id, gate.label, gate.detail) for gate in _unknown_gates()] == [
        ("nodes_pressure", "waits for a processor, nodes", "their processes are on other machines"),
        (
            "clocks",
            "the nodes' clocks agree",
            "block headers have the nodes' times, which cannot be compared with this machine's clock",
        ),
        ("links", "the links are as intended", "packets between the nodes are not observed"),
        ("configuration", "the configuration is known", "the nodes' files are not accessible"),
    ]
    assert {(gate.status, gate.measured, gate.limit) for gate in _unknown_gates()} == {
        (GateStatus.UNKNOWN, "not known from outside", "known")
    }


def test_several_versions_are_a_condition_and_every_node_is_a_fact() -> None:
    seen = [FIRST, SECOND, replace(FIRST, place="10.0.0.3:26657")]
    assert _conditions(seen) == {"versions": "2 × 1.0.1, 1 × 1.0.2"}
    assert _conditions([FIRST, FIRST]) == {}
    assert _facts([SECOND])[0] == Fact(label="network", value="chain, attached")
    assert _facts([FIRST, SECOND]) == [
        Fact(label="network", value="chain, attached"),
        Fact(label="node0", value="10.0.0.1:26657, alpha, 1.0.1"),
        Fact(label="node1", value="10.0.0.2:26657, beta, 1.0.2"),
    ]


@pytest.mark.parametrize(
    ("seen", "chain", "missed", "expected"),
    [
        ([FIRST], {"of other experiments": 0, "not a payload": 0}, 0, []),
        ([FIRST], None, 0, []),
        (
            [replace(FIRST, catching_up=True), SECOND],
            {},
            0,
            ["10.0.0.1:26657 had not caught up with the network when the load began"],
        ),
        (
            [replace(FIRST, catching_up=True), replace(SECOND, catching_up=True)],
            {"of other experiments": 1},
            12_000,
            [
                "10.0.0.1:26657 and 10.0.0.2:26657 had not caught up with the network when the load began",
                "the network had other load, too: 1 transactions in its blocks are not of this run",
                "12,000 metrics pages did not arrive in time",
            ],
        ),
        (
            [FIRST],
            {"of other experiments": 12_000, "not a payload": 345},
            1,
            [
                "the network had other load, too: 12,345 transactions in its blocks are not of this run",
                "1 metrics pages did not arrive in time",
            ],
        ),
        (
            [FIRST],
            {"not a payload": 3},
            0,
            ["the network had other load, too: 3 transactions in its blocks are not of this run"],
        ),
    ],
    ids=["nothing", "no chain", "one behind", "two behind", "other load", "only other payloads"],
)
def test_what_may_have_changed_the_figures_is_a_warning(
    seen: list[NodeStatus], chain: dict[str, int] | None, missed: int, expected: list[str]
) -> None:
    counts = TransactionCounts({} if chain is None else {"chain": chain}, [])
    assert _warnings(seen, counts, measurement(records([]), scrapes_missed=missed)) == expected
