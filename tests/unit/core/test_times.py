"""Times as users type them. A wrong time zone would import logs of another hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.core.times import nanoseconds_of_duration, nanoseconds_of_time


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),  # noqa: DTZ001 - hypothesis adds the zone
    st.integers(-14 * 60, 14 * 60),
)
def test_every_time_zone_gives_the_same_instant(moment: datetime, minutes: int) -> None:
    utc = moment.replace(tzinfo=UTC)
    abroad = utc.astimezone(timezone(timedelta(minutes=minutes)))
    expected = round(utc.timestamp()) if utc.microsecond == 0 else None
    assert nanoseconds_of_time(abroad.isoformat()) == nanoseconds_of_time(utc.isoformat().replace("+00:00", "Z"))
    assert nanoseconds_of_time(utc.isoformat()) % 10**9 == utc.microsecond * 1_000
    if expected is not None:
        assert nanoseconds_of_time(utc.isoformat()) == expected * 10**9


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("1.5m", 90), ("1d", 86400), ("250ms", 0.25), ("1m500ms", 60.5)]
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert nanoseconds_of_duration(text) == round(seconds * 1e9)


@pytest.mark.parametrize("text", ["", "90", "s", "1h 30m", "-5s", "0s", "5 minutes", "1h30", "ms"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        nanoseconds_of_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("yesterday", "is not a time"), ("", "is not a time"), ("2026-01-01T10:00:00", "has no time zone")],
)
def test_an_invalid_time_is_refused(text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        nanoseconds_of_time(text)
