"""Durations as Go prints them: 1.441485349s, 599.404362ms, 2m3.5s."""

from __future__ import annotations

import re

from chainmark.core.errors import UsageError

_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, the micro sign, which Go prints
    "μs": 10**3,  # U+03BC, the Greek letter, which Go reads
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>ns|us|µs|μs|ms|s|m|h)")
_LARGEST_NS = 2**63 - 1


def go_duration_ns(text: str) -> int:
    """A duration in ns, as Go's ``time.ParseDuration`` parses it: fractions of a nanosecond are cut off.

    Raises:
        UsageError: it is not a duration, or longer than Go's 290 years.

    Source: https://pkg.go.dev/time#ParseDuration
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total, place = 0, 0
    while place < len(rest):
        part = _PART.match(rest, place)
        if part is None or not (part["whole"] or part["fraction"]):
            raise _no_duration(text)
        unit_ns = _UNITS_NS[part["unit"]]
        fraction = part["fraction"] or ""
        total += int(part["whole"] or "0") * unit_ns
        total += int(fraction or "0") * unit_ns // 10 ** len(fraction)
        place = part.end()
    if not rest or total > _LARGEST_NS + (sign < 0):
        raise _no_duration(text)
    return sign * total


def _no_duration(text: str) -> UsageError:
    return UsageError(f"`{text}` is not a duration", "Go writes durations as `1.441485349s` or `599.404362ms`")
