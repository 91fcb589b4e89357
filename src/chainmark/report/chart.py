"""A chart as data: columns, and the marks drawn from them. Independent of any renderer.

A chart is made by a function that returns a ``Chart``; a new mark is a name here, with its form in characters, and its
drawing in ``vega``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from chainmark.report.phrases import Phrases

Columns = Mapping[str, Sequence[Any]]  # of one length; None is a gap
Place = str | float | None  # a column's name, or one position for all rows

Mark = Literal["line", "band", "points", "interval", "bar", "box", "text", "tick", "flame"]
# On a terminal: one character at each position, the same if nothing else has positions, a stroke from x to x2 or
# from y to y2 (bars of several series are parts, each with its number), or nothing.
InCharacters = Literal["places", "places of a path", "stroke", "nothing"]
IN_CHARACTERS: Mapping[Mark, InCharacters] = {
    "line": "places of a path",
    "band": "nothing",
    "points": "places",
    "interval": "stroke",
    "bar": "stroke",
    "box": "nothing",
    "text": "nothing",
    "tick": "nothing",
    "flame": "nothing",
}
Numbers = Literal["figures", "percent", "signed percent", "signed", "quantiles", "answered"]

# Okabe and Ito's colours, without the yellow that is lost on white: distinguishable with every kind of colour
# blindness.
LINE_COLOURS = ("#333333", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255")
LINE_COLOURS_ON_DARK = ("#e6e9ec", "#56b4e9", "#ff8c42", "#2fc79a", "#e3a0c6", "#e6b93c", "#9fd4f5", "#c86a94")
# Paul Tol's muted scheme, in an order in which neighbours differ in lightness as well.
PART_COLOURS = (
    "#88ccee", "#cc6677", "#ddcc77", "#117733", "#aa4499", "#44aa99", "#999933", "#882255", "#6f63c9", "#bbbbbb",
)  # fmt: skip
GOOD, BAD, QUIET = "#009e73", "#d55e00", "#888888"
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
)  # fmt: skip


@dataclass(frozen=True)
class Palette:
    """The looks of the series of a chart, in order: each can be distinguished without its colour."""

    light: Sequence[str]
    dark: Sequence[str]
    dashes: Sequence[Sequence[int]]
    shapes: Sequence[str] = SHAPES


PALETTES: Mapping[str, Palette] = {
    "lines": Palette(
        LINE_COLOURS,
        LINE_COLOURS_ON_DARK,
        # One more than colours: the ninth line differs from the first.
        ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [14, 4], [4, 2, 1, 2], [6, 2, 1, 2, 1, 2], [12, 2, 3, 2, 3, 2], [3, 5]),
    ),
    # Two sides: the dashed baseline is drawn over the solid candidate, so that both are visible where they coincide.
    "sides": Palette(
        ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#888888"),
        ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#888888"),
        ([5, 3], [1, 0], [2, 2], [8, 2, 2, 2]),
        ("circle", "triangle-up", "square", "diamond"),
    ),
}


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        title: its title, with the unit.
        names: of an axis of names, in order; empty for one of figures.
        numbers: the format of its figures.
        log_beyond: logarithmic if all values are positive and the greatest is more than this many times the least;
            None: never.
        domain: its ends, the first one left or below; None: those of the data.
        zero, nice: the axis begins at 0, ends at a round figure.
        ticks: positions of its figures; empty: chosen automatically.
        padding: pixels left free at both ends.
        bare: without labels: the axis only orders.
        whole: its values and ticks are integers.
    """

    title: str = ""
    names: Sequence[str] = ()
    numbers: Numbers = "figures"
    log_beyond: float | None = None
    domain: tuple[float, float] | None = None
    zero: bool = False
    nice: bool = False
    ticks: Sequence[float] = ()
    padding: int = 0
    bare: bool = False
    whole: bool = False


@dataclass(frozen=True)
class LegendSeries:
    """The values of a column that have a look of their own, in the order of the legend.

    Attributes:
        labels: all of them, so that each keeps its look if another one has no data.
        colours, shapes: its own instead of the palette's.
        listed: those in the legend; None: all.
    """

    labels: Sequence[str]
    colours: Sequence[str] = ()
    shapes: Sequence[str] = ()
    listed: Sequence[str] | None = None


@dataclass(frozen=True)
class Tooltip:
    """One line of a mark's tooltip: a name, a column, and the format of its figures (as in Python: ".4g").

    ``until`` names the column of an interval's end.
    """

    title: str
    column: str
    figures: str = ""
    until: str = ""


