"""Vega-Lite on paper: the look, and drawings that are the same bytes every time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import vl_convert

Spec = dict[str, Any]

VEGA_LITE_VERSION = "6.4"
_INK = "#333333"


def _print_config(colours: Sequence[str]) -> Spec:
    """The look on white paper."""
    font = "Libertinus Serif"
    return {
        "font": font,
        "background": "transparent",
        "range": {"category": list(colours)},
        "axis": {
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelColor": _INK,
            "titleColor": _INK,
            "gridColor": "#e4e4e4",
            "domainColor": "#999999",
            "tickColor": "#999999",
        },
        "legend": {"labelFontSize": 11, "labelColor": _INK, "symbolStrokeWidth": 2, "symbolSize": 200},
        "view": {"stroke": None},
    }


def svg_of(spec: Spec, colours: Sequence[str]) -> str:
    """A specification drawn for paper, without a network and without a browser."""
    config = _print_config(colours)
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE_VERSION, config=config, allowed_base_urls=[])
    return _numbered_afresh(svg)


def _numbered_afresh(svg: str) -> str:
    """Name the clip paths of each drawing from 1: the renderer goes on counting from one drawing to the next."""
    names: dict[str, str] = {}
    return re.sub(r"\bclip\d+\b", lambda found: names.setdefault(found[0], f"clip{len(names) + 1}"), svg)
