"""Import of a cluster's logs into a sealed run: reproducible bytes, gaps are named, wrong input is rejected."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import chainmark as cm
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import GateStatus, Manifest, Status
from chainmark.core.progress import Silent
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.decoding import Reading, count_excluded
from chainmark.systems.cardano.documents import StatedGenesis, resolve_genesis
from chainmark.systems.cardano.logs import HostLogs, LogFile, find_logs
from chainmark.systems.cardano.rules import Rules

from tests.unit.systems.cardano.clusters import changed, edit_json, edit_lines, ingest, make_cluster

HOSTS = ("node-0", "node-1", "node-2", "node-3")
FETCHED = "BlockFetch.Client.CompletedBlockFetch"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster without faults."""
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs")


@pytest.fixture(scope="module")
def plain(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """The run of the cluster, imported without options."""
    return ingest(tmp_path_factory.mktemp("store"), cluster).run


@pytest.fixture(scope="module")
def imported(plain: SealedRun) -> Manifest:
    """The manifest of that run."""
    return plain.manifest


def gate(manifest: Manifest, gate_id: str) -> tuple[GateStatus, str]:
    check = next(gate for gate in manifest.gates if gate.id == gate_id)
    return check.status, f"{check.measured} {check.detail}"


def everything(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def test_every_line_is_counted_and_every_source_listed(cluster: Path, imported: Manifest) -> None:
    lines = sum(path.read_bytes().count(b"\n") for path in cluster.glob("node-*/stdout"))
    assert sum(imported.counts["lines"].values()) == lines
    assert sum(sum(imported.counts[f"lines of {host}"].values()) for host in HOSTS) == lines
    assert sum(imported.counts["decoded messages"].values()) == imported.counts["lines"]["decoded"]
    paths = [source.path for source in imported.sources]
    assert paths == [f"{host}/stdout" for host in HOSTS] + [
        "genesis/genesis.shelley.json",
        "meta.json",
        "topology.json",
    ]
    assert all((cluster / source.path).stat().st_size == source.size_bytes for source in imported.sources)
    assert str(cluster) not in imported.model_dump_json()


def test_logs_at_an_address_of_a_storage_give_the_same_run(cluster: Path, plain: SealedRun, tmp_path: Path) -> None:
    stored = ingest(tmp_path / "store", f"file://{cluster}").run
    assert everything(stored.path) == everything(plain.path)


def test_a_run_without_faults_is_valid_and_has_no_warnings(imported: Manifest) -> None:
    assert imported.status is Status.VALID
    assert {gate.id: gate.status for gate in imported.gates if gate.status is not GateStatus.PASS} == {}
    assert (imported.warnings, imported.incidents) == ([], [])
    assert imported.subject.version == "10.5.4"
    assert imported.workload["network.hosts"] == 4
    assert imported.workload["analysis.filters"] == ["BFullnessGEq 0.9", "BMinimumAdoptions 3"]
    assert imported.profile["name"] == "cardano/value"


def test_the_analysed_blocks_match_the_truth(cluster: Path, imported: Manifest) -> None:
    """Every block of the chain except its tip was full and reached all hosts."""
    truth = pl.read_parquet(cluster / "truth.parquet").filter(pl.col("record") == "block")
    chain = truth.filter(pl.col("on_chain")).get_column("block").n_unique()
    counted = imported.counts["blocks of the chain"]
    assert counted["analysed"] + counted["rejected"] == chain - 1
    assert counted["analysed"] > 0


@pytest.mark.shared_data
def test_the_published_rows_are_in_the_published_order(shared_data: Path, imported: Manifest) -> None:
    """A reader of the published reports finds every row in its usual place."""
    path = shared_data / "cardano" / "reports" / "release-10.6.2.value-only.json"
    published = list(json.loads(path.read_text(encoding="utf-8"))["manifest"])
    assert [fact.label for fact in imported.facts] == published


def test_the_published_rows_match_the_written_logs(cluster: Path, imported: Manifest) -> None:
    rows = {fact.label: fact.value for fact in imported.facts}
    assert (rows["Cluster system start time"], rows["Machines"], rows["TPS"]) == ("18:52:16", "4", "2.0")
    assert (rows["Plutus script"], rows["Era"], rows["Number of filters applied"]) == ("—", "conway", "2")
    assert rows["Total log objects analysed"] == str(imported.counts["lines"]["decoded"])
    # 160 slots from the network's start. A host's analysed range is a difference, hence 159.
    assert rows["Slots analysed"] == "159"
    truth = pl.read_parquet(cluster / "truth.parquet").filter(pl.col("record") == "slot")
    assert truth.get_column("slot").max() == 159


def test_threads_and_repetition_do_not_change_a_byte(cluster: Path, tmp_path: Path) -> None:
    """Two imports of the same logs must give the same run, wherever the logs are stored."""
    moved = changed(cluster, tmp_path / "elsewhere")
    for threads, source in ((1, cluster), (2, cluster), (8, moved), (16, cluster)):
        assert ingest(tmp_path / f"{threads}", source, threads=threads, keep_events=True).is_new
    first = everything(tmp_path / "1")
    assert len([name for name in first if "/events/" in name]) == len(HOSTS) + 1
    assert all(everything(tmp_path / f"{threads}") == first for threads in (2, 8, 16))
    again = ingest(tmp_path / "1", cluster, keep_events=True)
    assert not again.is_new
    assert everything(tmp_path / "1") == first


def test_other_options_give_another_run(cluster: Path, tmp_path: Path) -> None:
    runs = [
        ingest(tmp_path, cluster, **options).run
        for options in (
            {},
            {"published_rules": True},
            {"filters": ()},
            {"version": "10.6.2", "exclude": ("node-3",)},
        )
    ]
    assert len({run.run_id for run in runs}) == len(runs)
    assert runs[1].manifest.workload["analysis.rules"] == "published"
    assert runs[2].manifest.warnings == ["no filters: the warm-up is included"]
    assert runs[3].manifest.subject.version == "10.6.2"
    assert runs[3].manifest.workload["network.hosts"] == 3
    assert sorted(run.run_id for run in Store(tmp_path).sealed()) == sorted(run.run_id for run in runs)


def test_lines_of_an_excluded_host_are_counted_but_not_used(cluster: Path, tmp_path: Path) -> None:
    """The counts must add up to all lines of the folder, including the excluded ones."""
    logs = changed(cluster, tmp_path / "logs")
    with (logs / "node-3" / "stdout").open("ab") as log:
        log.write(b'{"at":"cut off\n')
    shutil.copy(logs / "node-0" / "stdout", logs / "node-3" / "stdout.1")
    manifest = ingest(tmp_path / "store", logs, exclude=("node-3",), filters=()).run.manifest
    counts = manifest.counts
    lines = {path: path.read_bytes().count(b"\n") for path in sorted(logs.glob("node-*/stdout*"))}
    own = sum(count for path, count in lines.items() if path.parent.name == "node-3")
    assert sum(counts["lines"].values()) == sum(lines.values())
    assert sum(counts["lines of node-3"].values()) == own
    assert counts["lines"]["malformed"] == 1
    assert counts["messages of node-3"] == {
        "used": 0,
        "not used: host excluded": counts["lines of node-3"]["decoded"],
    }
    assert counts["messages"]["not used: host excluded"] == counts["lines of node-3"]["decoded"] > 0
    assert sum(counts["messages"].values()) == sum(counts["decoded messages"].values()) == counts["lines"]["decoded"]
    assert sum(counts["ignored messages"].values()) == counts["lines"]["ignored"]
    (sentence,) = (warning for warning in manifest.warnings if warning.startswith("excluded on request: "))
    expected = (
        rf"excluded on request: node-3 \(2 logs of [\d.]+ MiB, {units.plural(own, 'line')} counted and not used\)"
    )
    assert re.fullmatch(expected, sentence)
    assert counts["hosts"] == {"read": len(HOSTS) - 1, "left out": 1}
    files = counts["files that look like logs"]
    assert files == {"read": len(HOSTS) - 1, "copies": 0, "not read": 0, "of hosts left out on request": 2}
    assert all(not source.path.startswith("node-3/") for source in manifest.sources)
    assert not list((tmp_path / "store").rglob("*node-3*"))


def test_lines_of_an_excluded_host_change_no_figure(cluster: Path, tmp_path: Path) -> None:
    """Its lines are read only to count them."""
    without = changed(cluster, tmp_path / "without", lambda folder: shutil.rmtree(folder / "node-3"))
    left_out = ingest(tmp_path / "one", cluster, exclude=("node-3",), filters=()).run
    never_there = ingest(tmp_path / "other", without, filters=()).run
    for name in ("metrics.json", "samples/block.parquet"):
        assert (left_out.path / name).read_bytes() == (never_there.path / name).read_bytes()


def test_an_excluded_host_with_a_damaged_log_is_not_an_error(cluster: Path, tmp_path: Path) -> None:
    """Excluding the host is the workaround for such a log."""
    logs = changed(cluster, tmp_path / "logs")
    stored = gzip.compress((logs / "node-3" / "stdout").read_bytes())
    (logs / "node-3" / "stdout").unlink()
    (logs / "node-3" / "stdout.gz").write_bytes(stored[: len(stored) // 2])
    counts = ingest(tmp_path / "store", logs, exclude=("node-3",), filters=()).run.manifest.counts
    assert sum(counts["lines of node-3"].values()) > 0


def test_an_excluded_log_that_cannot_be_read_is_reported(cluster: Path, tmp_path: Path) -> None:
    gone = LogFile(tmp_path / "stdout", "node-3/stdout", 7)
    logs = replace(find_logs(cluster), excluded=(HostLogs("node-3", (gone,)),))
    genesis, _ = resolve_genesis(cluster / "genesis" / "genesis.shelley.json", StatedGenesis())
    reading = Reading(genesis, Rules(published=False, count_switches=True), tmp_path, None, 1)
    excluded = count_excluded(logs, reading, 1, Silent())
    assert not excluded.summaries
    assert re.fullmatch(r"the log .*/stdout cannot be read: No such file or directory", excluded.unreadable["node-3"])


def test_a_damaged_run_is_imported_again(cluster: Path, tmp_path: Path) -> None:
    first = ingest(tmp_path, cluster)
    before = everything(tmp_path)
    (first.run.path / "metrics.json").write_text("{}", encoding="utf-8")
    assert ingest(tmp_path, cluster).is_new
    assert everything(tmp_path) == before


def test_message_types_that_a_host_never_emits_are_reported_with_the_missing_metrics(
    cluster: Path, tmp_path: Path
) -> None:
    def silence(line: str) -> str | None:
        return None if FETCHED in line else line

    logs = changed(cluster, tmp_path / "logs", edit_lines("node-1/stdout", silence))
    manifest = ingest(tmp_path, logs, filters=()).run.manifest
    assert (
        f"node-1 does not emit {FETCHED}: fetch metrics lack this host; enable {FETCHED} at Info" in manifest.warnings
    )
    assert gate(manifest, "messages_complete")[0] is GateStatus.WARN
    both = changed(logs, tmp_path / "both", edit_lines("node-2/stdout", silence))
    warnings = ingest(tmp_path, both, filters=()).run.manifest.warnings
    assert any(
        warning.startswith(f"node-1 and node-2 do not emit {FETCHED}: fetch metrics lack these") for warning in warnings
    )


def test_faults_are_reported_with_their_times_and_the_rest_is_measured(tmp_path: Path) -> None:
    """The report must show which host was lost, restarted or silent, and since when."""
    faults = ("crash:node-3@240", "restart:node-1@100-120", "gap:node-2@150-180", "corrupt:node-0=1%")
    logs = make_cluster(tmp_path / "logs", hosts=5, slots=400, faults=faults)
    manifest = ingest(tmp_path, logs, filters=()).run.manifest
    assert manifest.status is Status.VALID
    incidents = [(incident.time_ns, incident.what) for incident in manifest.incidents]
    start_ns = 1_770_317_536 * 10**9
    for host, at_s, part in (
        ("node-3", 240, "stops logging"),
        ("node-1", 120, "had restarted"),
        ("node-2", 150, "logs nothing about slots 150 to 179"),
    ):
        times_ns = [time_ns for time_ns, what in incidents if what.startswith(host) and part in what]
        assert len(times_ns) == 1, (host, incidents)
        assert abs(times_ns[0] - start_ns - at_s * 10**9) < 12 * 10**9, (host, times_ns)
    assert gate(manifest, "hosts_complete") == (GateStatus.WARN, "4 of 5 hosts late or cut short: node-3")
    assert gate(manifest, "no_restarts")[0] is GateStatus.WARN
    assert gate(manifest, "lines_readable")[0] is GateStatus.WARN
    assert any(
        warning.startswith("node-0 has ") and "malformed lines, such as line" in warning
        for warning in manifest.warnings
    )
    assert manifest.counts["blocks of the chain"]["analysed"] > 0


@pytest.mark.parametrize(("offset", "direction"), [("-2s", "behind"), ("+2s", "ahead of")])
def test_a_wrong_clock_is_detected_by_headers_that_precede_their_blocks(
    tmp_path: Path, offset: str, direction: str
) -> None:
    logs = make_cluster(tmp_path / "logs", faults=(f"clock-offset:node-2={offset}",))
    status, measured = gate(ingest(tmp_path, logs, filters=()).run.manifest, "clocks")
    assert status is GateStatus.WARN
    assert "the clock of node-2 is" in measured
    assert f"{direction} " in measured


def test_a_run_with_nothing_to_analyse_is_invalid(cluster: Path, tmp_path: Path) -> None:
    manifest = ingest(tmp_path, cluster, filters=("epoch3+",)).run.manifest
    assert manifest.status is Status.INVALID
    status, measured = gate(manifest, "blocks_analysed")
    assert status is GateStatus.FAIL
    assert "EpochGEq 2" in measured


def test_rotated_and_compressed_logs_give_the_same_metrics(cluster: Path, plain: SealedRun, tmp_path: Path) -> None:
    """Rotation and compression do not change the content of a log."""

    def cut_and_pack(folder: Path) -> None:
        path = folder / "node-1" / "stdout"
        lines = path.read_bytes().splitlines(keepends=True)
        middle = len(lines) // 2
        # The order of the names differs from the order in time.
        (folder / "node-1" / "stdout.1.gz").write_bytes(gzip.compress(b"".join(lines[:middle])))
        path.write_bytes(b"".join(lines[middle:]))

    logs = changed(cluster, tmp_path / "logs", cut_and_pack)
    runs = [plain, ingest(tmp_path, logs).run]
    assert runs[0].run_id != runs[1].run_id
    metrics = [(run.path / "metrics.json").read_bytes() for run in runs]
    assert metrics[0] == metrics[1]
    # Events refer to a host's files by their position in the order of time.
    paths = [source.path for source in runs[1].manifest.sources if source.place == "node-1"]
    assert paths == ["node-1/stdout.1.gz", "node-1/stdout"]


def _journal(message: object, stream: str, **more: str) -> str:
    return json.dumps({"__CURSOR": "s=1", "_HOSTNAME": "one", "_STREAM_ID": stream, "MESSAGE": message, **more})


def _journal_in_pieces(line: str) -> str:
    """Split long lines as journald does, with a line of another program between the pieces."""
    first, second = line[: len(line) // 2], line[len(line) // 2 :]
    other = _journal('{"level":"info","msg":"scraped"}', "of another")
    return "\n".join([_journal(first, "of the node", _LINE_BREAK="line-max"), other, _journal(second, "of the node")])


def _docker(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-02-05T19:00:00Z"})


def _tracer(line: str) -> str:
    """A line as cardano-tracer of 10.3 wrote it, with namespaces."""
    if not line.startswith("{"):
        return line
    content = json.loads(line)
    return json.dumps({**content, "ns": content["ns"].split(".")})


def test_wrapping_of_lines_changes_no_metric(cluster: Path, plain: SealedRun, tmp_path: Path) -> None:
    """A cluster of different machines: each host's logs were collected in a different way."""
    wraps = (lambda line: _journal(list(line.encode()), "a"), _journal_in_pieces, _docker, _tracer)
    changes = [edit_lines(f"{host}/stdout", wrap) for host, wrap in zip(HOSTS, wraps, strict=True)]
    runs = [plain, ingest(tmp_path, changed(cluster, tmp_path / "logs", *changes)).run]
    metrics = [(run.path / "metrics.json").read_bytes() for run in runs]
    assert metrics[0] == metrics[1]
    assert runs[1].manifest.counts["lines"]["malformed"] == 0


def _empty(folder: Path) -> None:
    (folder / "node-2" / "stdout").write_bytes(b"")


def _gone(folder: Path) -> None:
    (folder / "node-2" / "stdout").unlink()


def _malformed(folder: Path) -> None:
    path = folder / "node-2" / "stdout"
    path.write_bytes(b"".join(line[: len(line) // 2] + b"\n" for line in path.read_bytes().splitlines()[1:300]))


def _no_genesis(folder: Path) -> None:
    shutil.rmtree(folder / "genesis")


def _another_year(folder: Path) -> None:
    path = folder / "node-2" / "stdout"
    path.write_bytes(path.read_bytes().replace(b'"at":"2026-', b'"at":"2025-'))


def _relays_of_an_older_chain(folder: Path) -> None:
    """Without a forge loop, only the times show that the genesis belongs to another chain."""
    edit_json("genesis/genesis.shelley.json", systemStart="2027-02-05T18:52:16Z")(folder)
    for host in HOSTS:
        edit_lines(f"{host}/stdout", lambda line: None if "Forge." in line else line)(folder)


@pytest.mark.parametrize(
    ("change", "message_text", "hint"),
    [
        (_empty, "node-2 has no log lines: node-2/stdout is empty", "--exclude node-2"),
        (_gone, "node-2 has no log lines: its folder has no log in it", "--exclude node-2"),
        (
            _malformed,
            r"none of the 299 lines of node-2 can be read as a trace message; line 1 of stdout: no JSON",
            "--exclude node-2",
        ),
        (_relays_of_an_older_chain, "they end at 2026-02-05T18:5.*, but its slot 0 began at 2027-", "--genesis FILE"),
        (_no_genesis, "there is no genesis in", "--set genesis.system_start=2026-02-05T18:52:16Z"),
        (
            _another_year,
            "logs of two different networks: the slots of node-2 begin 365.0 days earlier",
            "--exclude node-2",
        ),
        (
            edit_json("genesis/genesis.shelley.json", systemStart="2026-02-12T10:38:55Z"),
            "these logs do not match the genesis: it has slots of 1 s from 2026-02-12T10:38:55Z",
            "--set genesis.system_start=2026-02-05T18:52:16Z",
        ),
        (
            edit_json("genesis/genesis.shelley.json", slotLength=0.2),
            "these logs do not match the genesis",
            "--genesis FILE",
        ),
        (
            edit_json("genesis/genesis.shelley.json", epochLength="x"),
            "`epochLength` is missing or invalid",
            "--genesis FILE",
        ),
        (edit_json("meta.json", meta=[]), "is not the description of a benchmark run", "--meta FILE"),
    ],
)
def test_unusable_logs_are_reported_in_one_sentence_with_a_hint(
    cluster: Path, tmp_path: Path, change: Callable[[Path], None], message_text: str, hint: str
) -> None:
    logs = changed(cluster, tmp_path / "logs", change)
    with pytest.raises(UsageError, match=message_text) as refused:
        ingest(tmp_path / "store", logs)
    assert hint in (refused.value.hint or "")
    assert "\n" not in refused.value.message
    assert list((tmp_path / "store" / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message_text"),
    [
        ({"filters": ("EpochGEq=x",)}, "needs a whole number"),
        ({"settings": ("genesis.slot_length_s=0",)}, r"`genesis\.slot_length_s` is 0"),
        ({"settings": ("chain.k=1",)}, r"`chain` is not a key"),
        ({"exclude": ("node-9",)}, "there is no host `node-9` to exclude"),
        ({"genesis": Path("nowhere")}, "the genesis nowhere cannot be read"),
        ({"meta": Path("nowhere")}, "the description nowhere cannot be read"),
        ({"topology": Path("torus-dense")}, "is the name of a rule"),
    ],
)
def test_impossible_options_are_reported_in_one_sentence(
    cluster: Path, tmp_path: Path, options: dict[str, Any], message_text: str
) -> None:
    with pytest.raises(UsageError, match=message_text) as refused:
        ingest(tmp_path, cluster, **options)
    assert refused.value.hint
    assert list((tmp_path / "runs").iterdir()) == []


def test_following_the_hint_resolves_the_error(cluster: Path, tmp_path: Path) -> None:
    no_genesis = changed(cluster, tmp_path / "a", _no_genesis)
    stated = ("genesis.system_start=2026-02-05T18:52:16Z", "genesis.active_slots_coefficient=0.1")
    manifest = ingest(tmp_path, no_genesis, settings=stated).run.manifest
    assert any("assumed values, as on the benchmark clusters" in warning for warning in manifest.warnings)
    genesis = cluster / "genesis" / "genesis.shelley.json"
    run = ingest(tmp_path, no_genesis, genesis=genesis).run
    assert "genesis.shelley.json" in [source.path for source in run.manifest.sources]
    lost = changed(cluster, tmp_path / "b", _empty)
    assert ingest(tmp_path, lost, exclude=("node-2",), filters=()).run.manifest.status is Status.VALID


def test_two_networks_with_the_same_start_are_distinguished_by_their_blocks(cluster: Path, tmp_path: Path) -> None:
    """Both match one genesis by their slots. A chain made from both would be meaningless."""
    other = make_cluster(tmp_path / "other", seed=2)

    def mix(folder: Path) -> None:
        for name in ("node-2", "node-3"):
            shutil.copy(other / name / "stdout", folder / name / "stdout")

    logs = changed(cluster, tmp_path / "logs", mix)
    with pytest.raises(UsageError, match="node-0 and node-1 and node-2 and node-3 share no block") as refused:
        ingest(tmp_path / "store", logs)
    assert "--exclude node-2" in (refused.value.hint or "")


def test_without_a_description_the_version_comes_from_the_logs_or_the_user(cluster: Path, tmp_path: Path) -> None:
    logs = changed(cluster, tmp_path / "logs", lambda folder: (folder / "meta.json").unlink())
    run = ingest(tmp_path, logs, filters=("value",)).run
    assert run.manifest.subject.version == "10.5.4"
    assert run.run_id.startswith("cardano-import-10.5.4-20260205T1852")
    facts = {fact.label: fact.value for fact in run.manifest.facts}
    assert (facts["cardano-node version"], facts["Run batch"], facts["TPS"]) == ("10.5.4", "unknown", "unknown")

    def nameless(line: str) -> str | None:
        return None if "NodeVersion" in line else line

    silent = changed(logs, tmp_path / "silent", *(edit_lines(f"{host}/stdout", nameless) for host in HOSTS))
    with pytest.raises(UsageError, match="the version is stated neither in the logs nor in a description") as refused:
        ingest(tmp_path / "store", silent)
    assert "--as" in (refused.value.hint or "")
    assert ingest(tmp_path, silent, version="11.0").run.manifest.subject.version == "11.0"


def test_an_unreadable_log_is_reported_by_name(cluster: Path, tmp_path: Path) -> None:
    """A log that disappears between discovery and reading is also reported with a clear message."""
    logs = changed(cluster, tmp_path / "logs")
    path = logs / "node-1" / "stdout"
    path.unlink()
    path.symlink_to("/proc/self/mem")
    with pytest.raises((EnvironmentFailure, UsageError), match="node-1"):
        ingest(tmp_path / "store", logs)
    assert list((tmp_path / "store" / "runs").iterdir()) == []


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "start", "blocks"),
    [
        ("node-1-10.5.0-benchmark.json", "2025-10-27T16:24:29Z", 15),
        ("producer-10.4-tracer.jsonl", "2025-06-04T13:08:00Z", None),
        ("legacy-8.1.1-relay.jsonl", "2020-06-07T21:44:51Z", 0),
        ("replay-node-0.log", "2025-10-20T19:00:00Z", 48),
    ],
)
def test_real_logs_are_read_to_the_last_line(
    shared_data: Path, tmp_path: Path, name: str, start: str, blocks: int | None
) -> None:
    source = shared_data / "cardano" / "logs" / name
    (tmp_path / "logs" / "node-1").mkdir(parents=True)
    shutil.copy(source, tmp_path / "logs" / "node-1")
    run = ingest(tmp_path, tmp_path / "logs", settings=(f"genesis.system_start={start}",), filters=(), version="x").run
    counts = run.manifest.counts
    assert sum(counts["lines"].values()) == len(source.read_bytes().splitlines())
    assert counts["lines"]["decoded"] > 0
    assert json.dumps(run.manifest.model_dump(mode="json"))
    assert run.verify() == []
    if blocks is not None:
        assert sum(counts.get("blocks of the chain", {"none": 0}).values()) == blocks


def test_a_label_that_the_logs_contradict_is_reported(cluster: Path, tmp_path: Path) -> None:
    folder = changed(cluster, tmp_path / "logs", edit_json("meta.json", ident=None))
    manifest = ingest(tmp_path / "store", folder, version="10.6.2").run.manifest
    contradiction = "the logs of node-0, node-1, node-2 and node-3 are of version 10.5.4, not 10.6.2"
    assert manifest.contradictions == [contradiction]
    assert contradiction in manifest.warnings


def test_a_label_that_agrees_or_names_no_version_is_not_a_contradiction(cluster: Path, tmp_path: Path) -> None:
    for label in ("10.5.4", "10.5.4-lmdb", "my-branch"):
        assert ingest(tmp_path, cluster, version=label).run.manifest.contradictions == []


def test_the_same_version_under_two_names_is_reported(cluster: Path, tmp_path: Path) -> None:
    """Otherwise a release would be compared with itself and reported to perform exactly as the previous one."""
    store, other = tmp_path / "store", make_cluster(tmp_path / "other", seed=2)
    nameless = [
        changed(folder, tmp_path / name, lambda folder: (folder / "meta.json").unlink())
        for folder, name in ((cluster, "a"), (other, "b"))
    ]
    first, second = (ingest(store, nameless[0], version=name, filters=()).run for name in ("10.5.4", "my-branch"))
    third = ingest(store, nameless[1], version="my-branch", filters=()).run
    same, apart = (cm.compare(first, run, store=store) for run in (second, third))
    assert "A/A" in same.caveats.badges
    assert "both sides consist of the same logs under two names" in same.caveats.sentences
    assert "A/A" not in apart.caveats.badges
    assert any(sentence.startswith("both sides have version 10.5.4") for sentence in apart.caveats.sentences)


def test_synthetic_logs_are_recognised_by_their_truth_or_their_description(cluster: Path, tmp_path: Path) -> None:
    def without(*names: str) -> SealedRun:
        folder = changed(
            cluster, tmp_path / str(len(names)), *[lambda folder, name=name: (folder / name).unlink() for name in names]
        )
        return ingest(tmp_path / "store", folder).run

    assert [without(*names).manifest.synthetic for names in ((), ("meta.json",), ("meta.json", "truth.parquet"))] == [
        True,
        True,
        False,
    ]
