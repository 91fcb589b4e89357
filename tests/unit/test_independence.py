"""The common rooms stand without any system: a fourth system adds a folder, and removing one takes a folder away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMON = ("core", "store", "stats", "capacity", "compare", "report")
# Those of `stats` and `capacity` are left out: numeric, long, and of functions that import nothing but `core`.
TESTED = tuple(room for room in COMMON if room not in {"stats", "capacity"})
SYSTEMS = ("cardano", "cometbft")


def test_common_rooms_pass_their_tests_without_a_system(tmp_path: Path) -> None:
    """If this fails, something right of the samples has learnt what a CometBFT is."""
    copy = tmp_path / "src" / "chainmark"
    shutil.copytree(ROOT / "src" / "chainmark", copy, ignore=shutil.ignore_patterns("__pycache__", *SYSTEMS))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert not any((copy / "systems" / system).exists() for system in SYSTEMS)
    for room in TESTED:
        tests = ROOT / "tests" / "unit" / room
        if tests.is_dir():
            shutil.copytree(tests, tmp_path / "tests" / "unit" / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "property_examples.py", tmp_path / "tests" / "conftest.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    imports = "; ".join(f"import chainmark.{room}" for room in COMMON)
    where = f"{imports}; print(chainmark.core.__file__)"
    found = subprocess.run([sys.executable, "-c", where], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(tmp_path))
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "tests"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]
