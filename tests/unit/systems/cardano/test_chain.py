"""The main chain: walk, ties, adoption and filters, compared with an implementation in plain loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.systems.cardano.chain import (
    admitted,
    centiles,
    chain_blocks,
    forgers_of,
    observation_classes,
    observations,
    rejections,
    with_adoptions,
)
from chainmark.systems.cardano.figures import ADOPTION, FRACTIONS
from chainmark.systems.cardano.filters import SETS, parse_conditions
from chainmark.systems.cardano.main_chain import KnownBlocks, MainChain, last_adopted, main_chain
from chainmark.systems.cardano.rules import Rules

from tests.unit.systems.cardano.naive_analysis import NaiveAnalysis
from tests.unit.systems.cardano.traces import (
    GENESIS,
    MS,
    START_NS,
    Row,
    forger,
    key,
    links_frame,
    observer,
    slot_ns,
    timelines_frame,
    troubled_cluster,
)

RIGHT, PUBLISHED = Rules(), Rules(published=True)
Hosts = Mapping[str, Sequence[Row]]


def _timelines(hosts: Hosts, rules: Rules = RIGHT) -> pl.DataFrame:
    names = pl.Enum(sorted(hosts))
    frames = [timelines_frame(hosts[host]).with_columns(host=pl.lit(host, dtype=names)) for host in sorted(hosts)]
    starts = START_NS + pl.col("slot") * 1_000_000_000
    return with_adoptions(pl.concat(frames).with_columns(slot_start_ns=starts, region=pl.lit(None, pl.String)), rules)


def _links(hosts: Hosts) -> pl.DataFrame:
    names = pl.Enum(sorted(hosts))
    return pl.concat([links_frame(hosts[host]).with_columns(host=pl.lit(host, dtype=names)) for host in sorted(hosts)])


def _walked(hosts: Hosts, hosts_rows: pl.DataFrame, lowest_tip: int | None = None) -> tuple[MainChain, KnownBlocks]:
    links = _links(hosts)
    known = KnownBlocks(links)
    return main_chain(hosts_rows, links, known, lowest_tip), known


def _chain(hosts: Hosts, lowest_tip: int | None = None) -> MainChain:
    return _walked(hosts, _timelines(hosts), lowest_tip)[0]


def _blocks(hosts: Hosts, filters: Sequence[str] = (), rules: Rules = RIGHT) -> pl.DataFrame:
    hosts_rows = _timelines(hosts, rules)
    conditions = parse_conditions(filters, [], len(hosts))
    chain, known = _walked(hosts, hosts_rows)
    blocks = chain_blocks(
        hosts_rows, forgers_of(hosts_rows), observations(hosts_rows), chain, known, genesis=GENESIS, rules=rules
    )
    return admitted(blocks, conditions, GENESIS, rules)


def _straight(blocks: int, hosts: int = 3) -> dict[str, list[Row]]:
    """A chain without forks. Host n mod hosts forges block n in slot 10 n; observers are 10 ms apart."""
    return {
        f"node-{host}": [
            forger(number, 10 * number) if number % hosts == host else observer(number, 10 * number, late_ms=10 * host)
            for number in range(blocks)
        ]
        for host in range(hosts)
    }


# --- the walk ------------------------------------------------------------------------------------------------------


def test_the_chain_excludes_the_tip_and_reaches_the_first_block() -> None:
    chain = _chain(_straight(5))
    assert chain.tip is not None
    assert (chain.tip.block, chain.tip.block_no, chain.tip.host) == (key(4), 4, "node-1")
    assert chain.blocks == [key(number) for number in range(4)]
    assert (chain.first_height, chain.heights_passed) == (0, 4)


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_chain_of_no_blocks_is_empty(blocks: int) -> None:
    chain = _chain(_straight(blocks))
    assert chain.blocks == []
    assert (chain.tip is None, chain.heights_passed) == (blocks == 0, 0)
    assert _blocks(_straight(blocks)).height == 0


def test_a_chain_whose_first_block_has_another_number_is_complete() -> None:
    hosts = {"a": [forger(1, 5, parent="GenesisHash"), forger(2, 9), forger(3, 12)]}
    assert _chain(hosts).blocks == [key(1), key(2)]
    assert _chain(hosts).heights_passed == 2


def _without_forger(number: int) -> dict[str, list[Row]]:
    hosts = _straight(9)
    hosts["node-1"] = [row for row in hosts["node-1"] if row["block_no"] != number]
    return hosts


def test_a_block_without_its_forging_line_is_bridged_and_measured_where_possible() -> None:
    """Before, one lost line of 25,728 removed 33 of 35 blocks from the analysis."""
    hosts = _without_forger(4)
    assert _chain(hosts).blocks == [key(number) for number in range(8)]
    blocks = _blocks(hosts, ["BMinimumAdoptions=2"])
    assert blocks["accepted"].to_list() == [True] * 8
    row = blocks.row(4, named=True)
    assert (row["host"], row["block_no"], row["slot"], row["size_bytes"]) == (None, 4, 40, None)
    assert row["adopters"] == 2
    assert row["peer_notice_first_s"] == 0.02
    assert row["forge_started_s"] is None
    # The published rules do not substitute a value that no forger reported.
    assert _blocks(hosts, rules=PUBLISHED)["forge_announced_s"][4] is None


def test_a_bridged_block_of_unknown_size_fails_every_size_condition() -> None:
    blocks = _blocks(_without_forger(4), ["BFullnessGEq=0.5"])
    assert blocks["rejected_because"].to_list() == [None] * 4 + ["its size is in no log"] + [None] * 3
    assert rejections(blocks, parse_conditions(["BFullnessGEq=0.5"], [], 3))["its size is in no log"] == 1


def test_a_block_known_only_by_its_hash_keeps_its_place_and_is_not_measured() -> None:
    hosts = {host: [row for row in rows if row["block_no"] != 4] for host, rows in _straight(9).items()}
    chain = _chain(hosts)
    assert (chain.blocks, chain.heights_passed) == ([key(number) for number in range(8)], 8)
    assert _blocks(hosts)["rejected_because"].to_list()[4] == "no host tells when it came"


def test_heights_without_any_line_are_skipped_and_counted() -> None:
    """The line of block 5's forging, the only one with its parent, is lost, as are all lines of blocks 3 and 4."""
    hosts = {host: [row for row in rows if row["block_no"] not in (3, 4)] for host, rows in _straight(9).items()}
    hosts["node-2"] = [row for row in hosts["node-2"] if row["block_no"] != 5]
    chain = _chain(hosts)
    assert chain.heights == [0, 1, 2, 5, 6, 7]
    assert chain.heights_passed == 8


