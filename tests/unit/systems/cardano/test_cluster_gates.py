"""Gates and warnings of a cluster's run: each gate at its limit, each message for its own cause, computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chainmark.core.manifest import Gate, GateKind, GateStatus
from chainmark.systems.cardano.accounting import (
    FileCounts,
    HostSummary,
    LineCounts,
    MalformedLine,
    MessageCounts,
    Timeline,
)
from chainmark.systems.cardano.analyse import AnalysisResult, HostResult
from chainmark.systems.cardano.clocks import Contradiction
from chainmark.systems.cardano.gates import GateFindings, GateInputs, find, silences
from chainmark.systems.cardano.unread import Unread

from tests.unit.systems.cardano.traces import GENESIS, slot_ns, slot_row, slots_frame

PASS, WARN, FAIL = GateStatus.PASS, GateStatus.WARN, GateStatus.FAIL
BEGIN_NS, END_NS = slot_ns(0), slot_ns(1000)
# A run without any event worth reporting.
SOUND: dict[str, Any] = {
    "conditions": 3, "first_height": 0, "heights_passed": 100, "chain_blocks": 100, "accepted": 90, "rejected": 10,
    "forged": 101, "battles": 1, "slots_analysed": 900, "analysed_duration_s": 900, "tip": "a tip",
} | {name: [] for name in ("bridged", "unadopted", "hosts", "contradictions")} | {
    name: {} for name in ("rejected_by", "observations", "written", "received")
}  # fmt: skip
LINE = MalformedLine(file="/logs/node-0/node.json", line=1234, reason="no object", text="x" * 100)


def analysed(**changed: Any) -> AnalysisResult:
    return AnalysisResult(**SOUND | changed)


def host(
    *,
    restarts: Sequence[int] = (),
    offsets_s: tuple[float, float, float] | None = (0.0, 0.002, 0.1),
    unused: Mapping[str, int] | None = None,
    **changed: Any,
) -> HostSummary:
    """The decoder's summary of a host that logged from begin to end."""
    counts: dict[str, Any] = {
        "raw_lines": 1000, "malformed": 0, "malformed_examples": [], "files": [],
        "first_ns": BEGIN_NS, "last_ns": END_NS, "seconds_before_order": 0.0, "names": {"node": 1000},
    }  # fmt: skip
    timeline: dict[str, Any] = {"restarts": list(restarts)}
    fields: dict[str, Any] = {
        "line_counts": LineCounts.model_construct(**counts | changed),
        "timeline": Timeline.model_construct(**timeline),
        "usage": MessageCounts(used=1, unused=dict(unused or {})),
        "loop_offsets_s": offsets_s,
    }
    return HostSummary.model_construct(**fields)


def cluster(*logs: tuple[str, int], unread: Sequence[Unread] = ()) -> Any:
    """Logs by name, with the number of messages at the start of each."""
    files = [SimpleNamespace(name=name, head=SimpleNamespace(objects=objects)) for name, objects in logs]
    return SimpleNamespace(files=files, unread=unread)


def judged(summaries: Mapping[str, HostSummary] | None = None, **changed: Any) -> GateInputs:
    hosts = summaries if summaries is not None else {"node-0": host(), "node-1": host()}
    fields: dict[str, Any] = {
        "summaries": hosts, "slots": dict.fromkeys(hosts), "genesis": GENESIS, "analysis": analysed(), "lonely": [],
        "missing": [], "cluster": cluster(("node-0/a", 5), ("node-1/a", 5)),
    }  # fmt: skip
    return GateInputs(**fields | changed)


def gate(findings: GateFindings, gate_id: str) -> Gate:
    return next(gate for gate in findings.gates if gate.id == gate_id)


def reported(findings: GateFindings, gate_id: str) -> tuple[GateStatus, str, str]:
    check = gate(findings, gate_id)
    return check.status, check.measured, check.detail


