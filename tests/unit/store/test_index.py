"""The index of a store: lists and selections match the runs on disk, whatever happened to the index or the runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.store import index
from chainmark.store.caches import write_cache
from chainmark.store.index import DAMAGED, INDEX, Index, Selection, terms_of

MANY = 2000


def _manifest(number: int, **changes: Any) -> dict[str, Any]:
    """The parts of a manifest that the index reads, as JSON."""
    content: dict[str, Any] = {
        "subject": {"system": "toy", "name": "Toy", "version": f"v{number}", "binary_sha256": None},
        "profile_name": "toy/demo",
        "status": "valid",
        "started_at": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
        "ended_at": "2026-01-02T00:00:00Z",
        "workload": {"load.rate": 200},
        "configuration": {"effective": {}},
        "sources": [],
        "host": {"cpu_model": "c", "cores": 2, "memory_bytes": 2**30},
        "experiment": None,
    }
    return content | changes


def _seal(root: Path, number: int, **changes: Any) -> str:
    """Create a run that the index takes for a sealed one."""
    run = root / "runs" / f"toy-{number:05}"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(json.dumps(_manifest(number, **changes)))
    (run / "SEALED.part").write_text(f"{number}")
    (run / "SEALED.part").rename(run / "SEALED")
    return run.name


def _names(root: Path) -> list[str]:
    return [entry.run_id for entry in Index(root).contents().sealed]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose manifests were read."""
    names: list[str] = []
    original = index._entry

    def watched(path: Path) -> index.Entry:
        names.append(path.name)
        return original(path)

    monkeypatch.setattr(index, "_entry", watched)
    return names


def test_a_run_is_opened_only_once(tmp_path: Path, opened: list[str]) -> None:
    first = _seal(tmp_path, 1)
    assert _names(tmp_path) == _names(tmp_path) == [first]
    assert opened == [first]
    second = _seal(tmp_path, 2)
    assert _names(tmp_path) == _names(tmp_path) == [first, second]
    assert opened == [first, second]


def test_two_thousand_runs_are_listed_and_selected_without_opening_any(tmp_path: Path, opened: list[str]) -> None:
    for number in range(MANY):
        place = {"id": "exp", "side": "candidate", "repetition": 1, "position": 0} if number == MANY - 1 else None
        _seal(tmp_path, number, experiment=place)
    assert len(_names(tmp_path)) == MANY
    opened.clear()
    selection = Selection(Index(tmp_path).contents())
    assert len(selection.sealed) == MANY
    assert [entry.run_id for entry in selection.select("version:v7")] == ["toy-00007"]
    assert [entry.run_id for entry in selection.select("toy-01234")] == ["toy-01234"]
    assert [entry.run_id for entry in selection.select("exp/candidate")] == [f"toy-{MANY - 1:05}"]
    with pytest.raises(UsageError, match="matches 1000 runs"):
        selection.select("toy-01")
    # Every build ran once: only steps between the latest runs show noise, and no run is opened to find them.
    run_ids = [entry.run_id for entry in selection.alike(["toy-00007"])]
    assert run_ids == [f"toy-{MANY - 64 + place:05}" for place in range(64)]
    assert opened == []


