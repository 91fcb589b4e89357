"""The revision of a change: probabilities compared with direct integration, the search rule and its error rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benches.bisect import run as bench
from scipy import integrate

from chainmark.stats.change_place import (
    ERROR,
    SearchedRevisions,
    SearchedRuns,
    Stretch,
    chances,
    chances_of_failing,
    changes,
    pair_of,
    runs_left,
    search,
)
from chainmark.stats.intervals import Spread

LAST = 8


def _seen(runs: list[tuple[int, int, float]]) -> SearchedRuns:
    places, visits, values = zip(*runs, strict=True)
    return SearchedRuns(np.array(places), np.array(visits), np.array(values))


def _made(change: int, noise: float, places: list[int], seed: int = 1) -> SearchedRuns:
    draw = np.random.default_rng(seed)
    return _seen([(place, 0, float(place >= change) + noise * draw.standard_normal()) for place in places])


def test_probabilities_match_direct_integration() -> None:
    """The deviation shared by one visit cannot be distinguished from the level, so the model has independent runs."""
    seen = _seen([(0, 0, 0.0), (8, 0, 1.0), (8, 0, 1.2), (0, 0, 0.1), (4, 0, 0.4), (0, 0, -0.05), (3, 0, 0.2)])

    def evidence(change: int) -> float:
        after = seen.places >= change
        below, above = seen.values[~after], seen.values[after]

        def density(log_noise: float) -> float:
            """The density, integrated over all pairs of levels whose second is above the first."""
            noise = math.exp(log_noise)
            squares = sum(float(np.square(side - side.mean()).sum()) for side in (below, above))
            error = noise * math.sqrt(1 / len(below) + 1 / len(above))
            is_above = 0.5 * math.erfc(-(above.mean() - below.mean()) / error / math.sqrt(2))
            widths = noise**2 / math.sqrt(len(below) * len(above))
            return float(noise ** -len(seen.values) * widths * math.exp(-squares / (2 * noise**2)) * is_above)

        return float(integrate.quad(density, -8.0, 4.0, limit=200)[0])

    expected = np.array([evidence(change) for change in range(1, LAST + 1)])
    assert chances(seen, LAST) == pytest.approx(expected / expected.sum(), rel=1e-6)


def test_revisions_that_no_run_separates_are_equally_likely() -> None:
    probabilities = chances(_made(5, 0.05, [0, 8, 8, 0, 4, 0, 6, 8]), LAST)
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities[4] == probabilities[5]
    assert probabilities[4] + probabilities[5] > 0.95


def test_a_machine_that_slows_down_between_visits_does_not_change_the_answer() -> None:
    """A revision looks as slow as the bad end did before, but the good end measured in the same visit does as well."""
    slow = 0.95
    seen = _seen([
        (0, 0, 0.0), (8, 0, 1.0), (8, 0, 1.02), (0, 0, -0.02),
        (0, 1, slow), (4, 1, slow + 0.02), (4, 1, slow), (8, 1, slow + 1.0), (0, 1, slow - 0.01),
    ])  # fmt: skip
    assert SearchedRevisions(LAST).chances(seen)[:4].sum() < 0.05
    level = changes(seen)[4]
    assert abs(level.change) < 0.1


def test_archived_noise_makes_few_runs_more_informative() -> None:
    seen = _seen([(0, 0, 0.0), (8, 0, 1.0), (4, 0, 0.2)])
    alone, beside = (chances(seen, LAST, archive)[:4].sum() for archive in (None, Spread(20 * 0.05**2, 20.0)))
    assert beside < 0.001 < alone


def test_shares_of_failing_runs_have_beta_weights() -> None:
    """The good end fails 0 of 2 runs, the bad end 2 of 2, the middle none. The prior is Jeffreys'."""
    probabilities = chances_of_failing(np.array([0, 0, 2, 2, 1]), np.array([0.0, 0.0, 1.0, 1.0, 0.0]), 2)

    def share(failed: int, runs: int) -> float:
        return math.gamma(failed + 0.5) * math.gamma(runs - failed + 0.5) / math.gamma(runs + 1)

    weights = np.array([share(0, 2) * share(2, 3), share(0, 3) * share(2, 2)])
    assert probabilities == pytest.approx(weights / weights.sum())


def test_no_change_lies_between_equal_programs() -> None:
    seen = _made(5, 0.05, [0, 8, 8, 0])
    probabilities = SearchedRevisions(LAST, equal=((2, 4),)).chances(seen)
    assert probabilities[2:4].tolist() == [0.0, 0.0]
    assert probabilities.sum() == pytest.approx(1.0)