def test_a_sound_run_passes_every_gate_without_warnings() -> None:
    findings = find(judged())
    assert [(gate.id, gate.status, gate.detail) for gate in findings.gates] == [
        (name, PASS, "")
        for name in (
            "logs_read", "hosts_complete", "no_restarts", "no_gaps", "lines_readable", "clocks", "chain_complete",
            "blocks_analysed", "messages_complete",
        )
    ]  # fmt: skip
    assert (findings.incidents, findings.warnings) == ([], [])
    assert [gate.measured for gate in findings.gates] == [
        "2 files read, 0 not", "2 of 2 hosts", "0 restarts", "0 slots in gaps", "0 of 2000 lines malformed",
        "no contradiction", "100 of 100 heights, 100 %", "90 of 100 blocks", "complete",
    ]  # fmt: skip
    assert [(gate.label, gate.limit) for gate in findings.gates] == [
        ("all logs read", "all files that look like logs are read"),
        ("hosts log until the end", "every host's log begins and ends within 120 s of the others'"),
        ("no node restarted", "none"),
        ("no gaps in the logs", "no host logs nothing for 10 slots"),
        ("log lines readable", "at most 0.1 %"),
        ("clocks agree", "no header precedes its block by more than 10 ms, slots begin on time"),
        ("blocks of the chain known", "99 %; below 95 % the run is invalid"),
        ("blocks analysed", "at least 1"),
        ("messages complete", "every host emits what the analysis needs"),
    ]
    # A node that crashes counts against the release. A gap in a log does not.
    assert [gate.id for gate in findings.gates if gate.kind is GateKind.SUBJECT] == ["no_restarts"]


def test_unread_files_that_look_like_logs_are_listed_by_reason() -> None:
    unread = [Unread("node-2/b.zip", "packed"), Unread("node-3/c.zip", "packed"), Unread("d.log", "a pipe")]
    findings = find(judged(cluster=cluster(("node-0/a", 5), unread=unread)))
    expected = "node-2/b.zip and node-3/c.zip: packed; d.log: a pipe"
    assert reported(findings, "logs_read") == (WARN, "1 file read, 3 not", expected)


def test_a_file_that_does_not_start_like_a_log_is_reported() -> None:
    warnings = find(judged(cluster=cluster(("node-0/a", 5), ("node-0/b", 0)))).warnings
    assert warnings == ["node-0/b: no node message at the beginning, although it was read as a log"]
    two = find(judged(cluster=cluster(("node-0/a", 0), ("node-0/b", 0)))).warnings
    assert two == ["node-0/a and node-0/b: no node message at the beginning, although they were read as a log"]


def test_hosts_that_start_late_or_end_early_are_reported_with_the_time() -> None:
    """A difference of two minutes still counts as complete."""
    limit_ns, second_ns = 120 * 10**9, 10**9
    at_limit = {"a": host(), "b": host(first_ns=BEGIN_NS + limit_ns, last_ns=END_NS - limit_ns)}
    assert reported(find(judged(at_limit)), "hosts_complete") == (PASS, "2 of 2 hosts", "")
    beyond = {"a": host(), "b": host(first_ns=BEGIN_NS + limit_ns + 1, last_ns=END_NS - limit_ns - 1)}
    assert [incident.what for incident in find(judged(beyond)).incidents] == [
        "b starts logging, 120 s after the first host",
        "b stops logging, 120 s before the last host",
    ]
    beyond = {
        "d": host(last_ns=END_NS - limit_ns - second_ns),
        "c": host(first_ns=BEGIN_NS + limit_ns + second_ns, last_ns=END_NS - 2 * limit_ns),
        "e": host(),
        "f": host(first_ns=None, last_ns=None),
    }
    findings = find(judged(beyond))
    assert reported(findings, "hosts_complete") == (WARN, "2 of 4 hosts", "late or cut short: c and d")
    assert [(incident.time_ns, incident.what) for incident in findings.incidents] == [
        (BEGIN_NS + 121 * second_ns, "c starts logging, 121 s after the first host"),
        (END_NS - 240 * second_ns, "c stops logging, 240 s before the last host"),
        (END_NS - 121 * second_ns, "d stops logging, 121 s before the last host"),
    ]


