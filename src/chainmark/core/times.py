"""Times and durations in user input, to whole nanoseconds; and times in manifests, to the second."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from chainmark.core.errors import UsageError

NS = 1_000_000_000
RANGE_HINT = "for example `--from 2026-01-01T10:00:00Z --duration 90s`"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_NS = {"d": 86_400 * NS, "h": 3_600 * NS, "m": 60 * NS, "s": NS, "ms": 1_000_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")


def utc_text(time_ns: int) -> str:
    """Nanoseconds since 1970-01-01 UTC as "2026-01-01T10:00:00Z", truncated to seconds."""
    return datetime.fromtimestamp(time_ns // NS, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def utc_now() -> str:
    """The current time in the same form."""
    return utc_text(time.time_ns())


def nanoseconds_of_time(text: str) -> int:
    """Any ISO 8601 time with its zone, such as "2026-01-01T10:00:00Z", as ns since 1970-01-01 UTC, to the microsecond.

    Raises:
        UsageError: it is not such a time, or has no time zone.
    """
    hint = "write it as `2026-01-01T10:00:00Z`"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"`{text}` is not a time", hint) from None
    if moment.tzinfo is None:
        raise UsageError(f"the time `{text}` has no time zone", f"{hint}; `Z` is UTC")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * NS + since.microseconds * 1_000


def nanoseconds_of_duration(text: str) -> int:
    """A duration such as "90s", "1h30m" or "1.5m" in ns.

    Raises:
        UsageError: it is not such a duration, or zero.
    """
    parts = _PART.findall(text)
    total = sum(round(float(number) * _UNITS_NS[unit]) for number, unit in parts)
    if total == 0 or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"`{text}` is not a duration", "write it as `90s`, `5m` or `1h30m`")
    return total


def time_range(begin: str | None, end: str | None, duration: str | None) -> tuple[int | None, int | None]:
    """The two ends of a range in ns since 1970-01-01 UTC, from two of its three measures; two None if none is given.

    Raises:
        UsageError: one or all three are given, one is not a time, or the range is empty.
    """
    given = [begin, end, duration]
    if not any(given):
        return None, None
    if given.count(None) != 1:
        raise UsageError("a time range requires two of `--from`, `--to` and `--duration`", RANGE_HINT)
    length_ns = nanoseconds_of_duration(duration) if duration else 0
    first_ns = nanoseconds_of_time(begin) if begin else nanoseconds_of_time(end or "") - length_ns
    last_ns = nanoseconds_of_time(end) if end else first_ns + length_ns
    if last_ns <= first_ns:
        raise UsageError("the time range is empty: `--to` is not after `--from`", RANGE_HINT)
    return first_ns, last_ns
