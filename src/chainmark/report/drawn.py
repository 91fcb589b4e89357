"""Many drawings: from a certain number on in a separate process, whose memory is freed afterwards."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from itertools import chain, repeat

from chainmark.report import drawing
from chainmark.report.apart import finish_apart, start_apart
from chainmark.report.drawing import Drawing

_MOST_DRAWN_HERE = 6  # for more, a separate process is worth its start
_DRAWN_BY_ONE = 40  # the engine's start takes as long as ten drawings, and 100 MB; each drawing needs 2 MB more


def svgs_of(drawings: Sequence[Drawing]) -> list[str]:
    """The drawings as SVG.

    Raises:
        EnvironmentFailure, InternalError: as `chainmark.report.apart.finish_apart`.
    """
    return svgs_apart(drawings) if len(drawings) > _MOST_DRAWN_HERE else [drawing.svg_of(item) for item in drawings]


def start_engine() -> subprocess.Popen[bytes]:
    """Start a process that draws, before the drawings are known: its start takes as long as ten of them."""
    return start_apart(drawing.__file__)


def svgs_apart(drawings: Sequence[Drawing], engine: subprocess.Popen[bytes] | None = None) -> list[str]:
    """Draw in a separate process, or several in turn: in parallel they would need twice the memory.

    Args:
        drawings: what to draw.
        engine: the first of the processes, if it is already started.
    """
    parts = (drawings[start : start + _DRAWN_BY_ONE] for start in range(0, len(drawings), _DRAWN_BY_ONE))
    engines: Iterable[subprocess.Popen[bytes] | None] = chain([engine], repeat(None))
    return [svg for part, started in zip(parts, engines, strict=False) for svg in _drawn(part, started)]


def _drawn(drawings: Sequence[Drawing], engine: subprocess.Popen[bytes] | None) -> list[str]:
    task = json.dumps(drawings).encode()
    results: list[str] = json.loads(finish_apart(engine or start_engine(), task, "drawing the charts"))
    return results