def test_restarts_are_counted_and_reported_in_order_of_time() -> None:
    findings = find(judged({"b": host(restarts=[30, 10]), "a": host(restarts=[20])}))
    assert reported(findings, "no_restarts") == (WARN, "3 restarts", "a and b")
    assert [incident.what.split()[0] for incident in findings.incidents] == ["b", "a", "b"]
    once = find(judged({"b": host(restarts=[10]), "a": host()}))
    assert reported(once, "no_restarts") == (WARN, "1 restart", "b")
    assert once.incidents[0].what == "b had restarted by this time: its counters start again"


def _slots(folder: Path, name: str, *gaps: range) -> Path:
    missing = {slot for gap in gaps for slot in gap}
    path = folder / f"{name}.parquet"
    slots_frame(slot_row(slot, is_gap=slot in missing) for slot in range(100)).write_parquet(path)
    return path


def test_ten_slots_without_a_line_are_a_gap_and_nine_are_not(tmp_path: Path) -> None:
    assert silences(_slots(tmp_path, "a", range(10, 19), range(20, 30), range(80, 100))) == [(20, 29), (80, 99)]
    assert silences(_slots(tmp_path, "b", *(range(slot, slot + 1) for slot in range(0, 100, 2)))) == []


def test_gaps_are_reported_with_their_slots_and_duration(tmp_path: Path) -> None:
    slots = {
        "a": _slots(tmp_path, "a", range(60, 70), range(20, 40)),
        "b": _slots(tmp_path, "b", range(30, 45)),
        "c": _slots(tmp_path, "c", range(30, 39)),
        "d": None,
    }
    slow = replace(GENESIS, slot_length_s=2.0)
    findings = find(judged(slots=slots, genesis=slow))
    assert reported(findings, "no_gaps") == (WARN, "45 slots in gaps", "a and b")
    assert [(incident.time_ns, incident.what) for incident in findings.incidents] == [
        (slow.slot_start_ns(20), "a logs nothing about slots 20 to 39, 40 s"),
        (slow.slot_start_ns(30), "b logs nothing about slots 30 to 44, 30 s"),
        (slow.slot_start_ns(60), "a logs nothing about slots 60 to 69, 20 s"),
    ]


@pytest.mark.parametrize(("malformed", "status"), [(2, PASS), (3, WARN)])
def test_one_line_in_a_thousand_may_be_malformed(malformed: int, status: GateStatus) -> None:
    findings = find(judged({"a": host(malformed=malformed - 1), "b": host(malformed=1)}))
    assert gate(findings, "lines_readable").status is status
    assert gate(findings, "lines_readable").measured == f"{malformed} of 2000 lines malformed"


def test_one_malformed_line_per_host_is_shown_for_five_hosts() -> None:
    summaries = {f"n{number}": host(malformed=number, malformed_examples=[LINE, LINE]) for number in range(8)}
    summaries["n8"] = host(malformed=6, seconds_before_order=2.0)
    findings = find(judged(summaries))
    assert gate(findings, "lines_readable").detail == "most of them in n7"
    shown = f"such as line 1234 of node.json (no object): '{'x' * 80}'"
    assert findings.warnings == [
        f"n1 has 1 malformed line, {shown}",
        *(f"n{number} has {number} malformed lines, {shown}" for number in range(2, 6)),
        "the lines of n8 go back in time, by up to 2.0 s",
    ]


def test_damaged_unordered_and_mixed_logs_are_reported() -> None:
    known: list[dict[str, Any]] = [{"path": "/logs/node-0/a.gz", "damage": None}]
    known.append({"path": "/logs/node-0/b.gz", "damage": "cut off"})
    good, bad = (FileCounts.model_construct(**log) for log in known)
    findings = find(
        judged(
            {
                "a": host(files=[good, bad]),
                "b": host(seconds_before_order=1.0, names={}),
                "c": host(seconds_before_order=1.5),
                "d": host(names={"y": 1, "x": 2}),
            }
        )
    )
    assert findings.warnings == [
        "b.gz of a is damaged: cut off",
        "the lines of c go back in time, by up to 1.5 s",
        "the log of d has lines of the hosts x and y; all of them are attributed to d",
    ]


