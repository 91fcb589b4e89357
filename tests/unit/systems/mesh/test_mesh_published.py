"""The published page: every row of every table, with the machine and the conditions of its measurement."""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.store.runs import Store
from chainmark.systems.mesh.published import EndpointRow, parse_published_page, read_published_page, scenarios

PAGE = """Measurements
This page documents results for releases of a server
, on several machines.
v2.0.1 (Jun 11, 2025)
Entry-level Hardware Profile
Machine Specs: 4 cores, 4 threads
Pruning Enabled (REMOVE_SPENT_UTXOS=true
)
REMOVE_SPENT_UTXOS=true
)- Docker Compose
- Huge Address (~1.5M txs)
spent UTXOs are retained for 3 days by setting REMOVE_SPENT_UTXOS_LAST_BLOCKS_GRACE_COUNT=12960
ID | Endpoint | Max Concurrency | p95 (ms) | p99 (ms) | Non-2xx | Error Rate (%) | Reqs/sec |
---|---|---|---|---|---|---|---|
1 | /network/status | 1000 | 169ms | 218ms | 0 | 0.00% | 11206.81 |
2 | /block | 12 | 1ms | 2ms | 150 | 0.30% | 1.50 |
The SLA was adjusted to 10 seconds. The results for /account/balance
at concurrency 1 are shown.
ID | Endpoint | Max Concurrency | p95 (ms) | p99 (ms) | Non-2xx | Error Rate (%) | Reqs/sec |
---|---|---|---|---|---|---|---|
1 | /account/balance | 0 | 0ms | 0ms | 0 | 0.00% | 0.00 |
v1.0.0 (Apr 1, 2024)
- Docker Compose
- Hardware Profile: mid-level
- Machine Specs: 8 cores
ID | Endpoint | Max Concurrency | p95 (ms) | p99 (ms) |
---|---|---|---|---|
1 | /block | 56 | 11ms | 15ms |
All is well.
"""


def test_a_page_is_read_completely() -> None:
    page = parse_published_page(PAGE)
    assert (page.title, page.row_count) == ("Measurements", 4)
    assert page.introduction == ("This page documents results for releases of a server, on several machines.",)
    assert [(release.version, release.date) for release in page.releases] == [
        ("v2.0.1", date(2025, 6, 11)),
        ("v1.0.0", date(2024, 4, 1)),
    ]
    standard, huge = page.releases[0].scenarios
    assert (standard.profile, standard.machine, standard.pruning) == ("entry", "4 cores, 4 threads", "enabled")
    assert (standard.retained_days, standard.retained_blocks) == (3, 12960)
    assert (standard.deployment, standard.address_transactions, standard.sla_s) == ("Docker Compose", None, 1.0)
    assert standard.rows[1] == EndpointRow(
        id=2,
        endpoint="/block",
        max_concurrency=12,
        p95_ms=1,
        p99_ms=2,
        non_2xx=150,
        error_percent=0.3,
        requests_per_s=1.5,
        last_digits={"p95_ms": 1.0, "p99_ms": 1.0, "error_percent": 0.01, "requests_per_s": 0.01},
    )
    assert (huge.deployment, huge.address_transactions, huge.sla_s) == (None, 1_500_000, 10.0)
    assert (huge.profile, huge.pruning, huge.retained_days) == ("entry", "enabled", None)
    assert huge.notes == (
        "The SLA was adjusted to 10 seconds. The results for /account/balance at concurrency 1 are shown.",
    )
    (old,) = page.releases[1].scenarios
    assert (old.profile, old.machine, old.pruning, old.deployment) == ("mid", "8 cores", None, "Docker Compose")
    digits = {"p95_ms": 1.0, "p99_ms": 1.0}
    assert old.rows == (
        EndpointRow(id=1, endpoint="/block", max_concurrency=56, p95_ms=11, p99_ms=15, last_digits=digits),
    )
    assert page.releases[1].notes == ("All is well.",)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("v2.0.1 (Jun 11, 2025)", "v2.0.1 (yesterday)", "page:4: `yesterday` is not a date"),
        ("- Huge Address (~1.5M txs)\n", "", "there are more tables than tabs"),
        (
            "- Docker Compose\n- Hardware",
            "- Docker Compose\n- Docker Compose\n- Hardware",
            "no table was found for the tab",
        ),
        ("| 218ms |", "| 218 |", "page:15: `218` is not a valid value of p99_ms"),
        ("| 0.30% |", "|", "page:16: the row has 7 cells, but the table has 8 columns"),
        (
            "Reqs/sec |\n---|---|---|---|---|---|---|---|\n1 | /net",
            "Speed |\n1 | /net",
            "the table has the unknown column `Speed`",
        ),
        ("2 | /block", "3 | /block", "page:16: row 2 of a table has the ID 3"),
        ("1 | /block", "1 | block", "`block` is not an endpoint"),
        ("ID | Endpoint | Max Concurrency | p95 (ms) | p99 (ms) |\n", "", "is not below a table header"),
    ],
)
def test_content_that_is_not_understood_is_reported(old: str, new: str, what: str) -> None:
    """A misread table would be a wrong baseline, so the page is refused with the line number."""
    assert old in PAGE
    with pytest.raises(UsageError) as caught:
        parse_published_page(PAGE.replace(old, new), "page")
    assert what in caught.value.message


