"""The decoder's accounting: each line is in exactly one class, wrong sums are rejected, and it is of this version."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import EnvironmentFailure
from chainmark.systems.cardano.accounting import (
    BlockCounts,
    FileCounts,
    Head,
    HostSummary,
    LineCounts,
    MessageCounts,
    Timeline,
    read_head,
    read_summary,
)

SOUND = {
    "raw_lines": 28, "objects": 18, "decoded": 9, "ignored": 6, "skipped": 2, "not_objects": 8, "pieces": 1,
    "malformed": 3, "malformed_envelope": 2, "malformed_body": 1,
}  # fmt: skip
FILES = (20, 8)
DECODED = {"ForgedBlock": 4, "AddedToCurrentChain": 5}
IGNORED = {"Peers": 6}


HEAD: dict[str, Any] = {
    "container": "plain", "wrapper": "none", "lines": 6, "objects": 5, "decoded": 4, "malformed": 1, "first_ns": 10,
    "last_ns": 20, "starts": [[1, 10], [2, 20]], "names": {"node": 6}, "node_version": "10.5.0", "node_revision": None,
    "compiler_version": None, "network_magic": None, "problem": "no object", "backward": 0, "damage": None,
}  # fmt: skip


def _file(lines: int) -> FileCounts:
    fields: dict[str, Any] = {"path": "node.log", "lines": lines, "text_bytes": 100 * lines}
    return FileCounts.model_construct(**fields)


def line_counts(
    counts: dict[str, int],
    files: tuple[int, ...] = FILES,
    decoded: dict[str, int] = DECODED,
    ignored: dict[str, int] = IGNORED,
) -> LineCounts:
    """The line counts of a host with these values."""
    fields: dict[str, Any] = {
        **counts,
        "files": [_file(lines) for lines in files],
        "decoded_by_message": decoded,
        "ignored_by_message": ignored,
    }
    return LineCounts.model_construct(**fields)


@pytest.mark.parametrize(
    ("changed", "laws"),
    [
        ({"raw_lines": 29}, ["29 lines in 28 parts", "29 lines of files in 28 parts"]),
        ({"not_objects": 9}, ["28 lines in 29 parts"]),
        ({"malformed_envelope": 3}, ["3 malformed lines in 4 parts"]),
        ({"objects": 19}, ["19 messages in 18 parts"]),
        ({"skipped": 3}, ["28 lines in 29 parts", "18 messages in 19 parts"]),
        ({"decoded": 10}, ["28 lines in 29 parts", "18 messages in 19 parts", "10 decoded messages in 9 parts"]),
        ({"ignored": 5}, ["28 lines in 27 parts", "18 messages in 17 parts", "5 ignored messages in 6 parts"]),
    ],
)
def test_each_sum_can_fail(changed: dict[str, int], laws: list[str]) -> None:
    assert line_counts(SOUND).imbalances == []
    assert line_counts(SOUND | changed).imbalances == laws


def test_a_lost_file_or_message_is_detected() -> None:
    assert line_counts(SOUND, files=FILES[:1]).imbalances == ["28 lines of files in 20 parts"]
    assert line_counts(SOUND, decoded={"ForgedBlock": 4}).imbalances == ["9 decoded messages in 4 parts"]
    assert line_counts(SOUND, ignored={}).imbalances == ["6 ignored messages in 0 parts"]


@given(st.sampled_from(list(SOUND)), st.integers(-2, 9))
def test_a_single_wrong_count_never_passes(name: str, error: int) -> None:
    """Only `pieces` is not part of a sum: pieces are included in the lines that are not objects."""
    imbalances = line_counts(SOUND | {name: SOUND[name] + error}).imbalances
    assert bool(imbalances) == (error != 0 and name != "pieces")


@pytest.mark.parametrize(
    ("used", "unused", "imbalances"),
    [
        (9, {}, []),
        (5, {"repetition": 3, "implausible time": 1}, []),
        (8, {}, ["9 decoded messages in 8 uses"]),
        (9, {"repetition": 1}, ["9 decoded messages in 10 uses"]),
    ],
)
def test_a_decoded_message_with_no_use_or_two_uses_is_detected(
    used: int, unused: dict[str, int], imbalances: list[str]
) -> None:
    fields: dict[str, Any] = {"line_counts": line_counts(SOUND), "usage": MessageCounts(used=used, unused=unused)}
    assert HostSummary.model_construct(**fields).imbalances == imbalances


def test_the_size_of_a_host_s_logs_is_that_of_all_its_files() -> None:
    assert line_counts(SOUND, files=(20, 8)).text_bytes == 2800


@pytest.mark.parametrize(
    ("objects", "backward", "is_backwards"),
    [
        (10, 6, True),
        (10, 5, False),
        (10, 4, False),
        (3, 2, True),
        (3, 1, False),
        # Two messages are too few to tell.
        (2, 2, False),
        (0, 0, False),
    ],
)
def test_lines_are_newest_first_if_most_of_at_least_three_go_back(
    objects: int, backward: int, *, is_backwards: bool
) -> None:
    assert Head(**HEAD | {"objects": objects, "backward": backward}).runs_backwards is is_backwards


def test_the_beginning_of_a_file_is_read_as_the_decoder_reports_it() -> None:
    assert json.loads(read_head("node.log", json.dumps(HEAD)).model_dump_json()) == HEAD


@pytest.mark.parametrize(
    ("changed", "place", "problem"),
    [
        ({"later": 1}, "later", "Extra inputs are not permitted"),
        (
            {"lines": "many", "starts": [[1, 10], [2, "x"]]},
            "lines",
            "Input should be a valid integer, unable to parse string as an integer",
        ),
        (
            {"starts": [[1, 10], [2, "x"]]},
            "starts.1.1",
            "Input should be a valid integer, unable to parse string as an integer",
        ),
    ],
)
def test_output_of_another_version_is_refused_with_the_first_unexpected_place(
    changed: dict[str, Any], place: str, problem: str
) -> None:
    with pytest.raises(EnvironmentFailure) as refused:
        read_head("node.log", json.dumps(HEAD | changed))
    assert (str(refused.value), refused.value.hint) == (
        f"the decoder's output for node.log is not as expected at `{place}` ({problem}): the compiled core is of a "
        "different version",
        "reinstall chainmark",
    )


def test_a_summary_of_another_version_is_refused_by_its_host() -> None:
    with pytest.raises(EnvironmentFailure, match=r"^the decoder's output for node-7 is not as expected at `host` "):
        read_summary("node-7", "{}")


def test_a_host_with_uncounted_lines_is_refused_by_name() -> None:
    zero = {"records": 0, "gaps": 0, "long_gaps": [], "skipped_future": 0, "skipped_before": 0, "jumps_skipped": 0}
    timeline = {**zero, "first_slot": None, "last_slot": None, "restarts": [], "before_start": 0}
    timelines = dict.fromkeys(("entries", "forged", "errors", "switched_adoptions", "switched_unknown"), 0)
    unknown = dict.fromkeys(
        ("first_ns", "last_ns", "node_version", "node_revision", "compiler_version", "network_magic")
    )
    account: dict[str, Any] = {
        **SOUND,
        **unknown,
        "files": [],
        "decoded_by_message": DECODED,
        "ignored_by_message": IGNORED,
    }
    account |= {"malformed_examples": [], "seconds_before_order": 0.0, "names": {}, "local_addresses": {}}
    summary = {
        "host": "node-7",
        "line_counts": account,
        "timeline": timeline,
        "block_counts": {**timelines, "errors_by": {}},
        "usage": {"used": 9, "unused": {}},
        "links": {"blocks": 0, "lowest_tip": None},
        "loop_offsets_s": None,
        "bytes": 0,
    }
    assert {*summary} == {*HostSummary.model_fields}
    assert {*timeline} == {*Timeline.model_fields}
    assert {*timelines, "errors_by"} == {*BlockCounts.model_fields}
    with pytest.raises(EnvironmentFailure) as refused:
        read_summary("node-7", json.dumps(summary))
    assert (str(refused.value), refused.value.hint) == (
        "the lines of node-7 were not all counted: 28 lines of files in 0 parts",
        "please report this",
    )
