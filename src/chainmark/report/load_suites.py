"""The cases of a load test: a suite per server, a case for each capacity of each endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from chainmark.capacity.summaries import error_share
from chainmark.capacity.verdict import Ruling
from chainmark.core.load_report import CapacityEntry, EndpointEntry, LoadReport, StepEntry, TargetEntry
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report import load_text as text


def load_suites(report: LoadReport, ruled: Sequence[Ruling]) -> list[Suite]:
    """One suite per server, in the document's order."""
    names = text.names_of(report.targets)
    return [
        _suite(report, target, name, [ruling for ruling in ruled if ruling.number == number])
        for number, (target, name) in enumerate(zip(report.targets, names, strict=True))
    ]


def _suite(report: LoadReport, target: TargetEntry, name: str, ruled: Sequence[Ruling]) -> Suite:
    endpoints = {endpoint.id: endpoint for endpoint in target.endpoints}
    cases = [_case(ruling, endpoints.get(ruling.endpoint)) for ruling in ruled]
    measured = {ruling.endpoint for ruling in ruled}
    cases += [_not_run(id_, reason) for id_, reason in target.skipped.items() if id_ not in measured]
    if target.interrupted:
        cases.append(_not_run("whole test", "interrupted; what was measured until then is reported"))
    return Suite(
        name,
        cases,
        properties=_properties(report, target),
        host=_host(target.url),
        started_at=report.started_at,
        messages=target.warnings,
    )


def _case(ruling: Ruling, endpoint: EndpointEntry | None) -> Case:
    steps = [step for step in endpoint.steps if step.kind == ruling.kind or ruling.kind is None] if endpoint else []
    capacity = text.capacity_of(endpoint, ruling.kind) if endpoint and ruling.kind else None
    return Case(
        _case_id(ruling),
        ruling.name,
        ruling.verdict,
        f"{ruling.name}: {ruling.reason}",
        gates=ruling.gates,
        figures=_figures(endpoint, capacity) if endpoint and capacity else {},
        seconds=_seconds(steps),
    )


def _case_id(ruling: Ruling) -> str:
    if ruling.course:
        return f"{ruling.endpoint}.{ruling.course.replace(' ', '_')}"
    if ruling.is_of_drift:
        return f"{ruling.endpoint}.drift"
    if ruling.is_of_levels:
        return f"{ruling.endpoint}.fixed"
    return f"{ruling.endpoint}.{ruling.kind}" if ruling.kind else ruling.endpoint


def _not_run(name: str, reason: str) -> Case:
    return Case(name, name, Verdict.NOT_RUN, reason or "not measured")


def _properties(report: LoadReport, target: TargetEntry) -> list[tuple[str, str]]:
    """The tested subject."""
    results = [
        ("title", report.title),
        ("scenario", report.scenario),
        ("profile", report.profile_name),
        ("chainmark", report.tool_version),
        ("url", target.url),
        ("server", f"{target.subject.name} {target.subject.version}"),
        ("run", target.run_id),
    ]
    return [*results, ("corpus_blake3", report.corpus_hash)] if report.corpus_hash else results


def _figures(endpoint: EndpointEntry, capacity_entry: CapacityEntry) -> dict[str, float | str]:
    best = text.shown_step(endpoint, capacity_entry)
    figures: dict[str, float | None] = {
        "capacity": capacity_entry.capacity,
        "low": capacity_entry.low,
        "high": capacity_entry.high,
    }
    if best:
        figures |= {"requests": best.due, "failed": best.failed}
        figures |= {"p95_s": best.of_due.p95.value_s, "p99_s": best.of_due.p99.value_s}
        figures |= {"error_share": error_share(best), "ok_per_s": best.ok_per_s}
    finite = {name: value for name, value in figures.items() if value is not None and math.isfinite(value)}
    return {
        **finite,
        "stopped_by": capacity_entry.stopped_by,
        "finding": capacity_entry.finding,
        "confirmed": "yes" if capacity_entry.confirmed else "no",
    }


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "localhost"
    except ValueError:
        return "localhost"


def _seconds(steps: Iterable[StepEntry]) -> float:
    """Seconds of the warm-ups and windows."""
    return math.fsum(step.warm_up_s + step.window_s for step in steps)
