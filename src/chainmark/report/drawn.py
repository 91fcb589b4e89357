"""Many drawings: where they are many, by a process of their own, whose memory is free again afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence

from chainmark.report import drawing
from chainmark.report.apart import run_apart
from chainmark.report.drawing import Drawing

_MOST_DRAWN_HERE = 6  # of more, a process of their own is worth its start
_DRAWN_BY_ONE = 40  # the engine takes as long to start as for ten drawings, and 100 MB; for every drawing 2 MB more


def svgs_of(drawings: Sequence[Drawing]) -> list[str]:
    """The drawings as SVG.

    Raises:
        EnvironmentFailure, InternalError: as `chainmark.report.apart.run_apart`.
    """
    return svgs_apart(drawings) if len(drawings) > _MOST_DRAWN_HERE else [drawing.svg_of(item) for item in drawings]


def svgs_apart(drawings: Sequence[Drawing]) -> list[str]:
    """The same by a process of their own, or several in turn: beside each other they would hold twice as much."""
    parts = (drawings[start : start + _DRAWN_BY_ONE] for start in range(0, len(drawings), _DRAWN_BY_ONE))
    return [svg for part in parts for svg in _drawn(part)]


def _drawn(drawings: Sequence[Drawing]) -> list[str]:
    results: list[str] = json.loads(run_apart(drawing.__file__, json.dumps(drawings).encode(), "drawing the charts"))
    return results
