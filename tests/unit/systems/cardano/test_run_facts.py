"""Facts of a run: the rows of the published reports, the conditions for comparing two runs, and the line counts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chainmark.systems.cardano import facts
from chainmark.systems.cardano.accounting import BlockCounts, HostSummary, LineCounts, MessageCounts, Timeline
from chainmark.systems.cardano.analyse import AnalysisResult
from chainmark.systems.cardano.decoding import Excluded
from chainmark.systems.cardano.documents import Meta
from chainmark.systems.cardano.facts import MeasuredNode, Subjects
from chainmark.systems.cardano.filters import FilterCondition
from chainmark.systems.cardano.rules import Rules

from tests.unit.systems.cardano.traces import GENESIS, NS, slot_ns

SWITCHED, SNAPSHOT = "ChainDB.AddBlockEvent.SwitchedToAFork", "ChainDB.LedgerEvent.Snapshot.TookSnapshot"
META = {
    "era": "conway", "batch": "spring", "ident": "node-10.6.2",
    "manifest": {
        "cardano-node": {"version": "10.6.2", "commit": "0123456789ab"},
        "ouroboros-network": "fedcba9876",
        "plutus-core": {"version": "1.53.0.0.0.1.2"},
    },
    "profile_content": {
        "genesis": {"delegators": 7, "utxo": 8, "dreps": 9},
        "generator": {
            "add_tx_size": 100, "inputs_per_tx": 2, "outputs_per_tx": 3, "tps": 12, "tx_count": 9000,
            "plutus": {"type": "t", "script": "Loop2024"},
        },
    },
}  # fmt: skip


def host(
    first_s: float, last_s: float, lines: int, *, unused: Mapping[str, int] | None = None, **more: Any
) -> HostSummary:
    """A host with ``lines`` lines: all except five are messages, and each of these five belongs to another class."""
    counts: dict[str, Any] = {
        "raw_lines": lines, "objects": lines - 5, "decoded": 40, "ignored": lines - 48, "skipped": 3, "malformed": 1,
        "not_objects": 4, "first_ns": slot_ns(0) + round(first_s * NS), "last_ns": slot_ns(0) + round(last_s * NS),
        "decoded_by_message": {"B": 20, "A": 14, SWITCHED: 4, SNAPSHOT: 2}, "ignored_by_message": {"other": 900},
    }  # fmt: skip
    timeline: dict[str, Any] = {"records": 100, "gaps": 10}
    fields: dict[str, Any] = {
        "line_counts": LineCounts.model_construct(**counts | more),
        "usage": MessageCounts(used=40 - sum((unused or {}).values()), unused=dict(unused or {})),
        "block_counts": BlockCounts(
            entries=9, forged=1, errors=1, switched_adoptions=4, switched_unknown=0, errors_by={"b": 2, "a": 1}
        ),
        "timeline": Timeline.model_construct(**timeline),
    }
    return HostSummary.model_construct(**fields)


def subjects(**changed: Any) -> Subjects:
    summaries = {
        "a": host(0.0, 1000.5, 5000, unused={"z late": 3, "repetition": 2}),
        "b": host(10.0, 990.0, 7000, ignored_by_message={"X": 5, "Y": 7, "other": 1}),
    }
    analysis: dict[str, Any] = {
        "conditions": 2, "tip": None, "first_height": 0, "heights_passed": 100, "bridged": [(1, "x")],
        "chain_blocks": 98, "accepted": 90, "rejected": 8, "rejected_by": {"size": 5, "age": 4}, "forged": 98,
        "battles": 0, "unadopted": [], "observations": {"adopted": 88, "errors": 2}, "slots_analysed": 700,
        "analysed_duration_s": 750, "hosts": [], "contradictions": [], "written": {}, "received": {},
    }  # fmt: skip
    files = (SimpleNamespace(), SimpleNamespace(), SimpleNamespace())
    cluster = SimpleNamespace(
        files=files,
        repeated=["r"],
        unread=["u", "v"],
        excluded=[SimpleNamespace(name="c", files=files), SimpleNamespace(name="d", files=files)],
    )
    fields: dict[str, Any] = {
        "genesis": GENESIS, "meta": Meta.model_validate(META), "summaries": summaries,
        "analysis": AnalysisResult(**analysis),
        "conditions": [FilterCondition("SlotGEq", 5), FilterCondition("BlockFullnessGEq", 0.5)],
        "rules": Rules(), "node": MeasuredNode("10.6.1", "abcdef0123", "ghc-9.6"), "cluster": cluster,
        "excluded": Excluded(),
    }  # fmt: skip
    return Subjects(**fields | changed)


def rows(known: Subjects) -> dict[str, str]:
    return {fact.label: fact.value for fact in facts.facts(known)}


def test_the_rows_of_the_published_reports_match_hand_computed_values() -> None:
    """Two hosts: 4995 and 6995 messages; logs of 1000.5 and 980 s, of which 750 s are analysed."""
    assert rows(subjects()) == {
        "Analysis date": "2026-02-02",
        "Cluster system start date": "2026-02-02",
        "Cluster system start time": "02:40:00",
        "Identifier": "node-10.6.2",
        "Run batch": "spring",
        "GHC version": "ghc-9.6",
        "cardano-node version": "10.6.2",
        "ouroboros-consensus version": "unknown",
        "ouroboros-network version": "unknown",
        "cardano-ledger-core version": "unknown",
        "plutus-core version": "1.53.0.0.0.1",
        "cardano-crypto version": "unknown",
        "cardano-prelude version": "unknown",
        "cardano-node git": "0123456",
        "ouroboros-consensus git": "fedcba9",
        "ouroboros-network git": "fedcba9",
        "cardano-ledger-core git": "unknown",
        "plutus-core git": "unknown",
        "cardano-crypto git": "unknown",
        "cardano-prelude git": "unknown",
        "Era": "conway",
        "Delegation map size": "7",
        "Stuffed UTxO size": "8",
        "DRep count": "9",
        "Extra tx payload": "100",
        "Tx inputs": "2",
        "Tx Outputs": "3",
        "TPS": "12.0",
        "Transaction count": "9000",
        "Plutus script": "Loop2024",
        "Machines": "2",
        "Number of filters applied": "2",
        "Log objects emitted per host": "5995.0",
        "Log objects analysed per host": "40.0",
        "Host run time, s": "990.25",
        "Host log line rate, Hz": "6.0714",  # 5000 messages in 1000 s and 7000 in 980 s
        "Total log objects analysed": "80",
        "Run time, s": "1000",
        "Analysed run duration, s": "750",
        "Run time efficiency": "0.75",
        "Node start spread, s": "10",
        "Node stop spread, s": "10.5",
        "Slots analysed": "700",
        "Blocks analysed": "90",
        "Blocks rejected": "8",
    }


def test_undescribed_values_are_unknown_or_taken_from_the_node() -> None:
    known = subjects(meta=Meta())
    rows_shown = rows(known)
    assert (rows_shown["Identifier"], rows_shown["cardano-node version"], rows_shown["cardano-node git"]) == (
        "10.6.1",
        "10.6.1",
        "abcdef0",
    )
    unknown = {"Run batch", "Era", "Delegation map size", "Stuffed UTxO size", "DRep count", "TPS", "Transaction count"}
    assert {label for label in unknown if rows_shown[label] != "unknown"} == set()
    assert rows_shown["Plutus script"] == "—"
    assert rows(replace(known, node=MeasuredNode("10.6.1", None, None)))["cardano-node git"] == "unknown"
    assert rows(replace(known, node=MeasuredNode("10.6.1", None, None)))["GHC version"] == "unknown"


def test_a_ledger_before_dreps_has_none() -> None:
    old = Meta.model_validate({"profile_content": {"genesis": {"utxo": 8}}})
    assert rows(subjects(meta=old))["DRep count"] == "0"


def test_long_texts_are_truncated_as_in_the_published_reports() -> None:
    long = "x" * 40
    described = Meta.model_validate(
        {
            "era": long, "batch": long, "ident": long,
            "profile_content": {"generator": {"tps": 1.23456789, "plutus": {"type": "t", "script": long}}},
        }
    )  # fmt: skip
    three = {
        name: host(0.0, 1000.0, lines, decoded=lines - 20)
        for name, lines in (("a", 5_000_000), ("b", 5_000_000), ("c", 5_000_001))
    }
    rows_shown = rows(subjects(meta=described, node=MeasuredNode(long, None, long), summaries=three))
    texts = ("Identifier", "Run batch", "GHC version", "Era", "Plutus script")
    assert [len(rows_shown[label]) for label in texts] == [32] * 5
    assert rows_shown["cardano-node version"] == "x" * 12
    assert rows_shown["TPS"] == "1.23456"
    assert rows_shown["Log objects emitted per host"] == "4999995.3333"
    assert rows_shown["Log objects analysed per host"] == "4999980.3333"


def test_long_durations_are_truncated_as_in_the_published_reports() -> None:
    """A duration is shown with seven characters, a spread with nine."""
    two = {"a": host(0.0, 100_000.125, 5000), "b": host(1.123456789, 100_001.25, 5000)}
    rows_shown = rows(subjects(summaries=two))
    assert rows_shown["Host run time, s"] == "100000."
    assert (rows_shown["Node start spread, s"], rows_shown["Node stop spread, s"]) == ("1.1234567", "1.125")
    two["b"] = host(1.0, 100_001.123456789, 5000)
    assert rows(subjects(summaries=two))["Node stop spread, s"] == ".99845678"


def test_dates_are_in_utc_in_every_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same logs give the same run on a laptop in Hawaii."""
    at_home = rows(subjects())
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Honolulu")
        time.tzset()
        away = rows(subjects())
    time.tzset()
    assert away == at_home


