"""Simulated qualifications with every kind of scenario, based on synthetic runs."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.compare.qa import qa_report
from chainmark.compare.qa_scenarios import QaRuns, ScenarioRuns
from chainmark.core.manifest import Fact, Gate, GateKind, GateStatus, Status, Subject
from chainmark.core.qa_plan import QaPlan
from chainmark.core.qa_report import QaReport
from chainmark.systems.cometbft.ten_percent_rule.rule import TenPerCent

from tests.unit.compare.synthetic_runs import SyntheticRun, catalogue, run, sides

SECONDS = 30  # length of each run, enough for rates over 20 s
COMMIT = "4ced46d3d742bdc6093050bd67d9bbde830b6df2"
PLOTS = [
    {"id": "latencies", "title": "Latencies", "metric": "tx_latency_s", "y_label": "s",
     "points": "ended together", "mean": True},
    {"id": "block_rate", "title": "Blocks per minute", "metric": "block_interval_s", "y_label": "blocks per minute",
     "points": "rows per second", "factor": 60.0, "limit": 120},
    {"id": "memory", "title": "Memory", "metric": "rss_bytes", "y_label": "MB", "factor": 1e-6, "by": "node",
     "mean": True, "limit": 100},
    {"id": "mempool", "title": "Mempool", "metric": "mempool_txs_count", "y_label": "transactions", "limit": 5100},
]  # fmt: skip
SCENARIOS: list[dict[str, object]] = [
    {"id": "fixed-load", "title": "Fixed load", "question": "Is it slower?", "method": "A load.",
     "profile": "cometbft/demo", "plots": ["latencies", "block_rate", "memory", "mempool"]},
    {"id": "emulation", "title": "With latency emulation", "question": "And far away?", "method": "Delays.",
     "kind": "informational", "profile": "cometbft/demo", "gating": False, "beside": "fixed-load",
     "sides": [{"id": "candidate", "version": "candidate", "label": "far"}], "plots": ["latencies"]},
    {"id": "big", "title": "200 nodes", "question": "At scale?", "method": "Many nodes.",
     "profile": "cometbft/demo", "needs": ["cores:64"], "gating": False},
]  # fmt: skip
HELD = "The time of a header means something else."


def plan(scenarios: Sequence[dict[str, object]] | None = None) -> QaPlan:
    """A plan with every kind of scenario."""
    return QaPlan.model_validate({
        "system": "cometbft", "name": "sample", "title": "A sample", "description": "Made up.",
        "scenario": SCENARIOS if scenarios is None else list(scenarios), "plot": PLOTS,
    })  # fmt: skip


def made_of(
    baseline: Sequence[SyntheticRun],
    candidate: Sequence[SyntheticRun],
    *,
    scenarios: Sequence[dict[str, object]] | None = None,
    incomparable: Sequence[str] = (),
    big_lacks: str = "64 processors; this machine has 2",
) -> QaRuns:
    """The runs of a sample plan. ``incomparable`` metrics cannot be compared because the block times differ."""
    whole = plan(scenarios)
    known = catalogue()
    conditions = [
        condition.model_copy(update={"makes_incomparable": list(incomparable)}) for condition in known.conditions
    ]
    known = known.model_copy(update={"conditions": conditions})
    far = [run("v1.0.1", 1, side="candidate", factors={"tx_latency_s": 2.0}, seed=900, seconds=SECONDS)]
    far[0].manifest.run_id += "-far"
    for synthetic in [*baseline, *candidate, *far]:
        synthetic.catalogue = synthetic.catalogue.model_copy(update={"conditions": conditions})
    content = {
        "fixed-load": ScenarioRuns(whole.scenarios[0], "qa-fixed-load", {"baseline": baseline, "candidate": candidate}),
        "emulation": ScenarioRuns(_named(whole, "emulation"), "qa-emulation", {"candidate": far}),
        "big": ScenarioRuns(_named(whole, "big"), "qa-big", {}, lacking=[big_lacks]),
    }
    return QaRuns(
        plan=whole,
        experiment="cometbft-qa-sample",
        seed=7,
        baseline=Subject(system="cometbft", name="CometBFT", version="v0.38.17"),
        candidate=Subject(system="cometbft", name="CometBFT", version="v1.0.1"),
        scenarios=[content[scenario.id] for scenario in whole.scenarios if scenario.id in content],
        commits=("", COMMIT),
        machine=[Fact(label="Processor", value="a processor × 2")],
        catalogue=known,
        tool_version="0.1.0",
        second_rule=TenPerCent(),
    )


def _named(whole: QaPlan, scenario_id: str):  # type: ignore[no-untyped-def]
    return next((scenario for scenario in whole.scenarios if scenario.id == scenario_id), whole.scenarios[0])


def invalid(synthetic: SyntheticRun) -> SyntheticRun:
    """The same run with a failed gate."""
    gate = Gate(id="load_met", label="offered load met", status=GateStatus.FAIL, measured="91 %", limit=">= 98 %")
    synthetic.manifest.gates.append(gate)
    synthetic.manifest.status = Status.INVALID
    return synthetic


def failed(synthetic: SyntheticRun, measured: str) -> SyntheticRun:
    """The same run, failed by its subject."""
    gate = Gate(
        id="recovered",
        label="recovered",
        status=GateStatus.FAIL,
        measured=measured,
        limit="all",
        kind=GateKind.SUBJECT,
        conclusive=True,
    )
    synthetic.manifest.gates.append(gate)
    synthetic.manifest.status = Status.FAILED
    return synthetic


def report(factors: dict[str, float] | None = None, **settings: object) -> QaReport:
    """The report of a sample qualification. ``factors`` multiply the candidate's metrics."""
    baseline, candidate = sides(factors, seconds=SECONDS)
    return qa_report(made_of(baseline, candidate, **settings))  # type: ignore[arg-type]
