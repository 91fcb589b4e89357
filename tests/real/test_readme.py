"""The commands in the README and the guides work as documented."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from chainmark.cli.app import app
from chainmark.cli.reference import pages

from tests.support import Lab

ROOT = Path(__file__).resolve().parents[2]
OWN_SERVER = "http://127.0.0.1:8082"
# Two short runs may have any verdict except invalid. A search may be undecided on a busy machine.
CODES = {"qa": {0, 1, 3}, "load": {0, 3}}
MEASURING = ("run", "experiment", "qa", "load")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def commands(text: str) -> list[str]:
    """The `$ …` lines of all console blocks, continuation lines joined."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line[2:] for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ ")]


def five_minute_paths() -> list[list[str]]:
    """The commands of every block that the README marks as executed."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marked = text.split("<!-- executed by tests/real/test_readme.py -->")[1:]
    return [commands(part[: part.index("```\n", part.index("```console") + 3) + 4]) for part in marked]


def test_every_system_has_a_five_minute_path() -> None:
    assert [len(path) for path in five_minute_paths()] == [6, 1, 6, 3, 3]


def _marks(path: list[str]) -> list[pytest.MarkDecorator]:
    """Commands that measure need the machine to themselves."""
    return [pytest.mark.quiet] if any(command.split()[1] in MEASURING for command in path) else []


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path[-1].rpartition(" ")[2], marks=_marks(path)) for path in five_minute_paths()],
)
def test_the_five_minute_paths_work_as_written(
    path: list[str], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Only the address of the reader's own server is replaced."""
    monkeypatch.chdir(tmp_path)
    for command in path:
        own = request.getfixturevalue("rosetta_example").url if OWN_SERVER in command else ""
        program, *arguments = shlex.split(command.replace(OWN_SERVER, own))
        assert program == "chainmark"
        output = lab.run(*arguments, code=CODES.get(arguments[0], {0}))
        assert output.stdout.strip(), command


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_the_documents_exists(document: Path) -> None:
    """A command that takes minutes is at least parsed: its options and the shipped profile exist."""
    for command in commands(document.read_text(encoding="utf-8")):
        program, *arguments = shlex.split(command)
        if program == "make":
            subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, capture_output=True)
        elif program == "chainmark":
            app([*arguments, "--help"], standalone_mode=False)


def test_the_demo_matches_the_readme() -> None:
    recipe = subprocess.run(["make", "-n", "demo"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "experiment cometbft/demo --baseline v0.38.17 --candidate v1.0.1 --most-runs 6" in recipe
    assert "--margin node_cpu_per_transaction_s=25%" in recipe


def test_local_links_resolve() -> None:
    for document in [*DOCUMENTS, *sorted((ROOT / "docs").rglob("*.md"))]:
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (document.parent / link).is_file(), f"{document.relative_to(ROOT)} links to {link}"


def test_the_generated_reference_is_not_stale() -> None:
    for name, text in pages().items():
        path = ROOT / "docs" / "reference" / name
        assert path.read_text(encoding="utf-8") == text, f"run `make docs`: {name} is stale"
