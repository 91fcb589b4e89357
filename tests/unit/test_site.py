"""The documentation site and the files for contributors and adopters refer only to things that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests import notice

ROOT = Path(__file__).resolve().parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation site, built like `make docs`."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    ended = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder


def test_a_page_loads_nothing_from_another_host(site: Path) -> None:
    for page in ("index.html", "concepts/verdict.html", "reference/api.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), page
        assert not re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(?:https?:)?//', text), page


@pytest.mark.parametrize(
    "words", ["saturation load", "inconclusive", "runs import", "benchstat", "workload.executions", "semantic versions"]
)
def test_the_search_finds_the_expected_pages(site: Path, words: str) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    assert any(words in f"{page['title']} {page['text']}" for page in index)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_files_links_and_make_targets_named_in_documents_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / link).exists(), link
    for path in re.findall(r"(?:src|tests|docs)/[\w/.-]+\w", text):
        assert (ROOT / path).exists() or path.endswith("NAME"), path
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)|`make (\w+)`", text, re.MULTILINE):
        assert re.search(rf"^{''.join(target)}:", makefile, re.MULTILINE), target


def test_the_citation_has_the_current_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (METADATA["version"], METADATA["license"])


def test_the_notice_lists_the_current_dependencies() -> None:
    assert notice.NOTICE.read_text(encoding="utf-8") == notice.content(), "run `make notice`"


def test_hooks_run_the_same_tools_as_make_check() -> None:
    """Otherwise a hook with another version of a tool would undo the changes of `make format`."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    entries = [hook["entry"] for repo in hooks for hook in repo["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for entry in entries:
        words = entry.replace(".venv/bin/", "$(BIN)/").split(" --")[0].replace("make ", "")
        assert words in makefile, entry


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_runs_targets_that_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        commands = [step["run"] for step in job["steps"] if "run" in step]
        targets = [target for command in commands for target in re.findall(r"^make ([a-z-]+)", command)]
        assert targets
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets), targets
