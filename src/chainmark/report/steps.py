"""JSON in which long lists of figures stand as the steps from one to the next: a third less, once it is packed.

``[0.5,0.75,1.0]`` becomes ``[<mark>2:50,25,25]``: the number of decimals, then integers that add up to the figures
times a power of ten. The page's script writes the figures out again, to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

MARK = "\x01"  # cannot stand in JSON, where it would be escaped
_FIGURES = re.compile(r"(?<=\[)-?\d+\.\d+(?:,-?\d+\.\d+){7,}(?=\])")
_EXACT = 2**53  # a script's integers


def in_steps(text: str) -> str:
    """JSON with its lists of eight decimal figures or more in steps, where that is shorter and exact."""
    return _FIGURES.sub(lambda found: _packed(found[0]), text)


def _packed(figures: str) -> str:
    parts = [figure.split(".") for figure in figures.split(",")]
    places = max(len(fraction) for _, fraction in parts)
    values = [int(whole + fraction.ljust(places, "0")) for whole, fraction in parts]
    steps = f"{MARK}{places}:" + ",".join(map(str, [values[0], *(after - value for value, after in pairwise(values))]))
    is_exact = max(map(abs, values)) < _EXACT and _figures(places, values) == figures
    return steps if is_exact and len(steps) < len(figures) else figures


def _figures(places: int, values: Iterable[int]) -> str:
    """Integers as decimal figures, with one decimal at least."""
    return ",".join(_figure(places, value) for value in values)


def _figure(places: int, value: int) -> str:
    digits = str(abs(value)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:].rstrip('0') or '0'}"
