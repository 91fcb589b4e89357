"""The common rooms stand without any system: a fourth system adds a folder, and removing one takes a folder away."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMON = ("core", "store", "stats", "network", "capacity", "lab", "compare", "report")
SYSTEMS = ("cardano", "cometbft", "http", "mesh")
# A part of the common rooms' tests that runs through each of them: sessions and schedules, judging, whole comparisons
# with every chart, tails and their stories, versions side by side, and renderings, but those that
# take seconds each.
TESTED = (
    "core",
    "store",
    "lab/test_schedules.py",
    "lab/test_session.py",
    "compare/test_judge.py",
    "compare/test_side_by_side.py",
    "compare/test_trails.py",
    "compare/test_verdict.py",
    "compare/test_worked_example.py",
    "compare/test_compare.py::test_an_equal_release_passes_and_says_how",
    "compare/test_compare.py::test_every_chart_that_a_metric_asks_for_is_there",
    "compare/test_compare.py::test_charts_are_well_formed",
    "compare/test_compare.py::test_conditions_that_differ_warn_with_the_catalogues_words",
    "report/test_renderings.py",
)
_DOTTED = re.compile(r"chainmark(\.\w+)+")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose package has no system."""
    root = tmp_path_factory.mktemp("without-systems")
    package = root / "src" / "chainmark"
    without = shutil.ignore_patterns("__pycache__", *SYSTEMS)
    shutil.copytree(ROOT / "src" / "chainmark", package, ignore=without)
    assert not any((package / "systems" / system).exists() for system in SYSTEMS)
    shutil.copy(ROOT / "pyproject.toml", root)
    for room in sorted({name.partition("/")[0] for name in TESTED}):
        shutil.copytree(ROOT / "tests" / "unit" / room, root / "tests" / "unit" / room, ignore=without)
    shutil.copy(ROOT / "tests" / "property_examples.py", root / "tests" / "conftest.py")
    return root


def _ran(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


def _named(path: Path) -> Iterator[str]:
    """What a module may import, wherever in it and however late: in function bodies and by a name in a string, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            yield node.value


def _is_module(name: str) -> bool:
    path = ROOT / "src" / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_common_rooms_import_nothing_of_a_system(copy: Path) -> None:
    """Every module of theirs, and every module that one of them would import when it is used."""
    source = copy / "src"
    paths = [path for room in COMMON for path in sorted((source / "chainmark" / room).rglob("*.py"))]
    own = {".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths}
    named = {name for path in paths for name in _named(path) if _DOTTED.fullmatch(name) and _is_module(name)}
    assert len(own) > 50
    assert len(named) > 30
    everything = "import sys, importlib, chainmark; [importlib.import_module(name) for name in sys.argv[1:]]"
    found = _ran(copy, "-c", f"{everything}; print(chainmark.__file__)", *sorted(own | named))
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.startswith(str(copy))


def test_common_rooms_pass_their_tests_without_a_system(copy: Path) -> None:
    """If this fails, something right of the samples has learnt what a CometBFT is."""
    tests = [f"tests/unit/{name}" for name in TESTED]
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(copy),
        "-k",
        "not console_errors and not every_rendering and not same_comparison",
    ]
    outcome = _ran(copy, "-m", "pytest", *options, *tests)
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]
