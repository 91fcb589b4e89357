"""Completion from the stored table: the same answers as typer's, for every command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer
from typer import _completion_classes as classes

from chainmark.cli.app import all_commands, app
from chainmark.cli.completion import complete

STARTED = "import sys; sys.argv = ['chainmark']; from chainmark.cli import main; main()"
KINDS: dict[str, Any] = {"bash": classes.BashComplete, "zsh": classes.ZshComplete, "fish": classes.FishComplete}


def _typed(monkeypatch: pytest.MonkeyPatch, shell: str, before: list[str], word: str) -> None:
    """The variables that the script of a shell sets."""
    words = ["chainmark", *before, word]
    if shell == "bash":
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(before) + 1))
    else:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(words))
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")


def _questions(shell: str) -> Iterator[tuple[list[str], str]]:
    commands: dict[str, Any] = dict(all_commands().commands)
    for name, command in list(commands.items()):
        commands |= {f"{name} {child.name}": child for child in getattr(command, "commands", {}).values()}
    for path, command in chain([("", all_commands())], commands.items()):
        before = path.split()
        yield from ((before, word) for word in ("", "-", "--h", "r", "nothing"))
        yield ["--store", "here", "--debug", *before], ""
        if shell == "bash":
            for option in command.get_params(typer.Context(command)):
                if option.param_type_name == "option":
                    yield [*before, option.opts[0]], "o"
                    yield [*before, option.opts[0], "x"], "--"


@pytest.mark.parametrize("shell", KINDS)
def test_the_answers_are_those_of_typer(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    group = typer.main.get_group(app)
    answered = 0
    for before, word in _questions(shell):
        _typed(monkeypatch, shell, before, word)
        expected = KINDS[shell](group, {}, "chainmark", "_CHAINMARK_COMPLETE").complete()
        code = complete(f"complete_{shell}")
        printed = capsys.readouterr().out
        if code is None:
            assert printed == ""
        else:
            answered += 1
            assert (code, printed) == (0, f"{expected}\n"), (before, word)
    assert answered > 250


@pytest.mark.parametrize(("word", "code"), [("--h", 0), ("there.json", 1)])
def test_fish_is_told_whether_there_are_completions(
    word: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _typed(monkeypatch, "fish", ["compare"], word)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    assert (complete("complete_fish"), capsys.readouterr().out) == (code, "")


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("source_bash", "chainmark "),
        ("complete_powershell", "chainmark "),
        ("complete_bash", "chainmark compare --style=o"),
        ("complete_bash", 'chainmark compare "a'),
        ("complete_bash", "chainmark compare --unknown "),
        ("complete_bash", "chainmark unknown "),
    ],
)
def test_other_questions_are_left_to_typer(
    instruction: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert complete(instruction) is None


def _offered(words: str, cache: Path, *folders: Path) -> set[str]:
    environment = {
        "_CHAINMARK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1),
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", STARTED], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return set(ended.stdout.split())


def test_another_package_that_is_installed_is_noticed(tmp_path: Path) -> None:
    """It may add options."""
    (folder := tmp_path / "packages").mkdir()
    assert "--html" in _offered("chainmark compare --h", tmp_path, folder)
    table = tmp_path / "chainmark" / "completion-bash.json"
    os.utime(table, ns=(0, 0))
    assert "--html" in _offered("chainmark compare --h", tmp_path, folder)
    assert table.stat().st_mtime_ns == 0, "the table is used as long as nothing changes"
    (folder / "new-1.0.dist-info").mkdir()
    assert "--html" in _offered("chainmark compare --h", tmp_path, folder)
    assert table.stat().st_mtime_ns > 0


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"state": [], "table": {}}'])
def test_a_damaged_table_is_made_again(text: str, tmp_path: Path) -> None:
    (folder := tmp_path / "chainmark").mkdir()
    (folder / "completion-bash.json").write_text(text, encoding="utf-8")
    assert _offered("chainmark runs s", tmp_path) == {"show"}
    assert [path.name for path in folder.iterdir()] == ["completion-bash.json"]


def test_without_a_cache_typer_answers(tmp_path: Path) -> None:
    (tmp_path / "chainmark").touch()
    assert _offered("chainmark runs s", tmp_path) == {"show"}
