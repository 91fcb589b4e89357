"""Re-runs of one build judged like two releases: the pairs, the false alarms, and the accepted number of them."""

from __future__ import annotations

import pytest

from chainmark.compare.decide import Past
from chainmark.compare.false_alarms import MOST_PAIRS, history_check, re_run_alarms
from chainmark.compare.inputs import LoadedRun
from chainmark.core.catalogue import Bounds
from chainmark.core.distribution import MetricSummary, standard_error_in, value_in
from chainmark.core.epoch import Epoch
from chainmark.core.errors import UsageError
from chainmark.core.false_alarms import FalseAlarms
from chainmark.core.verdict import Verdict

from tests.unit.compare.synthetic_runs import SyntheticRun
from tests.unit.compare.test_releases import history, run, stepped


def _odd(version: str, month: int, factor: float, fall: float = 1.0) -> SyntheticRun:
    """A re-run in which a gating metric and a diagnostic rose by ``factor`` and another gating metric fell."""
    return run(version, month, [factor, 1.0, 1.0 / fall, factor, 1.0, 1.0])


def _alarms(*more: SyntheticRun) -> FalseAlarms:
    runs = [*history(), *more]
    return re_run_alarms(runs[0], runs, Past())


def test_every_re_run_is_judged_against_the_previous_run_and_noise_raises_no_alarm() -> None:
    alarms = _alarms()
    names = ["v1.1, 2020-02-01 and 2020-03-01", "v1.4, 2020-06-01 and 2020-07-01", "v1.7, 2020-10-01 and 2020-11-01"]
    assert alarms == FalseAlarms(pairs=names, figures=18, gating=9)
    assert re_run_alarms(history()[0], history(reruns=0), Past()) == FalseAlarms()
    runs = history()
    assert re_run_alarms(runs[2], runs, Past()) == alarms, "the run that defines the workload is included"


class _Archived(SyntheticRun):
    """A run whose values the store caches."""

    def value(self, metric_id: str, statistic: str) -> float | None:
        """One value, read without summaries."""
        return value_in(super().summaries(), metric_id, statistic)

    def standard_error(self, metric_id: str, statistic: str) -> float | None:
        """Its standard error, read without summaries."""
        return standard_error_in(super().summaries(), metric_id, statistic)

    def summaries(self) -> dict[str, MetricSummary]:
        raise AssertionError("hundreds of runs are not read for a few figures")


def test_values_of_an_archive_equal_those_of_the_summaries() -> None:
    synthetic = run("v1", 1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    archived, plain = LoadedRun(_Archived(**vars(synthetic))), LoadedRun(synthetic)
    assert plain.summaries() is plain.summaries()
    for metric_id, summary in synthetic.summaries().items():
        for statistic, estimate in summary.estimates.items():
            for loaded in (archived, plain):
                assert loaded.value(metric_id, statistic) == estimate.value
                assert loaded.standard_error(metric_id, statistic) == estimate.standard_error
    for loaded in (archived, plain):
        assert loaded.value("none", "mean") is None
        assert loaded.standard_error("none", "mean") is None


def test_changes_beyond_noise_are_counted_and_named() -> None:
    """A pair with a change of a gating metric is one alarm, however many metrics changed."""
    alarms = _alarms(_odd("v1.23", 40, 1.12, 1.12))
    assert (alarms.figures, alarms.moved, alarms.gating, alarms.alarmed, alarms.set_aside) == (24, 3, 12, 1, 0)
    assert (alarms.worse, alarms.undecided) == (0, 1)
    assert [text.partition(":")[0] for text in alarms.examples] == [
        f"metric {number} of v1.23, 2022-03-01 and 2023-05-01" for number in (0, 2, 3)
    ]
    assert alarms.examples[1].endswith("(90 % interval −10.5 … −3.0 %)")
    two = _alarms(_odd("v1.23", 40, 1.12, 1.12), _odd("v1.20", 41, 1 / 1.12, 1 / 1.12))
    assert (len(two.pairs), two.alarmed, two.moved, len(two.examples)) == (5, 2, 2, 2)
    beyond = _alarms(_odd("v1.23", 40, 1.13))
    assert (beyond.worse, beyond.undecided) == (1, 0)
    diagnostic = _alarms(run("v1.23", 40, [1.0, 1.0, 1.0, 1.12, 1.0, 1.0]))
    assert (diagnostic.moved, diagnostic.alarmed) == (1, 0)


def test_figures_that_show_another_set_up_count_as_neither_correct_nor_wrong() -> None:
    alarms = _alarms(_odd("v1.23", 40, 1.4), _odd("v1.22", 41, 1.4))
    assert (alarms.alarmed, alarms.moved) == (0, 0)
    assert alarms.set_aside > 0
    assert alarms.figures + alarms.set_aside == 6 * len(alarms.pairs)
    noted = Epoch(system="cometbft", since="2020-11-01T00:00:00Z", text="new hosts", metrics=("m0_s",))
    runs = stepped()
    assert re_run_alarms(runs[0], runs, Past()).set_aside == 6
    assert re_run_alarms(runs[0], runs, Past([noted])).set_aside == 6


def test_only_the_newest_pairs_are_judged() -> None:
    runs = history(releases=60, reruns=14)
    alarms = re_run_alarms(runs[0], runs, Past())
    assert len(alarms.pairs) == MOST_PAIRS
    assert alarms.pairs[-1].startswith("v1.40, ")
    assert alarms.pairs[0].startswith("v1.7, ")


def test_margins_learnt_from_these_re_runs_excuse_none_of_them() -> None:
    runs = [*history(), _odd("v1.23", 40, 1.12)]
    plain, learnt = (re_run_alarms(runs[0], runs, past) for past in (Past(), Past(learnt=Bounds(0.9, 0.9))))
    assert learnt == plain


def test_more_alarms_than_the_stated_error_fail_the_check() -> None:
    """Two of five pairs are more than chance. One of four is not."""
    runs = [*history(), _odd("v1.23", 40, 1.12, 1.12)]
    check = history_check(runs[0], runs, Past(), "test")
    assert (check.verdict, check.re_runs.alarmed, len(check.re_runs.pairs)) == (Verdict.PASS, 1, 4)
    assert check.sentence == check.re_runs.rate_sentence
    assert check.subtitle.endswith(" · 28 runs")
    assert check.date == "2023-05-01"
    runs.append(_odd("v1.20", 41, 1 / 1.12, 1 / 1.12))
    two = history_check(runs[0], runs, Past(), "test")
    assert (two.verdict, two.re_runs.alarmed, len(two.re_runs.pairs)) == (Verdict.FAIL, 2, 5)


def test_a_check_names_six_changes_and_lists_the_problems_of_its_runs() -> None:
    runs = [*history(releases=60, reruns=14), *(run(f"v1.{number}", 20 + number, [1.12] * 6) for number in (57, 59))]
    runs[3].manifest.printed = True
    alarms = re_run_alarms(runs[1], runs, Past())
    assert len(alarms.examples) > 6
    check = history_check(runs[1], runs, Past(), "test")
    assert check.re_runs.examples == alarms.examples[:6]
    assert check.caveats.badges == ("PRINTED",)


def test_a_history_without_re_runs_and_samples_shows_how_to_make_them() -> None:
    runs = history(reruns=0)
    with pytest.raises(
        UsageError, match=r"^no build in this history has re-runs, and no run has samples to split$"
    ) as refused:
        history_check(runs[0], runs, Past(), "test")
    assert refused.value.hint == "measure one build several times: `chainmark aa PROFILE --version V`"
