"""What a search follows, run by run and change by change, where no runs need be compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from chainmark.compare.bisect import FAILING, Followed, Known, archived, differs, is_equal, judgement_of
from chainmark.compare.decide import Decided
from chainmark.core.bisect_report import SideFound
from chainmark.core.comparison import Judgement, Outcome, Scale, SideValue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Status
from chainmark.stats.change_place import DOUBT, Row, Seen
from chainmark.stats.intervals import Working

from tests.unit.compare.metric_cases import metric, stub_run
from tests.unit.compare.searched_runs import InMemory
from tests.unit.lab.line_system import LineSystem


def _judgement(**settings: Any) -> Judgement:
    nothing = SideValue(value=None, per_run=[], samples=0)
    given = {"metric_id": "a_s", "statistic": "mean", "gating": True, "scale": Scale.RELATIVE, "outcome": Outcome.EQUAL}
    return Judgement.model_validate({"baseline": nothing, "candidate": nothing, **given, **settings})


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.01, 0.2, True), (-0.2, -0.01, True), (-0.1, 0.1, False), (0.0, 0.1, False), (-0.1, 0.0, False),
        (None, -0.1, False), (0.1, None, False), (None, None, False),
    ],
)  # fmt: skip
def test_a_change_is_known_where_its_interval_leaves_out_none(
    low: float | None, high: float | None, expected: bool
) -> None:
    assert differs(_judgement(low=low, high=high)) is expected


def test_equal_is_what_is_shown_to_be_so_and_not_known_to_differ() -> None:
    within: dict[str, Any] = {"equivalent": True, "low": -0.01, "high": 0.01}
    assert is_equal(_judgement(**within))
    assert not is_equal(_judgement(**within | {"low": 0.005}))
    assert not is_equal(_judgement(**within | {"equivalent": False}))
    assert not is_equal(_judgement(**within | {"outcome": Outcome.BETTER}))


def test_a_metric_is_named_alone_or_with_its_statistic_and_an_unknown_one_with_those_that_gate() -> None:
    items = [
        _judgement(statistic="p50"),
        _judgement(statistic="p99"),
        _judgement(metric_id="b_s", gating=False),
        _judgement(metric_id="c_s"),
    ]
    decided = Decided.__new__(Decided)
    object.__setattr__(decided, "judgements", items)
    assert judgement_of(decided, "a_s") is items[0]
    assert judgement_of(decided, "a_s.p50") is items[0]
    assert judgement_of(decided, "a_s.p99") is items[1]
    assert judgement_of(decided, "b_s") is items[2]
    with pytest.raises(UsageError, match=r"^`d_s` is no metric that is judged$") as refused:
        judgement_of(decided, "d_s")
    assert refused.value.hint == "gating are a_s, c_s"


def test_a_value_has_the_bad_side_up_on_the_scale_on_which_runs_are_compared() -> None:
    run = stub_run("v1", 4.0, 1)
    assert Followed(metric(), "mean", Working.LOG, 1.0).value(run) == pytest.approx(math.log(4.0))
    assert Followed(metric(), "mean", Working.DIFFERENCE, -1.0).value(run) == -4.0
    assert Followed(metric(), "p99", Working.LOG, 1.0).value(run) is None


@pytest.mark.parametrize(
    ("value", "working", "expected"),
    [
        (0.0, Working.LOG, None), (-1.0, Working.LOG, None), (math.inf, Working.DIFFERENCE, None),
        (0.0, Working.DIFFERENCE, 0.0), (-1.0, Working.DIFFERENCE, -1.0), (0.5, Working.LOG, math.log(0.5)),
    ],
)  # fmt: skip
def test_a_run_without_a_value_on_the_scale_has_none(value: float, working: Working, expected: float | None) -> None:
    assert Followed(metric(), "mean", working).value(stub_run("v1", value, 1)) == expected


def test_a_run_that_is_not_valid_has_no_value_and_counts_where_failing_is_what_is_followed() -> None:
    run = stub_run("v1", 4.0, 1)
    assert Followed().value(run) == 0.0
    run.manifest.status = Status.FAILED
    assert Followed().value(run) == 1.0
    assert Followed(metric(), "mean", Working.LOG).value(run) is None
    run.manifest.status = Status.INVALID
    assert Followed().value(run) == 0.0
    assert Followed(metric(), "mean", Working.LOG).value(run) is None


def test_a_change_is_told_as_a_share_or_in_the_unit_with_its_own_sign() -> None:
    ratio = Followed(metric(label="size", statistics=["mean", "p99"]), "p99", Working.LOG, -1.0)
    assert (ratio.name, ratio.scale) == ("size p99", Scale.RELATIVE)
    assert ratio.told(math.log(2.0)) == pytest.approx(-0.5)
    plain = Followed(metric(), "mean", Working.DIFFERENCE, -1.0)
    assert (plain.scale, plain.told(3.0)) == (Scale.ABSOLUTE, -3.0)
    assert (Followed().name, Followed().scale, Followed().told(1.0)) == (FAILING, Scale.ABSOLUTE, 1.0)


def test_failing_runs_have_no_noise_of_an_archive_and_no_levels() -> None:
    search = InMemory(LineSystem(), {})
    search.run(0)
    assert archived(search.made, Followed(), []) is None
    known = _known([0, 1, 1, 3], fails=True)
    assert known.levels() == {}


def _known(places: list[int], found: list[float] | None = None, *, fails: bool = False) -> Known:
    """A search among three revisions after the good one."""
    visits = np.zeros(len(places), dtype=int)
    seen = Seen(np.array(places), visits, np.array([float(place > 1) for place in places]))
    row = Row(3, frozenset(), (), None, fails)
    return Known(row, seen, np.array(found or [1.0, 0.0, 0.0]), Followed())


def test_the_last_revision_between_the_ends_is_the_current_one() -> None:
    assert _known([0, 3, 0]).current is None
    assert _known([0, 3, 1, 2, 0, 3]).current == 2
    assert _known([0, 3, 2, 1, 3]).current == 1


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.0, SideFound.GOOD), (DOUBT, SideFound.GOOD), (2.0 * DOUBT, SideFound.DOUBTFUL), (0.5, SideFound.DOUBTFUL),
        (1.0 - 2.0 * DOUBT, SideFound.DOUBTFUL), (1.0 - DOUBT, SideFound.BAD), (1.0, SideFound.BAD),
    ],
)  # fmt: skip
def test_a_revision_is_good_or_bad_where_hardly_any_doubt_is_left(chance: float, expected: SideFound) -> None:
    known = _known([0, 3], [chance, 1.0 - chance, 0.0])
    assert known.chance_at(1) == pytest.approx(chance)
    assert known.side_of(1) is expected
