"""Runs that were stored before some fields and tables were renamed still open and show their measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainmark as cm
from chainmark.compare.inputs import LoadedRun
from chainmark.lab.loading import load_report_of
from chainmark.systems.cardano.split.parted import ways_of

from tests.unit.cli.commands import chainmark

SEALED = Path(__file__).parents[1] / "sealed_runs"


@pytest.fixture
def load_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cm.Run:
    """A load test whose server sometimes returned an error."""
    return _imported("http-*.tar.xz", tmp_path, monkeypatch)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cm.Run:
    """A run imported from the logs of four hosts. The importing version differs from the version in the logs."""
    return _imported("cardano-*.tar.xz", tmp_path, monkeypatch)


def _imported(archives: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> cm.Run:
    monkeypatch.setenv("CHAINMARK_STORE", str(store))
    (archive,) = SEALED.glob(archives)
    return cm.import_run(archive, store)


def test_the_report_of_a_load_test_contains_its_sla_errors_and_limits(load_test: cm.Run) -> None:
    (endpoint,) = load_report_of(load_test.sealed).targets[0].endpoints
    assert endpoint.sla.p99_s == 0.1
    assert [limit.finding for limit in endpoint.exhausted] == ["nothing"]
    assert {step.point_outcome for step in endpoint.steps} == {"fail"}
    errors = [error for step in endpoint.steps for error in step.errors]
    assert {error.reported["message"] for error in errors} == {"the cache is full"}


def test_the_slowest_requests_of_a_load_test_are_listed_with_their_text(load_test: cm.Run) -> None:
    listed = chainmark("request", load_test.id)
    assert listed.exit_code == 0, listed.output
    first = chainmark("request", load_test.id, "0-1")
    assert "/state" in first.output
    assert "due time" in first.output


def test_the_logged_version_and_the_blocks_of_a_cluster_are_shown(cluster: cm.Run) -> None:
    assert cluster.sealed.manifest.subject.logged_version == "10.5.4"
    block = chainmark("block", cluster.id, "4")
    assert block.exit_code == 0, block.output
    assert "node-2" in block.output


def test_the_paths_of_the_blocks_of_a_cluster_are_read(cluster: cm.Run) -> None:
    ways = ways_of(LoadedRun(cluster.sealed))
    assert ways is not None
    assert ways.blocks == ways.traced == 11
