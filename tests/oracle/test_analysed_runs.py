"""Runs imported from files of the published analysis: the oracle's files compared with our run of the same logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.core.verdict import PRINTED
from chainmark.systems.cardano.verified.files import SUMMARY, read_theirs

from tests.oracle import incumbent_files
from tests.oracle.cluster_analysis import analyse, read_logs
from tests.oracle.cluster_runs import generate, ingest
from tests.oracle.incumbent_files import Json, write

COMMIT = "0d697f1d0d697f1d0d697f1d0d697f1d0d697f1d"
STATED = {"ident": "10.6.2-test", "manifest": {"cardano-node": {"version": "10.6.2", "commit": COMMIT}}}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("cluster") / "logs", hosts=5, slots=200, seed=8)


@pytest.fixture
def analysis(logs: Path, tmp_path: Path) -> Path:
    """The three files, and one that is not part of the analysis."""
    cluster = analyse(logs, read_logs(logs), published=True)
    summary: Json = incumbent_files.summary(cluster, logs)
    write(tmp_path / "summary.json", {**summary, "sumMeta": {**summary["sumMeta"], **STATED}})
    write(tmp_path / "blockprop.json", incumbent_files.blockprop(cluster))
    write(tmp_path / "clusterperf.json", incumbent_files.clusterperf(cluster))
    write(tmp_path / "log-manifest.json", {"rlHostLogs": {}})
    return tmp_path


@pytest.mark.parametrize("name", ["", "summary.json", "blockprop.json", "clusterperf.json"])
def test_any_file_of_the_folder_gives_the_run(analysis: Path, name: str) -> None:
    store = analysis / "store"
    (run,) = cm.ingest("cardano", analysis / name, store=store)
    assert run.manifest.subject.version == "10.6.2-test"
    assert (run.manifest.subject.release, run.manifest.subject.revision) == ("10.6.2", COMMIT)
    assert run.manifest.printed
    assert PRINTED in cm.runs(store)["badges"].to_list()[0]
    assert {source.path for source in run.manifest.sources} == {"summary.json", "blockprop.json", "clusterperf.json"}


def test_every_figure_matches_our_run_of_the_same_logs(analysis: Path, logs: Path) -> None:
    """All digits agree: the files are not truncated to the columns of a report."""
    store = analysis / "store"
    (theirs,) = cm.ingest("cardano", analysis, store=store)
    ours = ingest(logs, store, published=True)
    known = {
        name: summary.estimates["mean"].value
        for name, summary in ours.summaries().items()
        if "mean" in summary.estimates
    }
    means = {name: summary.estimates["mean"].value for name, summary in theirs.sealed.summaries().items()}
    shared = {name for name in means.keys() & known.keys() if known[name] is not None}
    assert len(shared) >= 40
    for name in shared:
        assert means[name] == pytest.approx(known[name], rel=1e-9, abs=1e-12), name
    facts = {fact.label: fact.value for fact in theirs.manifest.facts}
    printed = {fact.label: fact.value for fact in ours.manifest.facts}
    for label in ("Machines", "Blocks analysed", "Blocks rejected", "Slots analysed", "TPS"):
        assert float(facts[label]) == float(printed[label])
    for part in ("date", "time"):
        assert facts[f"Cluster system start {part}"] == printed[f"Cluster system start {part}"]


def test_a_run_from_the_files_can_be_compared_with_one_from_logs(analysis: Path, logs: Path) -> None:
    store = analysis / "store"
    cm.ingest("cardano", analysis, store=store)
    ours = ingest(logs, store, published=True)
    document = cm.compare(ours.run_id, "10.6.2-test", store=store)
    assert document.kind in {"comparison", "workloads"}
    assert "0.80 adoption" in document.text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda with_values: with_values["sumGenesis"].pop("systemStart"), "does not state when its cluster started"),
        (
            lambda with_values: [with_values["sumMeta"].pop(key) for key in ("ident", "manifest", "tag")],
            "does not state its version",
        ),
    ],
)
def test_a_summary_that_does_not_identify_its_run_is_refused(analysis: Path, change: object, message: str) -> None:
    document = json.loads((analysis / "summary.json").read_text(encoding="utf-8"))
    change(document)  # type: ignore[operator]
    write(analysis / "summary.json", document)
    with pytest.raises(UsageError, match=message):
        cm.ingest("cardano", analysis, store=analysis / "store")


def test_a_summary_without_figures_is_refused(analysis: Path) -> None:
    assert read_theirs(analysis / "summary.json").kind == SUMMARY
    for name in ("blockprop.json", "clusterperf.json"):
        (analysis / name).unlink()
    with pytest.raises(UsageError, match="there are no figures next to"):
        cm.ingest("cardano", analysis, store=analysis / "store")


def test_a_file_of_figures_without_its_summary_is_reported(analysis: Path) -> None:
    """Before, it was read as a log in which no line was readable."""
    (analysis / "summary.json").unlink()
    with pytest.raises(UsageError, match=r"summary\.json` cannot be read"):
        cm.ingest("cardano", analysis / "blockprop.json", store=analysis / "store")
