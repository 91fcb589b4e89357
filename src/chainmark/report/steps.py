"""JSON whose long lists of figures stand behind it as the steps from one to the next: a half less, once it is packed.

Of ``[0.5,0.75,1.0]`` there is left ``[<mark>2:3]``: the number of decimals and of figures. The figures times that
power of ten are integers; the first of them and the steps to the others stand behind a zero byte, those of all lists
together, folded (0, -1, 1, -2 … as 0, 1, 2, 3 …): all lowest bytes, then all next ones, up to the highest, as bytes of
one place resemble each other. The page's script writes the figures out again, to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

MARK = "\x01"  # cannot stand in JSON, where it would be escaped, and no more can a zero byte
_FIGURES = re.compile(r"(?<=\[)-?\d+\.\d+(?:,-?\d+\.\d+){7,}(?=\])")
_EXACT = 2**51  # folded steps are a script's integers


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
    parts = [figure.split(".") for figure in figures.split(",")]
    places = max(len(fraction) for _, fraction in parts)
    values = [int(whole + fraction.ljust(places, "0")) for whole, fraction in parts]
    if max(map(abs, values)) >= _EXACT or _figures(places, values) != figures:
        return figures
    steps += [values[0], *(after - value for value, after in pairwise(values))]
    return f"{MARK}{places}:{len(values)}"


def _figures(places: int, values: Iterable[int]) -> str:
    """Integers as decimal figures, with one decimal at least."""
    return ",".join(_figure(places, value) for value in values)


def _figure(places: int, value: int) -> str:
    digits = str(abs(value)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:].rstrip('0') or '0'}"
