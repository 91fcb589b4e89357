"""Parse the complete page on which cardano-rosetta-java publishes its load tests.

The page is a web page turned into text: headings without marks, tabs as a list of their names before the content of all
of them, tables as lines with bars. A line is a heading, a tab, a fact about the hardware, part of a table, or a note;
only the repeated second half of a pruning heading is ignored. Rows are counted again as a check.

    v1.2.9 (Jun 11, 2025)                                a release
    Mid-level Hardware Profile                           a hardware section (newer pages)
    Machine Specs: 8 cores, …
    Pruning Enabled (REMOVE_SPENT_UTXOS=true             a mode
    - Docker Compose                                     tabs: the tables below belong to them, in this order
    - Huge Address (~373k txs)
    ID | Endpoint | Max Concurrency | p95 (ms) | …       a table
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import UsageError
from chainmark.stats.rounding import last_digit

STANDARD_SLA_S = 1.0

_RELEASE = re.compile(r"^#*\s*(v\d+\.\d+\.\d+\S*)\s+\(([^)]+)\)\s*$")
_SECTION = re.compile(r"^#*\s*(\S+?)(?:-level)?\s+Hardware Profile$", re.IGNORECASE)
_PROFILE = re.compile(r"^(?:[-*]\s+)?\**Hardware Profile\**:\**\s*(.+?)(?:-level)?\s*$", re.IGNORECASE)
_MACHINE = re.compile(r"^(?:[-*]\s+)?\**Machine Specs\**:\**\s*(.+?)\s*$", re.IGNORECASE)
_CONDUCTED = re.compile(
    r"conducted on an? (?P<profile>\S+?)-level hardware profile with the following specifications: (?P<machine>.+)$",
    re.IGNORECASE,
)
_PRUNING = re.compile(r"^#*\s*Pruning (Enabled|Disabled)\b", re.IGNORECASE)
_RESIDUE = re.compile(r"^(?:REMOVE_SPENT_UTXOS=(?:true|false))?\)?$")
_TAB = re.compile(r"^\)?[-*]\s+(.+?)\s*$")
_CONTINUED = re.compile(r"^[a-z,.;:)]")
_DEPLOYMENT = re.compile(r"^(Docker Compose|Single Docker.*|Single Container.*|Docker Run.*)$", re.IGNORECASE)
_HUGE = re.compile(r"^Huge Address \(~?([\d.,]+)\s*([kM]?) txs\)$", re.IGNORECASE)
_RETAINED = re.compile(r"retained for (\d+) days.*?GRACE_COUNT=(\d+)", re.IGNORECASE)
_SLA = re.compile(r"SLA was adjusted to (\d+(?:\.\d+)?) seconds?", re.IGNORECASE)
_SEPARATOR = re.compile(r"^\|?\s*:?-{3,}:?\s*(?:\|\s*:?-{3,}:?\s*)*\|?$")
_MILLISECONDS = re.compile(r"^([0-9]+(?:\.[0-9]+)?)\s*ms$")
_PERCENT = re.compile(r"^([0-9]+(?:\.[0-9]+)?)\s*%$")
_WHOLE = re.compile(r"^([0-9]+)$")
_DECIMAL = re.compile(r"^([0-9]+(?:\.[0-9]+)?)$")
_MULTIPLES = {"": 1, "k": 1_000, "m": 1_000_000}

_FORMS = {"p95_ms": _MILLISECONDS, "p99_ms": _MILLISECONDS, "error_percent": _PERCENT, "requests_per_s": _DECIMAL}
_COLUMNS = {
    "id": "id",
    "endpoint": "endpoint",
    "max concurrency": "max_concurrency",
    "p95 (ms)": "p95_ms",
    "p99 (ms)": "p99_ms",
    "non-2xx": "non_2xx",
    "error rate (%)": "error_percent",
    "reqs/sec": "requests_per_s",
}
_REQUIRED = {"id", "endpoint", "max_concurrency", "p95_ms", "p99_ms"}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EndpointRow(_Strict):
    """One endpoint's line; None if the table has no such column.

    A concurrency of 0 means that the first level failed. ``last_digits`` are the units of the last digits, by column,
    in the column's unit, of values that are not counts.
    """

    id: int
    endpoint: str
    max_concurrency: int
    p95_ms: float
    p99_ms: float
    non_2xx: int | None = None
    error_percent: float | None = None
    requests_per_s: float | None = None
    last_digits: dict[str, float] = {}


class PublishedScenario(_Strict):
    """One table with the page's facts about it.

    Attributes:
        profile: the hardware profile's name: "mid", "advanced"; machine: the machine in the page's words.
        pruning: None if the page does not state it; retained_days, retained_blocks: how much spent output is kept.
        deployment: "Docker Compose", "Single Docker"; None under a tab that names another variant only.
        address_transactions: of the huge address in the requests; None for the standard data.
        sla_s: the p99 that had to be met.
        notes: the sentences above the table.
    """

    profile: str | None
    machine: str | None
    pruning: Literal["enabled", "disabled"] | None
    retained_days: int | None
    retained_blocks: int | None
    variant: str
    deployment: str | None
    address_transactions: int | None
    sla_s: float
    notes: tuple[str, ...]
    rows: tuple[EndpointRow, ...]


class PublishedRelease(_Strict):
    """One release's tables; ``notes`` are sentences that belong to no table."""

    version: str
    date: date
    scenarios: tuple[PublishedScenario, ...]
    notes: tuple[str, ...] = ()


