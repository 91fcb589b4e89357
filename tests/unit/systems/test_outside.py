"""A system in a separate package: the tutorial's package, built, installed and used as the tutorial describes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TUTORIAL = ROOT / "docs" / "tutorials" / "add-a-system.md"
PACKAGE = ROOT / "tests" / "outside" / "chainmark-hyperfine"
SHOWN = ("pyproject.toml", "src/chainmark_hyperfine/catalogue.toml", "src/chainmark_hyperfine/__init__.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's wheel, installed to a separate folder without downloads."""
    folder = tmp_path_factory.mktemp("outside")
    uv: list[str | Path] = [Path(sys.executable).with_name("uv"), "--offline", "--quiet", "--no-cache"]
    source = shutil.copytree(PACKAGE, folder / PACKAGE.name)
    subprocess.run([*uv, "build", "--wheel", "--no-build-isolation", "--out-dir", folder, source], check=True)
    target = folder / "installed"
    subprocess.run([*uv, "pip", "install", "--no-deps", "--target", target, *folder.glob("*.whl")], check=True)
    return target


def test_the_tutorial_shows_the_tested_package() -> None:
    """Copying the tutorial's three files gives the package that is tested here."""
    blocks = re.findall(r"```(?:toml|python)\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks == [(PACKAGE / name).read_text(encoding="utf-8") for name in SHOWN]


def test_the_tutorials_commands_work_as_written(installed: Path, tmp_path: Path) -> None:
    for example in (PACKAGE / "examples").iterdir():
        shutil.copy(example, tmp_path)
    paths = [str(ROOT / "src"), str(installed)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "CHAINMARK_STORE": str(tmp_path / "store")}
    printed = {}
    for line in re.findall(r"^\$ (.*)$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE):
        program, command, *arguments = shlex.split(line)
        if program == "chainmark":
            done = subprocess.run(
                [sys.executable, "-m", "chainmark.cli", command, *arguments],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            undecided = 3 if command == "compare" else 0  # with one run per side, a comparison is inconclusive
            assert done.returncode == undecided, line + done.stdout + done.stderr
            printed[command] = done.stdout
    assert list(printed) == ["metrics", "ingest", "compare"]
    assert "wall_time_s" in printed["metrics"]
    assert "wall time mean, ms" in printed["compare"]
    assert 'name="wall time' in (tmp_path / "report.xml").read_text(encoding="utf-8")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "wall time" in page
    assert "peak memory" in page
