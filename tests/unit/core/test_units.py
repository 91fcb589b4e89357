"""Figures as they are printed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core import units

finite = st.floats(allow_nan=False, allow_infinity=False)
ordinary = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


def read_back(text: str) -> float:
    """The value of a printed figure."""
    return float(text.replace(units.MINUS, "-").replace(",", "").replace("+", ""))


@given(ordinary, st.integers(0, 9))
def test_a_printed_number_is_the_value_rounded(value: float, decimals: int) -> None:
    printed = units.number(value, decimals)
    if 0 < abs(value) < 1e-6:
        assert read_back(printed) == 0.0 or math.isclose(read_back(printed), value, rel_tol=0.01)
    else:
        assert read_back(printed) == pytest.approx(value, rel=1e-12, abs=0.500001 * 10.0**-decimals)


@given(finite, st.integers(0, 9), st.booleans())
def test_no_number_has_a_hyphen_or_a_signed_zero(value: float, decimals: int, signed: bool) -> None:
    printed = units.number(value, decimals, signed=signed)
    assert "-" not in printed
    if read_back(printed) == 0.0:
        assert printed[0] not in "+" + units.MINUS


def test_only_long_numbers_are_grouped() -> None:
    assert units.number(9_999.0, 0) == "9999"
    assert units.number(12_345.678, 1) == "12,345.7"
    assert units.number(math.inf, 1) == "∞"
    assert units.number(None, 1) == units.NOT_ESTIMABLE
    assert units.number(math.nan, 1) == units.NOT_ESTIMABLE
    assert units.number(1e300, 3) == "1.00e300"
    assert units.number(-2.5e-9, 3) == "−2.50e−9"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.039, "+3.9 %"), (-0.0714, "−7.1 %"), (0.0, "0.0 %"), (-0.0001, "0.0 %"), (12.4, "+1240 %"),
     (None, "not estimable")],
)  # fmt: skip
def test_percentages_are_formatted(fraction: float | None, text: str) -> None:
    assert units.percent(fraction) == text


def test_both_ends_of_an_interval_have_the_same_decimals() -> None:
    assert units.percent_interval(-0.071, -0.006) == "−7.1 … −0.6 %"
    assert units.percent_interval(-0.42, 2.88) == "−42 … +288 %"
    assert units.percent_interval(None, 0.1) == units.NOT_ESTIMABLE


def test_margins_are_printed_without_useless_decimals() -> None:
    assert units.plain_percent(0.1) == "10 %"
    assert units.plain_percent(0.125) == "12.5 %"
    assert [units.chance(share) for share in (0.0, 1e-15, 0.001, 0.5, 0.999, 1.0)] == [
        "< 0.1 %", "< 0.1 %", "0.1 %", "50.0 %", "99.9 %", "> 99.9 %",
    ]  # fmt: skip
    assert units.tidy_quantity(0.005, "s") == "5 ms"
    assert units.tidy_quantity(10.0, "tx") == "10 tx"
    assert units.tidy_quantity(4.17634, "") == "4.18"


def test_a_share_below_its_limit_is_printed_with_enough_digits() -> None:
    """A gate that failed at 97.99 % was shown as "98.0 %, ≥ 98.0 %"."""
    assert units.share_beside(0.98, 0.9799) == "97.99 %"
    assert units.share_beside(0.999, 0.99896) == "99.896 %"
    assert units.share_beside(0.98, 0.97) == "97.0 %"
    assert units.share_beside(0.98, 0.98) == "98.0 %"


def test_a_row_is_in_milliseconds_only_if_all_its_values_fit() -> None:
    assert units.display_unit("s", [0.741, 0.712]).symbol == "ms"
    assert units.display_unit("s", [0.741, 1.481]).symbol == "s"
    assert units.display_unit("s", [7.7e-5]).symbol == "µs"
    assert units.display_unit("s", [0.0, None]).symbol == "s"


def test_bytes_are_counted_in_powers_of_1024() -> None:
    unit = units.display_unit("B", [412e6])
    assert unit.symbol == "MiB"
    assert unit.of(2.0**20) == 1.0
    assert units.display_unit("bytes/s", [2000.0]).symbol == "KiB/s"
    assert units.display_unit("MiB", [8735.4]).symbol == "GiB"
    assert units.byte_size(2**34) == "16.00 GiB"
    assert units.byte_size(512) == "512 B"


@given(st.sampled_from(["s", "B", "MiB/s", "tx/s", "1", "%"]), st.lists(finite, min_size=1, max_size=4))
def test_a_display_unit_preserves_the_order_and_never_fails(unit: str, values: list[float]) -> None:
    shown = units.display_unit(unit, values)
    assert shown.factor > 0
    known = [scaled for value in sorted(values) if (scaled := shown.of(value)) is not None]
    assert known == sorted(known)
    for value in values:
        scaled = shown.of(value)
        # A value too small to be represented becomes zero. The sign never changes.
        assert scaled is None or scaled == 0.0 or (scaled > 0) == (value > 0)


@given(st.floats(min_value=1e-6, max_value=1e9), st.floats(min_value=1e-9, max_value=1e9))
def test_between_three_and_five_digits_are_significant(value: float, uncertainty: float) -> None:
    decimals = units.decimals_for([value], uncertainty)
    magnitude = math.floor(math.log10(value)) + 1
    assert 0 <= decimals <= 9
    assert decimals + magnitude <= 5 or decimals == 0
    assert decimals + magnitude >= 3 or decimals == 9


def test_digits_follow_the_uncertainty() -> None:
    assert units.decimals_for([0.741], 0.024) == 3
    assert units.decimals_for([1.481], 0.045) == 3
    assert units.decimals_for([200.0]) == 1
    assert units.decimals_for([None, 0.0]) == 1


@given(st.lists(st.one_of(st.just("no data"), ordinary.map(lambda value: units.number(value, 2))), min_size=1))
def test_aligned_figures_have_their_points_in_one_column(texts: list[str]) -> None:
    aligned = units.align_on_point(texts)
    assert [line.strip() for line in aligned] == texts
    assert len({len(line) for line in aligned}) == 1
    points = {line.index(".") for line in aligned if "." in line and "e" not in line}
    whole = {line.index("e") for line in aligned if "e" in line and "no" not in line}
    assert len(points) <= 1 or whole


def test_padding_for_proportional_fonts_is_as_wide_as_the_missing_digits() -> None:
    padded = units.pad_after_point(["50.00", "173", "1.2389", "no data"])
    assert padded == ["50.00\u2007\u2007", "173\u2008\u2007\u2007\u2007\u2007", "1.2389", "no data"]
    assert units.pad_after_point(["50", "173"]) == ["50", "173"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-20T10:11:12Z", "2026-11-20 10:11 UTC"),
        ("2026-11-20T10:11:12+02:00", "2026-11-20 08:11 UTC"),
        ("2026-11-20", "2026-11-20"),
        ("yesterday T", "yesterday T"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
    ],
)
def test_times_are_utc(text: str, shown: str) -> None:
    assert units.utc(text) == shown


@given(st.integers())
def test_no_time_is_too_large(time_ns: int) -> None:
    assert units.utc_of_nanoseconds(time_ns)


def test_scalars_are_printed_as_in_a_configuration_file() -> None:
    shown = [units.scalar(value) for value in (None, "", "kv", True, 5, 0.5, ["a", 1])]
    assert shown == ["—", '""', "kv", "true", "5", "0.5", '["a", 1]']


def test_counts_and_nouns_agree() -> None:
    assert (units.none_of(3, "run"), units.none_of(1, "run")) == ("none of 3 runs", "no run")
    assert units.plural(1, "run") == "1 run"
    assert units.plural(12_345, "run") == "12,345 runs"
    assert units.count(-12_345) == "−12,345"
    assert units.quantity(0.0123, "s") == "12.30 ms"
    assert units.quantity(None, "s") == units.NOT_ESTIMABLE


@given(st.lists(st.floats()), st.integers(1, 12))
def test_arrays_are_rounded_like_single_numbers(values: list[float], digits: int) -> None:
    assert list(map(repr, units.all_rounded(values, digits))) == [
        repr(units.rounded(value, digits)) for value in values
    ]


@pytest.mark.parametrize(
    ("change", "low", "high", "unit", "printed"),
    [
        (0.31, 0.281, 0.34, None, ("+31.0 %", "+28.1 … +34.0 %")),
        (0.9, 0.8, 12.5, None, ("+90 %", "+80 … +1250 %")),
        (-0.04, None, -0.01, None, ("−4.0 %", "")),
        (0.0003, -0.020, 0.0145, "s", ("+0.3 ms", "−20.0 … +14.5 ms")),
        (12.5, 11.0, 14.0, "%", ("+12.5 pp", "+11.0 … +14.0 pp")),
        (0.5, 0.1, 0.9, "", ("+0.500", "+0.100 … +0.900")),
        (0.012, 0.010, None, "s", ("+12.00 ms", "")),
    ],
)
def test_a_change_and_its_interval_have_signs_and_one_unit(
    change: float, low: float | None, high: float | None, unit: str | None, printed: tuple[str, str]
) -> None:
    assert units.change_and_interval(change, low, high, unit) == printed
