"""`chainmark block` on the command line: the intended block, the log lines that report it, or a clear error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.trails.trace import SlowestTraces, Trace

from tests.results import result_in
from tests.unit.cli.commands import chainmark
from tests.unit.store.trail_runs import SLOW, Timelines, key_of, sealed, trail, write_logs

HOSTS = 6


@pytest.fixture(scope="module")
def timelines() -> Timelines:
    """The events of the blocks."""
    return Timelines(HOSTS, 8).fill()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, timelines: Timelines) -> SealedRun:
    """A run in a separate store."""
    return sealed(Store(tmp_path_factory.mktemp("store")), timelines)


@pytest.fixture(autouse=True)
def own_store(run: SealedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of that run, as `--store` would set it."""
    monkeypatch.setenv("CHAINMARK_STORE", str(run.path.parents[1]))


def trace_of(*arguments: str) -> Trace:
    """The block trace on stdout."""
    return result_in(chainmark(*arguments, "--json").stdout, Trace)


def test_a_block_is_shown_by_height_and_by_hash(run: SealedRun) -> None:
    text = chainmark("block", "v1", "3").stdout
    assert f"Block 3 was adopted on {HOSTS} of {HOSTS} hosts; the slowest, {SLOW}," in " ".join(text.split())
    assert key_of("rival")[:16] in text  # the other side of the fork
    for host in range(HOSTS):
        assert f"node-{host}/log.json" in text
    assert trace_of("block", run.run_id, key_of("rival")[:8]).key == key_of("rival")
    assert trace_of("trail", "v1", "block", "3") == trace_of("block", "v1", "3")


def test_without_a_block_the_slowest_are_listed_with_their_last_host(run: SealedRun) -> None:
    trace = trace_of("block", "v1", "3")
    listed = result_in(chainmark("block", "v1", "--slowest", "20", "--json").stdout, SlowestTraces)
    ends = {trace.number: max(place.seconds[trace.end] or 0.0 for place in trace.places) for trace in listed.slowest}
    assert len(ends) == 8  # the blocks on the main chain
    assert list(ends.values()) == sorted(ends.values(), reverse=True)
    assert ends[3] == max(place.seconds[trace.end] or 0.0 for place in trace.places)
    text = " ".join(chainmark("block", "v1").stdout.split())
    assert f"chainmark block {run.run_id}" in text
    assert f"{SLOW} fetched" in text


@pytest.mark.parametrize("container", ["plain", "gzip", "zstd"])
def test_the_lines_belong_to_the_block(timelines: Timelines, tmp_path: Path, container: str) -> None:
    """A line number that is off by one shows another block's line."""
    write_logs(timelines, tmp_path, container)
    lines = trace_of("block", "v1", "2", "--lines", str(tmp_path)).log_lines
    assert {line.place for line in lines} == {"node-2", SLOW, "node-4", "node-5"}  # the forger, and the last three
    for line in lines:
        assert json.loads(line.text) == {"what": ["forged", "noticed", "fetched", "adopted"][line.stage],
                                         "block": key_of("b2")}  # fmt: skip
        assert line.problem == ""


def test_only_the_requested_hosts_are_shown(timelines: Timelines, tmp_path: Path) -> None:
    write_logs(timelines, tmp_path)
    trace = trace_of("block", "v1", "2", "--host", "node-0", "--lines", str(tmp_path))
    assert {line.place for line in trace.log_lines} == {"node-0"}
    text = chainmark("block", "v1", "2", "--host", "node-0").stdout
    assert "node-0/log.json" in text
    assert "node-1/log.json" not in text
    assert f"adopted on {HOSTS} of {HOSTS} hosts" in text  # what is reported about the block remains true