@dataclass(frozen=True)
class Layer:
    """One kind of mark, drawn for every row of a data set.

    Attributes:
        mark: its kind. A band lies between ``x`` and ``x2`` or ``y`` and ``y2``, an interval is a line between
            them, or across the plot if only one axis is given; a bar is drawn at a name; a flame is a box with its
            text in it, to which a reader can zoom.
        data: name of the data set.
        x, y, x2, y2: columns, or one place for all rows.
        colour: a series' column, or a colour.
        style: the series' column that selects the dash (lines) or shape (points) of the marks, or one shape.
        ink: a column of colours, instead of ``colour``.
        detail: every value of this column is a line of its own.
        order: the column along which a line runs; "": from left to right.
        offset: marks at one name are next to each other by this column.
        text: a column of texts, or with ``words`` the text itself.
        above: the line above the plot that contains texts: a column, or one number from 0 on.
        size, width, opacity: of points (an area in pixels), lines, marks; None: the default of the mark.
        dash: of lines without a series.
        hollow: points that are not filled.
        nudge, align: offset of a text from its position, in pixels.
        leads_to: a column of anchors that a click on a mark opens.
        key: a column that identifies the mark: a served page marks what has the same key.
        tips: the tooltip; ``nearest``: of the nearest point, because lines are hard to hit.
    """

    mark: Mark
    data: str = "points"
    x: Place = None
    y: Place = None
    x2: Place = None
    y2: Place = None
    colour: str = ""
    style: str = ""
    ink: str = ""
    detail: str = ""
    order: str = ""
    offset: str = ""
    text: str = ""
    words: str = ""
    above: str | int | None = None
    size: float | None = None
    width: float | None = None
    opacity: float | None = None
    dash: Sequence[int] = ()
    hollow: bool = False
    nudge: tuple[int, int] = (0, 0)
    align: Literal["left", "center", "right"] = "center"
    leads_to: str = ""
    key: str = ""
    tips: Sequence[Tooltip] = ()
    nearest: bool = False


@dataclass(frozen=True)
class Limit:
    """A line at a value of an axis, with its name, or with ``until`` the whole range between two values."""

    value: float
    name: str = ""
    along: Literal["x", "y"] = "y"
    until: float | None = None
    colour: str = BAD
    dash: Sequence[int] = (6, 3)
    at_end: bool = False  # position of the name of a limit of the y axis


@dataclass(frozen=True)
class Thinning:
    """How paper thins a data set, which it cannot zoom: the number of points of each line (``by`` this column)."""

    most: int
    by: str = ""
    keep: Literal["evenly", "peaks"] = "evenly"
    note: str = ""


@dataclass(frozen=True)
class ColumnOrigin:
    """The source of a part of a column: the figures at a path in the page's own document times a factor.

    Without a ``path`` the part has no figures.
    """

    path: Sequence[str | int] | None
    size: int
    factor: float = 1.0


