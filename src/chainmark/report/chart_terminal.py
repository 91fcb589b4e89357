"""A chart in characters, from the same columns: rows of marks if one axis has few values, else a small plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from chainmark.core import units
from chainmark.report.chart import IN_CHARACTERS, PALETTES, Axis, Chart, Layer, paper_charts
from chainmark.report.lines import Printer, shorten, wrapped

MARKS = "●■▲◆✚▼▶◀"  # the same shapes as on a screen
LIMIT = "│"
_MOST_ROWS = 24  # of marks if an axis has figures: with more, they are a cloud
_PLOT_ROWS = 12
_WIDEST = 76
_NARROWEST = 10
_WIDEST_NAME, _WIDEST_NAME_OF_PARTS = 0.42, 0.22  # fractions of the terminal
_INDENT, _GAP = "  ", "  "
_QUIET = "bright_black"

Along = Literal["x", "y"]


class _Part(NamedTuple):
    """A character of a part of a bar, and the part's kind."""

    letter: str
    kind: int


_Cell = int | str | _Part  # the kind of a mark, a character, or a part


@dataclass(frozen=True)
class Strip:
    """One row. ``marks`` pair a kind with its position on the axis, from 0 to 1, as are ``limits`` and ``ends``.

    ``parts`` are the kinds of the parts of a bar, each with its two ends.
    """

    label: str
    marks: list[tuple[int, float]]
    value: str = ""
    limits: Sequence[float] = ()
    ends: Sequence[float] = ()
    parts: Sequence[tuple[int, float, float]] = ()


@dataclass(frozen=True)
class _Marks:
    """One series' marks: their positions along both axes."""

    kind: int
    x: list[Any]
    y: list[Any]


def print_chart(chart: Chart, out: Printer) -> None:
    """Rows of marks, or a plot; where two marks meet, the later kind is shown: it is drawn last on a screen as well."""
    pages = paper_charts(chart) if chart.choice else [chart]
    for page in pages:
        if not (lines := _lines(page, out.width)):
            return
        if page is not pages[0]:
            out.blank()
        out.line(Text(shorten(": ".join(filter(None, [page.title, page.caption])), out.width), style="bold"))
        for line in lines:
            out.line(line)
    for text in (_key(chart, _rows_along(chart, _marks(chart))), chart.note):
        for row in wrapped(text, out.width - len(_INDENT)) if text else []:
            out.line(Text(_INDENT + row, style=_QUIET))
    out.blank()


def _lines(chart: Chart, room: int) -> list[Text]:
    marks = _marks(chart)
    return _plot(chart, marks, room) if _rows_along(chart, marks) is None else _rows(chart, strips_of(chart), room)


def strips_of(chart: Chart) -> list[Strip]:
    """A row for each name, or each value of an axis that has few of them; empty if the chart is a plot."""
    marks = _marks(chart)
    along = _rows_along(chart, marks)
    if along is None:
        return []
    names = _names(chart, marks, along)
    across: Along = "x" if along == "y" else "y"
    axis = chart.x if across == "x" else chart.y
    place = _placing(axis, _figures(chart, marks, across))
    results: dict[Any, list[tuple[int, float]]] = {name: [] for name in names}
    for mark in marks:
        labels, values = (mark.y, mark.x) if along == "y" else (mark.x, mark.y)
        for name, value in zip(labels, values, strict=True):
            if name in results and value is not None:
                results[name].append((mark.kind, place(value)))
    limits = [place(limit.value) for limit in chart.limits if limit.along == across and limit.name]
    ends, parts = _ends(chart, across), _parts(chart)
    return [
        Strip(
            _words(name),
            results[name],
            chart.beside.get((chart.caption, name), chart.beside.get(name, "")),
            limits,
            [place(end) for end in ends.get(name, ())],
            [(kind, place(begin), place(end)) for kind, begin, end in parts.get(name, ())],
        )
        for name in names
        if results[name] or along == "y"
    ]


def _stack(chart: Chart) -> Layer | None:
    """The bars of several series in rows, which are the parts of one bar per row."""
    bars = (layer for layer in chart.layers if layer.mark == "bar" and layer.colour in chart.series)
    return next((layer for layer in bars if chart.y.names and layer.x2 is not None), None)


def _parts(chart: Chart) -> dict[Any, list[tuple[int, float, float]]]:
    """The parts of each row's bar: the kind, where it begins and where it ends."""
    results: dict[Any, list[tuple[int, float, float]]] = {}
    if layer := _stack(chart):
        kinds = {label: kind for kind, label in enumerate(chart.series[layer.colour].labels)}
        columns = (chart.column(str(name), layer.data) for name in (layer.y, layer.colour, layer.x, layer.x2))
        for name, label, begin, end in zip(*columns, strict=True):
            results.setdefault(name, []).append((kinds[label], begin, end))
    return results


