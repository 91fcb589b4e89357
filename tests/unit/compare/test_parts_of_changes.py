"""A change divided into the changes of its parts: the parts add up, and the intervals have the stated coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from scipy import stats

from chainmark.compare import compare
from chainmark.compare.split import (
    MetricPart,
    Parted,
    PartedChange,
    PartEffect,
    divided,
    effects,
    splits_between,
    splits_of,
)
from chainmark.core.comparison import Comparison, Judgement, Outcome, Scale, SideValue, Splits
from chainmark.core.errors import InternalError
from chainmark.report.blocks import Table
from chainmark.report.comparison_suite import comparison_suite
from chainmark.report.layouts import document_of
from chainmark.report.split_parts import split_blocks, split_sentence
from chainmark.stats.centiles import FloatArray
from chainmark.store.files import json_bytes

from tests.unit.compare.synthetic_runs import sides

LINE, WORK = MetricPart("line", "line"), MetricPart("work", "work")
READ, WRITE = MetricPart("read", "read", "work"), MetricPart("w", "w", "work")
PARTS = (LINE, WORK, READ, WRITE)


@cache
def passing() -> Comparison:
    """A comparison of two equal versions."""
    return compare(*sides(seconds=60), tool_version="test")


def _run(rng: np.random.Generator, *means: float, samples: int = 400) -> FloatArray:
    """Samples of several parts. Neighbours in time are correlated, like blocks of a busy minute."""
    noise = rng.normal(size=(samples, len(means)))
    for row in range(1, samples):
        noise[row] = 0.5 * noise[row - 1] + math.sqrt(0.75) * noise[row]
    return np.asarray(np.array(means) * (1.0 + 0.2 * noise))


def _effects(*pairs: tuple[MetricPart, float, float], error: float = 0.01) -> list[PartEffect]:
    return [PartEffect(part, left, right, error) for part, left, right in pairs]


def _judgement(metric_id: str, base: float, other: float) -> Judgement:
    return Judgement(
        metric_id=metric_id,
        statistic="mean",
        gating=True,
        baseline=SideValue(value=base, per_run=[base], samples=1),
        candidate=SideValue(value=other, per_run=[other], samples=1),
        scale=Scale.RELATIVE,
        change=other / base - 1.0,
        outcome=Outcome.EQUAL,
    )


def test_parts_are_on_the_scale_of_the_judgement_and_add_up_to_it() -> None:
    change = PartedChange("m", _effects((LINE, 1.0, 1.2), (WORK, 1.0, 1.1), (READ, 0.4, 0.6), (WRITE, 0.6, 0.5)), "b")
    # The judged values are geometric means of runs, slightly below the arithmetic means of the parts.
    split = divided(change, (1.998, 2.297))
    assert split is not None
    assert split.change == pytest.approx(2.297 / 1.998 - 1.0)
    assert sum(part.change for part in split.of()) == pytest.approx(split.change, abs=1e-15)
    line, work = split.of()
    assert line.change == pytest.approx(0.1, abs=2e-3)
    assert [part.change for part in split.of("work")] == pytest.approx([0.1, -0.05], abs=2e-3)
    assert sum(part.change for part in split.of("work")) == pytest.approx(work.change, abs=1e-15)
    assert (line.high - line.low) / 2.0 == pytest.approx(1.645 * 0.01 / 1.998, rel=1e-3)
    in_seconds = divided(change, (2.0, 2.3), scale=Scale.ABSOLUTE)
    assert in_seconds is not None
    assert [part.change for part in in_seconds.of()] == pytest.approx([0.2, 0.1])


def test_parts_of_another_value_are_not_parts_of_the_change() -> None:
    """If too many samples have no part, the parts belong to another value than the judged one."""
    change = PartedChange("m", _effects((LINE, 1.0, 1.2)), "b")
    assert divided(change, (1.2, 1.2)) is None
    catalogue = passing().catalogue
    id_ = passing().judgements[0].metric_id
    parted = Parted("Line or work", [PartedChange(id_, change.effects, "b")])
    splits = splits_of(parted, [_judgement(id_, 1.2, 1.2)], catalogue)
    assert splits is not None
    assert "do not add up to the measured value" in splits.unknown_reason
    assert splits_of(None, [], catalogue) is None


def test_the_change_from_the_named_run_is_divided_even_against_a_level_of_releases() -> None:
    """The level has no parts. Dividing the change from the level by the run's parts would be wrong."""
    comparison = passing()
    id_ = comparison.judgements[0].metric_id
    judged = _judgement(id_, 1.0, 1.2)
    judged = judged.model_copy(update={"baseline": SideValue(value=1.05, per_run=[1.0], samples=1)})
    parted = Parted("Line or work", [PartedChange(id_, _effects((LINE, 1.0, 1.2)), "b")])
    splits = splits_of(parted, [judged], comparison.catalogue)
    assert splits is not None
    (split,) = splits.splits
    assert split.change == pytest.approx(0.2)
    assert split.basis == "b, against the baseline's own run instead of the level of releases"


