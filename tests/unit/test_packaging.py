"""Files that pipelines and containers use refer only to files and inputs that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, cast

import yaml

from tests.unit.cli.commands import chainmark as command

ROOT = Path(__file__).resolve().parents[2]


def action() -> dict[str, Any]:
    """The parsed composite action."""
    return cast(dict[str, Any], yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8")))


def test_the_action_uses_every_input_that_it_declares() -> None:
    """An input that is not passed on would have no effect and cause no error."""
    content = action()
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name in content["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in text, name
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(content["inputs"])
    load = next(step for step in content["runs"]["steps"] if step.get("id") == "load")
    assert "${{" not in load["run"]  # an expression in a script allows script injection


def test_the_action_uses_options_that_exist() -> None:
    load = next(step for step in action()["runs"]["steps"] if step.get("id") == "load")
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", load["run"]))
    help_text = command("load", "--help").output
    assert options
    assert not [option for option in options if option not in help_text]


def test_the_container_copies_existing_files() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists(), name
    version = re.search(r"python:(\d\.\d+)", text)
    required = re.search(r'requires-python = ">=(\d\.\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert version
    assert required
    assert version[1] >= required[1]


def test_the_source_distribution_has_the_licences_and_no_key(tmp_path: Path) -> None:
    build = [str(Path(sys.executable).with_name("maturin")), "sdist", "--out", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, timeout=120, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as packed:
        files = {name.partition("/")[2]: packed.extractfile(name) for name in packed.getnames()}
        keys = [name for name, file in files.items() if file and re.search(rb"-BEGIN [A-Z ]*PRIVATE KEY-", file.read())]
    assert keys == []
    assert {"LICENSE", "NOTICE", "README.md"} <= files.keys()
