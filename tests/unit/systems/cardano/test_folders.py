"""Hostile folders of logs: an error names what prevents a run, and a warning lists the files that are not read."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.core.manifest import GateStatus, Manifest, Status
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.mixing import slot_length_s

from tests.unit.systems.cardano import hostile as h
from tests.unit.systems.cardano.clusters import ingest, make_cluster
from tests.unit.systems.cardano.test_ingest import gate


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hosts, some blocks."""
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", hosts=3, slots=80)


@pytest.fixture(scope="module")
def clean(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """The run imported from the unchanged logs."""
    return ingest(tmp_path_factory.mktemp("store"), cluster, filters=()).run


def changed(cluster: Path, folder: Path, change: h.Change) -> Path:
    """A changed copy of the logs."""
    shutil.copytree(cluster, folder / "logs")
    change(folder / "logs")
    return folder / "logs"


def _not_text(folder: Path) -> None:
    path = folder / "node-0" / "stdout"
    path.rename(path.with_name(os.fsdecode(b"stdout-\xff")))


def _turned(folder: Path) -> None:
    path = folder / "node-1" / "stdout"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))


GARBAGE = h.every(lambda host: h.write(f"{host}/stdout", "hello\n" * 9))
REFUSED: list[tuple[str, h.Change, str, str]] = [
    # Two hosts with the same content: both would count the same blocks.
    (
        "a log copied to another host",
        h.copy("node-0/stdout", "node-1/stdout"),
        "node-0/stdout and node-1/stdout are the same log",
        "--exclude node-1",
    ),
    (
        "the copy is packed",
        h.together(h.remove("node-1/stdout"), h.copy("node-0/stdout", "node-1/stdout.gz", h.gz)),
        "node-0/stdout and node-1/stdout.gz are the same log",
        "--exclude node-1",
    ),
    (
        "both are packed otherwise",
        h.together(h.copy("node-0/stdout", "node-1/stdout", h.xz), h.pack("node-0/stdout", "node-0/stdout.gz", h.gz)),
        "node-0/stdout.gz and node-1/stdout are the same log",
        "--exclude node-1",
    ),
    (
        "a hard link",
        h.hard_link("node-1/stdout", "node-0/stdout"),
        "node-0/stdout and node-1/stdout are the same log",
        "--exclude node-1",
    ),
    (
        "a link",
        h.link("node-1/stdout", "../node-0/stdout"),
        "node-0/stdout and node-1/stdout are the same file",
        "link",
    ),
    ("a linked folder", h.link("node-1", "node-0"), "node-0/stdout and node-1/stdout are the same file", "link"),
    (
        "an older part is a copy",
        h.copy("node-0/stdout", "node-1/stdout.1"),
        "node-0/stdout and node-1/stdout.1 are the same log",
        "--exclude node-1",
    ),
    # Two folders with logs of one host.
    (
        "lines of another host",
        h.rewrite(h.named("node-0"), "node-1"),
        "node-0 and node-1 are both logs of the host node-0",
        "--exclude node-1",
    ),
    (
        "a part of another host's log",
        h.cut("node-0/stdout", "node-1/stdout.1"),
        "node-0 and node-1 are both logs of the host node-0, according to the lines of node-1/stdout.1",
        "--exclude node-1",
    ),
    (
        "the tracer's folder beside the host's",
        h.cut("node-0/stdout", "node-0_30001/node.json"),
        "node-0_30001 and node-0 are both logs of the host node-0|node-0 and node-0_30001 are both logs",
        "--exclude node-0",
    ),
    (
        "one log in two folders",
        h.cut("node-0/stdout", "node-9/stdout"),
        "node-0 and node-9 are both logs of the host node-0",
        "--exclude node-9",
    ),
    (
        "one log in two folders of other names",
        h.together(h.rewrite(h.named("pool"), "node-0"), h.cut("node-0/stdout", "node-9/stdout")),
        "node-9 and node-0 are both logs of the host pool",
        "one folder",
    ),
    # No logs: the error must not ask for a genesis.
    (
        "no logs",
        h.together(h.NO_GENESIS, h.every(lambda host: h.remove(f"{host}/stdout"))),
        "contains no logs of Cardano nodes",
        "node-0/",
    ),
    (
        "empty logs",
        h.together(h.NO_GENESIS, h.every(lambda host: h.write(f"{host}/stdout", b""))),
        "no logs: node-0/stdout, node-1/stdout and node-2/stdout: .* no lines",
        "node-0/",
    ),
    (
        "logs of something else",
        h.together(h.NO_GENESIS, GARBAGE),
        "no logs: node-0/stdout, .* no line that cardano-node prints",
        "node-0/",
    ),
    (
        "links to nothing",
        h.every(lambda host: h.link(f"{host}/stdout", "nowhere")),
        r"contains no logs of Cardano nodes; not read: node-0/stdout \(a broken link\)",
        "node-0/",
    ),
    (
        "logs of two clusters below",
        h.together(h.move("node-0", "a/node-0"), h.move("node-1", "b/node-1"), h.remove("node-2")),
        r"contains no logs .* a/node-0/stdout \(in a folder next to the logs\)",
        "node-0/",
    ),
    # Logs of two runs: a system start computed between the two would be wrong for both.
    (
        "two runs without a genesis",
        h.together(h.NO_GENESIS, h.earlier_run("node-1/stdout")),
        "began at 2026-02-04T18:52:16Z by node-1/stdout; 2026-02-05T18:52:16Z by node-0/stdout and node-2",
        "from its own folder",
    ),
    (
        "a log left over",
        h.earlier_run("node-1/stdout.1"),
        "logs of 2 runs, .* 2026-02-04T18:52:16Z by node-1/stdout.1; 2026-02-05T18:52:16Z by node-1/stdout$",
        "remove logs of other runs",
    ),
    (
        "a log left over without a genesis",
        h.together(h.NO_GENESIS, h.earlier_run("node-1/stdout.1")),
        "logs of 2 runs, .* by node-1/stdout.1; ",
        "remove logs of other runs",
    ),
    # A host whose only log cannot be read.
    (
        "UTF-16",
        h.pack("node-1/stdout", "node-1/stdout", h.utf16),
        r"node-1 has no log lines: not read: node-1/stdout \(UTF-16 text\)",
        "UTF-8",
    ),
    ("zip", h.pack("node-1/stdout", "node-1/stdout.zip", h.zipped), r"node-1/stdout.zip \(an archive\)", "gzip"),
    (
        "zip without its ending",
        h.pack("node-1/stdout", "node-1/stdout", h.zipped),
        r"node-1/stdout \(a zip archive\)",
        "gzip",
    ),
    (
        "bzip2",
        h.pack("node-1/stdout", "node-1/stdout.1.bz2", h.bzip2),
        r"node-1/stdout.1.bz2 \(compressed with bzip2\)",
        "gzip",
    ),
    ("a pipe", h.pipe("node-1/stdout"), r"node-1/stdout \(a pipe\)", "--exclude node-1"),
    (
        "a broken link",
        h.link("node-1/stdout", "nowhere"),
        r"node-1/stdout \(a broken link\)",
        "--exclude node-1",
    ),
    ("a link to itself", h.link("node-1/stdout", "stdout"), r"node-1/stdout \(a broken link\)", "--exclude node-1"),
    (
        "one folder too deep",
        h.move("node-1/stdout", "node-1/logs/stdout"),
        r"node-1/logs/stdout \(in a folder inside a host's folder\)",
        "directly in",
    ),
    (
        "a folder called stdout",
        h.together(h.move("node-1/stdout", "x"), h.move("x", "node-1/stdout/stdout")),
        "node-1/stdout/stdout",
        "directly in",
    ),
    (
        "no name of a log",
        h.move("node-1/stdout", "node-1/messages"),
        r"node-1/messages \(not named like a log\)",
        "--exclude node-1",
    ),
    ("a name that is no text", _not_text, r"node-0/stdout-\\xff \(its name is not UTF-8\)", "--exclude node-0"),
    (
        "the newest line first, as log stores print",
        _turned,
        "the lines of node-1/stdout are in reverse order",
        "tac",
    ),
    (
        "times of another form",
        h.rewrite(lambda line: line.replace('Z","ns"', '","ns"')),
        "no line that cardano-node prints .`at` is missing or not a time.$",
        "JSON lines",
    ),
    # Network magics that are read and differ.
    (
        "another network",
        h.startup("NetworkMagic {unNetworkMagic = 43}"),
        "their network magic is 43, its is 42",
        "--genesis",
    ),
]


