"""Parse a published report from the text of its pages: of a PDF, or as extracted from one by another tool.

A text is parsed row by row: a row begins with a known label, whatever surrounds the tables. Cells are separated by
tabs, or by the spaces that a layout leaves between columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.documents import PACKAGES
from chainmark.systems.cardano.published.content import SAMPLE_COUNT, ReportContent, RowContent, TableContent
from chainmark.systems.cardano.published.pages import text_of_pdf

PDF, TEXT = ".pdf", ".txt"
# Every possible label of a row, with the metric's ID and the ID of its table.
Labels = tuple[tuple[str, str, str], ...]
# Prefix of a change that the printed digits do not decide, in reports made by chainmark.
UNDECIDED = "≈"
_FIRST_ROW = "Analysis date"
_DATE = re.compile(r"20\d\d-[01]\d-[0-3]\d")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|\(\d+>?\)", re.IGNORECASE)
# Markup that another tool may leave in a text: of Markdown, and of formulas.
_MARKUP = re.compile(r"\*\*|\$|</?b>|^#+\s+")
_ESCAPED = re.compile(r"\\([%#_&])")
_STATEMENT = re.compile(r"We compare .+?\bunder (?P<workload>.+?) workload\b\.?", re.DOTALL)
_TITLE_END = re.compile(r"\s+(?=(value-only|Plutus [\w -]+?) workload$)")
FACT_ROWS = (
    _FIRST_ROW, "Cluster system start date", "Cluster system start time", "Identifier", "Run batch", "GHC version",
    *(f"{name} version" for name in PACKAGES), *(f"{name} git" for name in PACKAGES),
    "Era", "Delegation map size", "Stuffed UTxO size", "Starting UTxO set size",
    "DRep count", "Extra tx payload", "Tx inputs", "Tx Outputs",
    "TPS", "Transaction count", "Plutus script", "Machines", "Number of filters applied",
    "Log text lines emitted per host",
    "Log objects emitted per host", "Log objects analysed per host", "Host run time, s", "Host log line rate, Hz",
    "Total log objects analysed", "Run time, s", "Analysed run duration, s", "Run time efficiency",
    "Node start spread, s", "Node stop spread, s", "Perf analysis start spread, s", "Perf analysis stop spread, s",
    "Slots analysed", "Blocks analysed", "Blocks rejected",
)  # fmt: skip
TEXT_HINT = (
    "a published report has the row `Analysis date` with a day for every version, and tables whose rows begin with the "
    "metrics' labels, e.g. `Fetch duration, s`; a scanned PDF has no text"
)


def text_of(path: Path) -> str:
    """The text of a PDF, laid out as on its pages, or of a text file.

    Raises:
        UsageError: it is not a readable PDF.
        OSError: it cannot be read.
    """
    if path.suffix.lower() == PDF:
        return text_of_pdf(path)
    return path.read_bytes().decode("utf-8", errors="replace")


def extracted_content(text: str, name: str, labels: Labels, titles: Mapping[str, str]) -> ReportContent:
    """A report's content from the text of its pages.

    Args:
        text: of all pages.
        name: of the file, for errors.
        labels: of the rows.
        titles: of the tables by their ids.

    Raises:
        UsageError: it is another kind of text.
    """
    lines = [_plain(line) for line in text.splitlines()]
    first = next((place for place, line in enumerate(lines) if line.startswith(_FIRST_ROW)), None)
    columns = len(_DATE.findall(lines[first])) if first is not None else 0
    if first is None or not columns:
        raise UsageError(f"{name} is not a published report: no row states when it was analysed", TEXT_HINT)
    facts, unread = _facts(lines[first:], columns)
    tables, others = _tables(lines, columns, labels, titles)
    if not tables:
        raise UsageError(f"{name} is not a published report: none of its rows is a metric", TEXT_HINT)
    workload = _STATEMENT.search("\n".join(lines))
    header = _cells(next((line for line in reversed(lines[:first]) if line), ""), columns)
    versions = header if len(header) == columns else facts.get("Identifier", [])
    if len(versions) != columns:
        raise UsageError(f"{name} does not name its {columns} columns", TEXT_HINT)
    return ReportContent(
        versions=versions,
        title=_title(lines),
        workload=" ".join(workload["workload"].split()) if workload else "",
        statement=" ".join(workload[0].split()) if workload else "",
        manifest={label: list(values) for label, values in facts.items()},
        tables=tables,
        unread=[*unread, *others],
    )


def _plain(line: str) -> str:
    return _ESCAPED.sub(r"\1", _MARKUP.sub("", line.strip())).replace("\\Delta", "Δ").strip()


def _title(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line), "")
    return _TITLE_END.split(first)[0]


def _cells(line: str, wanted: int) -> list[str]:
    """The cells of a line by its tabs, otherwise by wide gaps, otherwise by every gap; the first way that fits."""
    splits = [[part.strip() for part in line.split("\t")], re.split(r"\s{2,}|\t", line), line.split()]
    results = [[cell for cell in way if cell] for way in splits]
    return next((cells for cells in results if len(cells) == wanted), results[-1])


def _facts(lines: Sequence[str], columns: int) -> tuple[dict[str, list[str]], list[str]]:
    """The rows of the table "Manifest", and its lines with another number of cells."""
    results: dict[str, list[str]] = {}
    unread = []
    by_length = sorted(FACT_ROWS, key=len, reverse=True)
    for line in lines:
        label = next((label for label in by_length if line.startswith(label)), None)
        if label is None or label in results:
            continue
        cells = _cells(line.removeprefix(label), columns)
        if len(cells) == columns:
            results[label] = cells
        elif cells:
            unread.append(line)
    return results, unread


def _tables(
    lines: Sequence[str], columns: int, labels: Labels, titles: Mapping[str, str]
) -> tuple[dict[str, TableContent], list[str]]:
    """The rows of metrics by the title of their table, and the lines that begin like one and could not be parsed."""
    known = {label: (metric, titles[table]) for label, metric, table in labels}
    by_length = sorted(known, key=len, reverse=True)
    pattern = re.compile(rf"({'|'.join(map(re.escape, by_length))}),\s*(\S+)\s+(\S.*)")
    table_contents: dict[str, TableContent] = {}
    unread: list[str] = []
    seen: set[str] = set()
    for line in lines:
        if line.startswith(SAMPLE_COUNT) and table_contents:
            counts = _row(SAMPLE_COUNT, "", line.removeprefix(SAMPLE_COUNT), columns)
            next(reversed(table_contents.values())).rows.extend([counts] if counts else [])
        elif (parts := pattern.match(line)) is not None:
            metric, title = known[parts[1]]
            row = _row(parts[1], parts[2], parts[3], columns)
            if row is None:
                unread.append(line)
            elif metric not in seen:
                seen.add(metric)
                table_contents.setdefault(title, TableContent(rows=[])).rows.append(row)
    return table_contents, unread


def _row(label: str, unit: str, rest: str, columns: int) -> RowContent | None:
    """A row: the baseline's value, then per further version its value, and usually the change and the percentage."""
    cells = rest.replace(UNDECIDED, " ").split()
    if not all(_NUMBER.fullmatch(cell) for cell in cells):
        return None
    text = f"{label}, {unit}" if unit else label
    reported: Mapping[str, list[str]]
    if len(cells) == columns:
        reported = {"values": cells}
    elif len(cells) == 1 + 3 * (columns - 1):
        reported = {"values": [cells[0], *cells[1::3]], "delta": cells[2::3], "delta_pct": cells[3::3]}
    else:
        return None
    return RowContent(label=text, metric=label, unit=unit, **reported)