@pytest.mark.parametrize(
    ("offset_s", "detail"),
    [
        (-0.010, ""),
        (-0.011, "the forge loop of b runs −0.011 s off its slots' starts"),
        (1.0, ""),
        (1.001, "the forge loop of b runs +1.001 s off its slots' starts"),
    ],
)
def test_a_forge_loop_may_be_late_by_one_slot_and_early_by_the_clock_tolerance(offset_s: float, detail: str) -> None:
    findings = find(judged({"a": host(offsets_s=None), "b": host(offsets_s=(-9.0, offset_s, 9.0))}))
    status, measured, explanation = reported(findings, "clocks")
    assert (status, explanation) == (WARN if detail else PASS, detail)
    assert measured == ("1 of 2 hosts contradict the others" if detail else "no contradiction")


def test_a_header_may_precede_its_block_by_the_clock_tolerance() -> None:
    near = [Contradiction("a", "b", 0.010), Contradiction("a", "c", 0.010)]
    assert reported(find(judged(analysis=analysed(contradictions=near))), "clocks")[0] is PASS
    far = [Contradiction("a", "b", 0.020), Contradiction("a", "c", 0.030)]
    findings = find(judged({"a": host(offsets_s=(0.0, 3.0, 3.0)), "b": host()}, analysis=analysed(contradictions=far)))
    assert reported(findings, "clocks") == (
        WARN,
        "1 of 2 hosts contradict the others",
        "the forge loop of a runs +3.000 s off its slots' starts; the clock of a is 0.030 s or more ahead of 2 others'",
    )


def test_at_most_five_wrong_clocks_are_listed() -> None:
    summaries = {f"n{number}": host(offsets_s=(0.0, 2.0, 2.0)) for number in range(7)}
    _, measured, detail = reported(find(judged(summaries)), "clocks")
    assert measured == "7 of 7 hosts contradict the others"
    assert [name for name in summaries if name in detail] == ["n0", "n1", "n2", "n3", "n4"]


def test_the_missing_blocks_of_a_chain_are_counted_with_its_first_height() -> None:
    findings = find(judged(analysis=analysed(heights_passed=1000, chain_blocks=980, first_height=7)))
    assert reported(findings, "chain_complete") == (WARN, "980 of 1000 heights, 98 %", "20 blocks are in no log")
    assert findings.warnings == ["the logs begin at block 7 of the chain"]
    assert reported(find(judged(analysis=analysed(heights_passed=200))), "chain_complete")[0] is FAIL
    one = find(judged(analysis=analysed(heights_passed=100, chain_blocks=99)))
    assert reported(one, "chain_complete") == (PASS, "99 of 100 heights, 99 %", "1 block is in no log")


def test_a_run_without_blocks_is_reported() -> None:
    nothing = analysed(tip=None, first_height=None, heights_passed=0, chain_blocks=0, accepted=0, rejected=0)
    findings = find(judged(analysis=nothing))
    assert reported(findings, "chain_complete") == (WARN, "0 of 0 heights", "")
    assert reported(findings, "blocks_analysed") == (FAIL, "0 of 0 blocks", "")
    assert findings.warnings == ["no block is known"]


def test_blocks_without_a_forging_line_are_listed() -> None:
    def warnings_for(count: int) -> list[str]:
        bridged = [(number, f"{number:02}23456789abcdef") for number in range(count)]
        return find(judged(analysis=analysed(bridged=bridged))).warnings

    assert warnings_for(0) == []
    assert warnings_for(1) == [
        "the forging of 1 block of the chain is in no log, so the forging metrics lack it: 0 (0023456789ab…)"
    ]
    (five,), (seven,) = warnings_for(5), warnings_for(7)
    assert five.startswith("the forging of 5 blocks of the chain is in no log, so the forging metrics lack them: 0 (")
    assert five.endswith(", 4 (0423456789ab…)")
    assert seven.endswith(", 4 (0423456789ab…) and 2 more")


