"""Summaries of a load test: medians of levels, joined seconds, changes between servers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainmark.capacity.summaries import MOST_BINS, summarised
from chainmark.core.load_report import LoadReport, SecondEntry, StepEntry
from chainmark.lab.loading import REPORT, load_report_of
from chainmark.report.load_document import load_document
from chainmark.store.sealed import SealedRun

from tests.unit.report.load_samples import bare, endpoint, report, step, target


def _second(at: int, **figures: Any) -> SecondEntry:
    values = {"started": 10, "ok": 10, "failed": 0, "in_flight": 1, "queued": 0, "p99_s": 0.2, "max_s": 0.3}
    return SecondEntry(**{"step": 1, "second": at, "p50_s": 0.1, **values, **figures})


def _of(steps: list[StepEntry], seconds: list[SecondEntry]) -> LoadReport:
    return report(target(endpoints=[endpoint("/block", 64, capacities=[], steps=steps, seconds=seconds)]))


def test_many_seconds_are_joined_with_the_median_p50_the_worst_p99_and_all_errors() -> None:
    """Only joined seconds are drawn: a lost error or a mean of p99s would hide a short failure of the server."""
    seconds = [_second(at) for at in range(3 * MOST_BINS)]
    seconds[3:6] = [
        _second(3, p50_s=0.5, p99_s=0.6, failed=3, errors={"timeout": 2}),
        _second(4, p50_s=None, p99_s=None, stolen_share=0.5),
        _second(5, p50_s=0.7, p99_s=0.9, failed=1, errors={"timeout": 1}, stolen_share=0.2),
    ]
    (entry,) = _of([step(1, "clients", 4.0, 64.0)], seconds).targets[0].endpoints
    (joined,) = entry.joined
    assert (joined.kind, joined.size, len(joined.seconds)) == ("clients", 3, MOST_BINS)
    second = joined.seconds[1]
    assert (second.second, second.p50_s, second.p99_s, second.stolen_share) == (3, 0.6, 0.9, 0.5)
    assert (second.started, second.failed, second.errors) == (30, 4, {"failed": 1, "timeout": 3})


def test_few_seconds_are_not_stored_twice() -> None:
    (entry,) = _of([step(1, "clients", 4.0, 64.0)], [_second(at) for at in range(MOST_BINS)]).targets[0].endpoints
    assert entry.joined == []


def test_a_level_has_the_median_of_its_steps() -> None:
    steps = [step(number, "clients", 4.0, top) for number, top in enumerate((16.0, 32.0, 64.0), start=1)]
    (level,) = _of(steps, []).targets[0].endpoints[0].levels
    assert (level.p50_s, level.p99_s) == (steps[1].of_due.p50.value_s, steps[1].of_due.p99.value_s)


def test_capacities_of_further_servers_are_compared_with_the_first() -> None:
    first, second = (
        target(name, endpoints=[endpoint("/block", 64, capacities=[capacity], steps=[], seconds=[])])
        for name, capacity in (("a", bare()), ("b", bare(capacity=32.0, low=32.0, high=36.0)))
    )
    (change,) = report(first, second).changes
    assert (change.target, change.endpoint, change.kind, change.point) == (1, "block", "clients", -0.5)
    assert (change.low, change.high) == (32.0 / 72.0 - 1.0, 36.0 / 64.0 - 1.0)


@pytest.fixture
def stored(tmp_path: Path) -> tuple[LoadReport, SealedRun]:
    """A load test as an earlier version stored it: without the summaries."""
    whole = report(target("2.0.0"), target("2.1.0", 0.7))
    content = whole.model_dump(mode="json") | {"schema_version": 3}
    del content["changes"]
    for each in content["targets"]:
        for entry in each["endpoints"]:
            del entry["levels"], entry["joined"]
    (tmp_path / "raw").mkdir()
    former = LoadReport.model_validate(content)
    (tmp_path / "raw" / REPORT).write_text(former.model_dump_json(), encoding="utf-8")
    return whole, cast("SealedRun", SimpleNamespace(path=tmp_path, run_id="former"))


def test_a_load_test_of_an_earlier_version_has_the_same_report(stored: tuple[LoadReport, SealedRun]) -> None:
    whole, run = stored
    read = load_report_of(run)
    assert read == whole == summarised(whole)
    assert load_document(read).text(160) == load_document(whole).text(160)