def _ends(chart: Chart, across: Along) -> dict[Any, list[float]]:
    """The ends of the strokes, by row."""
    results: dict[Any, list[float]] = {}
    for layer in chart.layers:
        if layer is _stack(chart):
            continue
        begin, end, head = (layer.x, layer.x2, layer.y) if across == "x" else (layer.y, layer.y2, layer.x)
        is_stroke = IN_CHARACTERS[layer.mark] == "stroke"
        if is_stroke and isinstance(begin, str) and isinstance(end, str) and isinstance(head, str):
            columns = chart.data[layer.data]
            for name, *both in zip(*(columns.get(item, ()) for item in (head, begin, end)), strict=True):
                results.setdefault(name, []).extend(value for value in both if value is not None)
    return results


def _marks(chart: Chart) -> list[_Marks]:
    """The points, by the series that distinguishes them; the lines if there are no points."""
    layers = _drawn(chart)
    marks: list[_Marks] = []
    for layer in layers:
        columns = chart.data[layer.data]
        x, y = list(columns.get(str(layer.x), ())), list(columns.get(str(layer.y), ()))
        if layer.colour not in chart.series:
            marks.append(_Marks(len(_labels(chart)), x, y))
            continue
        reported = columns.get(layer.colour, ())
        for kind, label in enumerate(_labels(chart)):
            indices = [index for index, item in enumerate(reported) if item == label]
            if indices:
                marks.append(_Marks(kind, [x[index] for index in indices], [y[index] for index in indices]))
    return marks


def _drawn(chart: Chart) -> list[Layer]:
    placed = [layer for layer in chart.layers if isinstance(layer.x, str) and isinstance(layer.y, str)]
    layers = [layer for layer in placed if _has_places(layer)]
    layers = [layer for layer in layers if layer.colour in chart.series] or layers
    return [layer for layer in layers if IN_CHARACTERS[layer.mark] == "places"] or layers


def _has_places(layer: Layer) -> bool:
    return IN_CHARACTERS[layer.mark] in {"places", "places of a path"}


def _labels(chart: Chart) -> Sequence[str]:
    column = next((layer.colour for layer in reversed(chart.layers)
                   if _has_places(layer) and layer.colour in chart.series), "")  # fmt: skip
    return chart.series[column].labels if column else []


def _rows_along(chart: Chart, marks: Sequence[_Marks]) -> Along | None:
    if chart.y.names:
        return "y"
    if chart.x.names or (
        any(IN_CHARACTERS[layer.mark] == "places" for layer in _drawn(chart))
        and len({value for mark in marks for value in mark.x}) <= _MOST_ROWS
    ):
        return "x"
    return None


def _names(chart: Chart, marks: Sequence[_Marks], along: Along) -> list[Any]:
    axis = chart.y if along == "y" else chart.x
    return list(axis.names) or sorted({value for mark in marks for value in mark.x})


def _words(name: Any) -> str:
    return name if isinstance(name, str) else units.tidy(name)


def _figures(chart: Chart, marks: Sequence[_Marks], across: Along) -> list[float]:
    values = [value for mark in marks for value in (mark.x if across == "x" else mark.y)]
    values += [end for ends in _ends(chart, across).values() for end in ends]
    values += [limit.value for limit in chart.limits if limit.along == across and limit.name]
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def _placing(axis: Axis, values: Sequence[float]) -> Callable[[float], float]:
    """The position of a value on an axis, from 0 to 1."""
    low, high = axis.domain or (min(values, default=0.0), max(values, default=1.0))
    if axis.zero and low > 0.0:
        low = 0.0
    positive = min(values, default=0.0)
    if axis.domain is None and axis.log_beyond is not None and positive > 0.0 and high / positive > axis.log_beyond:
        span = math.log(high / positive)
        return lambda value: math.log(value / positive) / span if value > 0.0 else 0.0
    width = high - low
    return lambda value: min(1.0, max(0.0, (value - low) / width)) if width else 0.0