def test_unknown_first_blocks_count_if_a_host_saw_the_start_of_the_chain() -> None:
    hosts = {host: [row for row in rows if row["block_no"] > 2] for host, rows in _straight(9).items()}
    chain = _chain(hosts)
    assert (chain.first_height, chain.heights, chain.heights_passed) == (3, [3, 4, 5, 6, 7], 5)
    chain = _chain(hosts, lowest_tip=-1)
    # Block 3, the first known one, names block 2 as its parent. No line mentions the first two blocks.
    assert (chain.first_height, chain.heights, chain.heights_passed) == (0, [2, 3, 4, 5, 6, 7], 8)


def test_a_tip_without_a_known_forger_is_still_the_tip() -> None:
    hosts = _straight(4)
    hosts["node-2"].append(observer(4, 90))
    chain = _chain(hosts)
    assert chain.tip is not None
    assert (chain.tip.block, chain.blocks) == (key(4), [key(number) for number in range(4)])


def test_an_impossible_block_number_is_rejected() -> None:
    hosts = _straight(4)
    hosts["node-2"].append(observer(9_000_000, 90))
    chain = _chain(hosts)
    assert chain.tip is not None
    assert chain.tip.block == key(3)


@pytest.mark.parametrize(("wrong", "height"), [(94, 4), (87, 7), (4_000, 8), (62, 2)])
def test_a_block_number_that_contradicts_its_neighbours_is_rejected(wrong: int, height: int) -> None:
    """One wrong digit in one line made the chain ninety blocks too high, or hid the block at that height."""
    slots = [3 * number for number in range(9)]
    hosts = {"relay": [observer(number, slots[number]) for number in range(9)]}
    hosts["relay"][height] |= {"block_no": wrong, "slot": slots[height]}
    chain = _chain(hosts)
    assert chain.tip is not None
    assert chain.tip.block_no == (8 if height < 8 else 7)
    assert set(chain.heights) >= set(range(chain.tip.block_no)) - {height}


