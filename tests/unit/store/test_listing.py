"""The row of a run in data frames, JSON and the dashboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainmark.core.epoch import Annotation
from chainmark.core.verdict import Verdict
from chainmark.store.index import Entry
from chainmark.store.listing import ListedRun, listed_runs, row_of
from chainmark.store.notes import Notes
from chainmark.store.runs import Store

from tests.unit.store.trail_runs import Timelines, sealed

ENTRY = Entry(
    "a",
    system="mesh",
    version="v1",
    profile="mesh/quick",
    status="valid",
    experiment="load-1",
    side="server",
    repetition=2,
    machine="Fast CPU",
    labels=json.dumps({"sla": ["met", "missed"], "hardware": ["mid"], "endpoint": ["/block"]}),
    origin="measured",
)


def test_a_row_has_what_the_index_knows_with_notes_and_the_verdict() -> None:
    notes = Notes(annotations=[Annotation(system="mesh", run="a", text="moved")])
    row = row_of(ENTRY, notes, {"load-1": Verdict.FAIL})
    assert (row.run_id, row.system, row.version, row.profile, row.status) == ("a", "mesh", "v1", "mesh/quick", "valid")
    assert (row.experiment, row.side, row.repetition, row.machine) == ("load-1", "server", 2, "Fast CPU")
    assert (row.notes, row.sla, row.cell) == ("moved", "met, missed", "mid")
    assert (row.verdict, row.source) == ("fail", "measured")
    assert row.labels["hardware"] == ["mid"]
    assert row_of(ENTRY, Notes(), {}).verdict == "pass", "without a verdict of the experiment, that of its own SLA"


@pytest.mark.parametrize(
    ("badges", "source"),
    [
        ("", "measured"),
        ("SYNTHETIC", "synthetic"),
        ("PRINTED, contradicted", "printed"),
        ("profiled", "profiled"),
    ],
)
def test_the_source_is_the_badge_that_says_more_than_its_origin(badges: str, source: str) -> None:
    assert row_of(Entry("a", badges=badges, origin="measured"), Notes(), {}).source == source


def test_a_run_without_an_experiment_has_no_repetition() -> None:
    assert row_of(Entry("a", repetition=1), Notes(), {}).repetition == 0


def test_a_store_is_listed_with_its_machines_and_unfinished_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = sealed(store, Timelines(6, 8).fill())
    left = store.create("toy", "toy/demo", "v1", {})
    first, last = listed_runs(tmp_path)
    assert (first.run_id, first.machine) == (run.run_id, run.manifest.host.cpu_model)
    assert last == ListedRun(left.run_id)
    assert last.is_unfinished