class EndpointTable(_Strict):
    """One table with its position; ``place`` counts all tables of the page from 0."""

    title: str
    introduction: tuple[str, ...]
    version: str
    date: date
    release_notes: tuple[str, ...]
    place: int
    scenario: PublishedScenario


class PublishedPage(_Strict):
    """The whole page, newest release first as printed; ``introduction`` is the text before the first release."""

    title: str
    introduction: tuple[str, ...]
    releases: tuple[PublishedRelease, ...]

    @property
    def row_count(self) -> int:
        """Rows of all tables."""
        return sum(len(scenario.rows) for release in self.releases for scenario in release.scenarios)


def read_published_page(path: Path) -> PublishedPage:
    """Read the page from a file.

    Raises:
        UsageError: it cannot be read, or is another page.
    """
    try:
        return parse_published_page(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file ({error})") from error


def parse_published_page(text: str, name: str = "the page") -> PublishedPage:
    """Read the page.

    Raises:
        UsageError: no release is found, a table is malformed, or tables and tabs do not match; the message names the
            line.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    starts = [position for position, (_, line) in enumerate(lines) if _RELEASE.match(line)]
    if not starts:
        raise UsageError(f"{name} contains no release", "a release begins with a line like `v1.2.9 (Jun 11, 2025)`")
    introduction: list[str] = []
    for _, line in lines[: starts[0]]:
        _add_note(introduction, line)
    releases = tuple(
        _Reader(lines[start:end], name).release() for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    )
    page = PublishedPage(
        title=introduction[0] if introduction else "", introduction=tuple(introduction[1:]), releases=releases
    )
    expected = sum(_is_table_row(line) for _, line in lines)
    if page.row_count != expected:
        raise UsageError(f"{name} has {expected} table rows, of which {page.row_count} are below a table header")
    return page


def _is_table_row(line: str) -> bool:
    return re.match(r"^\|?\s*\d+\s*\|", line) is not None


class _Reader:
    """Reads one release, line by line."""

    def __init__(self, lines: list[tuple[int, str]], name: str) -> None:
        self._lines = lines
        self._name = name
        self._profile: str | None = None
        self._machine: str | None = None
        self._pruning: Literal["enabled", "disabled"] | None = None
        self._tabs: list[str] = []
        self._tabs_open = False
        self._tabbed = False
        self._notes: list[str] = []
        self._columns: list[str] = []
        self._rows: list[EndpointRow] = []
        self._scenarios: list[PublishedScenario] = []

    def release(self) -> PublishedRelease:
        """The release whose heading is the first line."""
        number, heading = self._lines[0]
        match = _RELEASE.match(heading)
        if match is None:
            raise self._error(number, f"`{heading}` is not the heading of a release")
        for number, line in self._lines[1:]:
            self._line(number, line)
        self._end_table()
        self._end_tabs(self._lines[-1][0])
        released = self._date(number=self._lines[0][0], text=match[2])
        return PublishedRelease(
            version=match[1], date=released, scenarios=tuple(self._scenarios), notes=tuple(self._notes)
        )

    def _date(self, number: int, text: str) -> date:
        for pattern in ("%b %d, %Y", "%B %d, %Y", "%Y-%m-%d"):
            try:
                return datetime.strptime(text, pattern).date()  # noqa: DTZ007 - a day, which has no zone
            except ValueError:
                continue
        raise self._error(number, f"`{text}` is not a date")

    def _error(self, number: int, what: str) -> UsageError:
        return UsageError(f"{self._name}:{number}: {what}", "the page may have a new format")

    def _line(self, number: int, line: str) -> None:
        if "|" in line:
            self._table_line(number, line)
            return
        self._end_table()
        if match := _TAB.match(line):
            self._list_line(number, line, match[1])
        elif not self._heading(number, line):
            self._tabs_open = False
            _add_note(self._notes, line)

    # -- text around tables ------------------------------------------------------------------------------------------

    def _heading(self, number: int, line: str) -> bool:
        """Parse a line that changes the context of the next tables."""
        if match := _SECTION.match(line):
            self._end_tabs(number)
            self._profile, self._machine, self._pruning = match[1].lower(), None, None
        elif match := _PRUNING.match(line):
            self._end_tabs(number)
            self._pruning = "enabled" if match[1].lower() == "enabled" else "disabled"
        elif match := _MACHINE.match(line):
            self._machine = match[1]
        elif match := _CONDUCTED.search(line):
            self._profile, self._machine = match["profile"].lower(), match["machine"].rstrip(".")
        elif not _RESIDUE.match(line):
            return False
        return True

    def _list_line(self, number: int, line: str, text: str) -> None:
        """A list item is a tab's name, or a fact about the hardware."""
        if match := _PROFILE.match(line):
            self._tabs_open = False
            self._profile = match[1].lower()
        elif match := _MACHINE.match(line):
            self._tabs_open = False
            self._machine = match[1]
        elif _DEPLOYMENT.match(text) or _HUGE.match(text):
            if not self._tabs_open:
                self._end_tabs(number)
                self._tabs_open = self._tabbed = True
            self._tabs.append(text)
        else:
            _add_note(self._notes, line)

    def _end_tabs(self, number: int) -> None:
        if self._tabs:
            raise self._error(number, f"no table was found for the tab `{self._tabs[0]}`")
        self._tabs_open = self._tabbed = False

    # -- tables ------------------------------------------------------------------------------------------------------

    def _table_line(self, number: int, line: str) -> None:
        self._tabs_open = False
        if _SEPARATOR.match(line):
            return
        cells = [cell.strip().strip("*`") for cell in line.strip("|").split("|")]
        while cells and not cells[-1]:
            cells.pop()
        if cells and cells[0].lower() == "id":
            self._end_table()
            if self._tabbed and not self._tabs:
                raise self._error(number, "there are more tables than tabs")
            self._columns = self._head(number, cells)
        elif not self._columns:
            raise self._error(number, f"`{line}` is not below a table header")
        else:
            self._rows.append(self._row(number, cells))

    def _head(self, number: int, cells: list[str]) -> list[str]:
        names = []
        for cell in cells:
            name = _COLUMNS.get(" ".join(cell.lower().split()))
            if name is None or name in names:
                raise self._error(number, f"the table has the unknown column `{cell}`")
            names.append(name)
        if missing := sorted(_REQUIRED - set(names)):
            raise self._error(number, f"the table has no column {missing[0]}")
        return names

    def _row(self, number: int, cells: list[str]) -> EndpointRow:
        if len(cells) != len(self._columns):
            raise self._error(number, f"the row has {len(cells)} cells, but the table has {len(self._columns)} columns")
        try:
            texts = {name: _text(name, cell) for name, cell in zip(self._columns, cells, strict=True)}
        except ValueError as error:
            raise self._error(number, str(error)) from error
        digits = {name: last_digit(text) for name, text in texts.items() if name in _FORMS}
        row = EndpointRow.model_validate({**texts, "last_digits": digits})
        if row.id != len(self._rows) + 1:
            raise self._error(number, f"row {len(self._rows) + 1} of a table has the ID {row.id}")
        return row

    def _end_table(self) -> None:
        if not self._columns:
            return
        variant = self._tabs.pop(0) if self._tabs else ""
        notes, self._notes = tuple(self._notes), []
        text = " ".join(notes)
        retained, sla, huge = _RETAINED.search(text), _SLA.search(text), _HUGE.match(variant)
        self._scenarios.append(
            PublishedScenario(
                profile=self._profile,
                machine=self._machine,
                pruning=self._pruning or ("disabled" if "with pruning disabled" in text else None),
                retained_days=int(retained[1]) if retained else None,
                retained_blocks=int(retained[2]) if retained else None,
                variant=variant,
                deployment=variant if _DEPLOYMENT.match(variant) else None,
                address_transactions=_transactions(huge) if huge else None,
                sla_s=float(sla[1]) if sla else STANDARD_SLA_S,
                notes=notes,
                rows=tuple(self._rows),
            )
        )
        self._columns, self._rows = [], []


def _add_note(notes: list[str], line: str) -> None:
    """Keep a sentence; the page breaks some at a change of font."""
    if notes and _CONTINUED.match(line):
        notes[-1] += line if line[0] in ",.;:)" else f" {line}"
    else:
        notes.append(line)


def _transactions(match: re.Match[str]) -> int:
    return round(float(match[1].replace(",", "")) * _MULTIPLES[match[2].lower()])


def _text(name: str, cell: str) -> str:
    """A cell without its suffix: `218ms`, `0.30%`.

    Raises:
        ValueError: it is not of its column's kind.
    """
    if name == "endpoint":
        if not cell.startswith("/"):
            raise ValueError(f"`{cell}` is not an endpoint")
        return cell
    match = _FORMS.get(name, _WHOLE).match(cell)
    if match is None:
        raise ValueError(f"`{cell}` is not a valid value of {name}")
    return match[1]


def tables(page: PublishedPage) -> Iterator[EndpointTable]:
    """All tables, each with the page's facts about it."""
    for place, (release, scenario) in enumerate(scenarios(page)):
        yield EndpointTable(
            title=page.title,
            introduction=page.introduction,
            version=release.version,
            date=release.date,
            release_notes=release.notes,
            place=place,
            scenario=scenario,
        )


def scenarios(page: PublishedPage) -> Iterator[tuple[PublishedRelease, PublishedScenario]]:
    """All tables with their releases, in the page's order."""
    for release in page.releases:
        for scenario in release.scenarios:
            yield release, scenario
