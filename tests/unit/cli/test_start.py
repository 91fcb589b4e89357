"""Commands that print little load no library that they do not need, so they start fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"polars", "numpy", "scipy", "pydantic", "starlette", "uvicorn"}
# Modules that start other processes, such as the one that typesets PDFs.
STARTERS = {"concurrent", "ctypes", "tempfile"}
HELP = """
import sys
from typer._click import Context
from chainmark.cli.app import all_commands

def print_help(name, command, parent=None):
    context = Context(command, info_name=name, parent=parent)
    print(command.get_help(context))
    for name, child in getattr(command, "commands", {}).items():
        print_help(name, child, context)

print_help("chainmark", all_commands())
print(*sys.modules)
"""
TYPED = "import json, sys; sys.argv = ['chainmark', *json.loads(sys.argv[1])]; from chainmark.cli import main; main()"


def _typed(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """The output of a command and the packages that it loaded."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", TYPED, json.dumps(arguments)],
        capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    modules = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "chainmark" in modules
    return ended.stdout, {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    ("arguments", "part"), [(["--version"], "chainmark 0."), (["--help"], "Raise the load step by step")]
)
def test_version_and_help_load_no_numerical_library(arguments: list[str], part: str) -> None:
    output, loaded = _typed(*arguments)
    assert part in output
    assert loaded.isdisjoint(HEAVY | STARTERS)


@pytest.mark.parametrize("command", [["--store", "here", "load"], ["runs", "show"]])
def test_options_are_not_validated_before_a_help_page(command: list[str]) -> None:
    """Typer loads pydantic to validate any, even `--store` if it is not given."""
    output, loaded = _typed(*command, "--help")
    assert f"Example: chainmark {' '.join(command[-2:]).removeprefix('here ')} " in output
    assert loaded.isdisjoint(HEAVY | {"rich"})


def test_the_help_of_no_command_loads_a_library_that_it_does_not_need() -> None:
    """Options are declared without the types of the library, which would load all of it."""
    ended = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    *_, modules = ended.stdout.splitlines()
    assert {name.partition(".")[0] for name in modules.split()}.isdisjoint(HEAVY | {"rich"})
    assert "Raise the load step by step to find the saturation point of a version.\n\n  Example: " in ended.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["chainmark", "ru"], ["run", "runs"]),
        (["chainmark", "--store", "here", "runs", "s"], ["show"]),
        (["chainmark", "compare", "--h"], ["--html", "--help"]),
        (["chainmark", "compare", "--style", ""], ["own", "published"]),
        (["chainmark", "predict", "--rt"], ["--rtt"]),
        (["chainmark", "runs", "show", "--js"], ["--json-file", "--json"]),
    ],
)
def test_completion_loads_no_numerical_library(words: list[str], offered: list[str]) -> None:
    typed = {"_CHAINMARK_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    output, loaded = _typed(**typed)
    assert output.split() == offered
    assert loaded.isdisjoint(HEAVY)


def test_listing_runs_loads_no_library_that_reads_samples_or_validates(tmp_path: Path) -> None:
    """Not even where an experiment has ended: its verdict is read without its model."""
    (ended := tmp_path / "experiments" / "one").mkdir(parents=True)
    (ended / "verdict.json").write_text('{"verdict": "pass", "sentence": "Equal."}', encoding="utf-8")
    output, loaded = _typed("runs", "list", CHAINMARK_STORE=str(tmp_path))
    assert output.split() == ["run", "date", "version", "profile", "side", "status"]
    assert loaded.isdisjoint(HEAVY)


def test_what_is_given_is_validated_as_typer_does() -> None:
    """Only what is not given is passed on without validation."""
    words = ["chainmark", "synth", "cardano", "--hosts", "many"]
    ended = subprocess.run(
        [sys.executable, "-c", TYPED, json.dumps(words[1:])], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "--hosts" in ended.stderr
    assert "valid integer" in ended.stderr
