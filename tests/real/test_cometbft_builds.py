"""A developer's checkout on a real network: the sources of a release with an uncommitted change."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ANYHOW, QUICK, Lab, changed

SMALL = changed(*ANYHOW, *QUICK)


def git(repository: Path, *arguments: str) -> str:
    """Run git in a folder and return its output."""
    command = ["git", "-C", str(repository), "-c", "user.name=T", "-c", "user.email=t@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sources of v1.0.1 as a repository with one commit."""
    command = ["go", "mod", "download", "-json", "github.com/cometbft/cometbft@v1.0.1"]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    folder = tmp_path / "cometbft"
    shutil.copytree(json.loads(output)["Dir"], folder, copy_function=shutil.copyfile)
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "The release")
    return folder


def test_a_working_tree_is_compared_with_the_binary_built_from_it(lab: Lab, checkout: Path, tmp_path: Path) -> None:
    """The node that ran contains the change and the run stores it. The same binary, given by path, makes an A/A."""
    version = checkout / "version" / "version.go"
    version.write_text(version.read_text(encoding="utf-8").replace('"1.0.1"', '"1.0.2-mine"'), encoding="utf-8")
    run = lab.runs("cometbft/demo", "--version", f"git:{checkout}", *SMALL)[0]
    subject, build = run.manifest.subject, run.document("build")
    assert build is not None
    assert (
        subject.version == f"main@{git(checkout, 'rev-parse', '--short=7', 'HEAD')}+dirty-{build['changes_sha256'][:7]}"
    )
    assert subject.release == "1.0.2-mine"
    assert b'+\tCMTSemVer = "1.0.2-mine"' in (run.path / "raw" / "build" / "changes.diff").read_bytes()
    assert run.manifest.configuration.effective["config.toml"]["version"] == "1.0.2-mine"
    assert run.verify() == []
    listed = json.loads(lab.run("nodes", "list", "--json").stdout)
    mine = tmp_path / "mine"
    shutil.copy(next(entry["path"] for entry in listed if entry["version"] == subject.version), mine)
    other = lab.runs("cometbft/demo", "--version", str(mine), *SMALL)[0]
    assert other.manifest.subject.version.startswith("1.0.2-mine@sha-")
    output = lab.run("compare", f"version:{subject.version}", other.manifest.subject.version, code=None).stdout
    assert "both sides are the same build" in output
