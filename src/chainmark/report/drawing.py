"""Vega-Lite specifications drawn as SVG, here or in a process of their own.

As a program it imports nothing of the package, so that the process holds nothing but the engine that draws.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import vl_convert

Drawing = tuple[dict[str, Any], dict[str, Any]]  # a specification with its data, and the look

VEGA_LITE_VERSION = "6.4"


def svg_of(drawing: Drawing) -> str:
    """A specification drawn without a network and without a browser."""
    spec, config = drawing
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE_VERSION, config=config, allowed_base_urls=[])
    return _numbered_afresh(svg)


def svgs_apart(drawings: Sequence[Drawing]) -> list[str]:
    """The same in a process of its own: the engine keeps 100 MB for as long as its process lives.

    Raises:
        RuntimeError: the process failed; the message is what it wrote of errors.
    """
    # Without the script's folder on its path, where modules are called as some of the standard library are.
    command = [sys.executable, "-P", __file__]
    ran = subprocess.run(command, input=json.dumps(drawings).encode(), capture_output=True, check=False)
    if ran.returncode != 0:
        # The engine writes its own trace below the lines that say what is wrong.
        named = re.findall(r"(?m)^\S*(?:Error|Exception).*$", ran.stderr.decode(errors="replace"))
        raise RuntimeError(" ".join(named) if named else f"drawing the charts ended with {ran.returncode}")
    svgs: list[str] = json.loads(ran.stdout)
    return svgs


def _numbered_afresh(svg: str) -> str:
    """Name the clip paths of each drawing from 1: the renderer goes on counting from one drawing to the next."""
    names: dict[str, str] = {}
    return re.sub(r"\bclip\d+\b", lambda found: names.setdefault(found[0], f"clip{len(names) + 1}"), svg)


if __name__ == "__main__":
    sys.stdout.write(json.dumps([svg_of(drawing) for drawing in json.load(sys.stdin.buffer)]))