def test_the_block_number_of_most_hosts_is_used() -> None:
    hosts = {host: [observer(number, 10 * number) for number in range(9)] for host in ("a", "b", "c")}
    hosts["a"][5] |= {"block_no": 6}
    assert _chain(hosts).blocks == [key(number) for number in range(8)]


def test_a_gap_is_bridged_to_the_block_that_won_the_battle() -> None:
    """Every host knows both blocks of a battle. The block that the hosts adopted is on the chain."""
    lost, won = observer(2, 20, branch="a"), observer(2, 21, branch="b", late_ms=500)
    rows = [observer(0, 0), observer(1, 10), lost, won, observer(3, 30), observer(4, 40)]
    hosts = {"a": rows, "b": list(rows)}
    hosts_rows = _timelines(hosts)
    links = _links(hosts).with_columns(parent=pl.lit(None, pl.String), parent_evidence=pl.lit(None, pl.Int32))
    known = KnownBlocks(links)
    assert main_chain(hosts_rows, links, known, None).blocks == [key(0), key(1), key(2, "a"), key(3)]
    walked = main_chain(hosts_rows, links, known.keeping(last_adopted(hosts_rows)), None)
    assert walked.blocks == [key(0), key(1), key(2, "b"), key(3)]


def test_ties_of_the_tip_are_resolved_by_role_then_host_then_hash() -> None:
    """Two hosts are at the same height: an arbitrary choice would give a different chain in some runs."""
    base = [forger(0, 0), forger(1, 10)]
    right, left = forger(2, 20, branch="b"), forger(2, 21, branch="a")
    both = {"a": [*base, observer(2, 20, branch="b")], "b": [left], "c": [right]}
    tip = _chain(both).tip
    assert tip is not None
    assert (tip.host, tip.block) == ("b", key(2, "a"))
    swapped = _chain({"a": base, "b": [right, left]}).tip
    assert swapped is not None
    assert swapped.block == key(2, "a")


def test_a_cycle_of_parents_terminates() -> None:
    hosts = {"a": [forger(1, 1, parent=key(2)), forger(2, 2), forger(3, 3)]}
    assert _chain(hosts).blocks == [key(1), key(2)]


def test_the_more_reliable_parent_is_used_then_the_one_most_hosts_report() -> None:
    rows: list[Row] = [observer(1, 10), observer(1, 11, branch="b"), observer(2, 20), observer(3, 30)]
    hosts = dict.fromkeys(("a", "b", "c"), rows)

    def blocks_given(*parents: tuple[str, str, int]) -> list[str]:
        """For each host: the parent that it reports for block 2, and the kind of evidence."""
        links = _links(hosts)
        for host, parent, evidence in parents:
            this = (pl.col("host") == host) & (pl.col("block") == key(2))
            links = links.with_columns(
                parent=pl.when(this).then(pl.lit(parent)).otherwise("parent"),
                parent_evidence=pl.when(this).then(evidence).otherwise("parent_evidence").cast(pl.Int32),
            )
        return main_chain(_timelines(hosts), links, KnownBlocks(links), None).blocks

    left, right = key(1), key(1, "b")
    assert blocks_given(("a", left, 2), ("b", right, 2), ("c", right, 2)) == [right, key(2)]
    assert blocks_given(("a", left, 1), ("b", right, 2), ("c", right, 2)) == [left, key(2)]
    # Evidence that skips a height comes from a chain with a missing line.
    assert blocks_given(("a", key(0), 2), ("b", right, 3)) == [right, key(2)]
    # Only the heights are known: of the blocks known to equally many hosts, the first one is used.
    assert blocks_given() == [left, key(2)]


