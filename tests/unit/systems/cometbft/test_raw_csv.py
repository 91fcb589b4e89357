"""Every transaction of `raw.csv` is read, for any order of the rows."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.lab.importing import Importer
from chainmark.lab.protocols import ImportRequest
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.cometbft import SYSTEM
from chainmark.systems.cometbft.raw_csv import COLUMNS, figures_of, read_experiment, read_index

_EPOCH_NS = 1_710_000_000_000_000_000
_IDS = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002")
Row = tuple[str, int, int, str, int, int, int]


def _write(path: Path, rows: Sequence[Row | str]) -> Path:
    texts = [row if isinstance(row, str) else ",".join(map(str, row)) for row in rows]
    path.write_text("\n".join([",".join(COLUMNS), *texts]) + "\n", encoding="utf-8")
    return path


def _row(number: int, *, second: bool = False, block: int = 0, duration_ns: int = 10**9) -> Row:
    load = (2, 100, 1024) if second else (1, 200, 1024)
    return (_IDS[second], _EPOCH_NS + block * 10**9, duration_ns, f"{number:064X}", *load)


def _rows() -> list[Row]:
    rows = [_row(n, block=n // 3, duration_ns=500_000_000 + 7_000_001 * n) for n in range(20)]
    rows += [_row(100 + n, second=True, block=5 + n // 2, duration_ns=2 * 10**9 - n) for n in range(9)]
    random.Random(3).shuffle(rows)
    return rows


def _naive(rows: list[Row]) -> tuple[float, float]:
    """Mean latency in s and throughput in tx/s, as `latency_throughput.py` reads the file: row by row."""
    total, first, begin, last = 0, None, 0, 0
    for _, block_time, duration, *_ in rows:
        total += duration
        if first is None or block_time < first:
            first, begin = block_time, block_time - duration
        last = max(last, block_time)
    return total / len(rows) / 1e9, len(rows) / ((last - begin) / 1e9)


@given(st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_figures_match_the_published_script(tmp_path_factory: pytest.TempPathFactory, rng: random.Random) -> None:
    rows = _rows()
    rng.shuffle(rows)
    path = _write(tmp_path_factory.mktemp("raw") / "raw.csv", rows)
    for experiment in read_index(path).experiments:
        own = [row for row in rows if row[0] == experiment.id]
        figures = figures_of(read_experiment(path, experiment))
        mean_s, per_s = _naive(own)
        assert figures.mean_s == pytest.approx(mean_s, rel=1e-12)
        assert figures.throughput_per_s == pytest.approx(per_s, rel=1e-12)


def _runs(store: Path, path: Path) -> list[SealedRun]:
    order = ImportRequest(source=path, version="v9")
    return [imported.run for imported in Importer(Store(store), SYSTEM).make_all(order, Silent())]


def test_every_row_is_counted_in_one_class(tmp_path: Path) -> None:
    bad = [f"{_IDS[0]},soon,1,AB,1,200,1024", f"{_IDS[0]},{_EPOCH_NS}"]
    twice, early = _row(0), _row(77, duration_ns=-5_000_000)
    path = _write(tmp_path / "raw.csv", [*_rows(), twice, early, *bad])
    run, two = _runs(tmp_path / "store", path)
    assert run.manifest.counts["rows of the file"] == {
        "of this experiment": 22, "of other experiments": 9, "malformed": 2,
    }  # fmt: skip
    assert run.manifest.counts["transactions of the experiment"] == {"different": 21, "duplicates": 1}
    assert run.manifest.counts["latencies"] == {"positive or 0": 21, "negative": 1}
    assert two.manifest.counts["latencies"]["negative"] == 0
    assert (two.manifest.workload["load.connections"], two.manifest.workload["load.rate"]) == (2, 100)
    assert [gate.status.value for gate in run.manifest.gates] == ["warn"]
    latencies = run.samples("transaction")["tx_latency_next_header_s"].to_list()
    assert len(latencies) == 22
    assert min(latencies) == -0.005
    assert run.summaries()["tx_latency_next_header_s"].estimates["mean"].value == pytest.approx(
        statistics.fmean(latencies), rel=1e-12
    )
    assert SYSTEM.followed(run) == []  # the rows do not contain when a transaction was due


def test_the_order_of_the_rows_changes_no_sample(tmp_path: Path) -> None:
    """The tool writes its rows in the order in which its threads finish."""
    rows = _rows()
    runs_by_order = [_runs(tmp_path / name, _write(tmp_path / f"{name}.csv", order)) for name, order in
             (("one", rows), ("other", rows[::-1]))]  # fmt: skip
    for run, other in zip(*runs_by_order, strict=True):
        assert run.samples("transaction").equals(other.samples("transaction"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], "contains no transactions"),
        ([_row(1), (_IDS[0], _EPOCH_NS, 1, "AB", 1, 400, 1024)], "has rate 200 and 400"),
    ],
)
def test_unusable_rows_are_reported(tmp_path: Path, rows: list[Row], expected: str) -> None:
    path = _write(tmp_path / "raw.csv", rows)
    with pytest.raises(UsageError, match=expected):
        read_index(path)


def test_another_csv_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("height,time\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"is not a `raw\.csv`"):
        read_index(path)


def test_it_can_be_compared_with_measured_versions(tmp_path: Path) -> None:
    version = SYSTEM.published_sweep(_write(tmp_path / "raw.csv", _rows()), "v9")
    assert [(run.connections, run.rate_per_s, run.committed) for run in version.runs] == [(1, 200, 20), (2, 100, 9)]
    assert version.published