@given(st.lists(st.integers(0, len(PAGE.splitlines()) - 1), max_size=12), st.booleans())
def test_a_damaged_page_is_read_completely_or_refused(chosen: list[int], drop: bool) -> None:
    """Lines are lost or repeated at random: no row may be lost, and every refusal is one sentence."""
    lines = PAGE.splitlines()
    damaged = [
        line for number, line in enumerate(lines) for _ in range(1 if number not in chosen else 0 if drop else 2)
    ]
    text = "\n".join(damaged)
    try:
        page = parse_published_page(text)
    except UsageError:
        return
    assert page.row_count == len(re.findall(r"^\d+ \| ", text, re.MULTILINE))


def test_another_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no release"):
        parse_published_page("Hello\n1 | 2 |\n")
    with pytest.raises(UsageError, match="cannot be read"):
        read_published_page(tmp_path / "absent.md")


def test_a_run_of_the_page_has_the_rounding_errors_of_its_digits(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    runs = cm.ingest("mesh", path, store=tmp_path / "store")
    assert len(runs) == 3
    estimates_of_runs = [
        {name: summary.estimates["mean"] for name, summary in run.summaries().items()}
        for run in Store(tmp_path / "store").sealed()
    ]
    estimates = next(estimates for estimates in estimates_of_runs if len(estimates) == 10)  # two endpoints, all columns
    errors = {
        "block_published_p99_s": 1e-3,
        "block_published_error_share": 1e-4,
        "block_published_answered_per_s": 0.01,
    }
    for name, unit in errors.items():
        assert estimates[name].standard_error == pytest.approx(unit / math.sqrt(12.0))
    assert estimates["block_published_p99_s"].log_standard_error == pytest.approx(0.5 / math.sqrt(12.0))
    assert estimates["block_capacity_clients"].standard_error is None


@pytest.fixture
def reference(shared_data: Path) -> Path:
    return shared_data.parent / "reference" / "rosetta-java-load-tests.md"


@pytest.mark.shared_data
def test_the_published_reference_page_is_read_completely(reference: Path) -> None:
    """Every row is printed again from the parsed values: the page has exactly these rows in this order."""
    page = read_published_page(reference)
    printed = []
    for _, scenario in scenarios(page):
        for row in scenario.rows:
            cells = [row.id, row.endpoint, row.max_concurrency, f"{row.p95_ms:.0f}ms", f"{row.p99_ms:.0f}ms"]
            if row.error_percent is not None:
                cells += [row.non_2xx, f"{row.error_percent:.2f}%", f"{row.requests_per_s:.2f}"]
            printed.append(" | ".join(map(str, cells)) + " |")
    text = reference.read_text(encoding="utf-8")
    assert printed == re.findall(r"^\d+ \| .*$", text, re.MULTILINE)
    assert sum(1 for _ in scenarios(page)) == len(re.findall(r"^ID \|", text, re.MULTILINE)) == 17
    assert [release.version for release in page.releases] == ["v1.2.9", "v1.2.7", "v1.2.6", "v1.2.0"]


@pytest.mark.shared_data
def test_the_tables_of_the_published_reference_page_are_attributed(reference: Path) -> None:
    """The assignment of tables was read from the tabs of the web page by eye."""
    page = read_published_page(reference)
    vm = "NVMe, QEMU Virtual CPU v2.5+"
    tables = [
        (release.version, table.profile, (table.machine or "").split(",")[0], table.pruning, table.variant, table.sla_s)
        for release, table in scenarios(page)
    ]
    compose, small, large = "Docker Compose", "Huge Address (~373k txs)", "Huge Address (~1.6M txs)"
    newest = [
        ("v1.2.9", profile, cores, pruning, variant, sla_s)
        for profile, cores in (("mid", "8 cores"), ("advanced", "16 cores"))
        for pruning in ("enabled", "disabled")
        for variant, sla_s in ((compose, 1.0), (small, 10.0), (large, 10.0))
    ]
    assert tables == [
        *newest,
        ("v1.2.7", "mid", "8 cores", None, compose, 1.0),
        ("v1.2.6", "mid", "16 cores", None, "Single Docker", 1.0),
        ("v1.2.6", "mid", "8 cores", None, compose, 1.0),
        ("v1.2.0", "mid", "8 cores", None, compose, 1.0),
        ("v1.2.0", "mid", "8 cores", "disabled", small, 10.0),
    ]
    assert all((table.machine or "").endswith(vm) for _, table in scenarios(page))
    retentions = {(table.profile, table.retained_days, table.retained_blocks) for _, table in scenarios(page)}
    assert {("mid", 7, 30_240), ("advanced", 30, 129_600)} <= retentions
    assert all(table.retained_days for release, table in scenarios(page) if table.pruning == "enabled")