# --- adoption ------------------------------------------------------------------------------------------------------


def test_centiles_use_double_precision_indices() -> None:
    """A tolerance for rounding, or exact decimals, would select another host for some numbers of hosts."""
    counts = np.arange(1, 300)
    values = np.concatenate([np.arange(n, dtype=np.float64) for n in counts])
    values_found = centiles(values, counts, FRACTIONS)
    expected = [[min(n - 1, math.floor(n * fraction)) for fraction in FRACTIONS] for n in counts.tolist()]
    assert values_found.tolist() == expected
    assert values_found[51].tolist() == [26, 41, 46, 47, 48, 49, 50, 51]


def test_a_group_without_values_has_no_centile() -> None:
    result = centiles(np.array([1.0, 2.0]), np.array([0, 2, 0]), [0.5])
    assert np.isnan(result[[0, 2], 0]).all()
    assert result[1, 0] == 2.0


def test_adoption_is_measured_from_slot_start_over_all_hosts() -> None:
    row = _blocks(_straight(3)).row(1, named=True)  # node-1 forged it in slot 10; node-0 and node-2 observe it
    assert row["adopters"] == 3
    # The forger adopts after 50 ms, node-0 after 100, and node-2, 20 ms later, after 120.
    assert [row[name] for name in ADOPTION] == [0.1, *[0.12] * 7]
    assert (row["peer_notice_first_s"], row["peer_fetch_first_s"]) == (0.02, 0.06)


def test_a_switch_of_forks_is_an_adoption_except_by_the_published_rules() -> None:
    hosts = _straight(3)
    hosts["node-2"][1] |= {
        "adopted_ns": None,
        "adopted_delta": None,
        "switched_ns": slot_ns(10) + 90 * MS,
        "switched_delta": 1,
    }
    assert _blocks(hosts).row(1, named=True)["adopters"] == 3
    for rules in (PUBLISHED, Rules(count_switches=False)):
        assert _blocks(hosts, rules=rules).row(1, named=True)["adopters"] == 2


def test_the_first_of_two_adoptions_counts_with_its_chain_growth() -> None:
    late: Row = {"switched_ns": slot_ns(10) + 150 * MS, "switched_delta": 2}
    early: Row = {"switched_ns": slot_ns(10) + 70 * MS, "switched_delta": 2}
    for stages, delta in ((late, 1), (early, 2), (early | {"switched_ns": slot_ns(10) + 100 * MS}, 1)):
        hosts_rows = _timelines({"a": [forger(0, 0)], "b": [observer(1, 10, **stages)]})
        assert hosts_rows.filter(pl.col("role") == "observer")["chain_delta"].to_list() == [delta]


def test_a_block_that_no_host_adopted_has_no_times() -> None:
    rows = [forger(number, number, adopted_ns=None, adopted_delta=None) for number in range(2)]
    row = _blocks({"a": rows}).row(0, named=True)
    assert row["adopters"] == 0
    assert [row[name] for name in ADOPTION] == [None] * 8
    assert row["forge_self_adopted_s"] is None


# --- forging -------------------------------------------------------------------------------------------------------


def test_each_forging_step_is_measured_from_the_previous_step() -> None:
    row = _blocks(_straight(2)).row(0, named=True)
    steps = ("started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot", "forged")
    assert [row[f"forge_{step}_s"] for step in steps] == [0.001] * 8
    assert (row["forge_announced_s"], row["forge_sending_s"], row["forge_self_adopted_s"]) == (0.001, 0.002, 0.042)
    assert row["slot_to_announced_s"] == 0.009


def test_a_step_without_its_predecessor_is_measured_from_an_earlier_step() -> None:
    hosts = {"a": [forger(0, 0, ledger_view_ns=None, snapshot_ns=None), forger(1, 10)]}
    row = _blocks(hosts).row(0, named=True)
    assert (row["forge_ledger_view_s"], row["forge_leadership_s"]) == (None, 0.004)
    assert (row["forge_snapshot_s"], row["forge_forged_s"]) == (None, 0.003)


