"""The wheel in an empty environment: no Rust, no Go, no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chainmark"


def _ran(command: list[str | Path], environment: dict[str, str], folder: Path, accepted: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in accepted, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with chainmark and its dependencies, installed from the set-up's cache."""
    folder = tmp_path_factory.mktemp("wheel")
    build = {"CARGO_TARGET_DIR": str(CACHE / "target"), "UV_CACHE_DIR": str(CACHE / "uv"), **os.environ}
    _ran([TOOLS / "maturin", "build", "--quiet", "--release", "--locked", "--out", folder], build, ROOT)
    _ran([sys.executable, "-m", "venv", "--without-pip", folder / "empty"], build, folder)
    (wheel,) = folder.glob("chainmark-*-cp311-abi3-*.whl")
    python = folder / "empty" / "bin" / "python"
    install: list[str | Path] = [TOOLS / "uv", "pip", "install", "--quiet", "--offline", "--python", python]
    _ran([*install, "--constraint", ROOT / "requirements.lock", wheel], build, folder)
    return python.parent


def test_the_shipped_runs_are_compared_without_compilers_or_a_checkout(installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": str(installed), "HOME": str(tmp_path), "CHAINMARK_STORE": str(tmp_path / "store")}
    chainmark = installed / "chainmark"
    assert "imported cometbft-demo-v1.0.1" in _ran([chainmark, "runs", "import", "--samples"], environment, tmp_path)
    arguments = ["--margin", "node_cpu_per_transaction_s=25%", "--html", "report.html", "--pdf", "report.pdf"]
    compared = _ran([chainmark, "compare", "v0.38.17", "v1.0.1", *arguments], environment, tmp_path)
    assert " PASS " in compared
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
