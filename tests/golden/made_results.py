"""Results that need other machines, a relay or a server: made by hand, or computed from stores filled by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import chainmark as cm
from chainmark.core.cluster_report import ClusterClock, ClusterLink, ClusterReport, ClusterWorker
from chainmark.core.false_alarms import FalseAlarms, HistoryCheck, SplitAlarms
from chainmark.core.load_report import LoadReport
from chainmark.core.manifest import Fact, Manifest, Status, Subject
from chainmark.core.margin_report import MarginReport, MarginRow
from chainmark.core.verdict import Verdict
from chainmark.lab.corpora import WrongRequest
from chainmark.lab.loading import REPORT
from chainmark.report.corpus_document import CheckedCorpus, StoredCorpus
from chainmark.store.files import json_bytes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.host.report import host_report
from chainmark.systems.cardano.host.results import Beside, HostReport, SampleDifference
from chainmark.systems.mesh import SYSTEM as MESH
from chainmark.systems.mesh.page.results import LoadPage, page_of

from tests.golden.fixed_store import FixedStore
from tests.golden.folders import temporary_folder
from tests.unit.compare.synthetic_runs import HOST
from tests.unit.report import load_samples
from tests.unit.systems.cardano.clusters import ingest, make_cluster
from tests.unit.systems.mesh.test_mesh_published import PAGE

VERSION = "0.0.0"


def margins() -> MarginReport:
    """A figure inside its noise whose margin re-runs widened, one outside of it, and one with unknown noise."""

    def row(label: str, deviation: float, margin: float, learnt: float, *, inside: bool = False) -> MarginRow:
        return MarginRow(
            metric_id=label, label=label, statistic="mean", deviation=deviation, degrees_of_freedom=12.0,
            noise="3 re-runs", margin=margin, widened_from=0.05 if inside else None, learnt=learnt,
            inside_noise=inside, learnt_inside_noise=inside, chances={1: 0.31 if inside else 0.97, 3: 0.64},
            learnt_chances={1: 0.42 if inside else 0.92, 3: 0.71},
        )  # fmt: skip

    return MarginReport(
        tool_version=VERSION,
        title="Margins of cardano-node for a release after 10.6.2",
        subtitle="profile cardano/value · noise: 3 re-runs",
        date="2026-03-12",
        sentence="With the margins in force, one run per side judges an unchanged release as equal",
        rows=[row("Fetch duration", 0.061, 0.13, 0.20, inside=True), row("Kernel RSS", 0.012, 0.1, 0.05)],
        unknown=["Height & slot battles"],
        low=0.05,
        high=0.20,
    )


def _worker(number: int, **changes: object) -> ClusterWorker:
    return ClusterWorker.model_validate({
        "address": f"tcp://10.0.0.{number}:40000", "name": f"worker-{number}", "machine": f"10.0.0.{number}",
        "threads": 8, "cores": 8, "memory_bytes": 32 * 2**30, "free_bytes": 400 * 10**9, "chainmark": VERSION,
        "python": "3.12.4", "engine": "2025.1.0", "build": "1f2e3d4c", "nodes": ["cometbft v1.0.1"], **changes,
    })  # fmt: skip


def _cluster(verdict: Verdict, sentence: str, workers: list[ClusterWorker], **more: object) -> ClusterReport:
    return ClusterReport.model_validate({
        "tool_version": VERSION, "title": "Cluster at tcp://10.0.0.1:8786", "subtitle": "", "verdict": verdict,
        "date": "2026-11-20T10:11:00Z", "sentence": sentence, "scheduler": "tcp://10.0.0.1:8786", "chainmark": VERSION,
        "python": "3.12.4", "engine": "2025.1.0", "build": "1f2e3d4c", "workers": workers, "clocks": [], "links": [],
        "warnings": [], **more,
    })  # fmt: skip


_WRONG = tuple(WrongRequest("/block", f'{{"index": {index}}}', f"block {index} is absent") for index in range(12))


def corpus_stored() -> StoredCorpus:
    """Requests to one endpoint, one that the server refused, and an endpoint that it does not offer."""
    return StoredCorpus(
        path="corpus.json", hash="4f2cb01", network="Rosetta/Testnet",
        requests={"/block": {"recent/small": 3, "old/large": 2}}, refused=_WRONG[:1],
        skipped={"/search/transactions": "not offered: status 404"},
    )  # fmt: skip


def corpus_checked() -> CheckedCorpus:
    """More wrong responses of one endpoint than a terminal lists, and an endpoint that answers correctly."""
    return CheckedCorpus(
        path="corpus.json", hash="4f2cb01", network="Rosetta/Testnet", server="http://127.0.0.1:8082", requests=30,
        by_endpoint={"/block": 20, "/account/balance": 10}, wrong=_WRONG,
    )  # fmt: skip


def cluster_ready() -> ClusterReport:
    """Two usable workers, one of them for load, with a clock that is ahead and one that is behind."""
    workers = [_worker(1), _worker(2, for_load=True, nodes=[], cores=None, memory_bytes=0, remarks=["has little disk"])]
    first, second = (worker.address for worker in workers)
    clocks = [
        ClusterClock(machine=f"10.0.0.{number}", reference="this machine", offset_s=offset_s, error_s=error_s,
                     exchanges=50)
        for number, offset_s, error_s in ((1, 0.0402, 0.00031), (2, -0.0021, 0.00012))
    ]  # fmt: skip
    links = [
        ClusterLink(source=first, target=second, round_trip_s=0.0004, median_s=0.0011, bytes_per_s=1.1e8),
        ClusterLink(source=second, target=first, problem="no answer within 10 s"),
    ]
    return _cluster(Verdict.PASS, "2 workers with 16 threads can be used", workers, clocks=clocks, links=links)


def cluster_not_ready() -> ClusterReport:
    """A worker with another version, and a warning about the network."""
    worker = _worker(1, chainmark="0.0.9", problems=["runs chainmark 0.0.9 instead of 0.0.0"])
    warnings = ["the network of the machines is slower than 100 MB/s"]
    return _cluster(Verdict.FAIL, "worker-1 cannot be used", [worker], warnings=warnings)


def history_alarms() -> HistoryCheck:
    """More false alarms than promised, with examples and split runs."""
    return HistoryCheck(
        tool_version=VERSION,
        title="False alarms of cardano/value",
        subtitle="",
        date="2026-03-12",
        verdict=Verdict.FAIL,
        sentence="2 of 3 re-runs have a gating metric that was judged as moved",
        re_runs=FalseAlarms(
            pairs=["9.1.0, 2024-02-11 and 2024-03-11", "9.2.0, 2024-04-11 and 2024-05-11", "9.3.0, 2024-06-11"],
            figures=33, moved=4, gating=12, worse=2, undecided=1, alarmed=2, set_aside=1,
            examples=["Fetch duration of 9.2.0, 2024-04-11 and 2024-05-11: +12.0 %"],
        ),
        splits=SplitAlarms(runs=["10.6.2, 2026-03-12"], figures=20, moved=3),
    )  # fmt: skip


def history_quiet() -> HistoryCheck:
    """No re-run, and split halves that agree."""
    nothing = {"re_runs": FalseAlarms(), "splits": SplitAlarms(runs=["10.6.2, 2026-03-12"], figures=20, moved=1)}
    told = {"verdict": Verdict.PASS, "sentence": "1 of 20 metrics differs between the halves of a run"}
    return history_alarms().model_copy(update={**nothing, **told})


def ingest_relay(store: Path) -> SealedRun:
    """Import the log of one host of a simulated network into a store."""
    cluster = make_cluster(store / "logs", slots=300)
    log = store / "relay.log"
    log.write_bytes((cluster / "node-1" / "stdout").read_bytes())
    return ingest(store, log, genesis=cluster / "genesis/genesis.shelley.json", filters=()).run


@cache
def host() -> HostReport:
    """That host."""
    report = host_report(ingest_relay(temporary_folder()), None)
    fixed = report.manifest.model_copy(update={"run_id": "cardano-import-relay", "tool_version": VERSION})
    return report.model_copy(update={"manifest": fixed})


def host_beside() -> HostReport:
    """The same host next to samples of another tool that differ, and of which the log lacks some."""
    first = host().slowest[0].sample
    differences = [
        SampleDifference(
            block_number=first.block_number, block_hash=first.block_hash, field="block_size", ours="91", theirs="92"
        )
    ]
    beside = Beside(file="theirs.csv", common=9, figures=108, differences=differences, only_ours=[3],
                    only_theirs=[(4, "adopted late")], not_in_log=[5], outside=2, masked=1)  # fmt: skip
    return host().model_copy(update={"beside": beside})


def host_few() -> HostReport:
    """A host with too few blocks for figures; it forges, and one of its blocks was lost."""
    classes = {"received and adopted": 2, "adopted by another fork": 1, "forged here": 2}
    loop = {"classes": classes, "forged": 2, "forged_lost": 1, "loop_slots": 1000, "missed_slots": 4}
    chain = host().chain.model_copy(update=loop)
    return host().model_copy(
        update={"chain": chain, "metrics": {}, "peers": [], "blocks": [], "slowest": host().slowest[:1]}
    )


def host_none() -> HostReport:
    """A host that adopted no block within the limits."""
    chain = host().chain.model_copy(update={"classes": {"too late": 7}})
    return host_few().model_copy(update={"chain": chain, "slowest": []})


def seal_load_test(store: Store, report: LoadReport, **changes: object) -> SealedRun:
    """Seal a run with the report of its load test, for the pages that show it."""
    target = report.targets[0]
    run = store.create("mesh", report.profile_name, target.name, {})
    entry = target.model_copy(update={"run_id": run.run_id})
    (run.raw / REPORT).write_bytes(json_bytes(report.model_copy(update={"targets": [entry]})))
    manifest = Manifest.model_validate({
        "run_id": run.run_id, "subject": Subject(system="mesh", name="cardano-rosetta-java", version=target.name),
        "profile_name": report.profile_name, "workload": {"corpus": report.corpus_hash}, "tool_version": VERSION,
        "profile": {"steps": {"duration_s": 10, "longest_s": 40, "requests_per_connection": 1},
                    "search": {"ladder": "double", "times": 3}},
        "seed": 1, "started_at": report.started_at, "ended_at": report.started_at, "host": HOST,
        "facts": [Fact(label="Network", value="cardano mainnet")], "status": Status.VALID,
        "labels": {"scenario": ["standard"], "hardware": ["mid", "8 cores"], "pruning": ["pruning enabled"]}, **changes,
    })  # fmt: skip
    return run.seal(manifest, MESH.catalogue(), [])


def fill_load_page(store: Store, folder: Path) -> None:
    """Fill a store with an imported page, two measured runs of one cell, one that met no SLA, and an invalid one."""
    (folder / "page.md").write_text(PAGE, encoding="utf-8")
    cm.ingest("mesh", folder / "page.md", store=store)
    labels = load_samples.LABELS[:2]
    for factor, day in ((1.0, "2026-11-20T10:11:12Z"), (1.2, "2026-11-21T10:11:12Z")):
        target = load_samples.target("2.1.0", factor, labels=labels)
        seal_load_test(store, load_samples.report(target, started_at=day))
    unmet = load_samples.bare("nothing passed", capacity=0.0, low=0.0, high=1.0, stopped_by="first step")
    warned = {"warnings": ["the generator used 95 % of its processors"], "labels": {"hardware": ["entry", "4 cores"]}}
    seal_load_test(store, load_samples.with_answer(unmet), **warned)
    seal_load_test(store, load_samples.with_answer(unmet), status=Status.INVALID)


@cache
def load_page() -> LoadPage:
    """The page over all of these runs, two of them with a file of their steps."""
    folder = temporary_folder()
    store = FixedStore(folder / "store")
    fill_load_page(store, folder)
    runs = store.sealed()
    stages = {run.run_id: f"page-stages/{run.run_id}.csv" for run in runs if not run.manifest.printed}
    return page_of(runs, stages, VERSION)
