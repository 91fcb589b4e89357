"""The path of one item from region to region: a map and a table of its hops."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from chainmark.core import units
from chainmark.report.blocks import Block, Column, Section, Table, TableCell, row_of, words
from chainmark.report.chart import QUIET, Axis, Chart, Layer, columns_of
from chainmark.trails.timeline import times_of
from chainmark.trails.trace import RegionHop, RegionMap, RegionOfMap, Trace

_NAMED_HOPS = 12  # on the map: more would overlap; the table has all
_SIDE = 0.05  # distance of a hop from the straight line, so that both directions are visible
_NEAR_END = 0.62
_ROOM, _WIDE = 1.5, 1.7  # names are placed next to the outermost
Point = tuple[float, float]


def regions_section(trace: Trace) -> Section:
    """The map and the table of all hops; empty if there are none."""
    if trace.region_map is None:
        return Section("regions", "Hops between regions", [])
    blocks: list[Block] = [_chart(trace, trace.region_map), _table(trace, trace.region_map)]
    return Section("regions", "Hops between regions", blocks)


def _table(trace: Trace, result: RegionMap) -> Table:
    axis, symbol = times_of(trace), times_of(trace).unit.symbol
    rows = [
        row_of(
            hop.origin, hop.region, TableCell(units.count(hop.places)), TableCell(axis.text(hop.median_s)),
            TableCell(axis.text(hop.longest_s)),
            TableCell("" if hop.round_trip_s is None else axis.text(hop.round_trip_s)),
        )
        for hop in sorted(result.hops, key=lambda hop: -hop.median_s)
    ]  # fmt: skip
    columns = [*words("from", "to"), Column(f"{trace.place_label}s"), Column(f"hop, median, {symbol}"),
               Column(f"hop, longest, {symbol}"), Column(f"round trip, {symbol}", if_any=True)]  # fmt: skip
    place, end = trace.place_label, f"“{trace.stages[trace.end]}”"
    notes = [
        f"A hop is the time from {end} on the {place} that sent the {trace.label} to {end} on the receiving {place}."
    ]
    if result.unknown:
        notes.append(f"The sender of {units.plural(result.unknown, trace.place_label)} is unknown.")
    if all(hop.round_trip_s is None for hop in result.hops):
        notes.append("No round-trip times between these regions are available.")
    return Table("hops", "Hops", columns, rows, notes, sortable=True)


def _chart(trace: Trace, result: RegionMap) -> Chart:
    axis = times_of(trace)
    places, is_measured = _layout(result)
    edges, texts = [], []
    for rank, hop in enumerate(sorted(result.hops, key=lambda hop: (-hop.places, -hop.median_s))):
        if hop.origin == hop.region:
            continue
        (x, y), (x2, y2) = _beside(places[hop.origin], places[hop.region])
        edges.append({"x": x, "y": y, "x2": x2, "y2": y2})
        if rank < _NAMED_HOPS:
            text = f"{hop.origin} → {hop.region}: {axis.with_unit(hop.median_s)}"
            texts.append({"x": x + _NEAR_END * (x2 - x), "y": y + _NEAR_END * (y2 - y), "text": text})
    within = {hop.region: hop for hop in result.hops if hop.origin == hop.region}
    nodes = [_node(trace, region, places[region.name], within.get(region.name)) for region in result.regions]
    tall = 1.0 if any(abs(y) > 0.1 for _, y in places.values()) else 0.4  # regions in one line need no height
    layout = "Distances are proportional to round trips" if is_measured else "Positions on the map have no meaning"
    return Chart(
        id="regions-map",
        title=f"Map of regions, hop times, {axis.unit.symbol}",
        x=Axis(bare=True, domain=(-_WIDE, _WIDE)),
        y=Axis(bare=True, domain=(-_ROOM * tall, _ROOM * tall)),
        layers=[
            Layer("interval", "edges", x="x", y="y", x2="x2", y2="y2", colour=QUIET, width=1.5),
            Layer("points", "nodes", "x", "y", size=260),
            Layer("text", "nodes", "x", "y", text="name", nudge=(0, -18), size=13),
            Layer("text", "nodes", "x", "y", text="hosts", nudge=(0, 20)),
            Layer("text", "nodes", "x", "y", text="first", nudge=(0, 33)),
            Layer("text", "nodes", "x", "y", text="within", nudge=(0, 46)),
            Layer("text", "edges-named", "x", "y", text="text", nudge=(0, -9)),
        ],
        data={
            "edges": columns_of(edges) or {"x": [], "y": [], "x2": [], "y2": []},
            "nodes": columns_of(nodes),
            "edges-named": columns_of(texts) or {"x": [], "y": [], "text": []},
        },
        note=f"Medians over the {trace.place_label}s of a hop. {layout}.",
        wide=True,
        height=round(340 * tall),
    )


def _node(trace: Trace, region: RegionOfMap, place: Point, within: RegionHop | None) -> dict[str, object]:
    axis = times_of(trace)
    return {
        "x": place[0],
        "y": place[1],
        "name": region.name,
        "hosts": units.plural(region.places, trace.place_label),
        "first": "" if region.first_s is None else f"first after {axis.with_unit(region.first_s)}",
        "within": "" if within is None else f"within: {axis.with_unit(within.median_s)}",
    }


def _beside(start: Point, end: Point) -> tuple[Point, Point]:
    """The curve from one point to another, slightly to its left."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    x, y = -dy / length * _SIDE, dx / length * _SIDE
    return (start[0] + x, start[1] + y), (end[0] + x, end[1] + y)


def _layout(result: RegionMap) -> tuple[dict[str, Point], bool]:
    """The positions of the regions: as far apart as their round trips, if all are known; otherwise on a circle."""
    names = [region.name for region in result.regions]
    known = {frozenset((hop.origin, hop.region)): hop.round_trip_s for hop in result.hops}
    pairs = [(a, b) for a, b in combinations(range(len(names)), 2)]
    trips = {(a, b): known.get(frozenset((names[a], names[b]))) for a, b in pairs}
    if any(trip is None for trip in trips.values()):
        angles = [math.tau * place / len(names) + math.pi for place in range(len(names))]
        return {name: (math.cos(at), math.sin(at)) for name, at in zip(names, angles, strict=True)}, False
    squares = np.zeros((len(names), len(names)))
    for (a, b), trip in trips.items():
        squares[a, b] = squares[b, a] = (trip or 0.0) ** 2
    return dict(zip(names, _scaled(squares), strict=True)), True


def _scaled(squares: np.ndarray) -> list[Point]:
    """Points in a plane whose squared distances are about these (classical scaling); the first is left of the last."""
    size = len(squares)
    centred = np.eye(size) - 1.0 / size
    values, vectors = np.linalg.eigh(-0.5 * centred @ squares @ centred)
    points = np.zeros((size, 2))
    for axis, place in enumerate(np.argsort(values)[::-1][:2]):
        points[:, axis] = vectors[:, place] * math.sqrt(max(values[place], 0.0))
        if points[0, axis] > points[-1, axis]:
            points[:, axis] *= -1.0
    extent = float(np.abs(points).max()) or 1.0
    return [(float(x) / extent, float(y) / extent) for x, y in points]
