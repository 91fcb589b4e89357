"""The worked example of docs/concepts/verdict.md, computed again. A wrong figure in the text makes these tests fail."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from chainmark.compare.family import Gated, family_of
from chainmark.compare.judge import Bench, judge
from chainmark.core.metric import Better
from chainmark.stats.sequential import Looks
from chainmark.stats.special import t_quantile

from tests.unit.compare.metric_cases import ONE_LOOK, metric, side

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the documentation is not part of this tree", allow_module_level=True)
TEXT = (DOCS / "concepts" / "verdict.md").read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    lines = TEXT.split("## Example")[1].split("## The verdict")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return table[2:]


def runs(cell: str) -> list[float]:
    return [float(value) for value in cell.split()]


def gated(row: list[str]) -> Gated:
    entry, left, right = metric(better=Better(row[1]), gating=True), side(runs(row[2])), side(runs(row[3]))
    return Gated(entry, "mean", left, right, judge(entry, "mean", left, right, BENCH))


BENCH = Bench(looks=Looks(((3, 3),), 3))


def test_the_table_is_the_result_of_the_procedure() -> None:
    gating = [gated(row) for row in rows()]
    family = family_of(gating, BENCH)
    assert len(gating) == 4
    assert family.is_worse
    for row, item, together in zip(rows(), gating, family.adjusted, strict=True):
        judgement = item.judgement
        assert judgement.change is not None
        assert judgement.low is not None
        assert judgement.high is not None
        assert [*row[4:7], row[8]] == [
            f"{100 * judgement.change:+.1f} %",
            f"{100 * judgement.low:+.1f} … {100 * judgement.high:+.1f} %",
            f"{judgement.p_worse:.4f}",
            judgement.outcome.value,
        ]
        assert together == pytest.approx(float(row[7]), abs=0.002)  # computed by rotations, which rounding may affect


def test_the_steps_of_the_first_row_are_correct() -> None:
    baseline, candidate = (np.log(runs(rows()[0][column])) for column in (2, 3))
    change = candidate.mean() - baseline.mean()
    variances = baseline.var(ddof=1), candidate.var(ddof=1)
    first = gated(rows()[0]).judgement
    error = math.sqrt(sum(variances) / 3)
    figures = [
        f"−{abs(baseline.mean()):.5f}",
        f"−{abs(candidate.mean()):.5f}",
        f"d = {change:.5f}",
        f"a ratio of {math.exp(change):.3f}",
        f"{variances[0]:.6f} and {variances[1]:.6f}, are pooled to {sum(variances) / 2:.6f}",
        f"√({sum(variances) / 2:.6f} × 2 / 3) = {error:.5f} with ν = {first.degrees_of_freedom:.0f}",
        f"quantile of t at 1 − {ONE_LOOK} is then {t_quantile(1.0 - ONE_LOOK, 4.0):.3f}",
        f"{change:.5f} ± {t_quantile(1.0 - ONE_LOOK, 4.0):.3f} × {error:.5f}",
        f"log 1.1 = {math.log(1.1):.5f}",
        f"p = {first.p_worse:.4f}, from t = {(change - math.log(1.1)) / error:.2f}",
    ]
    flowing = " ".join(TEXT.split())
    assert [figure for figure in figures if figure not in flowing] == []


def test_the_statements_about_the_other_rows_are_correct() -> None:
    judgements = [gated(row).judgement for row in rows()]
    assert [item.trend for item in judgements] == [False, True, False, False]
    second, fourth = judgements[1], judgements[3]
    assert f"its upper end, {100 * (second.high or 0.0):+.1f} %, is below" in TEXT
    assert f"from −{100 * -(fourth.low or 0.0):.1f} % to\n{100 * (fourth.high or 0.0):+.1f} %" in TEXT