def _rows(chart: Chart, strips: Sequence[Strip], room: int) -> list[Text]:
    if not strips:
        return []
    widest = _WIDEST_NAME_OF_PARTS if _stack(chart) else _WIDEST_NAME
    across = min(max(cell_len(strip.label) for strip in strips), int(room * widest))
    values = units.align_on_point([strip.value for strip in strips])
    spare = room - len(_INDENT) - across - 2 * len(_GAP) - max(map(cell_len, values))
    is_inline = spare >= _NARROWEST  # otherwise the values are below
    width = max(_NARROWEST, min(_WIDEST, spare if is_inline else room - len(_INDENT) - across - len(_GAP)))
    lines = []
    for strip, value in zip(strips, values, strict=True):
        label = shorten(strip.label, across)
        line = Text(f"{_INDENT}{label}{' ' * (across - cell_len(label))}{_GAP}")
        cells: list[_Cell] = [" "] * width
        at = sorted((kind, round(position * (width - 1))) for kind, position in strip.marks)
        reached = [*(cell for _, cell in at), *(round(position * (width - 1)) for position in strip.ends)]
        if reached:
            begin, end = min(reached), max(reached)
            cells[begin : end + 1] = ["─"] * (end + 1 - begin)
        for position in strip.limits:
            cells[round(position * (width - 1))] = LIMIT
        for kind, cell in at:
            cells[cell] = kind
        for kind, left, right in strip.parts:
            begin, end = round(left * width), round(right * width)
            cells[begin:end] = [_Part(letter, kind) for letter in str(kind + 1)[: end - begin].ljust(end - begin, "━")]
        _append(line, cells, chart)
        if is_inline:
            line.append(f"{_GAP}{value}")
        line.rstrip()
        lines.append(line)
        if value.strip() and not is_inline:
            lines.append(Text(f"{_INDENT}{' ' * across}{_GAP}{value.strip()}"))
    return lines


def _append(line: Text, cells: Iterable[_Cell], chart: Chart) -> None:
    colours, stack = PALETTES[chart.palette].dark, _stack(chart)
    inks = (chart.series[stack.colour].colours if stack else ()) or colours
    for cell, run in groupby(cells):
        count = len(list(run))
        if isinstance(cell, str):
            line.append(cell * count, style=_QUIET)
        elif isinstance(cell, _Part):
            line.append(cell.letter * count, style=inks[cell.kind % len(inks)])
        else:
            line.append(MARKS[cell % len(MARKS)] * count, style=colours[cell % len(colours)])


def _plot(chart: Chart, marks: Sequence[_Marks], room: int) -> list[Text]:
    """Both axes of figures: marks on a grid, with the ends of the axes next to and below it."""
    xs, ys = _figures(chart, marks, "x"), _figures(chart, marks, "y")
    if not xs or not ys:
        return []
    ends = {"x": chart.x.domain or (min(xs), max(xs)), "y": chart.y.domain or (min(ys), max(ys))}
    axis_labels = [units.tidy(value, 3) for value in (ends["y"][1], ends["y"][0])]
    margin = max(map(len, axis_labels))
    width = max(10, min(_WIDEST, room - len(_INDENT) - margin - 2))
    grid: list[list[_Cell]] = [[" "] * width for _ in range(_PLOT_ROWS)]
    x_place, y_place = _placing(chart.x, xs), _placing(chart.y, ys)
    for mark in marks:
        for x, y in zip(mark.x, mark.y, strict=True):
            if x is not None and y is not None and math.isfinite(x) and math.isfinite(y):
                row = _PLOT_ROWS - 1 - round(y_place(y) * (_PLOT_ROWS - 1))
                grid[row][round(x_place(x) * (width - 1))] = mark.kind
    lines = []
    for index, cells in enumerate(grid):
        end = axis_labels[0] if index == 0 else axis_labels[1] if index == _PLOT_ROWS - 1 else ""
        line = Text(f"{_INDENT}{end:>{margin}} ", style=_QUIET)
        line.append(LIMIT, style=_QUIET)
        _append(line, cells, chart)
        line.rstrip()
        lines.append(line)
    first, last = (units.tidy(value, 4) for value in ends["x"])
    title = shorten(chart.x.title, max(4, width - len(first) - len(last) - 2))
    spare = max(2, width - len(first) - len(last) - cell_len(title))
    between = " " * (spare // 2) + title + " " * (spare - spare // 2)
    lines.append(Text(f"{_INDENT}{' ' * (margin + 2)}{first}{between}{last}", style=_QUIET))
    return lines


def _key(chart: Chart, along: Along | None) -> str:
    """The legend of the marks."""
    if stack := _stack(chart):
        return "   ".join(chart.series[stack.colour].labels)
    labels = _labels(chart)
    messages = [f"{MARKS[kind % len(MARKS)]} {label}" for kind, label in enumerate(labels)]
    across = "x" if along == "y" else "y"
    if along is not None:
        messages += [f"{LIMIT} {limit.name}" for limit in chart.limits if limit.along == across and limit.name]
    return "   ".join(messages)
