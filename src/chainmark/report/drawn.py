"""Many drawings: where they are many, by processes of their own, whose memory is free again afterwards."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from chainmark.report import drawing
from chainmark.report.apart import run_apart
from chainmark.report.drawing import Drawing

_MOST_DRAWN_HERE = 6  # of more, processes of their own are worth their start
_DRAWN_BY_ONE = 11  # the engine takes 0.4 s to start and 90 MB, and with every drawing 2 MB more
_AT_A_TIME = 2  # processes, where there are as many processors


def svgs_of(drawings: Sequence[Drawing]) -> list[str]:
    """The drawings as SVG.

    Raises:
        EnvironmentFailure, InternalError: as `chainmark.report.apart.run_apart`.
    """
    return svgs_apart(drawings) if len(drawings) > _MOST_DRAWN_HERE else [drawing.svg_of(one) for one in drawings]


def svgs_apart(drawings: Sequence[Drawing]) -> list[str]:
    """The same by processes of their own."""
    processes = min(_AT_A_TIME, len(os.sched_getaffinity(0)))
    # As many rounds for each of those that draw at the same time: none of them draws the last ones alone.
    rounds = max(1, math.ceil(len(drawings) / _DRAWN_BY_ONE / processes))
    size = max(1, math.ceil(len(drawings) / (rounds * processes)))
    with ThreadPoolExecutor(processes) as pool:
        parts = pool.map(_drawn, (drawings[start : start + size] for start in range(0, len(drawings), size)))
        return [svg for part in parts for svg in part]


def _drawn(drawings: Sequence[Drawing]) -> list[str]:
    found: list[str] = json.loads(run_apart(drawing.__file__, json.dumps(drawings).encode(), "drawing the charts"))
    return found
