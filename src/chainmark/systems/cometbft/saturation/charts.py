"""Charts of a saturation test: processed against offered, the share processed, latency against throughput.

Colours are versions; dashes and shapes are connections, so that each line can be distinguished without colour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainmark.core import units
from chainmark.report.chart import QUIET, Axis, Chart, Layer, LegendSeries, Limit, Tooltip, columns_of
from chainmark.systems.cometbft.saturation.results import CellFigure, LoadCell, SaturationResult, SaturationVersion

_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_LOAD = "offered, connections × rate, tx/s"
_LATENCY_NOTE = "Lines connect the loads in order; rings: the knees. Bars: 90 % intervals over the runs."

Row = dict[str, Any]


def _drawn(value: float) -> float:
    return units.rounded(value, 5)


def saturation_charts(report: SaturationResult) -> list[Chart]:
    """Processed against offered, the share that is processed, latency against throughput."""
    charts = [_processed(report), _share(report), _latency(report)]
    return [chart for chart in charts if chart]


def _labels(report: SaturationResult) -> tuple[list[str], list[str]]:
    connections = sorted({cell.connections for version in report.versions for cell in version.cells})
    return [version.label for version in report.versions], [f"c={number}" for number in connections]


def _rows(report: SaturationResult, row_of: Callable[[SaturationVersion, LoadCell], Row | None]) -> list[Row]:
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


def _bar(figure: CellFigure, names: tuple[str, str], factor: float = 1.0) -> Row:
    """An error bar, if the figure is from several runs; one that reaches 0 cannot be drawn on a logarithmic axis."""
    if figure.runs < 2 or figure.low is None or figure.high is None:
        return {}
    low = max(figure.low, figure.value / 100.0)
    return {names[0]: _drawn(low * factor), names[1]: _drawn(figure.high * factor)}


def _processed(report: SaturationResult) -> Chart | None:
    def row(_: SaturationVersion, cell: LoadCell) -> Row | None:
        share = cell.efficiency
        if share is None or share.value <= 0.0:
            return None
        load = float(cell.load_per_s)
        return {"x": load, "y": _drawn(share.value * load), "share": _drawn(share.value),
                **_bar(share, ("low", "high"), load)}  # fmt: skip

    rows = _rows(report, row)
    if not rows:
        return None
    note = (
        "Processed per second of load: the share of the offered transactions that was processed × the load. This "
        "makes tests of different lengths comparable. Dotted: the offered load. " + _error_note(report)
    )
    loads = [row["x"] for row in rows]
    ends = [min(loads), max(loads)]
    tips = [Tooltip("version", "version"), Tooltip("load", "name"), Tooltip("offered, tx/s", "x", ",.5g"),
            Tooltip("processed, tx/s", "y", ",.4g"), Tooltip("of the offered load", "share", ".1%")]  # fmt: skip
    return _chart(
        report,
        "processed",
        "Processed vs. offered load",
        rows,
        tips,
        x=_axis(_LOAD),
        y=_axis("processed per second of load, tx/s"),
        before=[
            Layer("line", "expected", "x", "y", colour=QUIET, dash=(2, 3), width=1.5),
            Layer(
                "text", "expected", x=ends[1], y=ends[1], words="expected", colour=QUIET, align="right", nudge=(0, 26)
            ),
        ],
        data={"expected": {"x": ends, "y": ends}},
        note=note,
    )


def _share(report: SaturationResult) -> Chart | None:
    def row(_: SaturationVersion, cell: LoadCell) -> Row | None:
        share = cell.efficiency
        return None if share is None else {"x": float(cell.load_per_s), "y": _drawn(share.value),
                                           **_bar(share, ("low", "high"))}  # fmt: skip

    rows = _rows(report, row)
    if not rows:
        return None
    least = 1.0 - report.tolerance
    tips = [Tooltip("version", "version"), Tooltip("load", "name"), Tooltip("processed", "y", ".1%")]
    return _chart(
        report,
        "share",
        "Processed share",
        rows,
        tips,
        x=_axis(_LOAD),
        y=Axis(
            "processed share of the offered load",
            numbers="percent",
            domain=(0.0, max(1.0, *(row.get(name) or 0.0 for row in rows for name in ("y", "high")))),
        ),
        limits=[Limit(least, f"sustained from {units.plain_percent(least)}", colour=QUIET, at_end=True)],
        note=_error_note(report),
        on_terminal=True,
        beside={load: _shares(report, load) for load in {row["x"] for row in rows}},
    )


def _shares(report: SaturationResult, load: float) -> str:
    """The processed share of a load per version: "100.0, 98.2 / 97.1 %" if the first one has two results for it."""
    cells = [[cell.efficiency for cell in version.cells if cell.load_per_s == load] for version in report.versions]
    messages = [", ".join(units.number(100.0 * share.value, 1) for share in cell if share) for cell in cells]
    return f"{' / '.join(text or units.UNSET for text in messages)} %"


def _latency(report: SaturationResult) -> Chart | None:
    def row(_: SaturationVersion, cell: LoadCell) -> Row | None:
        throughput, latency = cell.throughput_per_s, cell.latency_mean_s
        if throughput is None or latency is None or throughput.value <= 0.0 or latency.value <= 0.0:
            return None
        return {"x": _drawn(throughput.value), "y": _drawn(latency.value), **_bar(latency, ("low", "high")),
                **_bar(throughput, ("left", "right"))}  # fmt: skip

    rows = _rows(report, row)
    if not rows:
        return None
    knees = [
        {"version": version.label, "x": _drawn(knee.throughput_per_s), "y": _drawn(knee.latency_s),
         "name": f"{units.count(knee.load_per_s or 0)} tx/s"}
        for version in report.versions
        if (knee := version.knee).throughput_per_s and knee.latency_s
    ]  # fmt: skip
    kinds = {version.latency_is for version in report.versions}
    notes = [_LATENCY_NOTE]
    if len(kinds) > 1:
        notes.append("The versions' latencies have different definitions, listed below.")
    tips = [Tooltip("version", "version"), Tooltip("load", "name"), Tooltip("throughput, tx/s", "x", ",.4g"),
            Tooltip("mean latency, s", "y", ",.3g")]  # fmt: skip
    ring = Layer("points", "knees", "x", "y", colour="version", style="circle", size=320, width=2, hollow=True,
                 tips=[Tooltip("version", "version"), Tooltip("knee", "name")])  # fmt: skip
    return _chart(
        report,
        "latency",
        "Latency vs. throughput",
        rows,
        tips,
        x=_axis("throughput, tx/s"),
        y=_axis("mean latency, s"),
        after=[ring] if knees else [],
        data={"knees": columns_of(knees)},
        note=" ".join(notes),
    )


def _error_note(report: SaturationResult) -> str:
    repeated = any(cell.used > 1 for version in report.versions for cell in version.cells)
    single = any(cell.used == 1 for version in report.versions for cell in version.cells)
    parts = ["Bars: 90 % intervals over the runs."] if repeated else []
    if single:
        parts.append("A point without a bar is based on one run.")
    return " ".join(parts)


def _axis(title: str) -> Axis:
    return Axis(title, log_beyond=_WIDE_RATIO, zero=True, nice=True, padding=12)


def _chart(
    report: SaturationResult,
    id_: str,
    title: str,
    rows: list[Row],
    tips: list[Tooltip],
    *,
    data: dict[str, Any] | None = None,
    before: Sequence[Layer] = (),
    after: Sequence[Layer] = (),
    **rest: Any,
) -> Chart:
    """Lines, dots and error bars. Rows: version, connections, series, order, x, y; optional: low, high, left, right."""
    versions, connections = _labels(report)
    layers = [*before]
    if any("low" in row for row in rows):
        layers.append(Layer("interval", x="x", y="low", y2="high", colour="version", width=1.2, opacity=0.8))
    if any("left" in row for row in rows):
        layers.append(Layer("interval", x="left", x2="right", y="y", colour="version", width=1.2, opacity=0.8))
    layers += [
        Layer("line", x="x", y="y", colour="version", style="connections", detail="series", order="order", width=1.8,
              opacity=1),
        Layer("points", x="x", y="y", colour="version", style="connections", tips=tips),
        *after,
    ]  # fmt: skip
    return Chart(
        id=id_,
        title=title,
        layers=layers,
        data={"points": columns_of(rows), **(data or {})},
        series={"version": LegendSeries(versions), "connections": LegendSeries(connections)},
        wide=True,
        paper=(560, 230),
        **rest,
    )
