"""Many drawings: from a certain number on in a separate process, whose memory is freed afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence

from chainmark.report import drawing
from chainmark.report.apart import run_apart
from chainmark.report.drawing import Drawing

_MOST_DRAWN_HERE = 6  # for more, a separate process is worth its start
_DRAWN_BY_ONE = 40  # the engine's start takes as long as ten drawings, and 100 MB; each drawing needs 2 MB more


def svgs_of(drawings: Sequence[Drawing]) -> list[str]:
    """The drawings as SVG.

    Raises:
        EnvironmentFailure, InternalError: as `chainmark.report.apart.run_apart`.
    """
    return svgs_apart(drawings) if len(drawings) > _MOST_DRAWN_HERE else [drawing.svg_of(item) for item in drawings]


def svgs_apart(drawings: Sequence[Drawing]) -> list[str]:
    """Draw in a separate process, or several in turn: in parallel they would need twice the memory."""
    parts = (drawings[start : start + _DRAWN_BY_ONE] for start in range(0, len(drawings), _DRAWN_BY_ONE))
    return [svg for part in parts for svg in _drawn(part)]


def _drawn(drawings: Sequence[Drawing]) -> list[str]:
    results: list[str] = json.loads(run_apart(drawing.__file__, json.dumps(drawings).encode(), "drawing the charts"))
    return results