def test_a_part_that_is_not_the_sum_of_its_parts_is_an_error_of_the_system() -> None:
    change = PartedChange("m", _effects((WORK, 1.0, 1.1), (READ, 0.4, 0.6), (WRITE, 0.5, 0.5)), "b")
    with pytest.raises(InternalError, match="do not add up"):
        divided(change, (1.0, 1.1))


def test_one_run_per_side_has_a_valid_error_within_runs() -> None:
    """90 % of the intervals contain the true change, although neighbouring samples are correlated."""
    held = dict.fromkeys(("line", "work", "read", "w"), 0)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        part_effects, basis = effects(PARTS, [_run(rng, 0.5, 0.2, 0.3)], [_run(rng, 0.55, 0.2, 0.28)])
        assert basis == "within one run per side"
        truth = {"line": 0.05, "work": -0.02, "read": 0.0, "w": -0.02}
        for effect in part_effects:
            held[effect.part.id] += abs(effect.candidate - effect.baseline - truth[effect.part.id]) <= effect.half_width
    assert all(98 <= count <= 118 for count in held.values()), held


def test_several_runs_per_side_have_the_error_between_runs() -> None:
    """Many samples per day do not make a part more certain that differs between days."""
    rng = np.random.default_rng(5)
    days = [_run(rng, 0.5 * (1.0 + 0.1 * step), 0.2, 0.3) for step in (-1.0, 1.0, 0.0, 0.5)]
    part_effects, basis = effects(PARTS, days[:2], days[2:])
    assert basis == "between 2 + 2 runs"
    line, work = part_effects[0], part_effects[1]
    assert line.degrees_of_freedom == 2
    assert line.standard_error == pytest.approx(0.5 * math.sqrt((0.02 + 0.00125 * 1.0) / 2.0), rel=0.25)
    assert work.standard_error < 0.3 * line.standard_error


def _with_splits(unknown_reason: str = "") -> Comparison:
    comparison = passing()
    judgement = next(
        judgement
        for judgement in comparison.judgements
        if judgement.statistic == "mean" and judgement.change is not None and judgement.scale is Scale.RELATIVE
    )
    base, other = judgement.baseline.value or 0.0, judgement.candidate.value or 0.0
    parts = _effects((LINE, 0.6 * base, 0.58 * base), (WORK, 0.4 * base, other - 0.58 * base), error=0.01 * base)
    changes = [] if unknown_reason else [PartedChange(judgement.metric_id, parts, "a test")]
    splits = splits_of(
        Parted("Line or work", changes, unknown_reason, ["as it was made up"]),
        comparison.judgements,
        comparison.catalogue,
    )
    return comparison.model_copy(update={"splits": splits})


def test_a_split_is_in_every_medium_and_read_back() -> None:
    comparison = _with_splits()
    document = document_of(comparison)
    assert comparison.splits is not None
    (split,) = comparison.splits.splits
    sentence = split_sentence(split, comparison.catalogue.metric(split.metric_id))
    assert sentence.endswith(" work")
    assert "−2.0 ± 1.6 % line and " in sentence
    for text in (document.text(100), document.markdown(), document.html()):
        assert "Line or work" in text
        assert "± 1.6 %" in text
    assert f'name="{split.metric_id}.mean.change.line"' in document.junit()
    case = next(case for case in comparison_suite(comparison).cases if case.id == f"{split.metric_id}.mean")
    assert case.reason.endswith(sentence)
    assert case.figures["change.line"] == pytest.approx(-0.02, abs=1e-4)
    assert Comparison.model_validate_json(json_bytes(comparison)).splits == comparison.splits


def test_each_comparison_in_a_document_has_its_own_split() -> None:
    comparison = _with_splits()
    (table,) = split_blocks(comparison.splits, comparison.catalogue, of="v2")
    assert isinstance(table, Table)
    assert table.title == "v2: Line or work"
    assert [cell.text for cell in table.rows[0].cells[2:]] == ["−2.0", "+2.0"]
    assert split_blocks(None, comparison.catalogue) == []


def test_the_reason_for_no_split_is_reported_except_for_systems_without_causes() -> None:
    assert "Line or work: the change cannot be attributed, because there was no line" in document_of(
        _with_splits("there was no line")
    ).text(100)
    assert "splits" not in json_bytes(passing()).decode()


def _still(value: float, samples: int = 40) -> FloatArray:
    """A run with one constant column, so that the error within the run is zero."""
    return np.full((samples, 1), value)


