"""Go's durations: misreading one by a factor of a thousand would report a regression that does not exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.systems.cometbft.durations import go_duration_ns

_LARGEST = 2**63 - 1


def _printed(ns: int) -> str:
    """As printed by Go's Duration.String: the largest unit first, and below a second one unit with its fraction."""
    if ns == 0:
        return "0s"
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    for unit, factor in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if size < factor * 1000:
            return f"{sign}{_decimal(size, factor)}{unit}"
    minutes, rest = divmod(size, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, 10**9)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(size: int, factor: int) -> str:
    whole, rest = divmod(size, factor)
    digits = len(str(factor)) - 1
    fraction = str(rest).rjust(digits, "0").rstrip("0") if digits else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


@given(st.integers(-_LARGEST, _LARGEST) | st.integers(-(10**10), 10**10))
def test_durations_printed_by_go_are_read_back(ns: int) -> None:
    assert go_duration_ns(_printed(ns)) == ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1.441485349s", 1_441_485_349),
        ("599.404362ms", 599_404_362),
        ("0", 0),
        ("0s", 0),
        ("-12.5µs", -12_500),
        ("12.5us", 12_500),
        ("1.5μs", 1_500),
        ("2m3.5s", 123_500_000_000),
        ("1h", 3_600_000_000_000),
        ("+3ns", 3),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("0.0000000019s", 1),
    ],
)
def test_spellings_accepted_by_go_are_read(text: str, ns: int) -> None:
    assert go_duration_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", "s", "1", ".s", "1.5", "1 s", "1.5 ms", "1d", "--1s", "1s ", "9223372037s", "1,5s"]
)
def test_durations_refused_by_go_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        go_duration_ns(text)
    assert f"`{text}`" in caught.value.message


@given(st.text(alphabet="0123456789.hmsnuµμ+- ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        duration_ns = go_duration_ns(text)
    except UsageError:
        return
    assert abs(duration_ns) <= _LARGEST + 1