@dataclass(frozen=True)
class Chart:
    """A chart: a block of any document.

    Attributes:
        data: columns, by the name of their set.
        layers: the marks, from back to front; limits are behind all of them.
        series: by the column that distinguishes them.
        note: below the chart.
        caption: above the plot, in it.
        wide, half: on a screen, it takes the whole width or is next to another half one.
        height: of the plot on a screen, in pixels; of a ``row`` if the y axis has names.
        width: of a small plot in a page, likewise; 0: as wide as its place.
        paper: width and height of the plot on paper; if the y axis has names, they determine the height.
        zoom: a reader can zoom and move.
        unit_s: duration of one unit of the x axis, for a chart that can be replayed; 0: for all others.
        choice: the column by whose values a reader selects rows.
        pages: on paper, the selected values, one drawing each; ``page_rows``: names in one drawing.
        thinning: by data set.
        origins: by data set and column, parts that the page's document holds, so that they are not duplicated.
        on_terminal: whether it is also drawn in characters, for each of the ``pages``; ``beside`` is text next to a
            name or a value, or next to a pair of a page and a name.
        leads: notes with links, on a screen.
        address: another page of the dashboard that its title links to; a link only there.
        inset: a smaller chart within it, on a screen.
        search_text: words by which a filter finds it.
    """

    id: str
    title: str
    x: Axis
    y: Axis
    layers: Sequence[Layer]
    data: Mapping[str, Columns]
    series: Mapping[str, LegendSeries] = field(default_factory=dict)
    limits: Sequence[Limit] = ()
    note: str = ""
    caption: str = ""
    wide: bool = False
    half: bool = False
    palette: str = "lines"
    height: int = 320
    width: int = 0
    row: int = 30
    paper: tuple[int, int] = (560, 165)
    zoom: bool = False
    unit_s: float = 0.0
    choice: str = ""
    pages: Sequence[str] = ()
    page_rows: int = 0
    thinning: Mapping[str, Thinning] = field(default_factory=dict)
    origins: Mapping[str, Mapping[str, Sequence[ColumnOrigin]]] = field(default_factory=dict)
    on_terminal: bool = False
    beside: Mapping[Any, str] = field(default_factory=dict)
    leads: Sequence[Phrases] = ()
    address: str = ""
    inset: Chart | None = None
    search_text: str = ""

    @property
    def dots(self) -> int:
        """The number of marks in the largest layer."""
        return max((_length(self.data[layer.data]) for layer in self.layers), default=0)

    def column(self, name: str, data: str = "points") -> list[Any]:
        """One column's values."""
        return list(self.data[data].get(name, ()))

    def values(self, along: Literal["x", "y"]) -> list[float]:
        """All figures along an axis, including those of the limits."""
        results: list[float] = [
            end
            for limit in self.limits
            if limit.along == along
            for end in (limit.value, limit.until)
            if end is not None
        ]
        taken: set[tuple[str, str]] = set()
        for layer in self.layers:
            for place in (layer.x, layer.x2) if along == "x" else (layer.y, layer.y2):
                if isinstance(place, str) and (layer.data, place) not in taken:
                    taken.add((layer.data, place))
                    results += [
                        value for value in self.data[layer.data].get(place, ()) if isinstance(value, int | float)
                    ]
                elif isinstance(place, int | float):
                    results.append(place)
        return [value for value in results if math.isfinite(value)]


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def columns_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, with None if a row has no value."""
    row_list = list(rows)
    names = dict.fromkeys(name for row in row_list for name in row)
    return {name: [row.get(name) for row in row_list] for name in names}


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    """Columns as rows."""
    names = list(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def picked(columns: Columns, retained: Sequence[int]) -> dict[str, list[Any]]:
    """Some rows of all columns."""
    return {name: [values[index] for index in retained] for name, values in columns.items()}


def paper_charts(chart: Chart) -> list[Chart]:
    """The drawings for paper: one per selected value, a limited number of names each, thinned."""
    pages = [chart]
    if chart.choice and chart.pages:
        pages = [
            replace(_only(chart, chart.choice, [choice]), caption=choice, choice="") for choice in chart.pages
        ]  # fmt: skip
    elif chart.page_rows and chart.y.names:
        stretches = [
            chart.y.names[start : start + chart.page_rows] for start in range(0, len(chart.y.names), chart.page_rows)
        ]
        column = next(layer.y for layer in chart.layers if isinstance(layer.y, str))
        pages = [
            replace(_only(chart, column, names), y=replace(chart.y, names=names)) for names in stretches
        ]  # fmt: skip
    return [_thinned(_named(page)) for page in pages]


def _only(chart: Chart, column: str, values: Collection[str]) -> Chart:
    data = {}
    for name, columns in chart.data.items():
        result = columns.get(column)
        indices = None if result is None else [index for index, value in enumerate(result) if value in values]
        data[name] = columns if indices is None else picked(columns, indices)
    return replace(chart, data=data)


def _named(page: Chart) -> Chart:
    """Without the names at the y axis that have no data."""
    if not page.y.names or not page.caption:
        return page
    used = {
        name
        for layer in page.layers
        if isinstance(layer.y, str)
        for name in page.data[layer.data].get(layer.y, ())
    }  # fmt: skip
    return replace(page, y=replace(page.y, names=[name for name in page.y.names if name in used]))


def _thinned(page: Chart) -> Chart:
    data, note = dict(page.data), page.note
    for name, rule in page.thinning.items():
        rows = _thinned_rows(page, name, rule)
        if len(rows) < _length(page.data[name]):
            data[name] = picked(page.data[name], rows)
            note = _joined(note, rule.note)
    return replace(page, data=data, note=note)


def _joined(note: str, more: str) -> str:
    if not note or not more:
        return note or more
    return f"{note} {more[:1].upper()}{more[1:]}." if note.endswith(".") else f"{note}; {more}"


def _thinned_rows(page: Chart, name: str, rule: Thinning) -> list[int]:
    columns = page.data[name]
    groups: dict[Any, list[int]] = {}
    for index in range(_length(columns)):
        groups.setdefault(columns[rule.by][index] if rule.by else "", []).append(index)
    y = columns[next(layer.y for layer in page.layers if layer.data == name and isinstance(layer.y, str))]
    thin: Callable[[list[int]], list[int]] = lambda own: (  # noqa: E731 - one of two, by a rule
        _peaks(own, y, rule.most) if rule.keep == "peaks" else _evenly(own, rule.most)
    )
    return sorted(index for own in groups.values() for index in thin(own))


def _evenly(places: list[int], most: int) -> list[int]:
    """Evenly spaced indices, and the last ten: a distribution's tail has few points, and they matter."""
    if len(places) <= most:
        return places
    tail = min(10, most // 2)
    body = len(places) - tail
    step = body / (most - tail)
    return [*(places[int(index * step)] for index in range(most - tail)), *places[body:]]


def _peaks(places: list[int], values: Sequence[float], most: int) -> list[int]:
    """The indices of the least and greatest value of equal stretches: thinning must not hide a peak."""
    size = len(places)
    if size <= most:
        return places
    buckets = most // 2
    keep = {places[0], places[-1]}
    for bucket in range(buckets):
        stretch = places[bucket * size // buckets : (bucket + 1) * size // buckets]
        keep |= {min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)}
    return sorted(keep)
