"""`chainmark verify-against` on files that the oracle wrote from the same logs, in the published analysis's formats."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.core.verdict import Verdict
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.verified.results import Verification

from tests.oracle import incumbent_files
from tests.oracle.cluster_analysis import analyse, read_logs
from tests.oracle.cluster_runs import generate, ingest
from tests.oracle.incumbent_files import Json, write

CLUSTERS = {
    # With more than 29 hosts, the reports average only the lowest means.
    "many hosts": {"hosts": 30, "slots": 110, "seed": 3, "faults": ("restart:node-2@60-80", "late:node-1@90")},
    "switches and losses": {
        "hosts": 6,
        "seed": 4,
        "faults": ("fork:node-0@110", "stall:node-4@90-130", "dropped:node-3=2%", "no-announcement:node-4=30%"),
    },
}


@dataclass(frozen=True)
class Verified:
    """A cluster's run, and the published analysis's files of the same logs."""

    store: Path
    run: SealedRun
    files: dict[str, Json]
    folder: Path

    def against(self, name: str, content: Json | None = None) -> Verification:
        """Compare the run with the published file, or with a changed copy of it."""
        path = write(self.folder / name, self.files[name] if content is None else content)
        document = cm.verify_against(path, self.run.run_id, store=self.store)
        assert isinstance(document.result, Verification)
        assert document.verdict is (Verdict.FAIL if document.result.differing else Verdict.PASS)
        return document.result


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, dict[str, Json]]]:
    """A cluster's logs and the published files of the same logs, cached: the oracle's plain loops take seconds."""

    @cache
    def cluster_files(name: str) -> tuple[Path, dict[str, Json]]:
        folder = generate(tmp_path_factory.mktemp("cluster") / "logs", **CLUSTERS[name])
        analysed = analyse(folder, read_logs(folder), published=True)
        files = {
            "blockprop.json": incumbent_files.blockprop(analysed),
            "clusterperf.json": incumbent_files.clusterperf(analysed),
            "summary.json": incumbent_files.summary(analysed, folder),
        }
        return folder, files

    return cluster_files


@pytest.fixture(scope="module", params=list(CLUSTERS))
def cluster(
    request: pytest.FixtureRequest, clusters: Callable[[str], tuple[Path, dict[str, Json]]]
) -> tuple[Path, dict[str, Json]]:
    return clusters(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["own rules", "published rules"])
def verified(
    cluster: tuple[Path, dict[str, Json]], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Verified:
    folder, files = cluster
    store = tmp_path_factory.mktemp("store")
    return Verified(store, ingest(folder, store, published=request.param), files, tmp_path_factory.mktemp("theirs"))


@pytest.mark.parametrize("name", ["blockprop.json", "clusterperf.json", "summary.json"])
def test_all_of_their_figures_match_ours(verified: Verified, name: str) -> None:
    result = verified.against(name)
    assert [figure for figure in result.figures if figure.agrees is False] == []
    assert result.compared >= {"blockprop.json": 900, "clusterperf.json": 7000, "summary.json": 150}[name]


def test_figures_missing_on_one_side_are_reported(verified: Verified) -> None:
    content = copy.deepcopy(verified.files["blockprop.json"])
    content["cdfNewlyMeasured"] = content["cdfForgerStart"]
    del content["cdfPeerFetch"]
    result = verified.against("blockprop.json", content)
    tallies = {tally.figure: tally for tally in result.tallies}
    assert result.differing == 0
    assert (tallies["cdfNewlyMeasured"].compared, tallies["cdfPeerFetch"].compared) == (0, 0)
    assert tallies["cdfNewlyMeasured"].only_theirs == tallies["cdfPeerFetch"].only_ours == 35


def _deviation(content: Json) -> None:
    content["mpResourceCDFs"]["CentiCpu"]["cdfStddev"] *= 1.001


def _one_host(content: Json) -> None:
    content["cdfStarted"]["cdfSamples"][14][1]["cdfSamples"][2][1] += 0.000_01


def _mean(content: Json) -> None:
    content["cdfBlockGap"]["cdfAverage"]["cdfSamples"][0][1] += 1.0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_deviation, {("CentiCpu", "", "standard deviation")}),
        (_one_host, {("cdfStarted", "hosts at 0.9", "place 3 of 7")}),
        (_mean, {("cdfBlockGap", "hosts' means", "place 1 of 6"), ("cdfBlockGap", "", "average")}),
    ],
)
def test_a_single_figure_that_differs_is_found(
    verified: Verified, change: Callable[[Json], None], expected: set[tuple[str, str, str]]
) -> None:
    content = copy.deepcopy(verified.files["clusterperf.json"])
    change(content)
    hosts = str(content["cdfStarts"]["cdfAverage"]["cdfSize"])
    figures = {
        (figure.figure, figure.group, figure.statistic)
        for figure in verified.against("clusterperf.json", content).figures
        if figure.agrees is False
    }
    places = str(max(7, int(hosts)))
    assert figures == {(a, b, c.replace("of 7", f"of {places}").replace("of 6", f"of {hosts}")) for a, b, c in expected}


def test_a_single_cdf_and_chart_data_are_compared(verified: Verified) -> None:
    """A CDF does not contain its subject. Its file name does."""
    blocks, slots = verified.files["blockprop.json"], verified.files["clusterperf.json"]
    assert verified.against("cdfForgerStart.json", blocks["cdfForgerStart"]).compared == 35
    lines = [f"{fraction:.4f} {value['cdfMedian']:.9f}"[:13] for fraction, value in slots["cdfStarted"]["cdfSamples"]]
    path = verified.folder / "cdfStarted.cdf"
    path.write_text("\n".join(["# runs: test", *lines]), encoding="utf-8")
    document = cm.verify_against(path, verified.run.run_id, store=verified.store)
    assert (document.word, document.result.compared) == ("PASS", 29)  # type: ignore[attr-defined]


def test_another_workload_or_cluster_is_refused(verified: Verified) -> None:
    content = copy.deepcopy(verified.files["summary.json"])
    content["sumWorkload"]["tps"] = 0.85
    with pytest.raises(UsageError, match=r"another workload: its tps is 0\.85, the run's 3"):
        verified.against("summary.json", content)
    content = copy.deepcopy(verified.files["blockprop.json"])
    content["cdfBlocksPerHost"]["cdfSize"] = 52
    with pytest.raises(UsageError, match="is of 52 hosts, but the run of"):
        verified.against("blockprop.json", content)
