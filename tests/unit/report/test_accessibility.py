"""Reports by the rules of axe, the field's checker of accessibility (WCAG 2.2 A and AA, and good practice)."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chainmark.store.paths import cache_directory

from tests.golden.inputs import DOCUMENTS
from tests.unit.report.browser import page_without_complaints

AXE = "axe-core@4.14.1"
INSTALL_TIMEOUT_S = 300
# Those that differ in what they are made of: bands and charts, tables of steps, timelines, forms of history.
READ = ("compare-followed", "load-unmet", "qa", "history", "block", "bisect")
# What axe finds stands in an element of the page, for a page has no other way to tell.
_CHECK = """
window.addEventListener("load", async () => {
  const { violations, passes } = await axe.run(document);
  const found = document.createElement("pre");
  found.id = "axe";
  const wrong = violations.map((rule) => [rule.id, rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]);
  found.textContent = JSON.stringify({ wrong, passed: passes.length });
  document.body.append(found);
});
"""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker, from npm and then from the cache."""
    script = cache_directory() / "peers" / f"{AXE.replace('@', '-')}.js"
    if not script.is_file():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        folder = tmp_path_factory.mktemp("npm")
        command = ["npm", "install", "--silent", "--no-save", "--prefix", str(folder), AXE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
        if done.returncode != 0:
            pytest.skip(f"npm does not install {AXE}: {done.stderr.strip()[-200:]}")
        # Whole at once: other processes of the tests look for it, too.
        script.parent.mkdir(parents=True, exist_ok=True)
        own = script.with_name(f"{script.name}.{os.getpid()}")
        shutil.copyfile(folder / "node_modules" / "axe-core" / "axe.min.js", own)
        own.replace(script)
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", READ)
def test_readers_with_assistive_technology_meet_no_obstacle(name: str, axe: str, tmp_path: Path) -> None:
    page = page_without_complaints(DOCUMENTS[name]().html(), tmp_path, axe, _CHECK)
    found = re.search(r'<pre id="axe">(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    told = json.loads(html.unescape(found[1]))
    assert told["passed"] > 10
    assert told["wrong"] == []
