"""The output of commands that make runs: reports, a list of several runs, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.manifest import Gate, GateKind, GateStatus, Status
from chainmark.store.runs import Store

from tests.unit.cli.commands import chainmark
from tests.unit.store.trail_runs import Timelines, sealed

GATE = Gate(id="alive", label="no node died", status=GateStatus.FAIL, measured="node3 was killed", limit="all alive")
RUN = ("run", "toy/demo", "--version", "v1")


def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, statuses: Sequence[Status]) -> list[str]:
    """Let `chainmark run` make runs with these statuses; their ids."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    runs = [cm.Run(sealed(Store(tmp_path / "store"), Timelines(3, 2).fill())) for _ in statuses]
    for run, status in zip(runs, statuses, strict=True):
        kind = GateKind.SUBJECT if status is Status.FAILED else GateKind.INSTRUMENT
        gates = [] if status is Status.VALID else [GATE.model_copy(update={"kind": kind})]
        changed = run.manifest.model_copy(update={"status": status, "gates": gates})
        monkeypatch.setitem(vars(run.sealed), "manifest", changed)
    monkeypatch.setattr(cm, "run", lambda *_, **__: runs)
    return [run.id for run in runs]


def test_a_run_is_reported_in_every_format(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (run_id,) = made(monkeypatch, tmp_path, [Status.FAILED])
    files = {option: tmp_path / option for option in ("--junit", "--md", "--html", "--json-file", "--pdf")}
    ended = chainmark(*RUN, *(str(part) for pair in files.items() for part in pair))
    assert ended.exit_code == 1
    assert all(path.stat().st_size for path in files.values())
    assert "no node died" in files["--junit"].read_text(encoding="utf-8")
    assert f"chainmark runs show {run_id}" in ended.stdout
    assert "no node died: node3 was killed; required: all alive" in ended.stdout


def test_several_runs_are_a_list_with_a_report_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ids = made(monkeypatch, tmp_path, [Status.VALID, Status.INVALID])
    ended = chainmark(*RUN, "--junit", str(tmp_path / "run.xml"))
    assert ended.exit_code == 4
    assert "2 runs, 2 of them new; 1 valid and 1 invalid." in ended.stdout
    for run_id in ids:
        assert run_id in ended.stdout
    assert f"{ids[1]}: no node died: node3 was killed" in ended.stdout
    assert [(tmp_path / name).exists() for name in ("run.xml", "run-2.xml")] == [True, True]


def test_a_failure_of_the_subject_outweighs_an_invalid_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A regression must not be hidden by a failed measurement next to it."""
    made(monkeypatch, tmp_path, [Status.INVALID, Status.FAILED])
    assert chainmark(*RUN).exit_code == 1


def test_json_on_stdout_is_the_list_of_manifests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (run_id,) = made(monkeypatch, tmp_path, [Status.VALID])
    assert [entry["run_id"] for entry in json.loads(chainmark(*RUN, "--json").stdout)] == [run_id]
