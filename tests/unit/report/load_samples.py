"""Synthetic load tests whose latencies grow with the level as in a queue, and whose figures are known."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from chainmark.capacity.figures import centiles_of_due, fixed_levels
from chainmark.capacity.summaries import summarised
from chainmark.core.load_report import (
    CapacityEntry,
    ConditionEntry,
    EndpointEntry,
    ErrorEntry,
    Kind,
    LoadReport,
    SecondEntry,
    ServiceLevel,
    StepEntry,
    StepFigures,
    StepOutcome,
    TargetEntry,
)
from chainmark.core.manifest import Fact, Subject

SLA = ServiceLevel(p95_s=None, p99_s=1.0, error_share=0.01, achieved_share=0.99, min_requests=300)
LABELS = (
    "/network/status", "/account/balance", "/account/coins", "/block", "/block/transaction", "/search/transactions",
    "/construction/metadata",
)  # fmt: skip
FRACTIONS = [0.0, *(i / 50 for i in range(1, 50)), 0.99, 0.995, 0.998, 0.999, 0.9999, 1.0]
WARM_UP_S, WINDOW_S = 1.0, 10.0
BURST = {"code": "5005", "message": "Can't acquire a connection from the pool", "retriable": "true"}


def quantile_s(median_s: float, fraction: float) -> float:
    """A quantile of a log-normal distribution whose p99 is four times its median."""
    spread = math.log(4.0) / NormalDist().inv_cdf(0.99)
    return median_s * math.exp(spread * NormalDist().inv_cdf(min(max(fraction, 1e-4), 0.99999)))


def step(number: int, kind: Kind, level: float, top: float, **changes: Any) -> StepEntry:
    """A step whose p99 reaches 1 s at ``top``."""
    median_s = 0.25 * (level / top) ** 1.1
    per_s = level if kind == "rate" else level / median_s / 1.3
    due = round(per_s * WINDOW_S)
    p99 = quantile_s(median_s, 0.99)
    outcome: StepOutcome = "pass" if p99 <= 1.0 else "fail"
    failed = sum(error.count for error in changes.get("errors", []))
    values: dict[str, Any] = {
        "number": number, "kind": kind, "level": level, "phase": "probe", "outcome": outcome, "point_outcome": outcome,
        "reason": None if outcome == "pass" else "p99", "extended": False, "partial": False, "ended": "time",
        "warm_up_s": WARM_UP_S, "window_s": WINDOW_S, "due": due, "ok": due - failed, "failed": failed, "unsent": 0,
        "ok_per_s": (due - failed) / WINDOW_S, "p50_s": median_s, "p90_s": quantile_s(median_s, 0.9),
        "p95_s": quantile_s(median_s, 0.95), "p99_s": p99, "max_s": quantile_s(median_s, 0.9999),
        "lag_p99_s": 0.0002 if kind == "rate" else None, "generator_cpu_share": 0.12, "bytes_in": due * 300,
        "conditions": [
            ConditionEntry(name="p99", measured=p99, limit=1.0, outcome=outcome, low=0.002, high=0.008),
            ConditionEntry(name="errors", measured=failed / max(due, 1), limit=0.01, outcome="pass"),
            *([ConditionEntry(name="achieved", measured=0.999, limit=0.99, outcome="pass")] if kind == "rate" else []),
        ],
        "errors": [], "curve": [(fraction, quantile_s(median_s, fraction)) for fraction in FRACTIONS],
    }  # fmt: skip
    values |= changes
    figures = StepFigures(**{name: values[name] for name in StepFigures.model_fields if name in values})
    return StepEntry(**values, of_due=centiles_of_due(figures, values["conditions"]))


def seconds(item: StepEntry) -> list[SecondEntry]:
    """The timeline of a step: constant, with all errors in the fourth measured second."""
    across = round(item.warm_up_s + item.window_s)
    each = item.due // max(across, 1)
    rows = []
    for second in range(across):
        wave = 1.0 + 0.1 * math.sin(second)
        counts = {error.kind: error.count for error in item.errors} if second == 4 else {}
        p50, p99, longest = (None if value is None else value * wave for value in (item.p50_s, item.p99_s, item.max_s))
        rows.append(
            SecondEntry(
                step=item.number, second=second, started=each, ok=max(0, each - sum(counts.values())),
                failed=sum(counts.values()), in_flight=round(item.level), queued=0, p50_s=p50, p99_s=p99, max_s=longest,
                errors=counts, generator_lost_share=0.01, server_lost_share=0.22 if second == 4 else 0.02,
                stolen_share=0.0,
            )
        )  # fmt: skip
    return rows


def burst(count: int = 150) -> list[ErrorEntry]:
    """The errors of an exhausted connection pool, and a few timeouts."""
    return [
        ErrorEntry(kind="status", status=500, reported=BURST, detail="", count=count, first_s=4.2),
        ErrorEntry(kind="timeout", status=None, reported={}, detail="no answer in 10 s", count=3, first_s=4.9),
    ]


def search(kind: Kind, top: float, first_number: int = 1) -> tuple[CapacityEntry, list[StepEntry]]:
    """Double from 1 until the top is passed, bisect twice, then confirm both ends."""
    levels = [1.0]
    while levels[-1] <= top:
        levels.append(levels[-1] * 2.0)
    low, high = levels[-2], levels[-1]
    phases = ["probe"] * len(levels)
    for _ in range(3):
        middle = float(round((low + high) / 2.0))
        if middle in (low, high):
            break
        levels.append(middle)
        phases.append("bisect")
        low, high = (middle, high) if middle <= top else (low, middle)
    levels += [low, high]
    phases += ["confirm", "confirm"]
    steps = []
    for place, (level, phase) in enumerate(zip(levels, phases, strict=True)):
        errors = burst() if level == high and phase == "confirm" else []
        steps.append(step(first_number + place, kind, level, top, phase=phase, errors=errors))
    best = next(step for step in reversed(steps) if step.level == low)
    fail = next(step for step in steps if step.level == high)
    capacity = CapacityEntry(
        kind=kind, capacity=low, low=low, high=high, stopped_by="p99", condition="p99", finding="found",
        confirmed=True, best_step=best.number, fail_step=fail.number,
    )  # fmt: skip
    return capacity, steps


def endpoint(label: str, top: float, *, rate: bool = True, **changes: Any) -> EndpointEntry:
    """An endpoint with this capacity in clients, and four times as many requests per second."""
    values: dict[str, Any] = {
        "id": label.strip("/").replace("/", "_"), "label": label, "requests": 120,
        "strata": {"recent": 60, "old": 60}, "sla": SLA, **changes,
    }  # fmt: skip
    if not {"capacities", "steps"} <= changes.keys():
        clients, steps = search("clients", top)
        capacities = [clients]
        if rate:
            by_rate, more = search("rate", 4.0 * top, len(steps) + 1)
            capacities.append(by_rate)
            steps = [*steps, *more]
        values = {"capacities": capacities, "steps": steps, **values}
        values = {"seconds": [row for step in steps for row in seconds(step)], **values}
    values.setdefault("seconds", [])
    return EndpointEntry(**{"fixed": fixed_levels(values["steps"]), **values})


def target(name: str = "2.1.0", factor: float = 1.0, labels: tuple[str, ...] = LABELS, **changes: Any) -> TargetEntry:
    """A server. A larger factor gives larger capacities."""
    if "endpoints" not in changes:
        changes["endpoints"] = [endpoint(label, factor * (60 + 70 * place)) for place, label in enumerate(labels)]
    values: dict[str, Any] = {
        "name": name, "url": "http://127.0.0.1:8082",
        "subject": Subject(system="mesh", name="cardano-rosetta-java", version=name), "run_id": f"run-{name}",
        "facts": [Fact(label="Network", value="cardano mainnet"), Fact(label="Pruning", value="on, 30 days")],
        "skipped": {"mempool": "not offered: 404, text instead of JSON"},
    }  # fmt: skip
    return TargetEntry(**{**values, **changes})


def report(*targets: TargetEntry, **changes: Any) -> LoadReport:
    """A load test of these servers."""
    values: dict[str, Any] = {
        "title": "Load test of cardano-rosetta-java", "system": "mesh", "profile_name": "rosetta-sla",
        "scenario": "pruning on", "started_at": "2026-11-20T10:11:12Z", "tool_version": "0.5.0",
        "machine": [Fact(label="Processor", value="8 × AMD EPYC 7443P"), Fact(label="Memory", value="47 GiB")],
        "corpus_hash": "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "targets": list(targets) or [target()],
    }  # fmt: skip
    return summarised(LoadReport(**{**values, **changes}))


def bare(finding: str = "found", **changes: Any) -> CapacityEntry:
    """A capacity without its steps."""
    values: dict[str, Any] = {
        "kind": "clients", "capacity": 64.0, "low": 64.0, "high": 72.0, "stopped_by": "p99", "condition": "p99",
        "finding": finding, "confirmed": True, "best_step": None, "fail_step": None,
    }  # fmt: skip
    return CapacityEntry(**{**values, **changes})


def with_answer(capacity: CapacityEntry, **changes: Any) -> LoadReport:
    """A load test of one endpoint with this capacity and without steps."""
    entry = endpoint("/block", 64, rate=False, capacities=[capacity], steps=[], seconds=[])
    return report(target(endpoints=[entry]), **changes)
