"""Published tables of load tests: every cell and every line, in all layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.lab.importing import Importer
from chainmark.lab.protocols import ImportRequest
from chainmark.store.runs import Store
from chainmark.systems.cometbft import SYSTEM
from chainmark.systems.cometbft.published import parse_report, published_version, read_report, recognises_report
from chainmark.systems.cometbft.saturation.evaluation import evaluated
from chainmark.systems.cometbft.saturation.results import SaturationVersion

_KEYS = ("Connections", "Rate", "Size", "Total Valid Tx", "Total Negative Latencies", "Minimum Latency",
         "Maximum Latency", "Average Latency", "Standard Deviation")  # fmt: skip
_ONE = ("7dfb6c4e-0001-4000-8000-000000000001", "1", "25", "1024", "2225", "0", "136.940262ms", "6.921905501s",
        "599.404362ms", "1.169158915s")  # fmt: skip
_TWO = ("7dfb6c4e-0002-4000-8000-000000000002", "2", "25", "1024", "4450", "3", "-12.5µs", "1m2.5s", "2s", "250ms")


def _rows(*cells: tuple[str, ...]) -> list[list[str]]:
    heads = [f"Experiment ID: {cell[0]}" for cell in cells]
    fields = [[f"    {key}: {cell[place]}" for cell in cells] for place, key in enumerate(_KEYS, start=1)]
    return [heads, *fields]


def spaced(*cells: tuple[str, ...]) -> str:
    """The layout of v0.38 and v1: columns aligned with spaces."""
    return "".join("  ".join(text.ljust(51) for text in row).rstrip() + "\n" for row in _rows(*cells))


def ruled(*cells: tuple[str, ...]) -> str:
    """The layout of v0.34 and v0.37: columns separated by a line, with spacer rows."""
    spacer = " " * 51 + "\u2502"
    lines = ["\u2502".join(text.ljust(51) for text in row) for row in _rows(*cells)]
    lines = [lines[0], spacer, *lines[1:4], spacer, *lines[4:], spacer, ""]
    return "\n".join(lines) + "\n"


def text_report(*cells: tuple[str, ...]) -> str:
    """The report tool's output: one experiment after the other, and the invalid transactions at the end."""
    parts = []
    for cell in cells:
        fields = [f"\t{key}: {cell[place]}" for place, key in enumerate(_KEYS, start=1)]
        parts += [f"Experiment ID: {cell[0]}", "", *fields[:3], "", *fields[3:], ""]
    return "\n".join([*parts, "Total Invalid Tx: 4"]) + "\n"


@pytest.mark.parametrize("layout", [spaced, ruled, text_report], ids=["spaces", "lines", "text"])
def test_every_layout_is_parsed_to_the_same_table(layout: object) -> None:
    assert callable(layout)
    text = layout(_ONE, _TWO)
    report = parse_report(text, "report")
    experiment, two = report.experiments
    assert (experiment.connections, experiment.rate, experiment.size_bytes, experiment.valid, experiment.negative) == (
        1,
        25,
        1024,
        2225,
        0,
    )
    assert (experiment.min_ns, experiment.max_ns, experiment.mean_ns, experiment.sd_ns) == (
        136_940_262,
        6_921_905_501,
        599_404_362,
        1_169_158_915,
    )
    assert (two.id, two.negative, two.min_ns, two.max_ns) == (_TWO[0], 3, -12_500, 62_500_000_000)
    assert sum(report.lines.values()) == len(text.splitlines())
    assert report.invalid == (4 if layout is text_report else None)