def test_missing_forging_times_are_null_or_10_ms_by_the_published_rules() -> None:
    hosts = {"a": [forger(0, 0, announced_ns=None, sent_ns=None, adopted_ns=None), forger(1, 10)]}
    names = ("forge_announced_s", "slot_to_announced_s", "forge_sending_s", "forge_self_adopted_s")
    assert [_blocks(hosts)[name][0] for name in names] == [None] * 4
    assert [_blocks(hosts, rules=PUBLISHED)[name][0] for name in names] == [0.01] * 4


@pytest.mark.parametrize("lacking", ["size_bytes", "started_ns", "leadership_ns"])
def test_a_block_with_incomplete_forging_data_is_rejected_with_the_reason(lacking: str) -> None:
    hosts = {"a": [forger(0, 0) | {lacking: None}, forger(1, 10), forger(2, 20)]}
    for rules in (RIGHT, PUBLISHED):
        assert _blocks(hosts, rules=rules)["rejected_because"].to_list() == ["incomplete forging data", None]


# --- battles, observations, admission -------------------------------------------------------------------------------


def test_battles_count_every_other_known_hash_of_the_height() -> None:
    hosts = _straight(3)
    hosts["node-0"] += [observer(1, 10, branch="c"), {"block": key(1, "d"), "role": "error", "error": "e"}]
    hosts["node-1"] += [forger(1, 11, branch="b"), observer(1, 10, branch="c")]
    assert _blocks(hosts)["block_battles"].to_list() == [0, 2]


def test_an_observation_counts_if_nothing_critical_is_missing_or_negative() -> None:
    cases = [
        (observer(1, 10), "valid"),
        (observer(1, 10, announced_ns=slot_ns(10), sent_ns=None), "valid"),
        (observer(1, 10, requested_ns=None), "without notice, request or fetch"),
        (observer(1, 10, adopted_ns=None), "never adopted"),
        (observer(1, 10, request_length=2), "several blocks at once"),
        (observer(1, 10, adopted_delta=2), "several blocks at once"),
        (observer(1, 10, request_length=None), "valid"),
        (observer(1, 10, noticed_ns=slot_ns(10) - 1), "a negative time"),
        (observer(1, 10, adopted_ns=slot_ns(10) + 59 * MS), "a negative time"),
        (observer(1, 10, adopted_ns=slot_ns(10) + 60 * MS), "valid"),
    ]
    for row, kind in cases:
        assert observation_classes(observations(_timelines({"a": [row]}))) == {kind: 1}, row


def test_an_observers_steps_begin_with_the_previous_one_and_its_totals_with_the_slot() -> None:
    row = observer(1, 10, late_ms=20)
    observed = observations(_timelines({"a": [row]})).row(0, named=True)
    at_s = {name: (row[f"{name}_ns"] - slot_ns(10)) / 1e9 for name in ("noticed", "requested", "fetched", "adopted")}
    expected = {
        "peer_notice_s": at_s["noticed"],
        "peer_request_s": at_s["requested"] - at_s["noticed"],
        "peer_fetch_s": at_s["fetched"] - at_s["requested"],
        "peer_adopted_s": at_s["adopted"] - at_s["fetched"],
        "slot_to_fetched_s": at_s["fetched"],
        "slot_to_adopted_s": at_s["adopted"],
    }
    assert {name: observed[name] for name in expected} == pytest.approx(expected)
    assert min(expected.values()) > 0.0


def test_of_two_hosts_that_forged_one_block_the_first_is_its_forger() -> None:
    """Both ran with the same keys. Which of them it is must not depend on the order of the logs."""
    for names in ("ab", "ba"):
        hosts_rows = _timelines({name: [forger(1, 10)] for name in names})
        assert forgers_of(hosts_rows)["host"].to_list() == ["a"]


def test_adopting_hosts_are_counted_even_with_unusable_times() -> None:
    """The filter depends on which hosts adopted a block, not on how long a step took."""
    hosts = _straight(3)
    hosts["node-0"][1]["request_length"] = 2
    hosts["node-2"][1]["noticed_ns"] = slot_ns(10) - MS
    row = _blocks(hosts, ["BMinimumAdoptions"]).row(1, named=True)
    assert (row["adopted_observations"], row["peer_notice_first_s"], row["accepted"]) == (2, None, True)
    hosts["node-2"][1]["requested_ns"] = None
    assert _blocks(hosts, ["BMinimumAdoptions"])["accepted"].to_list() == [True, False]


