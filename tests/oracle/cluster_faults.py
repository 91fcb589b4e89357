"""Every kind of fault that the generator can add to logs: what an import must still find, and what it must report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from chainmark.core.manifest import GateStatus
from chainmark.store.sealed import SealedRun

from tests.oracle.cluster_analysis import Key
from tests.oracle.cluster_blocks import Life
from tests.oracle.cluster_runs import samples_of, with_values
from tests.oracle.cluster_truth import OBSERVED, Truth

# Relative tolerance of quotients whose last bit depends on the order of the operations.
RATE_TOLERANCE = 1e-12
RATES = ("CentiCpu", "CentiGC", "CentiMut", "Alloc", "FsWr")
OF_SAMPLES = (*RATES, "GcsMajor", "GcsMinor")
OF_BLOCKS_AND_HOSTS = (
    "cdf0",
    "cdf1",
    "cdfForger",
    "cdfPeer",
    "cdfBlocks",
    "cdfBlockBattle",
    "cdfBlockSize",
    "peer_",
    "slot_",
)
# Reported for the newest slot at that time, which the truth does not fully specify.
OF_THE_NEWEST_SLOT = ("cdfDensity", "utxo_entries")
# Old nodes print the density with eight digits.
PRINTED_TOLERANCE = {"cdfDensity": 1e-7}


@dataclass(frozen=True)
class Fault:
    """One fault, and what an import must report about it.

    Attributes:
        order: the generator's option; "" is no fault.
        gates: the gates that warn; all others pass.
        notes: texts that incidents, warnings or gates must contain.
        lines: how line counts change against the run without the fault, in units of the lines that the fault removed,
            added or damaged; "all" is their sum.
        lost: metrics that may lose samples of the truth.
    """

    order: str
    gates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the fault."""
        return self.order.partition(":")[0] or "none"


FAULTS = (
    Fault(""),
    Fault("late:node-1@125", gates=("hosts_complete",), notes=("node-1 starts logging",)),
    Fault(
        "restart:node-2@100-130",
        gates=("no_restarts", "no_gaps"),
        notes=("node-2 had restarted", "node-2 logs nothing about slots 100 to 124"),
    ),
    Fault("crash:node-3@100", gates=("hosts_complete",), notes=("node-3",)),
    Fault("stall:node-4@90-130"),
    Fault("fork:node-0@110"),
    Fault(
        "gap:node-1@125-155",
        gates=("no_gaps",),
        notes=("node-1 logs nothing about slots 125 to 154",),
        lines={"all": -1},
    ),
    Fault("dropped:node-2=5%", lines={"all": -1}),
    # A sample that is reported twice at the same time has no rate.
    Fault("duplicated:node-2=5%", lines={"all": 1, "malformed": 0}, lost=OF_SAMPLES),
    Fault("corrupt:node-3=8%", gates=("lines_readable",), notes=("node-3",), lines={"malformed": 1, "all": 0}),
    Fault("foreign:node-3=20%", gates=("lines_readable",), notes=("node-3",), lines={"all": 1, "decoded": 0}),
    Fault("truncated:node-5", notes=("node-5 has 1 malformed",), lines={"malformed": 1, "all": 1}),
    Fault("wrong-host:node-0=elsewhere", lines={"all": 0, "decoded": 0}),
    Fault("falling-edges:node-0", lines={"all": 0, "malformed": 0, "ignored": 0}),
    Fault("non-blocking:node-1=60%", lines={"skipped": 1, "decoded": 0}),
    Fault("rollback:node-1=60%", lines={"skipped": 1, "decoded": 0}),
    Fault("no-announcement:node-4=40%", lines={"decoded": -1, "all": -1}),
    Fault("no-send:node-4=40%", lines={"decoded": -1, "all": -1}),
    Fault("missed-start:node-2=10%"),
    Fault("double-start:node-2=10%"),
    Fault("limited-adoptions:node-3=0.05", lines={"decoded": -1, "all": -1}),
    Fault("clock-offset:node-4=+200ms", gates=("clocks",), lines={"all": 0, "decoded": 0}),
    Fault("clock-drift:node-4=+500ppm", gates=("clocks",), lines={"all": 0, "decoded": 0}),
)


@dataclass(frozen=True)
class Row:
    """One comparison: the expected and the actual values of one metric, or of one stage of all blocks."""

    what: str
    expected: str
    got: str
    wrong: list[str]

    @property
    def equal(self) -> bool:
        """Whether both are equal."""
        return not self.wrong


