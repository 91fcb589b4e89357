"""A block is found by any reference that a user types, and its trace matches the events exactly."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.trails.follower import Follower, _steps
from chainmark.trails.trace import Trace, follow_command
from chainmark.trails.trail import Trail, trails_of

from tests.unit.store.trail_runs import SLOT_NS, SLOW, STAGES, START_NS, Timelines, key_of, sealed, trail

HOSTS = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """A run of eight blocks on six hosts."""
    return sealed(Store(tmp_path_factory.mktemp("store")), Timelines(HOSTS, 8).fill())


@pytest.fixture
def follower(run: SealedRun) -> Follower:
    """A follower of its blocks."""
    return Follower(run.scan_events("block_timelines"), trails_of(run.catalogue)[0], run.manifest)


def test_every_figure_of_a_trace_matches_the_events(run: SealedRun, follower: Follower) -> None:
    """A trace that is off by one row, file or unit sends an engineer to the wrong line."""
    trace = follower.trace(key_of("b2"))
    rows = {
        row["host"]: row for row in run.events("block_timelines").filter(pl.col("block") == key_of("b2")).to_dicts()
    }
    assert [place.place for place in trace.places] == sorted(rows, key=lambda host: rows[host]["adopted_ns"])
    assert trace.base_ns == START_NS + 2 * SLOT_NS
    for place in trace.places:
        row = rows[place.place]
        for index, stage in enumerate(STAGES):
            if row[f"{stage}_ns"] is None:
                assert (place.seconds[index], place.files[index], place.lines[index]) == (None, None, None)
            else:
                assert place.seconds[index] == pytest.approx((row[f"{stage}_ns"] - trace.base_ns) / 1e9, abs=1e-12)
                assert trace.files[place.files[index] or 0] == row[f"{stage}_file"]
                assert place.lines[index] == row[f"{stage}_line"]
        seconds = [second for second in place.seconds if second is not None]
        assert [step for step in place.steps if step is not None] == pytest.approx(
            [after - before for before, after in pairwise(seconds)], abs=1e-9
        )


def test_facts_common_to_all_places_are_shown_once(run: SealedRun, follower: Follower) -> None:
    block_trace = follower.trace(key_of("b2"))
    facts = {fact.label: fact.value for fact in block_trace.facts}
    assert facts == {"forger": "node-2", "slot": "40", "on chain": "yes"}
    # An error of one host must not be reported as the block's.
    assert block_trace.place_facts == ["error", "region"]
    assert {place.place: place.facts for place in block_trace.places}["node-4"] == ["odd", "region-0"]
    # A fact that only the forger reports still belongs to the block.
    events = run.events("block_timelines").with_columns(pl.when(pl.col("role") == "forger").then(7).alias("size"))
    sized = trails_of(run.catalogue)[0].model_copy(update={"facts": {"size": "size", "error": "error"}})
    trace = Follower(events.lazy(), sized, run.manifest).trace(key_of("b1"))
    assert [(fact.label, fact.value) for fact in trace.facts] == [("forger", "node-1"), ("size", "7")]
    assert (block_trace.number, block_trace.name, block_trace.stages[block_trace.end]) == (2, "block 2", "adopted")


def test_a_step_is_measured_from_the_latest_earlier_event() -> None:
    """A host may send a block on before it adopts it. No step may take negative time because of that."""
    assert _steps([None, 10, 20, 50, 30]) == pytest.approx([None, None, 1e-8, 3e-8, 1e-8])
    assert _steps([40, 10]) == pytest.approx([None, -3e-8])  # a clock that was set back is shown


def test_the_slowest_step_belongs_to_the_slow_host(follower: Follower) -> None:
    trace = follower.trace(key_of("b2"))
    slowest = trace.slowest[STAGES.index("fetched")]
    assert slowest is not None
    assert trace.places[slowest].place == SLOW
    assert trace.slowest[STAGES.index("forged")] is None  # the first stage of a block has no previous event


def test_missing_places_and_stages_are_listed(follower: Follower) -> None:
    assert follower.trace(key_of("b5")).absent == [f"node-{HOSTS - 1}"]
    missing_text = follower.trace(key_of("b4")).missing_stages
    assert [(STAGES[item.stage], item.places) for item in missing_text] == [("fetched", ["node-2"])]
    whole = follower.trace(key_of("b1"))
    assert (whole.absent, whole.missing_stages) == ([], [])  # a forger never fetches its own block


@pytest.mark.parametrize(
    ("reference", "name"), [("3", "b3"), (key_of("rival"), "rival"), (key_of("rival")[:9], "rival"), ("8", "b8")]
)
def test_a_block_is_found_by_hash_prefix_or_number(follower: Follower, reference: str, name: str) -> None:
    assert follower.find(reference) == key_of(name)


def test_both_sides_of_a_fork_reference_each_other(follower: Follower) -> None:
    main, rival = follower.trace(key_of("b3")), follower.trace(key_of("rival"))
    assert [other.key for other in main.neighbours] == [key_of("rival")]
    assert [other.key for other in rival.neighbours] == [key_of("b3")]
    facts = {fact.label: fact.value for fact in main.neighbours[0].facts}
    assert (main.neighbours[0].places, facts["on chain"]) == (2, "no")
    assert facts["rejected because"] == "not on the main chain"
    assert follower.trace(key_of("b2")).neighbours == []


def test_without_a_main_chain_the_block_known_to_most_hosts_is_shown(run: SealedRun) -> None:
    blind = Follower(run.scan_events("block_timelines"), Trail.model_validate(trail(main=False)), run.manifest)
    assert blind.find("3") == key_of("b3")


@pytest.mark.parametrize(
    ("reference", "message", "hint"),
    [
        ("99", "has no block `99`", "the heights of its blocks are 1 to 8"),
        ("9" * 30, "has no block", "the heights of its blocks are 1 to 8"),
        ("xyz", "has no block `xyz`", "the heights of its blocks are 1 to 8"),
        ("", "has no block ``", "the heights of its blocks are 1 to 8"),
    ],
)
def test_an_unknown_block_is_reported_in_one_sentence(
    follower: Follower, reference: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        follower.find(reference)
    assert hint in (caught.value.hint or "")


def test_an_ambiguous_prefix_is_reported_in_one_sentence(follower: Follower) -> None:
    shared = key_of("b2")[:2]
    assert key_of("b4").startswith(shared)
    with pytest.raises(UsageError, match=f"`{shared}` is the beginning of 2 blocks"):
        follower.find(shared)


def test_numbered_files_are_resolved_by_the_sources_of_the_run(tmp_path: Path) -> None:
    run = sealed(Store(tmp_path), Timelines(12, 2).fill(), numbered_files=True)
    trace = Follower(run.scan_events("block_timelines"), trails_of(run.catalogue)[0], run.manifest).trace(key_of("b1"))
    for place in trace.places:
        assert {trace.files[index] for index in place.files if index is not None} == {f"{place.place}/log.json"}


def test_events_without_a_base_are_measured_from_the_first(run: SealedRun) -> None:
    events = run.scan_events("block_timelines").drop("slot_start_ns", "role", "on_chain", "adopted_line")
    trace = Follower(events, trails_of(run.catalogue)[0], run.manifest).trace(key_of("b1"))
    assert trace.base_label == "first event"
    assert min(second for place in trace.places for second in place.seconds if second is not None) == 0.0
    with pytest.raises(InvalidRunError, match="have no column `host`"):
        Follower(run.scan_events("block_timelines").drop("host"), trails_of(run.catalogue)[0], run.manifest)


def test_traces_read_together_equal_traces_read_separately(follower: Follower) -> None:
    keys = [key_of(name) for name in ("b5", "rival", "b1", "b1", "not there")]
    assert follower.traces(keys) == {key: follower.trace(key) for key in sorted(set(keys[:3]))}


@given(seed=st.integers(0, 2**32))
def test_the_order_of_the_events_does_not_matter(run: SealedRun, seed: int) -> None:
    events = run.events("block_timelines")
    rows = np.random.default_rng(seed).permutation(events.height)
    mixed = Follower(events[rows].lazy(), trails_of(run.catalogue)[0], run.manifest)
    sorted_follower = Follower(events.lazy(), trails_of(run.catalogue)[0], run.manifest)
    for name in ("b3", "b4"):
        assert mixed.trace(key_of(name)) == sorted_follower.trace(key_of(name))


def test_a_trace_can_be_read_back_and_contains_its_command(run: SealedRun) -> None:
    trace = Follower(run.scan_events("block_timelines"), Trail.model_validate(trail("parcel")), run.manifest).trace(
        key_of("b1")
    )
    assert Trace.model_validate_json(trace.model_dump_json()) == trace
    assert trace.command == f"chainmark trail {run.run_id} parcel {key_of('b1')[:16]}"


def test_the_command_is_safe_to_paste() -> None:
    assert follow_command("block", "r", "a b; rm -rf /") == "chainmark block r 'a b; rm -rf /'"