def test_a_rejected_block_counts_once_for_each_reason() -> None:
    hosts = _straight(4)
    hosts["node-0"][0]["size_bytes"] = 10
    filters = ["SlotGEq=10", "BSizeGEq=11", "SlotLEq=15"]
    blocks = _blocks(hosts, filters)
    assert blocks["rejected_because"].to_list() == ["SlotGEq 10; BSizeGEq 11", None, "SlotLEq 15"]
    assert rejections(blocks, parse_conditions(filters, [], 3)) == {
        "incomplete forging data": 0,
        "SlotGEq 10": 1,
        "BSizeGEq 11": 1,
        "SlotLEq 15": 1,
    }


# --- comparison with plain loops -------------------------------------------------------------------------------------

_STEPS = {
    "started": "forge_started_s",
    "block_context": "forge_block_context_s",
    "ledger_state": "forge_ledger_state_s",
    "ledger_view": "forge_ledger_view_s",
    "leadership": "forge_leadership_s",
    "ticked": "forge_ticked_s",
    "snapshot": "forge_snapshot_s",
    "forged": "forge_forged_s",
    "announced": "forge_announced_s",
    "sending": "forge_sending_s",
    "self_adopted": "forge_self_adopted_s",
    "slot_to_announced": "slot_to_announced_s",
    "first_notice": "peer_notice_first_s",
    "first_fetch": "peer_fetch_first_s",
    **{name.split("_")[1]: name for name in ADOPTION},
}
_PEER = {
    "notice": "peer_notice_s",
    "request": "peer_request_s",
    "fetch": "peer_fetch_s",
    "announced": "peer_announced_s",
    "sending": "peer_sending_s",
    "adopted": "peer_adopted_s",
}
_FILTERS = [*SETS, "BMinimumAdoptions=1", "BSizeLEq=8000", "SlotHasLeaders", "EpSlotLEq=50"]


@given(
    seed=st.integers(0, 2**32),
    filters=st.lists(st.sampled_from(_FILTERS), max_size=3),
    rules=st.sampled_from([RIGHT, PUBLISHED, Rules(count_switches=False)]),
)
def test_a_faulty_cluster_matches_a_naive_analysis(seed: int, filters: list[str], rules: Rules) -> None:
    hosts = troubled_cluster(seed)
    hosts_rows = _timelines(hosts, rules)
    chain, known = _walked(hosts, hosts_rows)
    conditions = parse_conditions(filters, [], len(hosts))
    expected = NaiveAnalysis(hosts, GENESIS, conditions, rules)
    assert chain.blocks == [block.block for block in expected.blocks]
    assert (chain.tip and (chain.tip.block, chain.tip.host)) == expected.tip
    assert (chain.first_height, chain.heights_passed) == (expected.first_height, expected.heights_passed)
    frame = chain_blocks(
        hosts_rows, forgers_of(hosts_rows), observations(hosts_rows), chain, known, genesis=GENESIS, rules=rules
    )
    blocks = admitted(frame, conditions, GENESIS, rules)
    valid = observations(hosts_rows).filter("valid")
    for row, block in zip(blocks.iter_rows(named=True), expected.blocks, strict=True):
        assert row["host"] == block.forger
        assert {name: row[column] for name, column in _STEPS.items()} == {name: block.times[name] for name in _STEPS}
        assert (row["block_battles"], row["adopters"]) == (block.battles, block.adopters)
        assert (row["rejected_because"] or "").split("; ") == (block.reasons or [""])
        own = valid.filter(pl.col("block") == block.block)
        by_host = {
            row["host"]: {name: row[column] for name, column in _PEER.items()} for row in own.iter_rows(named=True)
        }
        assert by_host == {host: {name: times[name] for name in _PEER} for host, times in block.observations.items()}
