"""The endpoints of a mix, each by itself, at the levels that determine the mix's capacity."""

from __future__ import annotations

from collections.abc import Iterator

from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, PartEntry, StepEntry, TargetEntry
from chainmark.core.verdict import Verdict
from chainmark.report import load_text as text
from chainmark.report.blocks import Column, Table, TableCell, TableRow, words
from chainmark.report.wording import verdict_cell

_QUIET = TableCell(units.UNSET, emphasis="quiet")


def mix_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table | None:
    """The figures of each endpoint within the mix; None without a mix."""
    rows = [
        TableRow(_cells(level, part))
        for endpoint in target.endpoints
        for level, step in _steps(endpoint)
        for part in step.parts
    ]
    if not rows:
        return None
    figures = ("of the requests, %", "requests", "p50, ms", "p95, ms", "p99, ms", "its limit, ms", "error rate, %")
    columns = [*words("level, endpoint"), *map(Column, figures), *words("outcome")]
    notes = [
        "Outcome: whether the endpoint meets its SLA. The mix meets its SLA if every endpoint does. p50 and p95: of "
        "correct responses."
    ]
    return Table(f"mix-{number}", f"Within the mix{f': {name}' if several else ''}", columns, rows, notes)


def _steps(endpoint: EndpointEntry) -> Iterator[tuple[str, StepEntry]]:
    """The step that represents each capacity, and the level above it."""
    for capacity in endpoint.capacities:
        best = text.shown_step(endpoint, capacity)
        fail = text.step_of(endpoint, capacity.kind, capacity.fail_step)
        for step in dict.fromkeys(item.number for item in (best, fail) if item):
            entry = text.step_of(endpoint, capacity.kind, step)
            if entry is not None:
                yield text.level_of(entry), entry


def _cells(level: str, part: PartEntry) -> list[TableCell]:
    return [
        TableCell(f"{level}, {part.label}"),
        text.percent_figure(part.share),
        TableCell(units.count(part.due)),
        *(_ms(value_s) for value_s in (part.p50_s, part.p95_s, part.p99_s, part.p99_limit_s)),
        text.percent_figure(part.error_share),
        verdict_cell(Verdict(part.outcome)),
    ]


def _ms(value_s: float | None) -> TableCell:
    return _QUIET if value_s is None else text.milliseconds(value_s)