def test_the_error_between_runs_is_as_computed_by_hand() -> None:
    """Two and three runs: the squares of both sides, divided by three degrees of freedom."""
    (effect,), basis = effects([LINE], [_still(1.0), _still(1.2)], [_still(1.1), _still(1.4), _still(1.7)])
    assert basis == "between 2 + 3 runs"
    assert (effect.baseline, effect.candidate) == pytest.approx((1.1, 1.4))
    assert effect.degrees_of_freedom == 3.0
    assert effect.standard_error == pytest.approx(math.sqrt((0.02 + 0.18) / 3.0 * (1.0 / 2.0 + 1.0 / 3.0)))
    assert effect.half_width == pytest.approx(float(stats.t.ppf(0.95, 3.0)) * effect.standard_error)


def test_one_run_on_one_side_and_two_on_the_other_count_as_several() -> None:
    (effect,), basis = effects([LINE], [_still(1.0)], [_still(1.1), _still(1.4)])
    assert basis == "between 1 + 2 runs"
    assert effect.degrees_of_freedom == 1.0
    assert effect.standard_error == pytest.approx(math.sqrt(0.045 * 1.5))


def test_runs_that_agree_by_chance_are_no_more_certain_than_each_of_them() -> None:
    """The error within the runs is used if it is larger, with each run's share of its side's mean."""
    rng = np.random.default_rng(3)
    run = 1.0 + rng.normal(0.0, 0.1, (400, 1))
    (alone,), _ = effects([LINE], [run], [run])
    (effect,), _ = effects([LINE], [run, run], [run, run, run, run])
    assert alone.standard_error == pytest.approx(math.sqrt(2.0) * 0.1 / 20.0, rel=0.2)
    assert alone.half_width == pytest.approx(1.6448536269514722 * alone.standard_error)
    standard_error = alone.standard_error / math.sqrt(2.0)
    assert effect.standard_error == pytest.approx(standard_error * math.sqrt(1.0 / 2.0 + 1.0 / 4.0))
    assert effect.degrees_of_freedom == 4.0


def test_a_part_is_the_sum_of_the_columns_within_it_at_any_depth() -> None:
    read_body, read_header = MetricPart("body", "body", "read"), MetricPart("header", "header", "read")
    parts = (LINE, WORK, READ, read_body, read_header, WRITE)
    columns = np.tile([1.0, 2.0, 4.0, 8.0], (20, 1))
    part_effects, _ = effects(parts, [columns], [2.0 * columns])
    assert {effect.part.id: effect.baseline for effect in part_effects} == {
        "line": 1.0, "work": 14.0, "read": 6.0, "body": 2.0, "header": 4.0, "w": 8.0,
    }  # fmt: skip
    assert all(effect.candidate == 2.0 * effect.baseline for effect in part_effects)


def _parted(*pairs: tuple[MetricPart, float, float], metric_id: str = "m") -> PartedChange:
    return PartedChange(metric_id, _effects(*pairs), "b")


def test_missing_parts_of_samples_are_tolerated_up_to_one_percent_on_either_side() -> None:
    change = _parted((LINE, 1.0, 2.0))
    for values, holds in (
        ((1.0099, 2.0), True),
        ((1.0, 1.981), True),
        ((1.0101, 2.0), False),
        ((1.0, 1.979), False),
        ((0.98, 2.0), False),
    ):
        assert (divided(change, values) is not None) == holds, values


def test_parts_that_add_up_to_zero_cannot_be_divided() -> None:
    assert divided(_parted((LINE, 0.0, 1.0)), (0.0, 1.0)) is None
    assert divided(_parted((LINE, 1.0, 0.0)), (1.0, 0.0)) is None


def test_the_share_of_a_negative_value_is_relative_to_its_magnitude() -> None:
    """A part that fell lowers the change, whatever the sign of the baseline is."""
    split = divided(_parted((LINE, -1.0, -0.8), (WORK, -1.0, -1.1)), (-2.0, -1.9))
    assert split is not None
    assert (split.metric_id, split.statistic, split.scale, split.basis) == ("m", "mean", Scale.RELATIVE, "b")
    assert split.change == pytest.approx(0.05)
    assert [part.change for part in split.of()] == pytest.approx([0.1, -0.05])
    line = split.of()[0]
    assert (line.id, line.label, line.of) == ("line", "line", "")
    assert (line.low, line.high) == pytest.approx((0.1 - 0.0082243, 0.1 + 0.0082243), abs=1e-6)


@pytest.mark.parametrize(("write", "side"), [((0.5, 0.5), "baseline"), ((0.6, 0.6), "candidate")])
def test_both_sides_of_a_part_are_the_sum_of_its_parts(write: tuple[float, float], side: str) -> None:
    change = _parted((WORK, 1.0, 1.1), (READ, 0.4, 0.6), (WRITE, *write))
    with pytest.raises(InternalError, match=rf"the parts of `work` of m do not add up to it on the {side}"):
        divided(change, (1.0, 1.1))


