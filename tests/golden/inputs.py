"""The inputs of the golden outputs: small results with fixed seeds, each computed once per process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import chainmark as cm
from chainmark.compare import compare
from chainmark.compare.aa import aa_report
from chainmark.compare.profiles import profiled
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.aa_report import AAReport
from chainmark.core.comparison import Comparison
from chainmark.core.history_report import HistoryReport
from chainmark.core.load_report import LoadReport
from chainmark.core.manifest import Incident
from chainmark.core.matrix_report import CellEntry, MatrixReport
from chainmark.core.qa_report import QaReport
from chainmark.core.release_page import ReleasePage
from chainmark.core.side_by_side import SideBySide
from chainmark.core.verdict import Verdict
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.host.document import host_document
from chainmark.systems.cardano.model.evidence_document import evidence_document
from chainmark.systems.cardano.model.explanation_document import explanation_document
from chainmark.systems.cardano.model.prediction_document import prediction_document
from chainmark.systems.cardano.published.document import published_document
from chainmark.systems.cardano.published.joined import compare_published
from chainmark.systems.cardano.published.results import PublishedReport, ReportStyle
from chainmark.systems.cardano.published.text import worded
from chainmark.systems.cardano.verified.document import verification_document
from chainmark.systems.cometbft.saturation.document import SaturationReport
from chainmark.systems.cometbft.saturation.evaluation import saturation_report
from chainmark.systems.mesh.page.document import page_document
from chainmark.trails.document import trail_document
from chainmark.trails.follower import Follower
from chainmark.trails.tails import tails_of
from chainmark.trails.trace import Trace
from chainmark.trails.trail import trails_of

from tests.golden import made_results
from tests.golden.fixed_store import FixedStore
from tests.golden.folders import temporary_folder
from tests.unit.compare import published_runs, qa_runs, release_histories
from tests.unit.compare.profiled_runs import profiled_run
from tests.unit.compare.searched_runs import REPORTED, searched
from tests.unit.compare.synthetic_runs import SyntheticRun, run, sides
from tests.unit.report import load_samples
from tests.unit.report.samples import SENTENCES, sample
from tests.unit.store.trail_runs import Timelines, key_of, sealed
from tests.unit.systems.cardano import made_reports, prediction_samples
from tests.unit.systems.cardano.verifications import verification
from tests.unit.systems.cometbft import saturation_samples

VERSION = "0.0.0"
WORSE = {"tx_latency_s": 1.38, "cpu_cores": 0.8, "goroutines_count": 0.78}
_INCIDENT_NS = 1_795_168_861_000_000_000


@cache
def comparison() -> Comparison:
    """A computed comparison with a metric that is worse, one that is better, and an incident."""
    baseline, candidate = sides(WORSE)
    candidate[1].manifest.incidents.append(Incident(time_ns=_INCIDENT_NS, what="node2 restarted its RPC server"))
    return compare(baseline, candidate, tool_version=VERSION)


@cache
def own_noise() -> AAReport:
    """Six runs of one build, and two earlier runs of it."""
    runs = [run("v1.0.1", number, run_noise=0.03, seed=400 + number) for number in range(1, 9)]
    return aa_report(runs[:6], runs[6:], VERSION)


@cache
def drawn() -> Comparison:
    """A comparison of two runs with all its charts."""
    return compare(*sides(WORSE, repetitions=1, seconds=30, drawn=True), tool_version=VERSION)


@cache
def single() -> Comparison:
    """A comparison of one run per side."""
    return compare(*sides(repetitions=1, seconds=30), tool_version=VERSION)


@cache
def explained() -> Comparison:
    """One run per side with profiles of four nodes. One function uses more CPU time in the candidate."""
    slow, same = ("main", "consensus.(*State).run", "consensus.finalize"), ("main", "p2p.gossip")
    nodes = [[{slow: 1.0 + node / 8, same: 5.0, ("main", "gone"): gone} for node in range(4)] for gone in (0.5, 0.0)]
    for node, stacks in enumerate(nodes[1]):
        stacks[slow] += 2.0 + node / 16
    baseline, candidate = sides(WORSE, repetitions=1, seconds=30)
    why = profiled(
        [profiled_run("v0.38.17", nodes[0])],
        [profiled_run("v1.0.1", nodes[1], number=2)],
        [baseline, candidate],
        is_asked=True,
    )
    return compare(baseline, candidate, why=why, tool_version=VERSION)


def _followable() -> tuple[SealedRun, SealedRun]:
    store = FixedStore(temporary_folder())
    return sealed(store, Timelines(6, 8).fill()), sealed(store, Timelines(6, 8, factor=1.2).fill(), "v2")


@cache
def followed() -> Comparison:
    """A comparison with tails, breakdowns by host, and block traces."""
    baseline, candidate = _followable()
    return compare([baseline], [candidate], follow=tails_of, tool_version=VERSION)


@cache
def block_trace(name: str) -> Trace:
    """A block trace; ``b3`` has a rival, and in ``b4`` one host does not report a stage."""
    run, _ = _followable()
    return Follower(run.scan_events("block_timelines"), trails_of(run.catalogue)[0], run.manifest).trace(key_of(name))


@cache
def transactions(key: str | None = None) -> Document:
    """The slowest transactions of a shipped run, or one of them."""
    store = temporary_folder()
    run = cm.import_samples(store)[0]
    return cm.transaction(run.id, key, slowest=3, store=store)


def versions() -> list[list[SyntheticRun]]:
    """Three versions with two runs each: the second like the first, the third far slower and with an incident."""
    versions_runs = [
        [published_runs.run(version, number, factor=factor, seed=seed + number) for number in (1, 2)]
        for version, factor, seed in (("1.0", 1.0, 10), ("1.1", 1.0, 20), ("1.2", 2.0, 30))
    ]
    versions_runs[2][0].manifest.incidents.append(Incident(time_ns=_INCIDENT_NS, what="a host restarted"))
    return versions_runs


@cache
def published(style: ReportStyle) -> PublishedReport:
    """The published style of three versions."""
    return worded(compare_published(versions(), style, tool_version=VERSION))


@cache
def side_by_side() -> SideBySide:
    """Three versions side by side."""
    return compare_side_by_side(versions(), tool_version=VERSION)


@cache
def load() -> LoadReport:
    """Two servers, requirements that are met and missed."""
    return load_samples.report(
        load_samples.target("2.0.0", labels=load_samples.LABELS[:3]),
        load_samples.target("2.1.0", 0.5, labels=load_samples.LABELS[:3]),
        required={"network_status.clients": 1000.0, "account_balance.clients": 32.0, "account_balance.rate": 1.0},
    )


@cache
def load_unmet() -> LoadReport:
    """A server that misses the SLA even with one client."""
    capacity = load_samples.bare("nothing passed", capacity=0.0, low=0.0, high=1.0, stopped_by="first step")
    return load_samples.with_answer(capacity)


@cache
def load_plan() -> MatrixReport:
    """Two servers under one scenario: one meets its SLA, one misses it; a third has no address."""
    cells = [
        CellEntry(scenario="standard", server=name, words={"scenario": "standard"}, run_id=f"run-{name}", report=report)
        for name, report in (
            ("small", load_unmet()),
            ("large", load_samples.report(load_samples.target("2.0.0", labels=load_samples.LABELS[:2]))),
        )
    ]
    absent = CellEntry(scenario="standard", server="absent", missing="it has no address", ended=Verdict.NOT_RUN)
    return MatrixReport(
        tool_version=VERSION,
        title="Load tests of v2.0.0",
        subtitle="",
        date="2026-11-20T10:11:00Z",
        system="mesh",
        plan="two",
        description="",
        experiment="mesh-load-two-20261120",
        machine=[],
        interrupted=False,
        cells=[*cells, absent],
    )


@cache
def history() -> HistoryReport:
    """Twenty releases with two gating figures. One gets worse at the thirteenth release, and a diagnostic drifts."""
    return release_histories.stepped()


@cache
def saturation() -> SaturationReport:
    """Two versions, three repetitions, an excluded run, and a published table."""
    grid = ((1, 200), (1, 400), (2, 200), (1, 800), (2, 800), (4, 800))
    runs = {
        name: [
            saturation_samples.run(c, r, min(1.0, factor * capacity / (c * r)), position=place,
                                   latency=1.0 + c * r / 400, throughput=factor * min(capacity, c * r))
            for place, factor in enumerate((1.0, 0.97, 1.02))
            for c, r in grid
        ]
        for name, capacity in (("old", 500), ("new", 450))
    }  # fmt: skip
    runs["new"].append(saturation_samples.run(1, 800, 0.1, position=40, excluded="no node was lost: node0 died"))
    printed = [saturation_samples.run(c, r, share) for c, r, share in ((1, 200, 1.0), (1, 400, 0.876), (2, 200, 0.972))]
    version = saturation_samples.version("theirs (published)", printed, published=True)
    all_versions = [saturation_samples.version(name, of) for name, of in runs.items()]
    return saturation_report(saturation_samples.whole_test(), [*all_versions, version], saturation_samples.METRICS)


def ingest_releases(store: Path, *, again: bool = False) -> None:
    """Fill a store with eleven releases under two workloads, of which the last is slower under one.

    Args:
        store: the folder.
        again: add runs of two earlier builds, which show the noise.
    """
    deviations = (0.004, -0.003, 0.002, -0.004, 0.003, -0.002, 0.004, -0.003, 0.002, -0.001)
    for workload, start, slow in (("value-only", "18:52:16", "0.41"), ("Plutus countdown loop", "20:00:00", "0.361")):
        last = made_reports.column("10.6.2", "2026-03-12", "1d697f1", 1.001, **{"Fetch duration": slow})
        reports = {start: [*made_reports.series(deviations), last]}
        if again:
            reports[f"{start}-again"] = [
                made_reports.column(f"9.{number}.0", f"2024-{number + 1:02}-21", f"{number:07x}", 1.0 + deviation)
                for number, deviation in ((2, 0.004), (5, -0.005))
            ]
        for name, columns in reports.items():
            for column in columns:
                column["facts"]["Cluster system start time"] = start
            report = made_reports.content(*columns, workload=workload)
            cm.ingest("cardano", made_reports.written(store / f"{name}.json", report), store=store)


@cache
def release_page() -> ReleasePage:
    """A release equal to earlier ones under one workload and slower under another, with a note and a statement."""
    store = temporary_folder()
    ingest_releases(store)
    cm.annotate("10.6.2", "the clock of node-3 was 40 ms late", store=store)
    signature = cm.Signature("Ada Lovelace", "The first release with the new mempool.", "2026-03-20")
    page = cm.release("cardano", "10.6.2", signature=signature, store=store).result
    assert isinstance(page, ReleasePage)
    return _of_this_version(page)


def _of_this_version(page: ReleasePage) -> ReleasePage:
    own = {"tool_version": VERSION}
    against = [
        by_workload.model_copy(
            update={**own, "comparisons": [pair.model_copy(update=own) for pair in by_workload.comparisons]}
        )
        for by_workload in page.against
    ]
    return page.model_copy(update={**own, "against": against})


def sealed_run() -> Document:
    """The document of a sealed run with a note."""
    store = FixedStore(temporary_folder())
    run = sealed(store, Timelines(3, 4).fill())
    cm.annotate(run.run_id, "the clock of node-2 was late", store=store)
    return cm.open_run(run.run_id, store=store).document()


@cache
def qa() -> QaReport:
    """A candidate that is slower, a metric that cannot be compared, and a scenario that was not run."""
    return qa_runs.report({"tx_latency_s": 1.5, "rpc_latency_s": 2.0}, incomparable=["rpc_latency_s"])


@cache
def qa_equal() -> QaReport:
    """A candidate that is equal to its baseline."""
    return qa_runs.report()


RESULTS: dict[str, Callable[[], BaseModel]] = {
    **{f"sample-{verdict.value}": partial(sample, verdict) for verdict in SENTENCES},
    "compare": comparison,
    "compare-drawn": drawn,
    "compare-single": single,
    "compare-followed": followed,
    "compare-explained": explained,
    "side-by-side": side_by_side,
    "aa": own_noise,
    "load": load,
    "load-unmet": load_unmet,
    "load-plan": load_plan,
    "history": history,
    "saturation": saturation,
    "qa": qa,
    "qa-equal": qa_equal,
    "release-page": release_page,
    "bisect": partial(searched, {5: REPORTED[5]}),
    "bisect-range": partial(searched, REPORTED),
    "bisect-undecided": partial(searched, noise=0.15, factor=2.0, most_runs=10),
    "bisect-no-change": partial(searched, factor=1.0, noise=0.01),
    "margins": made_results.margins,
    "cluster": made_results.cluster_ready,
    "cluster-not-ready": made_results.cluster_not_ready,
    "corpus-stored": made_results.corpus_stored,
    "corpus-checked": made_results.corpus_checked,
    "history-check": made_results.history_quiet,
    "history-check-alarms": made_results.history_alarms,
}


def _laid_out(make: Callable[[], BaseModel], lay_out: Callable[[Any], Document] = document_of) -> Document:
    return lay_out(make())


DOCUMENTS: dict[str, Callable[[], Document]] = {
    **{name: partial(_laid_out, make) for name, make in RESULTS.items()},
    "run": sealed_run,
    "by-workload": lambda: document_of(release_page().against[0]),
    "block": partial(_laid_out, partial(block_trace, "b4"), trail_document),
    "block-rival": partial(_laid_out, partial(block_trace, "b3"), trail_document),
    "transaction": partial(transactions, "0-1020"),
    "transactions": transactions,
    "published-typst": partial(_laid_out, partial(published, ReportStyle.TYPST), published_document),
    "published-org": partial(_laid_out, partial(published, ReportStyle.ORG), published_document),
    "prediction": partial(_laid_out, prediction_samples.prediction, prediction_document),
    "explanation": partial(_laid_out, prediction_samples.explanation, explanation_document),
    "explanation-explained": partial(_laid_out, partial(prediction_samples.explanation, explained=True),
                                     explanation_document),
    "evidence": partial(_laid_out, prediction_samples.evidence, evidence_document),
    "host": partial(_laid_out, made_results.host, host_document),
    "host-beside": partial(_laid_out, made_results.host_beside, host_document),
    "host-few": partial(_laid_out, made_results.host_few, host_document),
    "host-none": partial(_laid_out, made_results.host_none, host_document),
    "load-page": partial(_laid_out, made_results.load_page, page_document),
    "verification": partial(_laid_out, verification, verification_document),
    "verification-differs": partial(_laid_out, partial(verification, differs=True), verification_document),
}  # fmt: skip
