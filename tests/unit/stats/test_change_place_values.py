"""The revision of a change compared with generalised least squares, and the order of a search step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

from chainmark.stats import change_place
from chainmark.stats.centiles import FloatArray
from chainmark.stats.change_place import (
    SearchedRevisions,
    SearchedRuns,
    Stretch,
    _runs_like,
    chances,
    chances_of_failing,
    changes,
    pair_of,
    runs_left,
    search,
    until_each,
)
from chainmark.stats.intervals import Spread, Working

LAST = 4
SHARED = (0.0, 0.25, 1.0, 4.0)
# Places, visits and values of runs: all of one visit; two visits that differ much; three visits of different sizes.
ONE_VISIT = ([0, 4, 2, 0, 4, 2], [0] * 6, [0.0, 1.0, 0.7, 0.2, 1.3, 0.4])
TWO_VISITS = ([0, 4, 4, 0, 0, 2, 4], [0, 0, 0, 0, 1, 1, 1], [0.0, 1.0, 1.1, 0.1, 0.9, 1.3, 2.2])
THREE_VISITS = ([0, 4, 0, 1, 1, 3, 0, 3, 4], [0, 0, 2, 2, 2, 5, 5, 5, 5], [1, 2.1, 1.4, 1.2, 1.3, 2.4, 1.1, 2.2, 1.7])
CASES = [ONE_VISIT, TWO_VISITS, THREE_VISITS]
Runs = tuple[list[int], list[int], list[float]]
ARCHIVES = [None, Spread(0.5, 6.0)]


def _seen(places: list[int], visits: list[int], values: list[float]) -> SearchedRuns:
    return SearchedRuns(np.array(places), np.array(visits), np.array(values, dtype=float))


@dataclass(frozen=True)
class Fit:
    """Generalised least squares of a design, by matrices.

    Attributes:
        likelihood: the logarithm of the restricted likelihood, apart from a constant.
        levels: the coefficients; ``covariance``: theirs.
        freedom: degrees of freedom of the noise.
    """

    likelihood: float
    levels: FloatArray
    covariance: FloatArray
    freedom: float


def _fit(seen: SearchedRuns, design: FloatArray, shared: float, archive: Spread | None) -> Fit:
    """The fit of a design of shape (runs, levels), with this shared variance of the runs of one visit."""
    same = seen.visits[:, None] == seen.visits[None, :]
    noise = np.eye(len(seen.values)) + shared * same
    precision = np.linalg.inv(noise)
    information = design.T @ precision @ design
    levels = np.asarray(np.linalg.solve(information, design.T @ precision @ seen.values), dtype=np.float64)
    rest = seen.values - design @ levels
    squares = rest @ precision @ rest + (archive.squares if archive else 0.0)
    freedom = len(seen.values) - design.shape[1] + (archive.degrees_of_freedom if archive else 0.0)
    determinants = np.linalg.slogdet(noise)[1] + np.linalg.slogdet(information)[1]
    likelihood = float(-0.5 * determinants - 0.5 * freedom * math.log(squares))
    return Fit(likelihood, levels, squares / freedom * np.linalg.inv(information), freedom)


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("runs", CASES)
def test_probabilities_weight_the_likelihood_of_every_place_by_the_chance_of_a_worsening(
    runs: Runs, archive: Spread | None
) -> None:
    """All sizes of the deviations that a visit shares are equally likely beforehand."""
    seen = _seen(*runs)
    weights = np.zeros(LAST)
    for change in range(1, LAST + 1):
        design = np.stack([np.ones(len(seen.values)), seen.places >= change], axis=1)
        for fit in (_fit(seen, design, shared, archive) for shared in SHARED):
            is_worse = stats.t.cdf(fit.levels[1] / math.sqrt(fit.covariance[1, 1]), fit.freedom)
            weights[change - 1] += math.exp(fit.likelihood) * is_worse
    expected = weights / weights.sum()
    assert chances(seen, LAST, archive) == pytest.approx(expected, rel=1e-7)
    assert SearchedRevisions(LAST, archive=archive).chances(seen) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("runs", CASES)
def test_changes_are_those_of_the_most_likely_shared_deviation(runs: Runs, archive: Spread | None) -> None:
    seen = _seen(*runs)
    measured = sorted(set(runs[0]))
    design = np.stack([seen.places == place for place in measured], axis=1).astype(float)
    best = max((_fit(seen, design, shared, archive) for shared in SHARED), key=lambda fit: fit.likelihood)
    result = changes(seen, archive)
    assert list(result) == measured[1:]
    for row, place in enumerate(measured[1:], start=1):
        difference = np.zeros(len(measured))
        difference[0], difference[row] = -1.0, 1.0
        change = float(difference @ best.levels)
        width = stats.t.ppf(0.95, best.freedom) * math.sqrt(difference @ best.covariance @ difference)
        contrast = result[place]
        assert contrast.working is Working.DIFFERENCE
        assert (contrast.change, contrast.low, contrast.high) == pytest.approx(
            (change, change - width, change + width), rel=1e-6
        )


def test_the_shared_deviation_differs_between_the_cases() -> None:
    """Otherwise the other tests would not notice an error in its choice."""
    chosen = []
    for runs in CASES:
        seen = _seen(*runs)
        design = np.stack([seen.places == place for place in sorted(set(runs[0]))], axis=1).astype(float)
        likelihoods = [_fit(seen, design, shared, None).likelihood for shared in SHARED]
        chosen.append(SHARED[int(np.argmax(likelihoods))])
    assert len(set(chosen)) > 1


@pytest.mark.parametrize(
    ("runs", "archive", "places"),
    [
        (([0, 4], [0, 0], [0.0, 1.0]), None, []),
        (([0, 4], [0, 0], [0.0, 1.0]), Spread(0.1, 1.0), [4]),
        (([0, 4], [0, 0], [0.0, 1.0]), Spread(0.1, 0.5), []),
        (([0, 4, 4], [0, 0, 0], [0.0, 1.0, 1.1]), None, [4]),  # a single degree of freedom
        (([0, 4, 2, 0], [0, 0, 1, 1], [0.0, 1.0, 1.1, 0.0]), None, [2, 4]),
    ],
)
def test_changes_require_one_degree_of_freedom(runs: Runs, archive: Spread | None, places: list[int]) -> None:
    assert list(changes(_seen(*runs), archive)) == places


def test_changes_without_noise_have_almost_no_interval() -> None:
    contrast = changes(_seen([0, 4, 4, 0], [0, 0, 0, 0], [1.0, 3.0, 3.0, 1.0]))[4]
    assert (contrast.low, contrast.change, contrast.high) == pytest.approx((2.0, 2.0, 2.0), abs=1e-7)
    assert contrast.low < contrast.change < contrast.high


def test_joined_runs_have_their_places_visit_and_values_last() -> None:
    seen = _seen([0, 4], [0, 0], [0.5, 1.5]).joined([2, 4], 3, [0.7, 1.7])
    assert (seen.places.tolist(), seen.visits.tolist(), seen.values.tolist()) == (
        [0, 4, 2, 4], [0, 0, 3, 3], [0.5, 1.5, 0.7, 1.7],
    )  # fmt: skip


def test_failing_runs_are_counted_on_both_sides_of_every_place() -> None:
    """Of a side with f failures in n runs the weight is B(f + ½, n − f + ½)."""
    places, failed = [0, 0, 0, 1, 2, 2, 3, 3, 3], [0, 0, 1, 0, 1, 0, 1, 1, 1]
    pairs = [((1, 3), (4, 6)), ((1, 4), (4, 5)), ((2, 6), (3, 3))]  # failures and runs before, and from each place on

    def weight(failures: int, runs: int) -> float:
        return math.gamma(failures + 0.5) * math.gamma(runs - failures + 0.5) / math.gamma(runs + 1)

    weights = np.array([weight(*before) * weight(*after) for before, after in pairs])
    expected = weights / weights.sum()
    values = np.array(failed, dtype=float)
    assert chances_of_failing(np.array(places), values, 3) == pytest.approx(expected)
    row = SearchedRevisions(3, fails=True)
    assert row.chances(SearchedRuns(np.array(places), np.zeros(9, dtype=int), values)) == pytest.approx(expected)


def test_the_share_of_equal_programs_goes_to_all_others() -> None:
    seen = _seen(*ONE_VISIT)
    every = SearchedRevisions(LAST).chances(seen)
    every[1] = 0.0
    assert SearchedRevisions(LAST, equal=((1, 2),)).chances(seen) == pytest.approx(every / every.sum())


def test_measurable_revisions_are_distinguished() -> None:
    row = SearchedRevisions(4, frozenset({1, 3}))
    assert row.measurable == [0, 2, 4]
    assert row.stretches(np.array([0.125, 0.25, 0.5, 0.125])) == [Stretch(0, 2, 0.375), Stretch(2, 4, 0.625)]
    assert until_each(np.array([0.125, 0.25, 0.5, 0.125])).tolist() == [0.0, 0.125, 0.375, 0.875, 1.0]


def test_equal_programs_around_a_change_that_was_reverted_and_made_again_exclude_nothing() -> None:
    """Otherwise no revision would be left, and the search would never end."""
    seen = _seen([0, 3, 0, 3], [0, 0, 1, 1], [1.0, 2.0, 1.1, 2.1])
    row, plain = SearchedRevisions(3, equal=((0, 2), (1, 3))), SearchedRevisions(3)
    assert row.chances(seen).tolist() == plain.chances(seen).tolist()
    assert SearchedRevisions(3, equal=((0, 2),)).chances(seen).tolist() == [0.0, 0.0, 1.0]


def test_many_runs_do_not_exceed_the_range_of_numbers() -> None:
    seen = _seen(*ONE_VISIT)
    assert chances(seen, LAST, Spread(1.0, 2000.0)).sum() == pytest.approx(1.0)
    assert chances(seen, LAST, Spread(1e-3, 2000.0)).sum() == pytest.approx(1.0)
    places = np.arange(4000) % 3
    assert chances_of_failing(places, ((places + np.arange(4000)) % 2).astype(float), 2).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("values", "answer", "likely"),
    [
        ([0.95, 0.05, 0.0, 0.0], (0, 1), (0, 1)),  # exactly as certain as required
        ([0.94, 0.06, 0.0, 0.0], None, (0, 2)),
        ([0.0, 0.5, 0.5, 0.0], None, (1, 3)),
        ([0.03125, 0.46875, 0.484375, 0.015625], None, (1, 3)),
        ([0.015625, 0.484375, 0.46875, 0.03125], None, (1, 3)),
        ([0.03125, 0.9375, 0.03125, 0.0], None, (0, 2)),  # as long and as certain as the next one
        ([0.015625, 0.9375, 0.046875, 0.0], None, (1, 3)),  # as long as the one before, but more certain
        ([0.25, 0.25, 0.25, 0.25], None, (0, 4)),
    ],
)
def test_the_likely_range_is_the_shortest_that_is_certain_enough(
    values: list[float], answer: tuple[int, int] | None, likely: tuple[int, int]
) -> None:
    row = SearchedRevisions(LAST)
    found = row.answer(np.array(values))
    assert (found and (found.before, found.at)) == answer
    stretch = row.likely(np.array(values))
    assert (stretch.before, stretch.at) == likely
    assert stretch.chance == pytest.approx(sum(values[likely[0] : likely[1]]))


@pytest.mark.parametrize(
    ("values", "current", "expected"),
    [
        ([0.25, 0.25, 0.25, 0.25], None, 2),
        ([0.25, 0.25, 0.25, 0.25], 1, 1),
        ([0.25, 0.25, 0.25, 0.25], 0, 2),  # an end is not measured alone
        ([0.25, 0.25, 0.25, 0.25], 4, 2),
        ([0.05, 0.45, 0.4, 0.1], 1, 2),  # exactly at the limit of doubt: it is settled
        ([0.0625, 0.4375, 0.4, 0.1], 1, 1),
        ([0.5, 0.25, 0.2, 0.05], 3, 1),
        ([0.5, 0.25, 0.1875, 0.0625], 3, 3),
        ([0.25, 0.5, 0.0, 0.25], None, 1),  # 1 to 3 are equally far from one half, and 1 is the first
        ([0.5, 0.0, 0.0, 0.5], None, 1),
        ([0.125, 0.25, 0.5, 0.125], None, 2),
    ],
)
def test_the_next_revision_is_the_current_one_in_doubt_or_halves_the_probability(
    values: list[float], current: int | None, expected: int
) -> None:
    assert SearchedRevisions(LAST).turn(np.array(values), [0, 4], current) == expected


@pytest.mark.parametrize(
    ("places", "turn", "expected"),
    [
        ([0, 4], 0, [0, 2]), ([0, 4], 1, [2, 0]), ([0, 4], 2, [0, 2]), ([0, 4], 3, [2, 0]),
        ([0, 0, 4], 0, [4, 2]), ([0, 0, 4], 1, [2, 4]), ([0, 4, 4], 0, [0, 2]),
    ],
)  # fmt: skip
def test_pairs_have_the_end_with_fewer_runs(places: list[int], turn: int, expected: list[int]) -> None:
    assert pair_of(2, places, 4, turn) == expected


@dataclass(frozen=True)
class Scripted(SearchedRevisions):
    """Revisions that are measured in a given order."""

    script: list[int | None] = field(default_factory=list)
    asked: list[tuple[list[float], list[int], int | None]] = field(default_factory=list)

    def chances(self, seen: SearchedRuns) -> FloatArray:
        """The number of runs in place of probabilities."""
        return np.array([float(len(seen.values))])

    def turn(self, values: FloatArray, places: Any, current: int | None = None) -> int | None:
        """The next revision of the script."""
        self.asked.append((values.tolist(), list(places), current))
        return self.script.pop(0)


def _value(place: int) -> float:
    return place / 10.0


def test_a_search_makes_pairs_in_alternating_order_and_counts_visits() -> None:
    row = Scripted(4, script=[2, 2, 2, 1, 2, None, 3])
    ended = search(row, _seen([0, 4, 4, 0], [0, 0, 1, 1], [0.0] * 4), _value, 50)
    added = [[0, 2], [2, 4], [0, 2], [4, 1], [0, 2]]
    assert ended.places.tolist() == [0, 4, 4, 0, *(place for pair in added for place in pair)]
    assert ended.visits.tolist() == [0, 0, 1, 1, *[2] * 6, 3, 3, 4, 4]
    assert ended.values.tolist() == [0.0] * 4 + [_value(place) for pair in added for place in pair]
    assert [current for _, _, current in row.asked] == [None, 2, 2, 2, 1, 2]
    assert [values for values, _, _ in row.asked] == [[float(runs)] for runs in (4, 6, 8, 10, 12, 14)]
    assert row.asked[1][1] == [0, 4, 4, 0, 0, 2]


def test_a_search_that_goes_on_with_its_current_revision_does_not_begin_a_visit() -> None:
    ended = search(Scripted(4, script=[2, None]), _seen([0, 4], [0, 7], [0.0] * 2), _value, 50, 2)
    assert (ended.places.tolist(), ended.visits.tolist()) == ([0, 4, 2, 0], [0, 7, 7, 7])


@pytest.mark.parametrize(("most", "runs"), [(4, 4), (5, 6), (6, 6), (7, 8)])
def test_a_search_makes_no_pair_beyond_its_limit(most: int, runs: int) -> None:
    ended = search(Scripted(4, script=[2] * 9), _seen([0, 4, 4, 0], [0] * 4, [0.0] * 4), _value, most)
    assert len(ended.values) == runs


@pytest.mark.parametrize(
    ("change", "places", "values", "levels", "noise"),
    [
        (2, [0, 0, 1, 2, 4], [1.0, 2.0, 3.0, 7.0, 9.0], (2.0, 8.0), math.sqrt(4.0 / 3.0)),
        (2, [0, 2, 2], [1.0, 5.0, 7.0], (1.0, 6.0), math.sqrt(2.0)),
        (3, [0, 2, 2, 4], [1.0, 4.0, 4.0, 9.0], (3.0, 9.0), math.sqrt(3.0)),
        (4, [0, 4], [1.0, 2.0], (1.0, 2.0), 0.0),
    ],
)
def test_further_runs_have_the_levels_and_the_noise_of_those_so_far(
    change: int, places: list[int], values: list[float], levels: tuple[float, float], noise: float
) -> None:
    seen = _seen(places, [0] * len(places), values)
    made = _runs_like(SearchedRevisions(LAST), seen, change, np.random.default_rng(3))
    same = np.random.default_rng(3)
    for place in (change - 1, change, LAST, 0):
        assert made(place) == pytest.approx(levels[int(place >= change)] + noise * same.standard_normal())


def test_further_runs_fail_as_often_as_those_so_far() -> None:
    seen = _seen([0, 0, 0, 0, 4, 4], [0] * 6, [1.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    made = _runs_like(SearchedRevisions(LAST, fails=True), seen, 3, np.random.default_rng(3))
    same = np.random.default_rng(3)
    assert [made(2) for _ in range(50)] == [float(same.random() < 0.25) for _ in range(50)]
    assert [made(3) for _ in range(50)] == [1.0] * 50


def test_the_runs_left_are_the_median_of_simulated_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a search is estimated by searches from its present state, the same ones every time."""
    simulated: list[tuple[Any, ...]] = []
    changes_drawn: list[int] = []
    lengths = iter([0, 2, 2, 4, 4, 10, 12, 12, 14, 14, 16, 40] * 3)

    def runs_like(*arguments: Any) -> Any:
        changes_drawn.append(arguments[2])
        assert arguments[:2] == (row, seen)
        return _value

    def ended(*arguments: Any) -> SearchedRuns:
        simulated.append(arguments)
        return seen.joined([0] * (length := next(lengths)), 9, [0.0] * length)

    monkeypatch.setattr(change_place, "_runs_like", runs_like)
    monkeypatch.setattr(change_place, "search", ended)
    row, seen = SearchedRevisions(LAST), _seen([0, 4, 4, 0], [0] * 4, [0.0, 1.0, 1.1, 0.1])
    assert runs_left(row, seen, 3, 60) == 11
    assert simulated == [(row, seen, _value, 60, 3)] * 12
    assert set(changes_drawn) <= {1, 2, 3, 4}
    assert len(set(changes_drawn)) > 1
    assert runs_left(row, seen, None, 60) == 11
    assert changes_drawn[12:] == changes_drawn[:12]
    seen = _seen([0, 2, 3, 4, 4, 3, 2, 0], [0] * 8, [0.0, 0.01, 1.0, 1.01, 1.0, 1.01, 0.0, 0.01])
    assert runs_left(row, seen, None, 60, 5) == 2
    assert changes_drawn[24:] == [3] * 5, "the place of the change is certain"
