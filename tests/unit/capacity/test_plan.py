"""The levels that a search may try, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.capacity.model import LevelKind, LoadLevel
from chainmark.capacity.plan import LINEAR_LADDER, SearchPlan, rounded
from chainmark.core.errors import UsageError

CLIENTS, RATE = LevelKind.CLIENTS, LevelKind.RATE


def values(plan: SearchPlan, way: str, start: float) -> list[float]:
    """All levels from one level upwards or downwards."""
    levels, level = [], LoadLevel(plan.kind, start)
    while (level := getattr(plan, way)(level)) is not None:
        assert level.kind is plan.kind
        levels.append(level.value)
    return levels


def test_clients_are_doubled_up_to_the_ladders_end_and_halved_down_to_one() -> None:
    plan = SearchPlan.of_clients(first=3, last=50)
    assert plan.start() == LoadLevel(CLIENTS, 3.0)
    assert values(plan, "above", 3.0) == [6.0, 12.0, 24.0, 48.0, 50.0]
    assert values(plan, "below", 3.0) == [1.0]
    assert values(plan, "below", 50.0) == [25.0, 12.0, 6.0, 3.0, 1.0]


def test_clients_rise_by_at_least_one() -> None:
    """With a factor of 1.1 the search would stay at one client forever."""
    assert values(SearchPlan(CLIENTS, 1.0, 13.0, factor=1.5), "above", 1.0) == [2.0, 3.0, 4.0, 6.0, 9.0, 13.0]
    assert values(SearchPlan(CLIENTS, 1.0, 4.0, factor=1.1), "above", 1.0) == [2.0, 3.0, 4.0]


def test_rates_are_doubled_and_halved_down_to_their_floor() -> None:
    plan = SearchPlan.of_rates(first=2.5, last=12.0, floor=0.5)
    assert plan.start() == LoadLevel(RATE, 2.5)
    assert values(plan, "above", 2.5) == [5.0, 10.0, 12.0]
    assert values(plan, "below", 2.5) == [1.25, 0.625, 0.5]
    assert SearchPlan.of_rates(first=0.25).floor == 0.25, "a first level below the default floor becomes the floor"


def test_a_ladder_is_followed_rung_by_rung() -> None:
    plan = SearchPlan.of_ladder(RATE, (1.0, 4.0, 9.0, 20.0, 21.0), times=2)
    assert plan.start() == LoadLevel(RATE, 1.0)
    assert values(plan, "above", 1.0) == [4.0, 9.0, 20.0, 21.0]
    assert values(plan, "below", 21.0) == [20.0, 9.0, 4.0, 1.0]
    assert values(plan, "above", 5.0) == [9.0, 20.0, 21.0]
    assert values(plan, "below", 5.0) == [4.0, 1.0]
    assert (plan.times, plan.budget_steps, plan.ladder) == (2, 26, (1.0, 4.0, 9.0, 20.0, 21.0))
    assert (plan.first, plan.last, plan.floor) == (1.0, 21.0, 1.0)
    usual = SearchPlan.of_ladder(CLIENTS)
    assert (usual.ladder, usual.times, usual.budget_steps) == (LINEAR_LADDER, 3, 110)
    assert LINEAR_LADDER[:4] == (1.0, 2.0, 4.0, 8.0)
    assert (LINEAR_LADDER[26:28], LINEAR_LADDER[-1], len(LINEAR_LADDER)) == ((100.0, 125.0), 500.0, 43)


@pytest.mark.parametrize(
    ("low", "high", "between"),
    [(1.0, 9.0, 4.0), (1.0, 20.0, 9.0), (1.0, 4.0, None), (4.0, 21.0, 20.0), (2.0, 3.0, None)],
)
def test_between_rungs_the_middle_one_is_tried(low: float, high: float, between: float | None) -> None:
    plan = SearchPlan.of_ladder(CLIENTS, (1.0, 4.0, 9.0, 20.0, 21.0))
    level = plan.between(LoadLevel(CLIENTS, low), LoadLevel(CLIENTS, high))
    assert level == (None if between is None else LoadLevel(CLIENTS, between))


@pytest.mark.parametrize(
    ("low", "high", "between"),
    [(4.0, 8.0, 6.0), (4.0, 7.0, 5.0), (4.0, 6.0, 5.0), (4.0, 5.0, None), (40.0, 42.0, None), (40.0, 43.0, 41.0)],
)
def test_clients_are_bisected_until_a_gap_of_one_or_five_percent(
    low: float, high: float, between: float | None
) -> None:
    level = SearchPlan.of_clients().between(LoadLevel(CLIENTS, low), LoadLevel(CLIENTS, high))
    assert level == (None if between is None else LoadLevel(CLIENTS, between))


@pytest.mark.parametrize(
    ("low", "high", "gap", "between"),
    [
        (100.0, 400.0, 0.05, 200.0),
        (2.0, 3.0, 0.05, 2.449),
        (1234.0, 1300.0, 0.05, 1267.0),
        (100.0, 105.0, 0.05, None),
        (100.0, 105.0004, 0.05, None),
        (100.0, 105.001, 0.05, 102.5),
        (100.0, 120.0, 0.2, None),
        (100.0, 121.0, 0.2, 110.0),
    ],
)
def test_rates_are_bisected_by_ratio_until_the_gap_is_small(
    low: float, high: float, gap: float, between: float | None
) -> None:
    """A gap of 0.01 % is small enough: levels are rounded to four digits."""
    level = SearchPlan.of_rates(relative_gap=gap).between(LoadLevel(RATE, low), LoadLevel(RATE, high))
    assert level == (None if between is None else LoadLevel(RATE, between))


def test_a_plan_has_the_values_it_was_created_with() -> None:
    clients = SearchPlan.of_clients(2, 99, 0.1, 5)
    assert clients == SearchPlan(CLIENTS, 2.0, 99.0, 1.0, 2.0, 0.1, 5, 60, ())
    assert SearchPlan.of_clients() == SearchPlan(CLIENTS, 1.0, 1024.0, 1.0, 2.0, 0.05, 3, 60, ())
    assert SearchPlan.of_rates(4.0, 99.0, 2.0, 0.1, 5) == SearchPlan(RATE, 4.0, 99.0, 2.0, 2.0, 0.1, 5, 60, ())
    assert SearchPlan.of_rates() == SearchPlan(RATE, 32.0, 32_768.0, 0.5, 2.0, 0.05, 3, 60, ())


def search_plan(**changes: Any) -> SearchPlan:
    return SearchPlan(**{"kind": RATE, "first": 2.0, "last": 8.0, "floor": 1.0, **changes})


@pytest.mark.parametrize(
    ("kind", "required", "level"),
    [
        (RATE, 2.5, 2.5),
        (CLIENTS, 2.5, 3.0),
        (CLIENTS, 3.0, 3.0),
        (RATE, 1.0, 1.0),
        (RATE, 8.0, 8.0),
        (RATE, 0.99, None),
        (RATE, 8.01, None),
        (CLIENTS, 7.5, 8.0),
        (CLIENTS, 8.5, None),
        (RATE, None, None),
    ],
)
def test_a_required_capacity_between_the_floor_and_the_last_level_is_measured(
    kind: LevelKind, required: float | None, level: float | None
) -> None:
    """Clients are whole, and fewer than required would not show the capacity."""
    expected = None if level is None else LoadLevel(kind, level)
    assert search_plan(kind=kind, required=required).required_level() == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"floor": 2.0, "last": 2.0},
        {"factor": 100.0},
        {"factor": 1.001},
        {"relative_gap": 0.001},
        {"relative_gap": 1.0},
        {"times": 1, "budget_steps": 1},
        {"kind": CLIENTS},
        {"ladder": (2.0, 2.5)},
        {"floor": 1e-9},
    ],
)
def test_plans_at_the_limits_of_validity_are_accepted(changes: dict[str, Any]) -> None:
    assert search_plan(**changes).start().value == 2.0


NO_LEVELS = "a search from {} to {} rate (floor {}) has no levels"


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"floor": 0.0}, NO_LEVELS.format(2, 8, 0), "0 < floor <= first <= last"),
        ({"floor": 2.5}, NO_LEVELS.format(2, 8, 2.5), "0 < floor <= first <= last"),
        ({"last": 1.5}, NO_LEVELS.format(2, 1.5, 1), "0 < floor <= first <= last"),
        ({"factor": 1.0}, "the search's factor is 1", "above 1, at most 100; 2 doubles"),
        ({"factor": 100.5}, "the search's factor is 100.5", "above 1, at most 100; 2 doubles"),
        ({"relative_gap": 0.0009}, "the search's relative gap is 0.0009", "from 0.001 to 1; 0.05 is 5 %"),
        ({"relative_gap": 1.5}, "the search's relative gap is 1.5", "from 0.001 to 1; 0.05 is 5 %"),
        ({"times": 0}, "the search has 60 steps and 0 times", "both are at least 1"),
        ({"budget_steps": 0}, "the search has 0 steps and 3 times", "both are at least 1"),
        ({"kind": CLIENTS, "first": 2.5}, "a level of the search is not a whole number of clients", None),
        ({"kind": CLIENTS, "last": 8.5}, "a level of the search is not a whole number of clients", None),
        ({"kind": CLIENTS, "floor": 1.5}, "a level of the search is not a whole number of clients", None),
        ({"kind": CLIENTS, "ladder": (2.0, 2.5)}, "a level of the search is not a whole number of clients", None),
        ({"ladder": (2.0, 2.0)}, "the levels of the search must increase", None),
        ({"ladder": (2.0, 4.0, 3.0)}, "the levels of the search must increase", None),
    ],
)
def test_an_invalid_plan_is_rejected_with_a_valid_alternative(
    changes: dict[str, Any], message: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as refused:
        search_plan(**changes)
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_a_search_without_an_end_is_rejected() -> None:
    with pytest.raises(UsageError, match="has no levels"):
        search_plan(last=float("inf"))
    with pytest.raises(UsageError) as refused:
        SearchPlan.of_ladder(CLIENTS, ())
    assert (refused.value.message, refused.value.hint) == (
        "the ladder of the search has no level",
        "for example 1, 2, 4, 8",
    )


def test_levels_have_four_digits() -> None:
    assert [rounded(value) for value in (1234.56, 0.123456, 99999.0)] == [1235.0, 0.1235, 100000.0]
