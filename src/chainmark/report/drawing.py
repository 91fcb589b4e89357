"""Render Vega-Lite specifications as SVG, here or in separate processes.

As a program it imports nothing of the package, so that the process holds only the rendering engine.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

Drawing = tuple[dict[str, Any], dict[str, Any]]  # a specification with its data, and the look

VEGA_LITE_VERSION = "6.4"
_FONTS = "FONTCONFIG_FILE"  # the engine reads the font folders from it


def svg_of(drawing: Drawing) -> str:
    """A specification rendered without a network and without a browser."""
    spec, config = drawing
    svg = _engine().vegalite_to_svg(spec, vl_version=VEGA_LITE_VERSION, config=config, allowed_base_urls=[])
    return _numbered_afresh(svg)


@functools.cache
def _engine() -> Any:
    """The renderer, with its own fonts alone: a drawing does not depend on those of the machine.

    It would also open a font's file for every letter that it measures, which takes a third of its time.
    """
    import vl_convert  # noqa: PLC0415 - 10 MB, which a process that has others draw does not need

    folder, before = Path(__file__).parent, os.environ.get(_FONTS)
    os.environ[_FONTS] = str(folder / "fonts.conf")
    try:
        vl_convert.register_font_directory(str(folder))  # it has none, but makes the engine look up its fonts now
    finally:
        del os.environ[_FONTS]
        os.environ |= {} if before is None else {_FONTS: before}
    return vl_convert


def _numbered_afresh(svg: str) -> str:
    """Number the clip paths of each drawing from 1: the renderer continues counting across drawings."""
    names: dict[str, str] = {}
    return re.sub(r"\bclip\d+\b", lambda match: names.setdefault(match[0], f"clip{len(names) + 1}"), svg)


if __name__ == "__main__":
    svg_of(({"mark": "point"}, {}))  # the engine starts with its first drawing, here before the task is known
    if order := sys.stdin.buffer.read():  # empty if the command has ended without a report
        sys.stdout.write(json.dumps([svg_of(drawing) for drawing in json.loads(order)]))
