"""Statements of a verdict about earlier releases: the noise that it used, and changes of the set-up without a note."""

from __future__ import annotations

import numpy as np

from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.past import noise_notes
from chainmark.compare.releases import Releases
from chainmark.core.epoch import Epoch

from tests.unit.compare.synthetic_runs import SyntheticRun
from tests.unit.compare.test_releases import CATALOGUE, METRICS, run, stepped

NOISE = [0.01, 0.04, 0.02, 0.20, 0.20, 0.001]  # of the six metrics; the first three are gating


def _decided(runs: list[SyntheticRun], *epochs: Epoch) -> Decided:
    return decide([runs[-1]], [run("v1.99", 99, [1.0] * 6)], runs, Past(list(epochs)))


def noisy() -> list[SyntheticRun]:
    """Twelve releases without re-runs, alternately above and below one."""
    signs = [1.0 if month % 2 else -1.0 for month in range(12)]
    return [run(f"v1.{month}", month, np.exp(sign * np.array(NOISE) / 2.0)) for month, sign in enumerate(signs)]


def _reported(decided: Decided, *, gating: bool | None = None) -> list[str]:
    """The notes of the verdict. ``gating`` makes all metrics gating, or none."""
    assert decided.releases is not None
    changes = {} if gating is None else {"gating": gating}
    judgements = [item.model_copy(update=changes) for item in decided.judgements]
    return noise_notes(decided.releases, judgements, CATALOGUE)


def test_noise_is_reported_with_its_runs_and_from_the_quietest_to_the_noisiest_gating_metric() -> None:
    """The range shows a release engineer how reliable a single run is."""
    decided = _decided(noisy())
    (sentence,) = _reported(decided)
    # The baseline is compared and therefore not part of the history.
    assert sentence == (
        "noise between runs: history of 11 builds (0 re-runs, 10 release-to-release changes), 2020-01-01 to "
        "2020-11-01; standard deviation of one run: 1 % (metric 0) to 4.2 % (metric 1)"
    )
    assert sentence in decided.finding.reasons


def test_noise_of_metrics_that_decide_nothing_is_not_reported() -> None:
    assert _reported(_decided(noisy()), gating=False) == []


def test_few_releases_are_not_reported_as_noise() -> None:
    compared = [LoadedRun(run("v1.99", 99, [1.0] * 6))]
    assert noise_notes(Releases(compared, noisy()[:5]), _decided(noisy()).judgements, CATALOGUE) == []


def test_an_unnoted_set_up_change_is_reported_once_with_its_metrics_and_how_to_declare_it() -> None:
    noise, setup = _reported(_decided(stepped(0.001)))
    assert noise.startswith("noise between runs: history of 17 builds (")
    assert setup == (
        "treated as a change of the set-up by 2020-11-01, not as noise, because v1.9 and v1.9 are one build: "
        "metric 0 −49.9 %, metric 1 −49.9 % and metric 2 −50.1 %; confirm it with `chainmark history note`"
    )


def test_four_of_many_metrics_changed_by_a_set_up_are_named() -> None:
    setup = _reported(_decided(stepped(0.001)), gating=True)[1]
    named = [metric.label for metric in METRICS if metric.label in setup]
    assert named == ["metric 0", "metric 1", "metric 2", "metric 3"]


def test_a_noted_change_of_the_set_up_is_not_reported_again() -> None:
    noted = Epoch(system="cometbft", since="2020-11-01T00:00:00Z", text="new hosts")
    assert not any("set-up" in text for text in _reported(_decided(stepped(0.001), noted)))
