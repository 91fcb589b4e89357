"""What every format shows of an imported run: that its label contradicts its logs, or that the logs are synthetic.

These tests draw charts, which need more memory than a fault may take in `make mutants`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import chainmark as cm

from tests.unit.systems.cardano.clusters import changed, edit_json, ingest, make_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster without faults."""
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs")


def test_a_label_that_the_logs_contradict_is_on_the_first_screen_of_every_format(cluster: Path, tmp_path: Path) -> None:
    """Otherwise users store, read and decide on a comparison of 10.5.4 as one of 10.6.2."""
    folder = changed(cluster, tmp_path / "logs", edit_json("meta.json", ident=None))
    run = ingest(tmp_path / "store", folder, version="10.6.2").run
    (contradiction,) = run.manifest.contradictions
    other = ingest(tmp_path / "store", make_cluster(tmp_path / "other", seed=2)).run
    report = cm.open_run(run).document()
    for document in (report, cm.compare(other, run, store=tmp_path / "store")):
        assert contradiction in document.caveats.sentences
        assert f"! {contradiction}" in document.text(200).partition("Gates")[0].partition("Gating")[0]
        assert contradiction in document.markdown().partition("\n\n**")[0]
        assert contradiction in document.html().partition("<nav")[0]
        assert f'<property name="caveat" value="{contradiction}" />' in document.junit()
    assert contradiction not in report.notes  # shown once
    assert contradiction in read_pdf(report.pdf(), tmp_path)


def test_synthetic_logs_are_badged_wherever_their_run_is_shown(cluster: Path, tmp_path: Path) -> None:
    """Otherwise figures of nodes that never ran are published as measurements."""
    real = changed(
        cluster,
        tmp_path / "real",
        lambda folder: (folder / "truth.parquet").unlink(),
        lambda folder: (folder / "meta.json").unlink(),
    )
    run, unmarked = (ingest(tmp_path / "store", path).run for path in (cluster, real))
    assert cm.runs(tmp_path / "store")["badges"].to_list().count("SYNTHETIC") == 1
    document = cm.open_run(run).document()
    for text in (document.text(), document.markdown(), document.html(), document.junit(), document._repr_html_()):
        assert "SYNTHETIC" in text
    assert "SYNTHETIC" in read_pdf(document.pdf(), tmp_path)
    assert "SYNTHETIC" not in cm.open_run(unmarked).document().text()


def read_pdf(content: bytes, folder: Path) -> str:
    """The words on the first page of a PDF, in one line."""
    (folder / "page.pdf").write_bytes(content)
    read = ["pdftotext", "-l", "1", str(folder / "page.pdf"), "-"]
    return " ".join(subprocess.run(read, capture_output=True, text=True, check=True).stdout.split())
