"""What the charts of a saturation test show, and what they cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chainmark.core import units
from chainmark.core.saturation import Cell, Figure, SaturationReport, SaturationVersion
from chainmark.report import sheet
from chainmark.report.saturation_charts import latency_chart, processed_chart, share_chart
from chainmark.report.sheet import Strip
from chainmark.report.vega import Spec

_PAPER = {"width": 560, "height": 230}
_LATENCY_NOTE = "Lines follow the loads in their order; rings: the knees. Bars: 90 % intervals over the runs."

Row = dict[str, Any]


def drawn(value: float) -> float:
    """To five digits: more cannot be drawn, and make a page long."""
    return float(f"{value:.5g}")


def saturation_figures(report: SaturationReport) -> list[sheet.Figure]:
    """Processed against offered, the share that is processed, latency against throughput."""
    found = [_processed(report), _share(report), _latency(report)]
    return [one for one in found if one]


def _labels(report: SaturationReport) -> tuple[list[str], list[str]]:
    connections = sorted({cell.connections for version in report.versions for cell in version.cells})
    return [version.label for version in report.versions], [f"c={number}" for number in connections]


def _rows(report: SaturationReport, row_of: Callable[[SaturationVersion, Cell], Row | None]) -> list[Row]:
    rows = []
    for version in report.versions:
        for cell in version.cells:
            row = row_of(version, cell)
            if row is not None:
                connections = f"c={cell.connections}"
                rows.append(
                    {"version": version.label, "connections": connections, "series": f"{version.label} {connections}",
                     "order": cell.load_per_s, "name": cell.name, **row}
                )  # fmt: skip
    return rows


def _bar(figure: Figure, names: tuple[str, str], factor: float = 1.0) -> Row:
    """An error bar, where the figure rests on several runs; one that reaches 0 has no place on a logarithmic axis."""
    if figure.runs < 2 or figure.low is None or figure.high is None:
        return {}
    low = max(figure.low, figure.value / 100.0)
    return {names[0]: drawn(low * factor), names[1]: drawn(figure.high * factor)}


def _processed(report: SaturationReport) -> sheet.Figure | None:
    def row(_: SaturationVersion, cell: Cell) -> Row | None:
        share = cell.efficiency
        if share is None or share.value <= 0.0:
            return None
        load = float(cell.load_per_s)
        return {"x": load, "y": drawn(share.value * load), "share": drawn(share.value),
                **_bar(share, ("low", "high"), load)}  # fmt: skip

    rows = _rows(report, row)
    if not rows:
        return None
    versions, connections = _labels(report)
    note = (
        "Processed per second of load: the share of the offered transactions that was processed × the load, so that "
        "tests of different lengths stand beside each other. Dotted: all that is offered. " + _error_note(report)
    )
    return _figure("processed", "Processed against offered", processed_chart(rows, versions, connections), note)


def _share(report: SaturationReport) -> sheet.Figure | None:
    def row(_: SaturationVersion, cell: Cell) -> Row | None:
        share = cell.efficiency
        return None if share is None else {"x": float(cell.load_per_s), "y": drawn(share.value),
                                           **_bar(share, ("low", "high"))}  # fmt: skip

    rows = _rows(report, row)
    if not rows:
        return None
    versions, connections = _labels(report)
    spec = share_chart(rows, versions, connections, 1.0 - report.tolerance)
    found = _figure("share", "The share that is processed", spec, _error_note(report))
    return replace(found, strips=_share_strips(report), kinds=versions)


def _latency(report: SaturationReport) -> sheet.Figure | None:
    def row(_: SaturationVersion, cell: Cell) -> Row | None:
        throughput, latency = cell.throughput_per_s, cell.latency_mean_s
        if throughput is None or latency is None or throughput.value <= 0.0 or latency.value <= 0.0:
            return None
        return {"x": drawn(throughput.value), "y": drawn(latency.value), **_bar(latency, ("low", "high")),
                **_bar(throughput, ("left", "right"))}  # fmt: skip

    rows = _rows(report, row)
    if not rows:
        return None
    versions, connections = _labels(report)
    knees = [
        {"version": version.label, "x": drawn(knee.throughput_per_s), "y": drawn(knee.latency_s),
         "name": f"{units.count(knee.load_per_s or 0)} tx/s"}
        for version in report.versions
        if (knee := version.knee).throughput_per_s and knee.latency_s
    ]  # fmt: skip
    kinds = {version.latency_is for version in report.versions}
    notes = [_LATENCY_NOTE]
    if len(kinds) > 1:
        notes.append("The versions' latencies are not defined alike; see the definitions below.")
    spec = latency_chart(rows, versions, connections, knees)
    return _figure("latency", "Latency against throughput", spec, " ".join(notes))


def _error_note(report: SaturationReport) -> str:
    repeated = any(cell.used > 1 for version in report.versions for cell in version.cells)
    single = any(cell.used == 1 for version in report.versions for cell in version.cells)
    parts = ["Bars: 90 % intervals over the runs."] if repeated else []
    if single:
        parts.append("A point without a bar rests on one run.")
    return " ".join(parts)


def _figure(id_: str, title: str, spec: Spec, note: str) -> sheet.Figure:
    return sheet.Figure(id=id_, title=title, spec=spec, paper=[{**spec, **_PAPER}], note=note, wide=True)


def _share_strips(report: SaturationReport) -> list[Strip]:
    """A row for every load, from 0 to 100 %."""
    loads = sorted({(cell.load_per_s, cell.connections, cell.name) for one in report.versions for cell in one.cells})
    strips = []
    for load, _, name in loads:
        shares = [_share_at(version, name) for version in report.versions]
        marks = [(place, min(1.0, share)) for place, share in enumerate(shares) if share is not None]
        told = [units.UNSET if share is None else f"{100.0 * share:.1f}" for share in shares]
        strips.append(Strip(f"{units.count(load)}: {name}", marks, f"{' / '.join(told)} %"))
    return strips


def _share_at(version: SaturationVersion, name: str) -> float | None:
    cell = next((one for one in version.cells if one.name == name), None)
    return cell.efficiency.value if cell and cell.efficiency else None