def metric_rows(truth: Truth, run: SealedRun, fault: Fault) -> Iterator[Row]:
    """Every metric's samples compared with the truth."""
    expected, got = with_values(truth.samples()), samples_of(run)
    rows = {(row["slot"], row["host"]) for row in truth.slots if row["loop_starts"]}
    for metric, values in expected.items():
        samples = got[metric]
        if metric in OF_THE_NEWEST_SLOT:
            samples = {key: value for key, value in samples.items() if key in values}
        elif metric in OF_SAMPLES:
            # A starting process is sampled before its forge loop runs. The truth begins with the forge loop.
            samples = {key: value for key, value in samples.items() if key in values or (key[0] - 1, key[1]) in rows}
        elif not metric.startswith(OF_BLOCKS_AND_HOSTS):
            # Without a reported loop start, the truth does not specify the result of the slot's other lines.
            samples = {key: value for key, value in samples.items() if key in values or key in rows}
        tolerance = RATE_TOLERANCE if metric in RATES else PRINTED_TOLERANCE.get(metric, 0.0)
        yield Row(metric, _mean(values), _mean(samples), _wrong(values, samples, tolerance, metric in fault.lost))


def _mean(values: Mapping[Key, float]) -> str:
    return f"{math.fsum(values.values()) / len(values):.9g} of {len(values)}" if values else "nothing"


def _wrong(expected: Mapping[Key, float], got: Mapping[Key, float], tolerance: float, may_lose: bool) -> list[str]:
    mistakes = []
    for key in sorted(expected.keys() | got.keys(), key=str):
        a, b = expected.get(key), got.get(key)
        if b is None and may_lose:
            continue
        if a is None or b is None or abs(a - b) > tolerance * abs(a):
            mistakes.append(f"{key}: expected {a}, got {b}")
    return mistakes


def life_rows(truth: Truth, run: SealedRun) -> Iterator[Row]:
    """Every stage of every block on every host, in ns, and the blocks whose lines contradict each other."""
    stages = (*OBSERVED, "forged", "adoption")
    by_stage: dict[str, dict[Key, float]] = {stage: {} for stage in (*stages, "error")}
    for row in run.events("block_timelines").iter_rows(named=True):
        key = (row["host"], row["block"])
        if row["role"] == "error":
            by_stage["error"][key] = 1
            continue
        adoptions = [at_ns for at_ns in (row["adopted_ns"], row["switched_ns"]) if at_ns is not None]
        reported_ns = {stage: row[f"{stage}_ns"] for stage in (*OBSERVED, "forged")}
        reported_ns["adoption"] = min(adoptions, default=None)
        for stage, at_ns in reported_ns.items():
            if at_ns is not None:
                by_stage[stage][key] = at_ns
    true: dict[str, dict[Key, float]] = {stage: {} for stage in (*stages, "error")}
    for host, blocks in truth.timelines().items():
        for block, timeline in blocks.items():
            _add(true, (host, block), timeline)
    for stage, values in true.items():
        samples = by_stage[stage]
        yield Row(f"life: {stage}", str(len(values)), str(len(samples)), _wrong(values, samples, 0.0, may_lose=False))


def _add(true: dict[str, dict[Key, float]], key: Key, timeline: Life) -> None:
    if timeline.role == "error":
        true["error"][key] = 1
        return
    for stage, at_ns in timeline.times.items():
        if stage in true:
            true[stage][key] = at_ns


def naming_rows(run: SealedRun, fault: Fault) -> Iterator[Row]:
    """Whether exactly the lost data are reported."""
    manifest = run.manifest
    warned = {gate.id for gate in manifest.gates if gate.status is not GateStatus.PASS}
    # Whether the chain is complete depends on the hosts that forged while lines were lost; the chain itself is
    # compared. Whether one of many hosts ever forged depends on how long it ran.
    warned -= {"chain_complete", "messages_complete"}
    wrong = sorted(warned ^ set(fault.gates))
    yield Row("gates that warn", ", ".join(fault.gates) or "none", ", ".join(sorted(warned)) or "none", wrong)
    details = [f"{gate.measured} {gate.detail}" for gate in manifest.gates]
    reported_of = [*manifest.warnings, *(incident.what for incident in manifest.incidents), *details]
    for note in fault.notes:
        named = next((text for text in reported_of if note in text), "")
        yield Row("what is said", note, named[:60] or "nothing", [] if named else [f"nobody says: {note}"])


def line_rows(truth: Truth, plain: SealedRun, run: SealedRun, fault: Fault) -> Iterator[Row]:
    """How the fault changed the line counts, against the run without it."""
    before, after = plain.manifest.counts["lines"], run.manifest.counts["lines"]
    damaged = sum(row["fault_lines"] for row in truth.faults)
    for class_, sign in fault.lines.items():
        change = sum(after.values()) - sum(before.values()) if class_ == "all" else after[class_] - before[class_]
        expected = sign * damaged
        wrong = [] if change == expected else [f"{class_} changed by {change} lines, the fault by {expected}"]
        yield Row(f"lines: {class_}", f"{expected:+}", f"{change:+}", wrong)


def all_rows(truth: Truth, plain: SealedRun, run: SealedRun, fault: Fault) -> list[Row]:
    """All comparisons for one fault; ``plain`` is the import of the same cluster without it."""
    rows = [*metric_rows(truth, run, fault), *life_rows(truth, run)]
    return [*rows, *naming_rows(run, fault), *line_rows(truth, plain, run, fault)]
