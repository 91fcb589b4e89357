"""A kind of chart is added in two files, and every document that shows metrics then shows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "src" / "chainmark"
# A look that no kind of the package has: a row per side, which a terminal can show as well.
MEMBER = """
    # The middle half of all samples, a row per side.
    BOX = "box", ChartLook("x", pooled="points", span="interval", opacity=1, across="names"), "replicates", True, "cdf"
"""
POINTS = """

def _box_chart(charted: _Charted) -> ChartData | None:
    metric, lines = charted.metric, []
    for side in charted.sides:
        pooled = side.samples(metric, charted.population).pooled
        if pooled.n:
            low, middle, high = pooled.centiles(np.array([0.25, 0.5, 0.75])).tolist()
            lines.append(
                ChartLine(side=side.name, run_id=None, label=side.label, x=[middle], y=[0.5], low=[low], high=[high])
            )
    title = f"{metric.label}: middle half"
    return ChartData(id=f"{metric.id}-box", metric_id=metric.id, kind=ChartKind.BOX, title=title,
                     x_label=_unit_label(metric), y_label="", lines=lines) if lines else None


_CHARTS = {**_CHARTS, ChartKind.BOX: _box_chart}
"""
CHANGED = {"core/chart_kind.py": MEMBER, "compare/charts.py": POINTS}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with another kind of chart; every file that is not changed is a link to the original."""
    source = tmp_path_factory.mktemp("another-chart") / "src"
    shutil.copytree(PACKAGE, source / "chainmark", copy_function=os.symlink)
    for name, added in CHANGED.items():
        path = source / "chainmark" / name
        path.unlink()
        path.write_text((PACKAGE / name).read_text(encoding="utf-8") + added, encoding="utf-8")
    return source


def test_a_new_kind_of_chart_is_in_every_document_that_shows_metrics(copy: Path) -> None:
    """Even on a terminal, as its look is one that characters can show."""
    paths = os.pathsep.join([str(copy), str(ROOT)])
    result = subprocess.run(
        [sys.executable, "-m", "tests.unit.report.charted_documents", "box", "tx latency: middle half"],
        env={**os.environ, "PYTHONPATH": paths}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    documents = json.loads(result.stdout)
    assert len(documents) >= 10
    assert {name: found for name, found in documents.items() if found != [True, True]} == {}
