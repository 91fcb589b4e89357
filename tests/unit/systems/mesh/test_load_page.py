"""The page of load tests shows the printed values digit for digit, with the measured values next to them."""

from __future__ import annotations

import csv
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import chainmark as cm
import chainmark.api.loading
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.load_report import LoadReport
from chainmark.core.verdict import Verdict
from chainmark.lab import loading
from chainmark.store.runs import Store
from chainmark.systems.mesh.page.results import LoadPage
from chainmark.systems.mesh.published import EndpointRow, read_published_page, scenarios

from tests.unit.cli.commands import chainmark as command
from tests.unit.systems.mesh.scripted_server import chain, serving
from tests.unit.systems.mesh.test_mesh_published import PAGE

SHORT = """
system = "mesh"
name = "mesh/short"
scenario = "{scenario}"
hardware = "2 cores"
hardware_profile = "entry"
deployment = "Docker Compose"
sla = {{ p99_s = {p99_s} }}
steps = {{ duration_s = 1, longest_s = 1, warm_up_s = 0.1, cool_down_s = 0, recovery_longest_s = 0 }}
search = {{ kinds = {kinds}, clients_last = 2, rate_first = 20, rate_last = 20, times = 1 }}
fixed = {{ times = 0 }}
corpus = {{ settled_blocks = 0, blocks = 5, transactions = 5, accounts = 5, per_stratum = 3 }}
mesh = {{ pruning = "enabled, 7 days" }}
"""
Cells = dict[tuple[str, ...], str]
_COLUMNS = ["ID", "Endpoint", "Max Concurrency", "p95 (ms)", "p99 (ms)", "Non-2xx", "Error Rate (%)", "Reqs/sec"]


def _unmarked(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text).strip("* ")


def _cells(markdown: str) -> Cells:
    """Every cell of the tables of endpoints by release and machine, table, endpoint and column."""
    section, title = "", ""
    head: list[str] = []
    by_place: Cells = {}
    for line in markdown.splitlines():
        if line.startswith("## "):
            section = _unmarked(line[3:])
        elif line.startswith("**"):
            title = _unmarked(line)
        elif line.startswith("|"):
            cells = [_unmarked(cell) for cell in line.strip("|").split("|")]
            if set("".join(cells)) <= set(":- "):
                continue
            if cells[0] == "ID":
                head = cells
            elif cells[0].isdigit() and len(cells) == len(head):  # skip tables of other content
                for column, cell in zip(head, cells, strict=True):
                    key = (section, title, cells[1], column)
                    assert key not in by_place, key
                    by_place[key] = cell
    return by_place


def _as_printed(row: EndpointRow) -> list[str | None]:
    """A row's cells in the page's columns; None where its table has no such column."""
    error_text = None if row.error_percent is None else f"{row.error_percent:.2f}%"
    per_s = None if row.requests_per_s is None else f"{row.requests_per_s:.2f}"
    non_2xx = None if row.non_2xx is None else str(row.non_2xx)
    figures = [f"{row.p95_ms:.0f}ms", f"{row.p99_ms:.0f}ms", non_2xx, error_text, per_s]
    return [str(row.id), row.endpoint, str(row.max_concurrency), *figures]


def _check_against(path: Path, markdown: str) -> int:
    """Check that our page has exactly the figures of the original page, and return their number."""
    cells = {key: cell for key, cell in _cells(markdown).items() if key[1].endswith("(printed)")}
    expected: Cells = {}
    sections = sorted({key[0] for key in cells})
    for release, scenario in scenarios(read_published_page(path)):
        heading = f"{release.version} ({release.date.isoformat()}): {scenario.profile}-level hardware"
        known = [section for section in sections if section in {heading, f"{heading}, {scenario.machine}"}]
        assert len(known) == 1, heading
        retention = f", {scenario.retained_days} days" if scenario.retained_days else ""
        words = [f"Pruning {scenario.pruning}{retention}"] if scenario.pruning else []
        title = " · ".join([*words, scenario.variant or "standard"])
        for row in scenario.rows:
            for column, cell in zip(_COLUMNS, _as_printed(row), strict=True):
                if cell is not None:
                    expected[known[0], f"{title} (printed)", row.endpoint, column] = cell
    assert cells == expected
    return len(expected)


def _republished(path: Path, folder: Path) -> str:
    cm.ingest("mesh", path, store=folder / "store")
    page = folder / "page.md"
    cm.publish("mesh", store=folder / "store").save(page)
    return page.read_text(encoding="utf-8")


def test_a_page_is_reproduced_with_every_figure(tmp_path: Path) -> None:
    path = tmp_path / "seed.md"
    path.write_text(PAGE.replace("spent UTXOs are", "Data of a test in which spent UTXOs are"), encoding="utf-8")
    markdown = _republished(path, tmp_path)
    assert _check_against(path, markdown) == 8 * 3 + 5
    assert "4 cores, 4 threads" in markdown
    assert "This page documents results for releases of a server, on several machines." in markdown
    assert "REMOVE\\_SPENT\\_UTXOS\\_LAST\\_BLOCKS\\_GRACE\\_COUNT=12960" in markdown
    assert "SLA: p95 and p99 below 10 s." in markdown
    assert "All is well." in markdown
    assert markdown.index("## v2.0.1") < markdown.index("## v1.0.0")


