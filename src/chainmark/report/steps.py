"""JSON whose long lists of figures stand behind it as the steps from one to the next: a half less, once it is packed.

Of ``[0.5,0.75,1.0]`` there is left ``[<mark>2:3]``: the number of decimals and of figures. The figures times that
power of ten are integers; the first of them and the steps to the others stand behind a zero byte, those of all lists
together, folded (0, -1, 1, -2 … as 0, 1, 2, 3 …): all lowest bytes, then all next ones, up to the highest, as bytes of
one place resemble each other. The page's script writes the figures out again, to the letter.
"""

from __future__ import annotations

import re

import numpy as np

MARK = "\x01"  # cannot stand in JSON, where it would be escaped, and no more can a zero byte
_FIGURES = re.compile(r"(?<=\[)-?\d+\.\d+(?:,-?\d+\.\d+){7,}(?=\])")
# Figures as they are written out again: no zero at the end but the only decimal, none before the others, and no -0.0.
_AS_WRITTEN = re.compile(r"(?:(?!-0\.0(?:,|$))-?(?:0|[1-9]\d*)\.(?:0|\d*[1-9])(?:,|$))+")
_MOST_PLACES = 22  # powers of ten up to which a float is exact
_EXACT = 2**51  # below it a figure times a power of ten is rounded to the very integer; steps are a script's integers


def in_steps(text: str) -> bytes:
    """JSON with its lists of eight decimal figures or more in steps, where that is exact."""
    steps: list[int] = []
    left = _FIGURES.sub(lambda found: _stepped(found[0], steps), text)
    signed = np.array(steps, dtype="<i8")
    folded = (signed << 1) ^ (signed >> 63)
    places = (int(folded.max(initial=0)).bit_length() + 7) // 8
    return left.encode() + b"\0" + folded.view(np.uint8).reshape(-1, 8).T[:places].tobytes()


def _stepped(figures: str, steps: list[int]) -> str:
    """What is left of a list whose steps are appended to the others."""
    parts = figures.split(",")
    places = max(len(part) - part.index(".") - 1 for part in parts)
    values = np.array(list(map(float, parts))) * 10.0**places
    if places > _MOST_PLACES or np.abs(values).max() >= _EXACT or not _AS_WRITTEN.fullmatch(figures):
        return figures
    steps += np.diff(np.rint(values).astype(np.int64), prepend=0).tolist()
    return f"{MARK}{places}:{len(values)}"