def test_revisions_that_cannot_be_measured_are_reported_as_one_range() -> None:
    row = SearchedRevisions(LAST, frozenset({4, 5}))
    probabilities = np.array([0.0, 0.0, 0.01, 0.33, 0.33, 0.33, 0.0, 0.0])
    for stretch in (row.answer(probabilities), row.likely(probabilities)):
        assert stretch is not None
        assert (stretch.before, stretch.at) == (3, 6)
        assert stretch.chance == pytest.approx(0.99)
    assert SearchedRevisions(LAST).answer(probabilities) is None
    assert SearchedRevisions(LAST).likely(probabilities).before == 3
    nothing = SearchedRevisions(2, frozenset({1}))
    assert nothing.turn(np.array([0.5, 0.5]), [0, 0, 2, 2]) is None
    assert nothing.answer(np.array([0.5, 0.5])) == Stretch(0, 2, 1.0)


def test_the_next_revision_halves_the_probability_and_repeats_while_undecided() -> None:
    row, flat = SearchedRevisions(LAST), np.full(LAST, 1 / LAST)
    assert row.turn(flat, [0, 8]) == 4
    assert SearchedRevisions(LAST, frozenset({4})).turn(flat, [0, 8]) in {3, 5}
    assert row.turn(flat, [0, 8], current=2) == 2
    settled = np.array([0.0, 0.02, 0.2, 0.2, 0.2, 0.2, 0.18, 0.0])
    assert row.turn(settled, [0, 8], current=2) == 4


def test_both_revisions_around_a_confident_answer_get_two_runs() -> None:
    row, sure = SearchedRevisions(LAST), np.array([0.0, 0.0, 0.0, 0.99, 0.01, 0.0, 0.0, 0.0])
    assert row.turn(sure, [0, 0, 8, 8, 3, 4, 4]) == 3
    assert row.turn(sure, [0, 0, 8, 8, 3, 3, 4]) == 4
    assert row.turn(sure, [0, 0, 8, 8, 3, 3, 4, 4]) is None


def test_a_revision_is_paired_with_the_end_that_has_fewer_runs_in_alternating_order() -> None:
    assert pair_of(3, [0, 8], 8, 0) == [0, 3]
    assert pair_of(3, [0, 8, 0], 8, 1) == [3, 8]


def test_90_percent_intervals_cover_the_true_change() -> None:
    """Three standard errors of 400 cases are 4.5 points."""
    draw, held = np.random.default_rng(5), 0
    places = np.array([0, 8, 8, 0, 0, 4, 4, 8])
    for _ in range(400):
        values = (places >= 4) * 0.3 + 0.1 * draw.standard_normal(len(places))
        level = changes(SearchedRuns(places, np.zeros(len(places), dtype=int), values))[4]
        held += level.low < 0.3 < level.high
    assert held / 400 == pytest.approx(0.9, abs=0.045)


def test_runs_without_any_noise_decide_at_once() -> None:
    seen = _seen([(0, 0, 0.0), (8, 0, 1.0), (8, 0, 1.0), (0, 0, 0.0)])
    ended = search(SearchedRevisions(LAST), seen, lambda place: float(place >= 6), 50)
    answer = SearchedRevisions(LAST).answer(SearchedRevisions(LAST).chances(ended))
    assert answer is not None
    assert (answer.before, answer.at) == (5, 6)
    assert runs_left(SearchedRevisions(LAST), seen, None, 50) == pytest.approx(len(ended.values) - 4, abs=2)


@pytest.mark.parametrize(
    ("noise", "effect", "way"), [(0.05, 0.15, "steady"), (0.05, 0.2, "drift"), (0.1, 0.3, "steady")]
)
def test_the_error_rate_of_a_search_stays_within_its_stated_rate(noise: float, effect: float, way: str) -> None:
    """Forty revisions, two of which do not build. The benchmark repeats this with many more searches."""
    searches_found = [bench.searched(seed, noise, effect, way) for seed in range(40)]
    wrong = sum(search.is_right is False for search in searches_found)
    assert wrong / len(searches_found) <= ERROR + 2.0 * math.sqrt(ERROR * (1 - ERROR) / len(searches_found))
    assert all(search.is_right is not None for search in searches_found)
    assert np.mean([search.runs for search in searches_found]) < 45
    assert np.mean([search.built for search in searches_found]) < 10
