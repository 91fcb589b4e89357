"""Which hosts a folder of logs contains, and which files belong to each: by content, every file once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import zstandard

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.logs import ClusterLogs, find_logs

NS = 10**9


def line(slot: int = 1, host: str = "node-0") -> str:
    data = {"kind": "TraceStartLeadershipCheck", "slot": slot}
    envelope = {"at": f"2026-02-05T18:52:{slot:02d}.001Z", "ns": "Forge.Loop.StartLeadershipCheck", "data": data}
    return json.dumps({**envelope, "sev": "Info", "thread": "1", "host": host})


LOG = f"Node configuration: NodeConfiguration {{}}\n{line(1)}\n{line(2)}\n"
CONFIG = json.dumps({"TraceOptions": {"": {"severity": "Notice"}}}, indent=2)


def _make(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def _shape(cluster: ClusterLogs) -> dict[str, list[str]]:
    return {host.name: [file.name for file in host.files] for host in cluster.hosts}


def test_a_benchmark_run_has_a_host_for_every_folder(tmp_path: Path) -> None:
    """A configuration file next to a log is not a log; the explorer and the generator are not hosts of the network."""
    _make(
        tmp_path,
        {
            "node-0/stdout": LOG,
            "node-0/config.json": CONFIG,
            "node-0/topology.json": json.dumps({"Producers": []}),
            "node-0/stderr": "",
            "node-10/stdout.1.gz": gzip.compress(LOG.encode()),
            "node-10/stdout": LOG,
            "node-2/node-2026-02-05T18-52-16.json": LOG,
            "node-3/stdout.zst": zstandard.compress(LOG.encode()),
            "explorer/stdout": LOG,
            "generator/stdout": LOG,
            "genesis/genesis.shelley.json": "{}",
            "node-specs.json": CONFIG,
            "meta.json": "{}",
        },
    )
    cluster = find_logs(tmp_path)
    assert _shape(cluster) == {
        "node-0": ["node-0/stdout"],
        "node-10": ["node-10/stdout", "node-10/stdout.1.gz"],
        "node-2": ["node-2/node-2026-02-05T18-52-16.json"],
        "node-3": ["node-3/stdout.zst"],
    }
    assert cluster.left_out == ("explorer", "generator")
    # The loops of slots 1 and 2 began 1 ms after 18:52:01 and 18:52:02.
    slot, at = cluster.hosts[0].loop_starts[1]
    assert (slot, at % (60 * NS)) == (2, 2_001_000_000)


@pytest.mark.parametrize("level", ["", "logs/"])
def test_a_tracer_has_a_folder_for_every_node_and_a_link_to_the_newest_log(tmp_path: Path, level: str) -> None:
    """If the link were also read, every line would count twice."""
    names = [f"{level}10.0.0.{host}_3001/node-2026-02-0{day}T18-52-16.json" for host in (1, 2) for day in (5, 6)]
    _make(tmp_path, dict.fromkeys(names, LOG))
    for host in (1, 2):
        folder = tmp_path / f"{level}10.0.0.{host}_3001"
        (folder / "node.json").symlink_to("node-2026-02-06T18-52-16.json")
    assert _shape(find_logs(tmp_path)) == {"10.0.0.1_3001": names[:2], "10.0.0.2_3001": names[2:]}


def test_log_files_in_one_folder_are_named_after_their_hosts(tmp_path: Path) -> None:
    _make(
        tmp_path,
        {
            "node-0.log": LOG,
            "node-0.log.1.gz": gzip.compress(LOG.encode()),
            "node-0-2026-02-05.jsonl": LOG,
            "node-10.json": LOG,
            "relay.example-20260205T185216Z.log.zst": zstandard.compress(LOG.encode()),
            "genesis-shelley.json": "{}",
            "notes.txt": "nothing to see",
        },
    )
    assert _shape(find_logs(tmp_path)) == {
        "node-0": ["node-0-2026-02-05.jsonl", "node-0.log", "node-0.log.1.gz"],
        "node-10": ["node-10.json"],
        "relay.example": ["relay.example-20260205T185216Z.log.zst"],
    }


def test_a_single_file_or_the_folder_of_one_node_is_one_host(tmp_path: Path) -> None:
    _make(tmp_path, {"cluster/node-7/stdout": LOG, "single-node.log": LOG})
    assert _shape(find_logs(tmp_path / "cluster" / "node-7")) == {"node-7": ["stdout"]}
    assert _shape(find_logs(tmp_path / "cluster" / "node-7" / "stdout")) == {"node-7": ["stdout"]}
    assert _shape(find_logs(tmp_path / "single-node.log")) == {"single-node": ["single-node.log"]}


def test_an_unreadable_log_still_counts_as_a_log(tmp_path: Path) -> None:
    """Nobody would notice that the host was omitted."""
    _make(tmp_path, {"node-0/stdout": LOG, "node-1/stdout": "{broken\n" * 9, "node-2/config.json": CONFIG})
    assert _shape(find_logs(tmp_path)) == {"node-0": ["node-0/stdout"], "node-1": ["node-1/stdout"], "node-2": []}


def test_hosts_are_excluded_by_name(tmp_path: Path) -> None:
    cluster = find_logs(_make(tmp_path, {"node-0/stdout": LOG, "node-1/stdout": LOG}))
    assert _shape(cluster.without(["node-1"])) == {"node-0": ["node-0/stdout"]}
    with pytest.raises(UsageError, match="there is no host `node-7`") as refused:
        cluster.without(["node-7"])
    assert refused.value.hint == "the hosts are node-0 and node-1"
    with pytest.raises(UsageError, match="no host remains"):
        cluster.without(["node-0", "node-1"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "contains no logs of Cardano nodes"),
        (
            {"readme.txt": "hello", "photo.jpg": b"\xff\xd8\xff", "config.json": CONFIG},
            "contains no logs of Cardano nodes",
        ),
        ({"node-0/config.json": CONFIG, "node-1/db/x": "y"}, "contains no logs of Cardano nodes"),
    ],
)
def test_a_folder_without_logs_is_refused_with_the_expected_layout(
    tmp_path: Path, files: Mapping[str, str | bytes], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        find_logs(_make(tmp_path, files))
    assert "node-0/" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="there is no folder or file"):
        find_logs(tmp_path / "nowhere")