def test_rounding_is_not_an_error_of_the_system() -> None:
    """This holds even if a part is zero."""
    near = _parted((LINE, 1.0, 1.0), (WORK, 0.0, 1.0), (READ, 1e-13, 0.4), (WRITE, 0.0, 0.6 + 5e-10))
    assert divided(near, (1.0, 2.0)) is not None


def _judged(changes: Sequence[PartedChange], judgements: Sequence[Judgement], unknown_reason: str = "") -> Splits:
    splits = splits_of(Parted("Line or work", changes, unknown_reason, ["a note"]), judgements, passing().catalogue)
    assert splits is not None
    return splits


def test_only_judged_changes_of_means_that_have_parts_are_divided() -> None:
    first, second = (metric.id for metric in passing().catalogue.metrics[:2])
    change = _parted((LINE, 1.0, 1.2), metric_id=first)
    judged = _judgement(first, 1.0, 1.2)
    splits = _judged([change], [_judgement(second, 1.0, 1.2), judged])
    assert [split.metric_id for split in splits.splits] == [first]
    assert (splits.title, splits.unknown_reason, splits.notes) == ("Line or work", "", ["a note"])
    assert splits.splits[0].basis == "b"
    for left_out in (
        {"statistic": "p99"},
        {"change": None},
        {"baseline": SideValue(value=None, per_run=[], samples=0)},
    ):
        none = _judged([change], [judged.model_copy(update=left_out)])
        assert none.splits == []
        assert none.notes == []
    assert _judged([change], []).unknown_reason == "no judged metric has parts"
    assert _judged([change], [], "there was no line").unknown_reason == "there was no line"


def test_metrics_whose_parts_do_not_add_up_are_named_in_a_note() -> None:
    first, second = passing().catalogue.metrics[:2]
    changes = [_parted((LINE, 1.0, 1.2), metric_id=metric.id) for metric in (first, second)]
    splits = _judged(changes, [_judgement(first.id, 1.2, 1.2), _judgement(second.id, 1.0, 1.2)])
    expected = (
        f"the known parts of {first.label} do not add up to the measured value (more than 1 % off): too many samples "
        "lack a part"
    )
    assert [split.metric_id for split in splits.splits] == [second.id]
    assert (splits.unknown_reason, splits.notes) == ("", ["a note", expected])
    alone = _judged(changes, [_judgement(first.id, 1.2, 1.2)])
    assert (alone.splits, alone.unknown_reason, alone.notes) == ([], expected, [])


def test_a_judged_change_is_reported_on_the_scale_of_its_judgement() -> None:
    """With several runs the baseline is their level, not the value of a single run."""
    id_ = passing().judgements[0].metric_id
    change = _parted((LINE, 1.0, 1.2), metric_id=id_)
    several = SideValue(value=1.0, per_run=[0.9, None, 1.1], samples=3)
    judged_values = {"scale": Scale.ABSOLUTE, "change": 0.2004, "baseline": several}
    (split,) = _judged([change], [_judgement(id_, 1.0, 1.2).model_copy(update=judged_values)]).splits
    assert (split.change, split.scale, split.basis, split.statistic) == (0.2004, Scale.ABSOLUTE, "b", "mean")
    level = {**judged_values, "baseline": SideValue(value=1.05, per_run=[None, 1.0], samples=3)}
    (stepped,) = _judged([change], [_judgement(id_, 1.05, 1.2).model_copy(update=level)]).splits
    assert stepped.change == pytest.approx(0.2)
    assert stepped.scale is Scale.ABSOLUTE
    assert "instead of the level of releases" in stepped.basis
    far = {"baseline": SideValue(value=1.05, per_run=[1.5], samples=1)}
    assert _judged([change], [_judgement(id_, 1.05, 1.2).model_copy(update=far)]).splits == []


def test_means_that_were_not_judged_are_divided_in_the_same_way() -> None:
    parted = Parted("Line or work", [_parted((LINE, 1.0, 1.2))], notes=["a note"])
    splits = splits_between(parted, {"m": 1.0}, {"m": 1.2})
    assert [split.change for split in splits.splits] == [pytest.approx(0.2)]
    assert (splits.title, splits.unknown_reason, splits.notes) == ("Line or work", "", ["a note"])
    other = splits_between(parted, {"m": 2.0}, {"m": 2.2})
    assert (other.splits, other.unknown_reason) == ([], "the known parts do not add up to the values")
    silent = splits_between(Parted("Line or work", reason="there was no line"), {}, {})
    assert (silent.splits, silent.unknown_reason) == ([], "there was no line")
