"""`chainmark runs` as a user runs it: selection by version, filters, and removal of unfinished runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Status
from chainmark.store.index import DAMAGED
from chainmark.store.listing import STATUSES, UNFINISHED
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.cli.commands import chainmark
from tests.unit.store.trail_runs import Timelines, sealed


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SealedRun:
    """The only sealed run of the store that the commands use."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("NO_COLOR", "1")
    return sealed(Store(tmp_path / "store"), Timelines(6, 8).fill())


def test_a_version_is_exported_removed_and_imported(run: SealedRun, tmp_path: Path) -> None:
    version = run.manifest.subject.version
    assert chainmark("runs", "export", version, "--to", str(tmp_path)).output.strip().endswith(f"{run.run_id}.tar")
    assert chainmark("runs", "remove", run.run_id).output == f"removed {run.run_id}\n"
    assert json.loads(chainmark("runs", "list", "--json").stdout) == []
    assert chainmark("runs", "import", str(tmp_path / f"{run.run_id}.tar")).output == f"imported {run.run_id}\n"
    assert chainmark("runs", "verify", run.run_id).exit_code == 0
    assert run.run_id in chainmark("runs", "show", version).output


def test_a_list_is_filtered_by_status_and_date(run: SealedRun) -> None:
    def listed(*options: str) -> list[str]:
        return [row["run_id"] for row in json.loads(chainmark("runs", "list", *options, "--json").stdout)]

    status, day = run.manifest.status.value, run.manifest.started_at[:10]
    assert listed("--status", status, "--since", day) == [run.run_id]
    assert listed("--status", "failed") == []
    assert listed("--since", "9999") == []
    assert day in chainmark("runs", "list").output
    with pytest.raises(UsageError, match="`vaild` is not a status"):
        listed("--status", "vaild")


def test_the_library_lists_what_the_command_lists(run: SealedRun, tmp_path: Path) -> None:
    left = Store(tmp_path / "store").create("toy", "toy/demo", "v1", {})
    version, day = run.manifest.subject.version, run.manifest.started_at[:10]
    options: list[dict[str, str]] = [{}, {"status": "unfinished"}, {"status": "valid", "since": day}, {"since": "9999"}]
    for given in [*options, {"selector": version}]:
        words = [word for name, text in given.items() if name != "selector" for word in (f"--{name}", text)]
        printed = chainmark("runs", "list", *words, *filter(None, [given.get("selector")]), "--json").stdout
        frame = cm.runs(**given)
        assert frame["run_id"].to_list() == [row["run_id"] for row in json.loads(printed)]
        assert frame["status"].to_list() == [row["status"] for row in json.loads(printed)]
    assert set(STATUSES) == {*Status, DAMAGED, UNFINISHED}
    assert cm.runs(selector=version)["run_id"].to_list() == [run.run_id]
    assert cm.runs(status="unfinished")["run_id"].to_list() == [left.run_id]


def test_remove_deletes_one_run_or_all_unfinished_runs(run: SealedRun, tmp_path: Path) -> None:
    left = Store(tmp_path / "store").create("toy", "toy/demo", "v1", {})
    with pytest.raises(UsageError):
        chainmark("runs", "remove")
    with pytest.raises(UsageError):
        chainmark("runs", "remove", run.run_id, "--unfinished")
    assert chainmark("runs", "remove", "--unfinished").output == f"removed {left.run_id}\n"
    assert [left_over.run_id for left_over in Store(tmp_path / "store").sealed()] == [run.run_id]


def test_a_report_in_a_missing_folder_is_written_and_the_new_folder_is_named(run: SealedRun, tmp_path: Path) -> None:
    report = tmp_path / "reports" / "run.md"
    message = f"the folder {report.parent} does not exist and is created"
    arguments = ("runs", "show", run.run_id, "--md", str(report))
    assert message in " ".join(chainmark(*arguments).stderr.split())
    assert report.is_file()
    assert message not in " ".join(chainmark(*arguments).stderr.split())
