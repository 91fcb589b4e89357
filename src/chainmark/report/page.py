"""Common parts of all HTML pages: templates, escaping, and the inlined chart library."""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata, resources
from typing import Any, NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure
from chainmark.report.cells import tail_widths, text_class, unbroken
from chainmark.report.chart import PALETTES, Chart, ColumnOrigin
from chainmark.report.drawing import VEGA_LITE_VERSION
from chainmark.report.vega import vega_lite
from chainmark.store.files import write_bytes
from chainmark.store.paths import cache_directory

_OWN = "chainmark.report"
_GLOBALS = "window.vegaEmbed = vegaEmbed;"
_MOST_ELEMENTS = 1500  # of a chart: beyond it, a canvas is used instead of elements
_EXACT = 1e15
_WORD_BYTES = 4  # that base85 writes with five letters
_LETTERS = np.frombuffer(b"".join(base64.b85encode(digit.to_bytes(4, "big"))[-1:] for digit in range(85)), np.uint8)


def template_text(name: str, package: str = _OWN) -> str:
    """A template of a package, wherever that is installed."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def style_text() -> Markup:
    """The look of every page."""
    return Markup(template_text("document.css") + tail_widths())  # noqa: S704 - our own file


def packed(content: str | bytes, level: int = 7) -> Markup:
    """Content as gzip in base85, which the page's script unpacks: the same content gives the same text.

    A comma replaces "<", which HTML would interpret. Base64 is longer by a fifteenth. Level 9 takes four
    times as long to save one per cent.
    """
    data = content.encode() if isinstance(content, str) else content
    letters = _base85(gzip.compress(data, compresslevel=level, mtime=0)).replace(b"<", b",")
    return Markup(letters.decode())  # noqa: S704 - nothing in it ends a script


def _base85(data: bytes) -> bytes:
    """What `base64.b85encode` returns, which takes 15 times as long: 0.15 s per MB."""
    padding = -len(data) % _WORD_BYTES
    words = np.frombuffer(data + bytes(padding), ">u4").astype(np.uint32)
    digits = np.empty((len(words), _WORD_BYTES + 1), np.uint8)
    for place in reversed(range(_WORD_BYTES + 1)):
        words, digits[:, place] = np.divmod(words, np.uint32(85))
    return _LETTERS[digits].tobytes()[: digits.size - padding]


def source_hash(text: str) -> Markup:
    """The source of a content security policy that allows only this script or style in the page."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")  # noqa: S704 - letters and digits


class Bundle(NamedTuple):
    """A script, packed, and the source that allows it."""

    letters: Markup
    source: Markup


@functools.cache
def vega_bundle() -> Bundle:
    """Vega, Vega-Lite and their embedder as one script; cached, because bundling takes 1.7 s."""
    made_of = f"{metadata.version('vl-convert-python')} {VEGA_LITE_VERSION} {_GLOBALS} with its source"
    path = cache_directory() / f"vega-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.gz.b85"
    with contextlib.suppress(OSError):
        bundled, _, digest = path.read_text(encoding="ascii").rpartition("\n")
        if hashlib.sha256(bundled.encode()).hexdigest() == digest:
            return Bundle(*map(Markup, bundled.split("\n")))
    import vl_convert  # noqa: PLC0415 - 10 MB

    script = vl_convert.javascript_bundle(snippet=_GLOBALS, vl_version=VEGA_LITE_VERSION)
    bundle = Bundle(packed(script, level=9), source_hash(script))
    bundled = "\n".join(bundle)
    with contextlib.suppress(OSError, EnvironmentFailure):
        write_bytes(path, f"{bundled}\n{hashlib.sha256(bundled.encode()).hexdigest()}".encode())
    return bundle


def charts_payload(charts: Iterable[Chart]) -> Markup:
    """All charts of a page for its script, packed: the specification of each, and its columns."""
    drawn = {
        chart.id: {
            "spec": vega_lite(chart, interactive=True),
            "data": _columns(chart),
            "palette": chart.palette,
            "renderer": "canvas" if chart.dots > _MOST_ELEMENTS else "svg",
        }
        for chart in charts
    }
    palettes = {name: {"light": list(palette.light), "dark": list(palette.dark)} for name, palette in PALETTES.items()}
    payload = {"palettes": palettes, "charts": drawn}
    return packed(json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def _columns(chart: Chart) -> dict[str, dict[str, Any]]:
    used = {layer.data for layer in chart.layers}
    return {
        name: {
            column: _references(origins) if (origins := chart.origins.get(name, {}).get(column)) else _column(values)
            for column, values in columns.items()
        }
        for name, columns in chart.data.items()
        if name in used
    }


def _column(values: Sequence[Any]) -> Any:
    """Figures as drawn; repeated texts as indices into a list."""
    if any(isinstance(value, str) for value in values):
        labels = list(dict.fromkeys(values))
        indices = {label: index for index, label in enumerate(labels)}
        return {"labels": labels, "at": [indices[value] for value in values]}
    return [None if value is None or not math.isfinite(value) else _short(value) for value in values]


def _references(origins: Sequence[ColumnOrigin]) -> dict[str, Any]:
    return {"from": [[origin.path, origin.size, origin.factor] for origin in origins]}


def _short(value: float) -> float:
    if isinstance(value, int):
        return value
    short = units.rounded(value)
    return int(short) if short.is_integer() and abs(short) < _EXACT else short


@functools.cache
def environment(served_by: str = "") -> jinja2.Environment:
    """The templates, escaping everything that is not marked as safe.

    Args:
        served_by: the package that serves the pages: it has templates of its own, and its pages link to each other.
    """
    packages = [_OWN, *filter(None, [served_by])]
    templates = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.FunctionLoader(_reader(package)) for package in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["unbroken"] = unbroken
    templates.filters["text_class"] = text_class
    templates.globals["served"] = bool(served_by)
    return templates


def _reader(package: str) -> Callable[[str], str | None]:
    def read(name: str) -> str | None:
        try:
            return template_text(name, package)
        except FileNotFoundError:
            return None

    return read
