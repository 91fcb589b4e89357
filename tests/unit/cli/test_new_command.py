"""A command is added in two files: a function of the library, and its arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "chainmark"
FUNCTION = '''"""Greetings."""

__all__ = ["greet"]


def greet(name: str) -> str:
    """A greeting."""
    return f"hello {name}"
'''
COMMAND = '''"""`chainmark greet`."""

import chainmark as cm
from chainmark.cli.groups import command


@command
def greet(name: str) -> None:
    """Greet somebody
    by name.

    Example: `chainmark greet you`
    """
    print(cm.greet(name))
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with two more files."""
    source = tmp_path_factory.mktemp("another-command") / "src"
    shutil.copytree(PACKAGE, source / "chainmark", copy_function=os.symlink)
    (source / "chainmark" / "api" / "greeting.py").write_text(FUNCTION, encoding="utf-8")
    (source / "chainmark" / "cli" / "greet.py").write_text(COMMAND, encoding="utf-8")
    return source


def _ran(copy: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy), "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip


def test_a_new_command_is_listed_and_runs(copy: Path) -> None:
    listed = [line.split()[0] for line in _ran(copy, "-m", "chainmark", "--help").splitlines() if line.startswith("  ")]
    assert listed.index("run") < listed.index("experiment") < listed.index("greet")
    assert "Greet somebody by name." in _ran(copy, "-m", "chainmark", "--help").replace("\n", " ")
    assert _ran(copy, "-m", "chainmark", "greet", "you") == "hello you\n"


def test_a_new_function_is_in_the_library(copy: Path) -> None:
    code = "import chainmark as cm; print(cm.greet('you'), 'greet' in dir(cm), 'greet' in cm.__all__)"
    assert _ran(copy, "-c", code) == "hello you True True\n"