def test_moments_just_before_a_second_or_a_day_belong_to_it() -> None:
    """As a float, such a moment is rounded to the next second."""
    day_ns = 86_400 * NS
    midnight_ns = (slot_ns(0) // day_ns + 1) * day_ns
    rows_shown = rows(
        subjects(
            genesis=replace(GENESIS, system_start_ns=slot_ns(0) - 1),
            summaries={"a": host(0.0, 9.0, 50, last_ns=midnight_ns - 1)},
        )
    )
    assert rows_shown["Cluster system start time"] == "02:39:59"
    assert rows_shown["Analysis date"] == "2026-02-02"


def test_a_host_without_messages_ran_for_no_time() -> None:
    """Not for a nanosecond, either: the published rows show all digits."""
    lost = {"a": host(0.0, 20.0, 50), "b": host(0.0, 0.0, 50, first_ns=None, last_ns=None)}
    assert rows(subjects(summaries=lost))["Host run time, s"] == "10"


def test_messages_unknown_to_the_published_analysis_are_not_counted_by_its_rules() -> None:
    published = rows(subjects(rules=Rules(published=True)))
    assert published["Log objects analysed per host"] == "34.0"
    assert published["Total log objects analysed"] == "68"
    none = subjects(summaries={"a": host(0.0, 9.0, 5000, decoded_by_message={"A": 40})}, rules=Rules(published=True))
    assert rows(none)["Total log objects analysed"] == "40"


def test_logs_too_short_for_a_rate_have_none() -> None:
    short = {"a": host(0.0, 0.999, 50), "b": host(0.0, 0.2, 50, first_ns=None, last_ns=None)}
    rows_shown = rows(subjects(summaries=short))
    assert rows_shown["Host log line rate, Hz"] == "unknown"
    assert (rows_shown["Run time, s"], rows_shown["Run time efficiency"]) == ("1", "750.")
    one_s = {**short, "c": host(0.0, 1.0, 50)}
    assert rows(subjects(summaries=one_s))["Host log line rate, Hz"] == "50.0"
    instant = {"a": host(0.0, 0.1, 50)}
    assert rows(subjects(summaries=instant))["Run time efficiency"] == "unknown"
    nothing = replace(subjects().analysis, analysed_duration_s=None, slots_analysed=None)
    rows_shown = rows(subjects(analysis=nothing))
    labels = ("Analysed run duration, s", "Run time efficiency", "Slots analysed")
    assert [rows_shown[label] for label in labels] == ["unknown"] * 3


def test_the_workload_contains_all_known_conditions_of_comparability() -> None:
    assert facts.workload(subjects()) == {
        "workload.name": "plutus",
        "workload.tps": 12.0,
        "workload.tx_inputs": 2,
        "workload.tx_outputs": 3,
        "workload.tx_payload_bytes": 100,
        "workload.plutus_script": "Loop2024",
        "ledger.utxo_entries": 8,
        "ledger.delegators": 7,
        "ledger.dreps": 9,
        "network.hosts": 2,
        "chain.slot_length_s": 1.0,
        "chain.epoch_slots": 100,
        "chain.active_slots_coefficient": 0.2,
        "chain.max_block_body_bytes": 90112,
        "analysis.filters": ["SlotGEq 5", "BlockFullnessGEq 0.5"],
        "analysis.rules": "right",
        "analysis.count_switches": True,
    }
    bare = facts.workload(subjects(meta=Meta(), rules=Rules(published=True)))
    assert {key.partition(".")[0] for key in bare} == {"network", "chain", "analysis"}
    assert (bare["analysis.rules"], bare["analysis.count_switches"]) == ("published", False)


def test_a_profile_contains_the_workload_and_the_analysis_settings() -> None:
    slow = replace(GENESIS, slot_length_s=0.5)
    assert facts.profile(subjects(genesis=slow), "x")["chain"] == {
        "slot_length_s": 0.5, "active_slots_coefficient": 0.2, "epoch_slots": 100, "security_parameter": 2,
        "max_block_body_bytes": 90112,
    }  # fmt: skip
    profile = facts.profile(subjects(), "of-logs")
    assert (profile["system"], profile["name"]) == ("cardano", "of-logs")
    assert profile["chain"] == {
        "slot_length_s": 1.0, "active_slots_coefficient": 0.2, "epoch_slots": 100, "security_parameter": 2,
        "max_block_body_bytes": 90112,
    }  # fmt: skip
    assert profile["workload"] == {
        "name": "plutus", "tps": 12.0, "tx_inputs": 2, "tx_outputs": 3, "tx_payload_bytes": 100,
        "plutus_script": "Loop2024",
    }  # fmt: skip
    assert profile["analysis"] == {
        "filters": ["SlotGEq 5", "BlockFullnessGEq 0.5"], "rules": "right", "count_switches": True
    }  # fmt: skip


def test_builds_differ_in_packages_and_sides_in_era_and_compiler() -> None:
    known = subjects()
    assert facts.configuration(known).effective == {
        "packages": {
            "cardano-node": "10.6.2 (0123456)",
            "ouroboros-consensus": "unknown (fedcba9)",
            "ouroboros-network": "unknown (fedcba9)",
            "plutus-core": "1.53.0.0.0.1.2",
        }
    }
    assert facts.conditions(known) == {"era": "conway", "compiler": "ghc-9.6"}
    nobody = subjects(meta=Meta(), node=MeasuredNode("unknown", None, None))
    assert facts.configuration(nobody).effective == {}
    assert facts.conditions(nobody) == {}


def test_every_line_message_and_block_is_counted_in_one_class() -> None:
    own = replace(subjects().analysis, received={"adopted": 5})
    assert facts.counts(subjects(analysis=own))["blocks that the host knew"] == {"adopted": 5}
    assert facts.counts(subjects()) == {
        "lines": {"decoded": 80, "ignored": 11904, "skipped": 6, "malformed": 2, "not objects": 8},
        "messages": {"used": 75, "not used: repetition": 2, "not used: z late": 3},
        "decoded messages": {"A": 28, "B": 40, SWITCHED: 8, SNAPSHOT: 4},
        "ignored messages": {"Y": 7, "X": 5, "other": 901},
        "hosts": {"read": 2, "left out": 2},
        "files that look like logs": {"read": 3, "copies": 1, "not read": 2, "of hosts left out on request": 6},
        "heights of the chain": {"forger known": 97, "forger in no log": 1, "block in no log": 2},
        "blocks of the chain": {"analysed": 90, "rejected": 8},
        "blocks rejected, by condition": {"age": 4, "size": 5},
        "observations of the blocks analysed": {"adopted": 88, "errors": 2},
        "blocks with impossible event times": {"a": 2, "b": 4},
        "adoptions by a switch to a fork": {"counted": 8, "not counted": 0},
        "slots": {"logged": 180, "filled": 20},
        "lines of a": {"decoded": 40, "ignored": 4952, "skipped": 3, "malformed": 1, "not objects": 4},
        "messages of a": {"used": 35, "not used: repetition": 2, "not used: z late": 3},
        "lines of b": {"decoded": 40, "ignored": 6952, "skipped": 3, "malformed": 1, "not objects": 4},
    }


def test_the_counts_have_a_fixed_order() -> None:
    """Two imports of the same logs give the same bytes."""
    counts = facts.counts(subjects())
    assert list(counts["messages"]) == ["used", "not used: repetition", "not used: z late"]
    assert list(counts["decoded messages"]) == ["A", "B", SWITCHED, SNAPSHOT]
    assert list(counts["ignored messages"]) == ["Y", "X", "other"], "most frequent first, messages without a name last"
    assert list(counts["blocks rejected, by condition"]) == ["age", "size"]
    assert list(counts["blocks with impossible event times"]) == ["a", "b"]
    assert list(counts["messages of a"]) == ["used", "not used: repetition", "not used: z late"]


def test_forty_kinds_of_ignored_messages_are_listed_and_the_rest_is_summed() -> None:
    same = {"a": host(0.0, 9.0, 5000, ignored_by_message={"Y": 3, "X": 3, "Z": 3})}
    assert list(facts.counts(subjects(summaries=same))["ignored messages"]) == ["X", "Y", "Z"]
    kinds = {f"K{number:02}": 1000 - number for number in range(42)}
    kinds_counted = facts.counts(subjects(summaries={"a": host(0.0, 9.0, 5000, ignored_by_message=kinds)}))[
        "ignored messages"
    ]
    assert list(kinds_counted) == [*list(kinds)[:40], "all others"]
    assert kinds_counted["all others"] == 1000 - 40 + 1000 - 41


def test_switches_that_the_rules_exclude_still_appear_in_the_counts() -> None:
    for rules in (Rules(published=True), Rules(count_switches=False)):
        counts = facts.counts(subjects(rules=rules))
        assert counts["adoptions by a switch to a fork"] == {"counted": 0, "not counted": 8}


def test_without_excluded_hosts_their_class_is_zero() -> None:
    whole = SimpleNamespace(files=["f"], repeated=[], unread=[], excluded=[])
    counts = facts.counts(subjects(cluster=whole))
    assert counts["files that look like logs"] == {"read": 1, "copies": 0, "not read": 0}
    assert counts["hosts"] == {"read": 2, "left out": 0}


def test_unreadable_logs_of_excluded_hosts_are_a_class_of_their_own() -> None:
    """Two hosts with three logs each are excluded; those of one cannot be read."""
    counts = facts.counts(subjects(excluded=Excluded(unreadable={"d": "it is not gzip"})))
    assert counts["files that look like logs"] == {
        "read": 3, "copies": 1, "not read": 2, "of hosts left out on request": 3,
        "of hosts left out on request, unreadable": 3,
    }  # fmt: skip