def test_a_table_with_one_column_is_read() -> None:
    assert len(parse_report(spaced(_ONE), "t").experiments) == 1


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("", "contains no experiment"),
        ("Total Invalid Tx: 3\n", "contains no experiment"),
        (spaced(_ONE).replace("Rate: 25", "Rate: fast"), "contains `fast` instead of a count"),
        (spaced(_ONE).replace("6.921905501s", "soon"), "`soon` is not a duration"),
        (spaced(_ONE).replace("    Size: 1024\n", ""), "has no `Size`"),
        (spaced(_ONE).replace("Size: 1024", "Weight: 1024"), "line 4 of `t` contains the unknown key `Weight`"),
        (spaced(_ONE).replace("Size: 1024", "Size 1024"), "line 4 of `t` contains `Size 1024`"),
        (spaced(_ONE) + spaced(_ONE), "twice"),
        (spaced(_ONE).replace("Size: 1024", "Rate: 25"), "repeats `Rate`"),
        (spaced(_ONE, _TWO).replace("    Rate: 25".ljust(53), "", 1), "has 1 columns, but line 1 has 2"),
        ("    Rate: 25\n", "line 1 of `t` contains the unknown key `Rate`"),
    ],
)
def test_malformed_tables_are_reported(broken: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_report(broken, "t")
    assert expected in caught.value.message


def test_every_cell_of_a_table_becomes_a_run(tmp_path: Path) -> None:
    path = tmp_path / "v9_report_tabbed.txt"
    path.write_text(spaced(_ONE, _TWO), encoding="utf-8")
    importer = Importer(Store(tmp_path / "store"), SYSTEM)
    order = ImportRequest(source=path, version="v9")
    imported = importer.make_all(order, Silent())
    assert [imported.run.manifest.workload["load.connections"] for imported in imported] == [1, 2]
    first = imported[0].run
    sample = first.samples("experiment").row(0, named=True)
    assert sample["published_transactions"] == 2225.0
    assert sample["published_share"] == 2225 / (25 * 89)
    assert sample["published_latency_mean_s"] == 0.599404362
    assert first.manifest.counts["lines of the report"] == {"fields": 10, "blank": 0}
    assert "3 latencies are negative" in imported[1].run.manifest.warnings[0]
    standard_errors = {name: summary.estimates["mean"].standard_error for name, summary in first.summaries().items()}
    assert standard_errors["published_latency_mean_s"] == pytest.approx(1e-9 / 12**0.5)  # Go prints whole nanoseconds
    assert standard_errors["published_per_s"] is None  # computed from a count
    assert first.verify() == []
    assert [imported.is_new for imported in importer.make_all(order, Silent())] == [False, False]
    with pytest.raises(UsageError, match="the measured version is unknown"):
        importer.make_all(ImportRequest(source=path), Silent())


def test_only_reports_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text_report(_ONE), encoding="utf-8")
    assert recognises_report(path)
    path.write_text("height,time\n", encoding="utf-8")
    assert not recognises_report(path)
    assert not recognises_report(tmp_path)
    assert not recognises_report(tmp_path / "none")


# Shares and mean latencies in s, by (r, c), computed by hand from the published files.
_V038 = {
    (200, 1): (17800, 1.000, 1.86), (200, 2): (33259, 0.934, 4.03), (200, 4): (33259, 0.467, 7.59),
    (400, 1): (35600, 1.000, 3.50), (400, 2): (41565, 0.584, 8.64), (400, 4): (41384, 0.291, 10.60),
    (800, 1): (36831, 0.517, 9.21), (800, 2): (38686, 0.272, 11.19), (800, 4): (40816, 0.143, 11.95),
    (1600, 1): (40600, 0.285, 8.78), (1600, 2): (45034, 0.158, 8.96), (1600, 4): (39830, 0.070, 12.11),
}  # fmt: skip
_V1 = {
    (200, 1): (17800, 1.000, 3.87), (200, 2): (34600, 0.972, 6.76), (200, 4): (50464, 0.709, 9.39),
    (400, 1): (31200, 0.876, 9.28), (400, 2): (54706, 0.768, 9.36), (400, 4): (49463, 0.347, 9.98),
    (800, 1): (51146, 0.718, 9.04), (800, 2): (51917, 0.365, 11.68), (800, 4): (41376, 0.145, 16.58),
    (1600, 1): (50889, 0.357, 11.02), (1600, 2): (47732, 0.168, 12.42), (1600, 4): (45530, 0.080, 13.65),
}  # fmt: skip
Known = dict[tuple[int, int], tuple[int, float, float]]


def _published(folder: Path, name: str) -> SaturationVersion:
    return evaluated(published_version(folder / "cometbft" / f"{name}_report_tabbed.txt", name), 0.1, 1)


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "known"), [("v038", _V038), ("v1", _V1)])
def test_all_cells_of_the_published_tables_are_read(shared_data: Path, name: str, known: Known) -> None:
    version = _published(shared_data, name)
    figures = {
        (cell.rate_per_s, cell.connections): (
            cell.runs[0].committed,
            round(cell.runs[0].efficiency, 3),
            round(cell.latency_mean_s.value, 2) if cell.latency_mean_s else None,
        )
        for cell in version.cells
    }
    assert figures == known
    lines = read_report(shared_data / "cometbft" / f"{name}_report_tabbed.txt").lines
    assert lines == {"fields": 40, "blank": 0}


@pytest.mark.shared_data
def test_the_saturation_of_the_published_tables(shared_data: Path) -> None:
    """v0.38 sustains 400 tx/s by its values. For v1, one cell of that load is above 90 % and one is below."""
    older, newer = (_published(shared_data, name).chosen for name in ("v038", "v1"))
    assert (older.state, older.load_per_s, older.connections) == ("unclear", 400, 1)
    assert (newer.state, newer.load_per_s) == ("contradictory", None)
    assert (newer.low_per_s, newer.high_per_s) == (200, 800)