def test_a_changed_log_is_not_shown_as_unchanged(timelines: Timelines, tmp_path: Path) -> None:
    write_logs(timelines, tmp_path)
    forger = tmp_path / "node-2" / "log.json"
    lines = forger.read_text().splitlines()
    forger.write_text("\n".join(["one more", *lines[:-3]]) + "\n\x1b[31m")
    (tmp_path / SLOW / "log.json").unlink()
    log_lines = trace_of("block", "v1", "2", "--lines", str(tmp_path)).log_lines
    problems = {(line.place, line.problem.split(":")[0]) for line in log_lines if line.problem}
    assert ("node-2", "this line does not mention the block") in problems
    assert (SLOW, "the file does not exist") in problems
    assert all(not line.problem for line in log_lines if line.place in ("node-4", "node-5"))
    late = trace_of("block", "v1", "8", "--host", "node-2", "--lines", str(tmp_path)).log_lines
    assert {line.problem.split(":")[0] for line in late} >= {"the file has fewer lines now"}
    assert "\x1b" not in chainmark("block", "v1", "8", "--host", "node-2", "--lines", str(tmp_path)).stdout


def test_every_format_is_written_with_the_lines(timelines: Timelines, tmp_path: Path) -> None:
    write_logs(timelines, tmp_path / "logs")
    names = {"--html": "b.html", "--pdf": "b.pdf", "--md": "b.md", "--json-file": "b.json"}
    targets = [part for option, name in names.items() for part in (option, str(tmp_path / name))]
    chainmark("block", "v1", "2", "--lines", str(tmp_path / "logs"), *targets)
    assert (tmp_path / "b.pdf").read_bytes().startswith(b"%PDF")
    assert f'{{"what":"forged","block":"{key_of("b2")}"}}' in (tmp_path / "b.md").read_text()
    assert "&#34;what&#34;:&#34;forged&#34;" in (tmp_path / "b.html").read_text()
    assert result_in((tmp_path / "b.json").read_text(), Trace).log_lines


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("block", "v1", "99"), "has no block `99`", "the heights of its blocks are 1 to 8"),
        (("block", "v1", "2", "--host", "node-77"), "has no host `node-77`", "is known to node-0"),
        (("block", "v1", "5", "--host", f"node-{HOSTS - 1}"), "has no event of block 5", "is known to"),
        (("block", "v1", "2", "--lines", "nowhere"), "`nowhere` has no file `node-", "imported from"),
        (("trail", "v1", "parcel", "2"), "has no trail `parcel`", "chainmark block"),
        (("block", "v7", "2"), "no run matches `v7`", "runs list"),
    ],
)
def test_a_block_that_cannot_be_shown_is_reported_in_one_sentence(
    arguments: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        chainmark(*arguments)
    assert hint in (caught.value.hint or "")


def test_runs_without_trace_data_are_reported_in_one_sentence(
    timelines: Timelines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path))
    sealed(store, timelines, trails=[])
    with pytest.raises(UsageError, match="has no data to trace a block"):
        chainmark("block", "v1", "2")
    sealed(store, timelines, "v2", trails=[trail("parcel")])
    with pytest.raises(UsageError, match="has no trail `block`") as caught:
        chainmark("block", "v2", "2")
    assert "parcel KEY" in (caught.value.hint or "")
    sealed(store, timelines, "v2", trails=[trail("parcel")])
    with pytest.raises(UsageError, match="matches 2 runs"):
        chainmark("block", "v2", "2")


def test_paths_in_a_run_cannot_leave_the_folder(tmp_path: Path) -> None:
    """Users share runs. A run must not be able to print private files of the person who reads it."""
    timelines = Timelines(3, 1).fill()
    (tmp_path / "secret").write_text(f"{key_of('b1')}\n" * 20)
    for row in timelines.rows:
        for stage in ("forged", "noticed", "fetched", "adopted"):
            row[f"{stage}_file"] = "../secret" if row[f"{stage}_file"] else None
    sealed_run = sealed(Store(tmp_path / "store"), timelines, "v9")
    (tmp_path / "logs").mkdir()
    with pytest.raises(UsageError, match="has no file"):
        chainmark(
            "--store", str(tmp_path / "store"), "block", sealed_run.run_id, "1", "--lines", str(tmp_path / "logs")
        )
