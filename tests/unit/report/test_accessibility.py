"""Reports by the rules of axe, a common accessibility checker (WCAG 2.2 A and AA, and best practices)."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from tests.golden.inputs import DOCUMENTS
from tests.unit.report.browser import axe_script, page_without_complaints

# Reports with different components: bands and charts, tables of steps, timelines, histories.
READ = ("compare-followed", "load-unmet", "qa", "history", "block", "bisect")
# The script writes the findings of axe to an element, because a page has no other output.
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
    return axe_script(tmp_path_factory.mktemp("npm"))


@pytest.mark.parametrize("name", READ)
def test_reports_have_no_accessibility_violations(name: str, axe: str, tmp_path: Path) -> None:
    page = page_without_complaints(DOCUMENTS[name]().html(), tmp_path, axe, _CHECK)
    match = re.search(r'<pre id="axe">(.*?)</pre>', page, re.DOTALL)
    assert match is not None
    violations = json.loads(html.unescape(match[1]))
    assert violations["passed"] > 10
    assert violations["wrong"] == []
