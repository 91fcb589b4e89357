"""The worked example of docs/concepts/verdict.md, recomputed: a figure in the text that is not true fails here."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from chainmark.compare.judge import judge
from chainmark.core.comparison import Judgement
from chainmark.core.metric import Better
from chainmark.stats.multiple import holm
from chainmark.stats.power import runs_needed
from chainmark.stats.special import t_quantile

from tests.unit.compare.metric_cases import NO_ARCHIVE, metric, side

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


def judged(row: list[str]) -> Judgement:
    return judge(metric(better=Better(row[1])), "mean", side(runs(row[2])), side(runs(row[3])), NO_ARCHIVE).judgement


def test_the_table_is_what_the_procedure_gives() -> None:
    found = [judged(row) for row in rows()]
    adjusted = holm([item.p_worse or 0.0 for item in found])
    assert len(found) == 4
    for row, item, after in zip(rows(), found, adjusted, strict=True):
        assert item.change is not None
        assert item.low is not None
        assert item.high is not None
        assert row[4:] == [
            f"{100 * item.change:+.1f} %",
            f"{100 * item.low:+.1f} … {100 * item.high:+.1f} %",
            f"{item.p_worse:.4f}",
            f"{after:.4f}",
            item.outcome.value,
        ]


def test_the_steps_of_the_first_row_are_true() -> None:
    baseline, candidate = (np.log(runs(rows()[0][column])) for column in (2, 3))
    change = candidate.mean() - baseline.mean()
    variances = baseline.var(ddof=1), candidate.var(ddof=1)
    freedom = judged(rows()[0]).degrees_of_freedom or 0.0
    figures = [
        f"−{abs(baseline.mean()):.5f}",
        f"−{abs(candidate.mean()):.5f}",
        f"d = {change:.5f}",
        f"a ratio of {math.exp(change):.3f}",
        f"{variances[0]:.6f} and {variances[1]:.6f}",
        f"{math.sqrt(sum(variances) / 3):.5f} with ν = {freedom:.2f}",
        f"of t is then {t_quantile(0.95, freedom):.3f}",
        f"log 1.1 = {math.log(1.1):.5f}",
        f"p = {judged(rows()[0]).p_worse:.4f}",
    ]
    flowing = " ".join(TEXT.split())
    assert [figure for figure in figures if figure not in flowing] == []


def test_the_words_about_the_other_rows_are_true() -> None:
    found = [judged(row) for row in rows()]
    assert [item.trend for item in found] == [False, True, False, False]
    assert f"{found[3].runs_needed} runs a side would decide it" in TEXT


@pytest.mark.parametrize(("noise", "enough"), [(0.024, 2), (0.038, 3), (0.055, 5)])
def test_the_noise_that_each_number_of_runs_can_bear(noise: float, enough: int) -> None:
    assert runs_needed(math.log(1.1), noise - 0.0003) == enough
    assert f"{100 * noise:.1f} %" in TEXT
