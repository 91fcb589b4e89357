"""Values as published reports print them, compared with independent arithmetic and with printed examples."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chainmark.systems.cardano.published.digits import hidden_value, is_determined, is_possible
from chainmark.systems.cardano.published.values import (
    PrintedChange,
    decimals_of,
    org_change,
    org_value,
    typst_change,
    typst_figure,
    typst_value,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
AVERAGES = st.floats(min_value=0.0, max_value=2e5, allow_nan=False)
WIDTHS = st.sampled_from([3, 4, 5, 9])


def _by_fractions(value: float, decimals: int) -> Fraction:
    """Round half to even, with exact fractions instead of decimals."""
    scaled = Fraction(repr(value)) * 10**decimals
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    return Fraction(whole + up, 10**decimals)


@pytest.mark.parametrize(
    ("value", "width", "printed"),
    [
        (5.76874, 3, "5.7687"),
        (0.0008, 3, "0.0008"),
        (0.001, 3, "0.001"),
        (8735.44, 5, "8735.4"),
        (2992.04, 5, "2992."),
        (256.934, 5, "256.93"),
        (88968.4, 9, "88968"),
        (0.0000771, 4, "7.7e-5"),
        (0.00002996, 4, "3.0e-5"),
        (0.0000996, 4, "1.0e-4"),
        (0.000009, 5, "0.0"),
        (0.0, 4, "0.0"),
        (-0.0, 4, "-0.0"),
        (1.0, 4, "1."),
        (0.123455, 4, "0.12346"),
        (0.123445, 4, "0.12344"),
    ],
)
def test_values_are_printed_in_the_typst_style(value: float, width: int, printed: str) -> None:
    """These forms appear in published reports; a reader looks for exactly these digits."""
    assert typst_value(value, width) == printed


@pytest.mark.parametrize(
    ("base", "value", "change"),
    [
        (5.7687, 5.4359, PrintedChange("-0.333", "-6")),
        (0.99864, 0.99882, PrintedChange("0.000", "0.0")),
        (0.00135, 0.00143, PrintedChange("0.000", "0")),
        (0.00044, 0.00041, PrintedChange("-0.000", "0")),
        (88968.0, 88963.114, PrintedChange("-4.886", "-0.0")),
        (0.0, 0.0, PrintedChange("0.000", "NaN")),
        (0.0, 0.002, PrintedChange("0.002", "NaN")),
        (0.0013, 0.0, PrintedChange("-0.001", "-100")),
    ],
)
def test_changes_are_printed_in_the_typst_style(base: float, value: float, change: PrintedChange) -> None:
    """Published reports contain these forms in both columns of a change."""
    assert typst_change(base, value) == change


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.001054, "0.00105"),
        (8735.4284, "8735.4"),
        (7857.04, "7857.0"),
        (88951.31, "88951"),
        (2996.0, "2996.0"),
        (0.0000512, "5e-05"),
        (0.0000099, "0.0"),
        (10.7701, "10.77"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (12345678.9, "12345678"),
        (100000.0, "100000"),
    ],
)
def test_values_are_printed_in_the_org_style(value: float, printed: str) -> None:
    """Truncated, never rounded; and never truncated where that would give another figure."""
    assert org_value(value) == printed


@pytest.mark.parametrize(
    ("base", "value", "change"),
    [
        ("1.0645", "1.115", PrintedChange("0.051", "5")),
        ("0.02543", "0.02391", PrintedChange("-0.002", "-8")),
        ("0.00046", "0.00056", PrintedChange("0.000", "0")),
        ("0.00127", "0.00121", PrintedChange("-0.000", "0")),
        ("88951", "88966", PrintedChange("15", "0")),
        ("88951", "2996.0", PrintedChange("-85955.000", "-97")),
        ("0.0", "5e-05", PrintedChange("0.000", "nan")),
        ("-0.0", "0.0", PrintedChange("0.000", "nan")),
    ],
)
def test_changes_are_printed_in_the_org_style(base: str, value: str, change: PrintedChange) -> None:
    """The relative change is computed from the rounded difference, and integers have integer differences."""
    assert org_change(base, value) == change


@given(FINITE, st.integers(0, 12))
def test_a_figure_never_loses_its_sign(value: float, precision: int) -> None:
    """A decrease must not be read as an increase, however small it is."""
    assert typst_figure(value, precision).startswith("-") == (math.copysign(1.0, value) < 0)


@given(FINITE, FINITE)
def test_a_change_has_the_sign_of_the_difference(base: float, value: float) -> None:
    """A decrease that prints as zero must not be read as an increase."""
    assume(math.isfinite(value - base) and (base == 0.0 or math.isfinite(100.0 * (value - base) / base)))
    assert typst_change(base, value).delta.startswith("-") == (value - base < 0.0)


@given(st.floats(min_value=1e-4, max_value=1e12), st.integers(0, 12))
def test_a_figure_is_the_nearest_of_its_length(value: float, precision: int) -> None:
    """Compared with exact fractions: a wrong last digit is a wrong report."""
    assert Fraction(typst_figure(value, precision)) == _by_fractions(value, decimals_of(value, precision))


@given(st.floats(min_value=0.0, max_value=999_999.0))
def test_a_truncated_value_is_smaller_by_less_than_its_last_digit(value: float) -> None:
    """Six characters hold at least the first six places, not counting a zero before the point."""
    lost = Fraction(repr(value)) - Fraction(org_value(value))
    whole = len(str(int(value))) if value >= 1.0 else 0
    assert 0 <= lost < Fraction(1, 10 ** max(0, 5 - whole))


@given(AVERAGES, AVERAGES)
def test_the_org_style_shows_no_percentage_for_a_difference_of_zero(base: float, value: float) -> None:
    """Except for integer cells, 0.000 never appears with a percentage: that is characteristic of this style."""
    change = org_change(org_value(base), org_value(value))
    if Fraction(change.delta) == 0:
        assert change.percent in {"0", "nan"}


@given(AVERAGES, WIDTHS)
def test_the_interval_of_hidden_digits_contains_the_value(value: float, width: int) -> None:
    """If the interval missed the average, an undecided change could be reported as decided."""
    assert hidden_value(typst_value(value, width), width).holds(Fraction(repr(value)))


@given(AVERAGES, st.floats(min_value=-0.3, max_value=0.3), WIDTHS)
def test_a_change_decided_by_printed_digits_is_that_of_the_averages(base: float, step: float, width: int) -> None:
    """A change without a mark must match the full averages; every true change must be possible."""
    value = base * (1.0 + step)
    printed = typst_value(base, width), typst_value(value, width)
    intervals = hidden_value(printed[0], width), hidden_value(printed[1], width)
    truth = typst_change(base, value)
    assert is_possible(*intervals, truth)
    if is_determined(*intervals):
        assert typst_change(float(printed[0]), float(printed[1])) == truth


def test_some_printed_digits_decide_and_some_do_not() -> None:
    """A rule that calls every change undecided would pass the test above."""
    assert is_determined(hidden_value("5.7687", 3), hidden_value("5.4359", 3))
    assert not is_determined(hidden_value("8735.4", 5), hidden_value("6602.5", 5))
    assert not is_determined(hidden_value("0.0", 5), hidden_value("0.0013", 5))
    assert is_possible(hidden_value("8735.4", 5), hidden_value("6602.5", 5), PrintedChange("-2132.937", "-24"))
    assert not is_possible(hidden_value("8735.4", 5), hidden_value("6602.5", 5), PrintedChange("-2133.937", "-24"))
    assert not is_possible(hidden_value("5.7687", 3), hidden_value("5.4359", 3), PrintedChange("-0.333", "-7"))