@pytest.mark.shared_data
def test_the_published_reference_page_is_reproduced_with_every_figure(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data.parent / "reference" / "rosetta-java-load-tests.md"
    markdown = _republished(path, tmp_path)
    rows = re.findall(r"^\d+ \| .*\|$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert _check_against(path, markdown) == sum(row.count("|") for row in rows) > 500


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store for this test. Other load on this machine does not matter."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(chainmark.api.loading, "Tester", partial(loading.Tester, watching=None))
    return Store(tmp_path / "store")


def _measured(folder: Path, url: str, version: str, **changed: Any) -> cm.Run:
    profile = folder / "short.toml"
    profile.write_text(
        SHORT.format(**{"scenario": "", "p99_s": 5.0, "kinds": '["clients"]', **changed}), encoding="utf-8"
    )
    result = cm.load(profile, url, version=version, endpoints=["/block"])
    return result.runs[0]


def test_measured_and_printed_figures_are_shown_together(own_store: Store, tmp_path: Path) -> None:
    """Our tables have the same columns. Further tables show what the published page omits, and a file has each step."""
    path = tmp_path / "seed.md"
    path.write_text(PAGE, encoding="utf-8")
    cm.ingest("mesh", path)
    with serving(chain()) as url:
        run = _measured(tmp_path, url, "v2.0.1", kinds='["clients", "rate"]')
        lifted = _measured(tmp_path, url, "v2.0.2", scenario="huge address", p99_s=10.0)
    page = tmp_path / "page.md"
    result = command("publish", "mesh", "--md", str(page))
    assert result.exit_code == 0
    markdown = page.read_text(encoding="utf-8")
    _check_against(path, markdown)
    assert markdown.index("## v2.0.2") < markdown.index("## v2.0.1")
    cells = _cells(markdown)
    (target,) = LoadReport.model_validate_json((run.path / "raw" / "load.json").read_bytes()).targets
    clients, rate = target.endpoints[0].capacities
    best = next(step for step in target.endpoints[0].steps if step.number == clients.best_step)
    section, title = "v2.0.1 (2025-06-11): entry-level hardware, 2 cores", "Pruning enabled, 7 days · Docker Compose"
    assert cells[section, title, "/block", "Max Concurrency"] == "≥ 2"
    assert cells[section, title, "/block", "Reqs/sec"] == f"{best.ok_per_s:.2f}"
    assert cells[section, title, "/block", "Non-2xx"] == "0"
    further = f"{title}: details by clients"
    assert cells[section, further, "/block", "stopped by"] == "the ladder's end, nothing failed"
    assert cells[section, further, "/block", "requests"] == units.count(best.due)
    assert cells[section, further, "/block", "run"] == run.id
    by_rate = f"{title}: details by rate"
    assert rate.capacity is not None  # the capacity is below the highest rate on a busy machine
    assert cells[section, by_rate, "/block", "max rate, /s"].removeprefix("≥ ") == units.tidy(rate.capacity, 4)
    assert cells[section, by_rate, "/block", "confirmed"] == ("yes" if rate.confirmed else "no")
    assert "raised from 1 s" in markdown
    files = {path.stem: path for path in (tmp_path / "page-stages").iterdir()}
    assert files.keys() == {run.id, lifted.id}
    with files[run.id].open(encoding="utf-8") as file:
        steps = list(csv.DictReader(file))
    assert [step["level"] for step in steps] == [str(float(step.level)) for step in target.endpoints[0].steps]
    assert {step["hardware"] for step in steps} == {"entry"}
    assert f"page-stages/{run.id}.csv" in markdown


def test_selectors_choose_the_runs_on_the_page(own_store: Store, tmp_path: Path) -> None:
    path = tmp_path / "seed.md"
    path.write_text(PAGE, encoding="utf-8")
    cm.ingest("mesh", path)

    def shown(*references: str) -> list[tuple[str, str]]:
        page = cm.publish("mesh", references)
        assert isinstance(page.result, LoadPage)
        assert page.verdict is Verdict.INFORMATIONAL
        return [
            (release.version, table.cell["scenario"]) for release in page.result.releases for table in release.tables
        ]

    huge = "Huge Address (~1.5M txs)"
    assert shown("v2.0.1") == [("v2.0.1", "standard"), ("v2.0.1", huge)]
    assert shown("scenario:huge address") == shown(f"scenario:{huge}") == [("v2.0.1", huge)]
    assert shown("hardware:mid") == shown("hardware:8 cores,release:v1.0.0") == [("v1.0.0", "standard")]
    assert shown("hardware:4 cores, 4 threads,endpoint:/network/status") == [("v2.0.1", "standard")]
    assert shown("release:v1.0.0", "endpoint:/account/balance") == [("v2.0.1", huge), ("v1.0.0", "standard")]
    with pytest.raises(UsageError, match="no run has the hardware `large`") as caught:
        shown("release:v2.0.1,hardware:large")
    assert "`entry`" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="publishes no page of load tests of `cardano`"):
        cm.publish("cardano")


def test_an_empty_store_has_no_page(own_store: Store) -> None:
    with pytest.raises(UsageError, match="no run"):
        cm.publish("mesh")
