"""Vega-Lite specifications drawn as SVG, here or in processes of their own.

As a program it imports nothing of the package, so that the process holds nothing but the engine that draws.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

Drawing = tuple[dict[str, Any], dict[str, Any]]  # a specification with its data, and the look

VEGA_LITE_VERSION = "6.4"


def svg_of(drawing: Drawing) -> str:
    """A specification drawn without a network and without a browser."""
    import vl_convert  # noqa: PLC0415 - 10 MB, which a process that has others draw does not need

    spec, config = drawing
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE_VERSION, config=config, allowed_base_urls=[])
    return _numbered_afresh(svg)


def _numbered_afresh(svg: str) -> str:
    """Name the clip paths of each drawing from 1: the renderer goes on counting from one drawing to the next."""
    names: dict[str, str] = {}
    return re.sub(r"\bclip\d+\b", lambda found: names.setdefault(found[0], f"clip{len(names) + 1}"), svg)


if __name__ == "__main__":
    sys.stdout.write(json.dumps([svg_of(drawing) for drawing in json.load(sys.stdin.buffer)]))