@pytest.mark.parametrize(("change", "reported", "hint"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_a_folder_that_cannot_be_a_run_is_reported(
    cluster: Path, tmp_path: Path, change: h.Change, reported: str, hint: str
) -> None:
    """The user must see which file to look at, and what to do with it."""
    with pytest.raises(UsageError, match=reported) as refused:
        ingest(tmp_path / "store", changed(cluster, tmp_path, change))
    assert hint in (refused.value.hint or "")
    assert "\n" not in refused.value.message
    assert list((tmp_path / "store" / "runs").iterdir()) == []


LISTED: list[tuple[str, h.Change, str]] = [
    ("a relay's folder", h.copy("node-0/stdout", "relay-1/stdout"), "relay-1/stdout: not in a host's folder"),
    ("a log beside the folders", h.copy("node-0/stdout", "node-7.log"), "node-7.log: not in a host's folder"),
    (
        "a folder in a host's",
        h.copy("node-0/stdout", "node-0/old/stdout.gz", h.gz),
        "node-0/old/stdout.gz: in a folder inside a host's folder",
    ),
    (
        "a folder that holds itself",
        h.together(h.link("node-0/self", "."), h.copy("node-0/stdout", "x/y/stdout")),
        "x/y/stdout: not in a host's folder",
    ),
    ("a broken link", h.link("node-0/stdout.1", "gone"), "node-0/stdout.1: a broken link"),
    ("a pipe", h.pipe("node-0/stdout.1"), "node-0/stdout.1: a pipe"),
    ("a socket", h.listener("node-0/stdout.1"), "node-0/stdout.1: a socket"),
    ("UTF-16", h.copy("node-0/stdout", "node-0/stdout.txt", h.utf16), "node-0/stdout.txt: UTF-16 text"),
    (
        "UTF-16 without a mark",
        h.write("node-0/stdout.1", '{"at":1}'.encode("utf-16-be")),
        "node-0/stdout.1: UTF-16 text",
    ),
    ("an archive", h.copy("node-0/stdout", "node-0/logs.tar.gz", h.tarred), "node-0/logs.tar.gz: an archive"),
    ("a tape archive", h.write("node-0/stdout.1", bytes(257) + b"ustar" + bytes(300)), "node-0/stdout.1: an archive"),
    ("bzip2", h.copy("node-0/stdout", "node-0/stdout.1.bz2", h.bzip2), "node-0/stdout.1.bz2: compressed with bzip2"),
    (
        "the journal itself",
        h.write("node-0/stdout.journal", b"LPKSHHRH" + bytes(99)),
        "node-0/stdout.journal: a systemd journal",
    ),
    ("lzma", h.copy("node-0/stdout", "node-0/stdout.1", h.old_lzma), "node-0/stdout.1: compressed with lzma"),
    (
        "compress",
        h.write("node-0/stdout.1.Z", b"\x1f\x9d\x90" + bytes(99)),
        "node-0/stdout.1.Z: compressed with compress",
    ),
    (
        "macOS's second file",
        h.write("node-0/._node.log", b"\x00\x05\x16\x07\x00\x02\x00\x00" + bytes(99)),
        "node-0/._node.log: a metadata file of macOS",
    ),
    ("a host's folder that is gone", h.link("node-9", "nowhere"), "node-9: a broken link"),
    (
        "a name of two lines",
        h.copy("node-0/stdout", "node-8\n/stdout"),
        "node-8\\n/stdout: not in a host's folder",
    ),
    ("no name of a log", h.copy("node-0/stdout", "node-0/messages"), "node-0/messages: not named like a log"),
    (
        "packed without one",
        h.copy("node-0/stdout", "node-0/messages.xz", h.xz),
        "node-0/messages.xz: not named like a log",
    ),
]


@pytest.mark.parametrize(("change", "reported"), [pytest.param(*case[1:], id=case[0]) for case in LISTED])
def test_unread_files_that_look_like_logs_are_listed(
    cluster: Path, clean: SealedRun, tmp_path: Path, change: h.Change, reported: str
) -> None:
    """Nobody would notice that a host, or half of its log, was omitted."""
    run = ingest(tmp_path / "store", changed(cluster, tmp_path, change), filters=()).run
    status, measured = gate(run.manifest, "logs_read")
    assert (status, reported in measured) == (GateStatus.WARN, True), measured
    assert run.manifest.counts["files that look like logs"] == {"read": 3, "copies": 0, "not read": 1}
    assert run.manifest.status is Status.VALID
    assert metrics(run) == metrics(clean)


SAME: list[tuple[str, h.Change, str]] = [
    (
        "a rotated copy",
        h.copy("node-0/stdout", "node-0/stdout.1"),
        "node-0/stdout.1 is a copy of node-0/stdout and was excluded",
    ),
    (
        "a packed copy",
        h.copy("node-0/stdout", "node-0/stdout.1.zst.xz", h.xz),
        "node-0/stdout.1.zst.xz is a copy of node-0/stdout and was excluded",
    ),
    ("xz", h.pack("node-0/stdout", "node-0/stdout.xz", h.xz), ""),
    (
        "rotated and packed by xz",
        h.together(h.cut("node-0/stdout", "node-0/stdout.1"), h.pack("node-0/stdout.1", "node-0/stdout.1.xz", h.xz)),
        "",
    ),
    (
        "the name of another host",
        h.rewrite(h.named("pool-x"), "node-2"),
        "the lines name other hosts than the folders or files they are in: node-2 (named pool-x)",
    ),
    ("the name of the machine", h.rewrite(h.named("pamperito-III")), ""),
    ("the name of the machine is a host's", h.rewrite(h.named("node-1")), ""),
    ("a domain", h.rewrite(lambda line: line.replace('"host":"node-2"', '"host":"node-2.example.org"')), ""),
    (
        "the explorer's log",
        h.copy("node-0/stdout", "explorer/stdout"),
        "excluded, because they are not hosts of the network: explorer",
    ),
    (
        "a state folder",
        h.together(h.write("node-0/db/immutable/00001.chunk", bytes(5000)), h.pipe("node-0/node.socket")),
        "",
    ),
    ("ends of lines of another system", h.rewrite(lambda line: line + "\r"), ""),
    ("numbers as Show prints them", h.shown(h.as_shown), ""),
    ("numbers as records", h.shown(h.as_object), ""),
    ("the root at Debug", h.chatter("Debug"), ""),
    ("the root at Info", h.chatter("Info"), ""),
    ("a magic as Show prints it", h.startup("NetworkMagic {unNetworkMagic = 42}"), ""),
    ("docker compose's names", h.rewrite(lambda line: f"relay-1  | {line}"), ""),
    ("kubectl's names", h.rewrite(lambda line: f"[pod/relay-0/node] {line}"), ""),
    ("containerd's log", h.rewrite(lambda line: f"2026-02-05T19:00:00.5Z stdout F {line}"), ""),
    ("the terminal's colours", h.rewrite(lambda line: line.replace('{"at"', '\x1b[34m{"at"') + "\x1b[0m"), ""),
    ("every line twice", h.rewrite(lambda line: f"{line}\n{line}"), ""),
    (
        "a second log that is none",
        h.write("node-0/stdout.1.gpg", b"\x85\x02\x0c" + bytes(99)),
        "node-0/stdout.1.gpg: no node message at the beginning, although it was read as a log",
    ),
    ("a magic as text", h.startup("42"), ""),
    ("a magic that cannot be read", h.startup("RequiresNoMagic"), ""),
]


@pytest.mark.parametrize(("change", "reported"), [pytest.param(*case[1:], id=case[0]) for case in SAME])
def test_harmless_files_change_no_metric(
    cluster: Path, clean: SealedRun, tmp_path: Path, change: h.Change, reported: str
) -> None:
    run = ingest(tmp_path / "store", changed(cluster, tmp_path, change), filters=()).run
    assert metrics(run) == metrics(clean)
    assert new_warnings(run.manifest, clean.manifest) == ([reported] if reported else [])
    assert gate(run.manifest, "logs_read")[0] is GateStatus.PASS
    assert run.manifest.counts["lines"]["malformed"] == 0


def test_a_host_name_may_be_as_long_as_a_folder_name(cluster: Path, tmp_path: Path) -> None:
    logs = changed(cluster, tmp_path, h.move("node-2", "node-" + 250 * "x"))
    run = ingest(tmp_path / "store", logs, filters=(), keep_events=True).run
    assert run.manifest.counts["hosts"]["read"] == 3


def metrics(run: SealedRun) -> bytes:
    """All measured values of a run."""
    return (run.path / "metrics.json").read_bytes()


def new_warnings(manifest: Manifest, clean: Manifest) -> list[str]:
    """The warnings of a run that the unchanged run does not have."""
    return [warning for warning in manifest.warnings if warning not in clean.warnings]


def test_a_truncated_log_is_read_up_to_the_damage(cluster: Path, tmp_path: Path) -> None:
    change = h.together(h.pack("node-0/stdout", "node-0/stdout.xz", h.xz), h.truncate("node-0/stdout.xz", 0.8))
    manifest = ingest(tmp_path / "store", changed(cluster, tmp_path, change), filters=()).run.manifest
    assert any(warning.startswith("stdout.xz of node-0 is damaged: ") for warning in manifest.warnings)
    assert manifest.counts["lines of node-0"]["decoded"] > 0


def test_a_copy_can_be_excluded_like_any_host(cluster: Path, tmp_path: Path) -> None:
    for number, change in enumerate((h.copy("node-0/stdout", "node-1/stdout"), h.link("node-1", "node-0"))):
        logs = changed(cluster, tmp_path / str(number), change)
        run = ingest(tmp_path / "store", logs, exclude=("node-1",), filters=()).run
        assert run.manifest.workload["network.hosts"] == 2


def test_a_single_log_file_may_have_any_name(cluster: Path, tmp_path: Path) -> None:
    shutil.copy(cluster / "node-0" / "stdout", tmp_path / "last-night.txt")
    genesis = cluster / "genesis" / "genesis.shelley.json"
    manifest = ingest(tmp_path / "store", tmp_path / "last-night.txt", genesis=genesis, filters=()).run.manifest
    assert not any(warning.startswith("the lines name other hosts") for warning in manifest.warnings)


def test_a_pipe_is_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    with pytest.raises(UsageError, match="cannot be read as a log: it is a pipe"):
        ingest(tmp_path / "store", tmp_path / "log")


def test_slots_of_another_length_are_reported_without_a_genesis(cluster: Path, tmp_path: Path) -> None:
    """A start computed with slots of one second would be off by as much as the age of the chain."""

    def twice(match: re.Match[str]) -> str:
        return f'"slot":{2 * int(match[1])}'

    change = h.together(h.NO_GENESIS, h.rewrite(lambda line: re.sub(r'"slot":(\d+)', twice, line)))
    with pytest.raises(UsageError, match="there is no genesis") as refused:
        ingest(tmp_path / "store", changed(cluster, tmp_path, change))
    hint = refused.value.hint or ""
    assert f"`--set genesis.system_start={h.START} --set genesis.slot_length_s=0.5`" in hint


def test_the_listing_is_in_the_report(cluster: Path, tmp_path: Path) -> None:
    run = ingest(tmp_path / "store", changed(cluster, tmp_path, h.copy("node-0/stdout", "relay-1/stdout"))).run
    document = cm.open_run(run).document()
    assert "relay-1/stdout" in document.text(200)
    assert "relay-1/stdout" in document.html()


def test_a_node_that_starts_within_a_slot_does_not_shorten_the_slot_length() -> None:
    """The node's first and last round alone would give slots of 0.951 s instead of 1 s."""
    starts = [(20, 20_980_000_000), *((slot, slot * 1_000_000_000 + 2_000_000) for slot in range(21, 40))]
    cluster: Any = SimpleNamespace(files=[SimpleNamespace(head=SimpleNamespace(starts=starts))])
    assert slot_length_s(cluster) == 1.0
