"""The map of the regions that a block passed: every hop if the events are available, otherwise the reason."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

import chainmark as cm
from chainmark.report.blocks import Table
from chainmark.store.runs import Store
from chainmark.trails.document import trail_document
from chainmark.trails.trace import Trace

from tests.unit.store.trail_runs import Timelines, sealed, trail

TRIPS = {("region-0", "region-1"): 0.08}


def _trace(store: Path, timelines: Timelines, **options: object) -> Trace:
    run = sealed(Store(store), timelines.fill(), **options)  # type: ignore[arg-type]
    result = cm.block(run.run_id, 4, store=store).result
    assert isinstance(result, Trace)
    return result


def test_every_host_is_in_one_hop_timed_from_its_sender(tmp_path: Path) -> None:
    trace = _trace(tmp_path, Timelines(8, 4), trips=TRIPS)
    assert trace.region_map is not None
    adopted = {place.place: place.seconds[trace.end] for place in trace.places}
    assert sum(hop.places for hop in trace.region_map.hops) == 7  # all hosts except the forger
    (there,) = [hop for hop in trace.region_map.hops if hop.origin != hop.region]
    # node-1 forged block 4: all hosts of region-0 received it over the link between the regions.
    own = sorted((adopted[f"node-{host}"] or 0.0) - (adopted["node-1"] or 0.0) for host in (0, 2, 4, 6))
    assert (there.origin, there.region, there.round_trip_s) == ("region-1", "region-0", 0.08)
    assert there.median_s == pytest.approx((own[1] + own[2]) / 2)
    assert there.longest_s == pytest.approx(own[-1])


def test_every_document_of_the_block_contains_the_map(tmp_path: Path) -> None:
    run = sealed(Store(tmp_path), Timelines(8, 4).fill(), trips=TRIPS)
    document = cm.block(run.run_id, 4, store=tmp_path)
    assert "regions-map" in {chart.id for chart in document.charts()}
    assert "region-1 → region-0" in str([chart.data for chart in document.charts() if chart.id == "regions-map"])
    assert document.pdf().startswith(b"%PDF")


def test_a_document_without_a_map_states_the_reason(tmp_path: Path) -> None:
    timelines = Timelines(4, 4)
    timelines.fill()
    for row in timelines.rows:
        row["region"] = "region-0"
    run = sealed(Store(tmp_path), timelines)
    (note,) = [note for note in cm.block(run.run_id, 4, store=tmp_path).notes if "map" in note]
    assert note == "No map of regions: all hosts with a known region are in region-0."
    unplaced = _trace(tmp_path, Timelines(4, 4), trails=[trail() | {"region": None}])
    assert "--topology" in unplaced.no_map
    unsent = _trace(tmp_path, Timelines(4, 4), trails=[trail() | {"sender": None}])
    assert "sent the block to another" in unsent.no_map


def test_a_block_is_compared_with_the_median_block_of_its_run(tmp_path: Path) -> None:
    timelines = Timelines(8, 5)
    trace = _trace(tmp_path, timelines)
    adopted: dict[str, list[int]] = {}
    for row in timelines.rows:
        if row["on_chain"]:  # a losing block of a battle must not be compared with other blocks
            adopted.setdefault(row["block"], []).append(row["adopted_ns"] - row["slot_start_ns"])
    usual = median(median(times) for times in adopted.values()) / 1e9
    assert trace.usual_s[trace.end] == pytest.approx(usual)
    (table,) = [block for block in trail_document(trace).blocks() if isinstance(block, Table) and block.id == "usual"]
    (own,) = [row.cells for row in table.rows if row.cells[0].text == "adopted"]
    assert trace.medians_s[trace.end] == trace.median_s
    here, there, difference = (float(cell.text.replace("\u2212", "-")) for cell in own[1:])
    assert here == pytest.approx(1e3 * (trace.median_s or 0.0), abs=0.06)
    assert there == pytest.approx(1e3 * usual, abs=0.06)
    assert difference == pytest.approx(here - there, abs=0.11)
    few = sealed(Store(tmp_path / "few"), Timelines(8, 2).fill())
    result = cm.block(few.run_id, 2, store=tmp_path / "few").result
    assert isinstance(result, Trace)
    assert result.usual_s == []
