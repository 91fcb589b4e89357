"""JSON in which long lists of figures are replaced by their differences: half the size, once it is packed.

``[0.5,0.75,1.0]`` is replaced by ``[<mark>2:3]``: the number of decimals and of figures. The figures times that
power of ten are integers. The first integer and the differences follow after a zero byte, those of all lists
together, folded (0, -1, 1, -2 … as 0, 1, 2, 3 …): all lowest bytes, then all next ones, up to the highest, because
bytes of one place resemble each other. The page's script restores the figures exactly.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

MARK = "\x01"  # JSON would escape it and a zero byte, so it contains neither
_FIGURES = re.compile(r"(?<=\[)-?\d+\.\d+(?:,-?\d+\.\d+){7,}(?=\])")
_DECIMALS = re.compile(r"\.(\d+)")
# Zeros of figures in their restored form: none at the end but the only decimal, none before other digits.
_ZEROS = (("0,", ".0,"), (",0", ",0."), ("-0", "-0."))
_MOST_PLACES = 22  # powers of ten up to which a float is exact
_EXACT = 2**51  # below it a figure times a power of ten is rounded to the exact integer, as scripts have it


def in_steps(text: str) -> bytes:
    """JSON with its lists of eight decimal figures or more as differences, where that is exact."""
    steps: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    remaining = _FIGURES.sub(lambda match: _stepped(match[0], steps), text)
    signed = np.concatenate(steps).astype("<i8")
    folded = (signed << 1) ^ (signed >> 63)
    places = (int(folded.max(initial=0)).bit_length() + 7) // 8
    return remaining.encode() + b"\0" + folded.view(np.uint8).reshape(-1, 8).T[:places].tobytes()


def _stepped(figures: str, steps: list[npt.NDArray[np.int64]]) -> str:
    """The replacement of a list whose differences are appended to the others."""
    decimals = max(map(len, _DECIMALS.findall(figures)))
    values = np.fromstring(figures, sep=",") * 10.0**decimals
    if decimals > _MOST_PLACES or np.abs(values).max() >= _EXACT or not _is_as_written(f",{figures},"):
        return figures
    integers = np.rint(values).astype(np.int64)
    steps.append(integers - np.append(0, integers[:-1]))
    return f"{MARK}{decimals}:{len(values)}"


def _is_as_written(figures: str) -> bool:
    return "-0.0," not in figures and all(figures.count(any_) == figures.count(sound) for any_, sound in _ZEROS)