def test_listing_does_not_import_heavy_libraries(tmp_path: Path) -> None:
    """Importing them takes longer than listing two thousand runs."""
    _seal(tmp_path, 1)
    code = (
        "import sys; from pathlib import Path; from chainmark.store.index import Index;"
        f"assert len(Index(Path({str(tmp_path)!r})).contents().sealed) == 1;"
        "print(*{'polars', 'numpy', 'scipy', 'pydantic'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_removed_runs_disappear_and_restored_runs_are_read_again(tmp_path: Path) -> None:
    first, second = _seal(tmp_path, 1), _seal(tmp_path, 2)
    assert _names(tmp_path) == [first, second]
    shutil.rmtree(tmp_path / "runs" / first)
    assert _names(tmp_path) == [second]
    _seal(tmp_path, 1, status="invalid")
    assert [entry.status for entry in Index(tmp_path).contents().sealed] == ["invalid", "valid"]


def test_an_unfinished_run_becomes_a_run_when_it_is_sealed(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "toy-00001"
    folder.mkdir(parents=True)
    (tmp_path / "runs" / "importing-0").mkdir()
    (tmp_path / "runs" / "importing-0" / "SEALED").write_text("")
    assert Index(tmp_path).contents().unfinished == ["importing-0", "toy-00001"]
    folder.rmdir()
    _seal(tmp_path, 1)
    contents = Index(tmp_path).contents()
    assert ([entry.run_id for entry in contents.sealed], contents.unfinished) == (["toy-00001"], ["importing-0"])


def _sealed_rows(path: Path, rows: object) -> None:
    write_cache(path, index._LAYOUT, json.dumps(rows).encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_bytes(path.read_bytes().replace(b'"v1"', b'"v9"')),
        lambda path: path.write_bytes(b"\xff\x00" * 100),
        lambda path: path.write_bytes(b"chainmark index 0 \n[]"),
        lambda path: _sealed_rows(path, {"runs": 1}),
        lambda path: _sealed_rows(path, [[[1, 2, 3], ["toy-00001", 7]]]),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_a_damaged_index_is_rebuilt(tmp_path: Path, damage: Any) -> None:
    names = [_seal(tmp_path, 1), _seal(tmp_path, 2)]
    before = Index(tmp_path).contents()
    damage(tmp_path / INDEX)
    assert Index(tmp_path).contents() == before
    assert _names(tmp_path) == names


def test_an_unreadable_run_is_listed_and_blocks_selectors_that_might_match_it(tmp_path: Path) -> None:
    sound, broken = _seal(tmp_path, 1), _seal(tmp_path, 2)
    (tmp_path / "runs" / broken / "manifest.json").write_text("{")
    selection = Selection(Index(tmp_path).contents())
    assert {entry.run_id: entry.status for entry in selection.sealed} == {sound: "valid", broken: DAMAGED}
    assert [entry.run_id for entry in selection.select(sound)] == [sound]
    with pytest.raises(InvalidRunError, match=f"run `{broken}` is damaged"):
        selection.select("version:v1")
    (tmp_path / "runs" / broken / "manifest.json").write_text(json.dumps(_manifest(2)))
    assert [entry.status for entry in Index(tmp_path).contents().sealed] == ["valid", "valid"]


def test_a_read_only_store_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, who may write everywhere, so the refusal is simulated."""
    name = _seal(tmp_path, 1)
    monkeypatch.setattr("os.open", _refuse)
    assert _names(tmp_path) == [name]
    assert not (tmp_path / INDEX).exists()


def _refuse(*_: object) -> int:
    raise PermissionError(13, "Permission denied")


def test_an_empty_folder_has_no_runs_and_no_files_are_created(tmp_path: Path) -> None:
    assert _names(tmp_path / "nowhere") == []
    assert not (tmp_path / "nowhere").exists()


def _seal_some(root: Path, first: int) -> int:
    for number in range(first, first + 10):
        _seal(root, number)
        _names(root)
    return first


def test_many_processes_seal_and_list_at_once(tmp_path: Path) -> None:
    starts = [0, 10, 20, 30]
    with ProcessPoolExecutor(len(starts)) as pool:
        assert list(pool.map(_seal_some, [tmp_path] * len(starts), starts)) == starts
    assert _names(tmp_path) == [f"toy-{number:05}" for number in range(40)]
    assert len(Index(tmp_path)._read()) == 40


def test_a_killed_writer_leaves_the_index_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _seal(tmp_path, 1)
    assert _names(tmp_path) == [first]
    before = (tmp_path / INDEX).read_bytes()
    second = _seal(tmp_path, 2)
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(Path, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        _names(tmp_path)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert (tmp_path / INDEX).read_bytes() == before
    assert _names(tmp_path) == [first, second]
    assert len(Index(tmp_path)._read()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [INDEX, "runs"]


def test_noise_is_taken_from_repeated_builds_of_the_same_system_and_workload(tmp_path: Path) -> None:
    """A build that ran once, under another load or on another machine does not show noise."""
    subject = _manifest(9)["subject"]
    named = [_seal(tmp_path, number, subject=subject) for number in (1, 2)]
    others: list[dict[str, Any]] = [
        {"workload": {"load.rate": 300}},
        {"host": {"cpu_model": "d", "cores": 2, "memory_bytes": 2**30}},
        {"configuration": {"effective": {"config.toml": {"timeout": 1}}}},
        {"subject": subject | {"system": "other"}},
    ]
    for number, change in enumerate(others, start=3):
        _seal(tmp_path, number, **({"subject": subject} | change))
    again = [_seal(tmp_path, number) for number in (7,)] + [_seal(tmp_path, 8, subject=_manifest(7)["subject"])]
    selection = Selection(Index(tmp_path).contents())
    assert [entry.run_id for entry in selection.alike(named[:1])] == [*named, *again]
    assert selection.alike([]) == []


def test_profiled_runs_are_selected_only_as_profiled_runs(tmp_path: Path) -> None:
    """Profiled runs are slower. As a version's newest runs, or as noise between runs, they cause false alarms."""
    place = {"id": "e", "side": "baseline", "repetition": 1, "position": 0}
    other = {"id": "f", "side": "baseline", "repetition": 1, "position": 0}
    version = {"subject": {"system": "toy", "name": "Toy", "version": "v1", "binary_sha256": None}}
    judged = [_seal(tmp_path, number, **version, experiment=place) for number in (1, 2)]
    own = _seal(tmp_path, 3, **version, experiment=place, profiles=["cpu", "heap"])
    alone = _seal(tmp_path, 4, **version, experiment=other, profiles=["cpu"])
    selection = Selection(Index(tmp_path).contents())
    assert [entry.run_id for entry in selection.select("v1")] == judged
    assert [[entry.run_id for entry in group] for group in selection.groups("v1")] == [judged]
    assert [entry.run_id for entry in selection.alike(judged)] == judged
    assert [entry.run_id for entry in selection.series(judged)] == judged
    assert [entry.run_id for entry in selection.profiled(judged)] == [own]
    assert {entry.run_id: entry.badges for entry in selection.sealed}[own] == "profiled"
    # Without profiled runs of the same experiment, those of the version under the same workload are used.
    assert [entry.run_id for entry in Selection(Index(tmp_path).contents()).profiled([alone])] == [alone]
    assert [entry.run_id for entry in selection.select("e/baseline")] == [*judged, own]


def test_profiled_runs_are_selected_if_a_version_has_no_others(tmp_path: Path) -> None:
    name = _seal(tmp_path, 1, profiles=["cpu"])
    assert [entry.run_id for entry in Selection(Index(tmp_path).contents()).select("v1")] == [name]


@pytest.mark.parametrize(
    ("reference", "terms"),
    [
        ("release:v1.2.9,hardware:mid", {"version": "v1.2.9", "hardware": "mid"}),
        ("version:v1, endpoint:/block", {"version": "v1", "endpoint": "/block"}),
        ("hardware:8 cores, 8 threads,scenario:standard", {"hardware": "8 cores, 8 threads", "scenario": "standard"}),
        ("release:v1", {"version": "v1"}),
        ("version:v1", None),
        ("v1.2.9", None),
        ("git:./checkout@main", {"git": "./checkout@main"}),
        ("hardware:", None),
        ("an experiment/baseline", None),
    ],
)
def test_a_selector_consists_of_terms_only(reference: str, terms: dict[str, str] | None) -> None:
    assert terms_of(reference) == terms
