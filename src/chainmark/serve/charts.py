"""Charts as pictures, drawn by a separate process that is replaced before it uses too much memory."""

from __future__ import annotations

import multiprocessing
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from urllib.parse import urlencode

from markupsafe import Markup

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.report.chart import Chart, paper_charts
from chainmark.report.content import Content
from chainmark.report.drawing import Drawing, svg_of
from chainmark.report.vega import inline_drawing, screen_drawings
from chainmark.serve.inline import inlined
from chainmark.serve.replay import REPLAY, replayed

_DRAWN_BY_ONE = 40  # the engine leaks about 2 MB per drawing
_MOST_CACHED = 150  # pictures, of about 30 kB each
_PICTURE = Markup(
    '<div class="plot"><picture>'
    '<source media="(max-width: 40rem) and (prefers-color-scheme: dark)" srcset="{narrow_dark}">'
    '<source media="(max-width: 40rem)" srcset="{narrow}">'
    '<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
    '<img src="{light}" alt="{alt}" loading="lazy"></picture></div>'
)
LOOKS = ("light", "dark", "narrow", "narrow_dark")
Query = list[tuple[str, str]]


class Painter:
    """Draws charts, one at a time; the last pictures are cached."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._cache: OrderedDict[tuple[str, str, int, str], str] = OrderedDict()

    def svg(self, document: Content, chart_id: str, part: int, look: str) -> str:
        """One chart of a document, or a part of it, in one of `LOOKS`, or as a `REPLAY`.

        Raises:
            UsageError: the document has no such chart.
            EnvironmentFailure: the drawing process was ended.
        """
        key = (document.digest, chart_id, part, look)
        with self._lock:
            if (known := self._cache.get(key)) is None:
                known = self._cache[key] = self._drawn(document, chart_id, part, look)
            self._cache.move_to_end(key)
            while len(self._cache) > _MOST_CACHED:
                self._cache.popitem(last=False)
            return known

    def _drawn(self, document: Content, chart_id: str, part: int, look: str) -> str:
        chart = next((item for item in document.charts() if item.id == chart_id), None)
        if chart is not None and look == REPLAY and (played := replayed(chart)):
            return self._inlined([played])[0]
        drawings = [] if chart is None else _drawings(chart, look)
        if not 0 <= part < len(drawings):
            raise UsageError(f"this page has no chart `{chart_id}`", "reload the page")
        return self._svgs([drawings[part]])[0]

    def inline(self, charts: Sequence[Chart]) -> list[Markup]:
        """Small charts as parts of a page, drawn together.

        Raises:
            EnvironmentFailure: the drawing process was ended.
        """
        with self._lock:
            return self._inlined(charts)

    def _inlined(self, charts: Sequence[Chart]) -> list[Markup]:
        svgs = self._svgs([inline_drawing(chart) for chart in charts]) if charts else []
        return [inlined(svg, chart) for svg, chart in zip(svgs, charts, strict=True)]

    def _svgs(self, drawings: Sequence[Drawing]) -> list[str]:
        try:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, context, max_tasks_per_child=_DRAWN_BY_ONE)
            return self._pool.submit(_drawn_in_turn, drawings).result()
        except BrokenProcessPool as error:
            self._pool = None
            raise EnvironmentFailure(
                "the operating system ended the process that draws charts",
                "it needs 150 MB of memory: free some, and reload the page",
            ) from error

    def close(self) -> None:
        """End the drawing process."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None


def _drawn_in_turn(drawings: Sequence[Drawing]) -> list[str]:
    return [svg_of(drawing) for drawing in drawings]


def _drawings(chart: Chart, look: str) -> list[Drawing]:
    if look not in LOOKS:
        return []
    return screen_drawings(chart, dark=look.endswith("dark"), narrow=look.startswith("narrow"))


def plot(chart: Chart, path: str, query: Query) -> Markup:
    """A chart's pictures on the page at an address, drawn on demand."""

    def address(part: int, look: str) -> str:
        return f"{path}?{urlencode([*query, ('chart', chart.id), ('part', str(part)), ('look', look)])}"

    parts = len(paper_charts(chart)) if chart.pages or (chart.page_rows and chart.y.names) else 1
    shown = (
        _PICTURE.format(alt=chart.title or chart.id, **{look: address(part, look) for look in LOOKS})
        for part in range(parts)
    )
    return Markup().join(shown)