def test_one_host_s_log_is_not_blamed_for_what_others_forged() -> None:
    def warnings_for(count: int) -> list[str]:
        bridged = [(number, "ab" * 9) for number in range(count)]
        return find(judged({"relay": host()}, analysis=analysed(bridged=bridged))).warnings

    own = "forged by other hosts: the forging metrics are of this host's own blocks"
    assert warnings_for(55) == [f"55 blocks of the chain were {own}"]
    assert warnings_for(2) == [f"2 blocks of the chain were {own}"]
    assert warnings_for(1) == [f"1 block of the chain was {own}"]


def test_hosts_on_a_separate_chain_are_reported() -> None:
    assert find(judged(lonely=["a"])).warnings == ["a shares no block with the other hosts"]
    assert find(judged(lonely=["a", "b"])).warnings == ["a and b share no block with the other hosts"]


def test_implausible_messages_are_counted_per_host() -> None:
    unused = {"implausible time": 1200, "repetition": 9}
    summaries = {"z": host(), **{f"n{number}": host(unused=unused) for number in range(7)}}
    assert find(judged(summaries)).warnings == [
        "messages that are not used (implausible time): n0 1200, n1 1200, n2 1200, n3 1200, n4 1200 and 2 more hosts"
    ]
    one_host = {"a": host(unused={"slot not begun": 1})}
    assert find(judged(one_host)).warnings == ["messages that are not used (slot not begun): a 1"]
    five = {f"n{number}": host(unused={"slot not begun": 1}) for number in range(5)}
    assert find(judged(five)).warnings[0].endswith(", n4 1")


def test_filters_that_reject_all_blocks_are_reported() -> None:
    rejected = {"size": 100, "spacing": 0, "adoption": 40}
    findings = find(judged(analysis=analysed(accepted=0, rejected=100, rejected_by=rejected)))
    assert reported(findings, "blocks_analysed") == (FAIL, "0 of 100 blocks", "rejected by: size 100, adoption 40")
    gate_findings = find(judged(analysis=analysed(accepted=1, rejected=99, rejected_by=rejected)))
    assert reported(gate_findings, "blocks_analysed") == (PASS, "1 of 100 blocks", "")


def test_a_condition_on_more_hosts_than_were_read_is_reported_as_the_reason() -> None:
    """`--exclude` made a run invalid, and the message did not name the filter in the description as the cause."""
    conditions = {"BMinimumAdoptions 5": 100}
    left = find(
        judged({f"n{number}": host() for number in range(5)}, analysis=analysed(accepted=0, rejected_by=conditions))
    )
    assert reported(left, "blocks_analysed")[2] == (
        "rejected by: BMinimumAdoptions 5 100; of 5 hosts at most 4 adopt another's block, so choose other conditions "
        "with `--filter`"
    )
    all_read = judged(
        {f"n{number}": host() for number in range(6)}, analysis=analysed(accepted=0, rejected_by=conditions)
    )
    assert reported(find(all_read), "blocks_analysed")[2] == "rejected by: BMinimumAdoptions 5 100"
    alone = judged({"n0": host()}, analysis=analysed(accepted=0, rejected_by={"size": 100}))
    assert reported(find(alone), "blocks_analysed")[2] == "rejected by: size 100"


def test_hosts_without_slots_and_blocks_without_adoption_are_reported() -> None:
    host_result = HostResult("a", None, 100, 9, 1, 9, 0, 0, 0, 0)
    idle = replace(host_result, name="b", selected_slots=0, first_slot=None, last_slot=None)
    assert find(judged(analysis=analysed(unadopted=["b1", "b2"], hosts=[host_result, idle]))).warnings == [
        "no slot of b passes the filters: excluded from the resource usage",
        "2 analysed blocks were adopted by no host",
    ]


def test_message_types_that_nodes_never_emit_are_listed_in_full() -> None:
    missing = ["a never tells its mempool", "b never tells its memory"]
    findings = find(judged(missing=missing))
    expected = (WARN, "2 message types are missing", "the warnings name them")
    assert reported(findings, "messages_complete") == expected
    assert findings.warnings == missing
