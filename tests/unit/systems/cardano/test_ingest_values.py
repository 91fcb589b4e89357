"""Values that an import of logs passes on: what it was asked for and found in the documents is in the run."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.errors import InternalError
from chainmark.core.parts import anywhere, as_it_is, equally_long, unwatched
from chainmark.core.progress import Silent
from chainmark.lab.protocols import Imported
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.analyse import AnalysisResult
from chainmark.systems.cardano.decoders import HostPart

from tests.unit.systems.cardano.clusters import changed, edit_json, edit_lines, import_request, ingest, make_cluster

Part = TypeVar("Part")
Result = TypeVar("Result")
Taken = TypeVar("Taken")
HOSTS = ("node-0", "node-1")
REGIONS = {"node-0": "eu-central-1", "node-1": "us-east-1"}
GENESIS = Path("genesis") / "genesis.shelley.json"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hosts in two regions, some blocks."""
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", hosts=2, slots=80)


class Listener(Silent):
    """A listener that collects the names of the stages, and the names in the folder of temporary files."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.temporary: set[str] = set()

    def stage(self, name: str) -> None:
        """Collect the names."""
        self.stages.append(name)
        self.temporary |= {path.name for path in Path(tempfile.gettempdir()).iterdir()}


def read(folder: Path, source: Path, listener: Silent | None = None, **options: Any) -> Imported:
    """Import logs without sealing the run in the folder."""
    folder.mkdir(parents=True)
    request = import_request(source, **{"filters": (), **options})
    return SYSTEM.ingest(request, UnfinishedRun(folder), listener or Silent())


def warnings_of(folder: Path, source: Path, **options: Any) -> list[str]:
    return read(folder, source, **options).warnings


class Remote:
    """A machine that has logs: its files are in the folder only while it works, and hidden otherwise.

    Attributes:
        parts: the hosts, or ranges of their logs, that it decoded.
    """

    def __init__(self, logs: Path, names: Sequence[str] = ("remote",)) -> None:
        self._logs, self._hidden, self._names = logs, logs.with_name("hidden"), names
        logs.rename(self._hidden)
        self.parts: list[HostPart] = []

    @property
    def threads(self) -> int:
        """More than any request of these tests."""
        return 64

    @contextmanager
    def _visible(self) -> Iterator[None]:
        self._hidden.rename(self._logs)
        try:
            yield
        finally:
            self._logs.rename(self._hidden)

    def ask_each(self, function: Callable[[Part], Result], question: Part) -> dict[str, Result]:
        """The result of every machine."""
        with self._visible():
            return {name: function(question) for name in self._names}

    def objects(self, make: Callable[[], Any]) -> AbstractContextManager[dict[str, Callable[..., Any]]]:
        """No import makes objects on other machines."""
        return nullcontext({})

    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        at: Callable[[Part], Collection[str]] = anywhere,
        take: Callable[[Part, Result], Taken] = as_it_is,
        weight: Callable[[Part], float] = equally_long,
        watch: Callable[[Mapping[int, Any]], None] = unwatched,
    ) -> list[Taken]:
        """One part after the other."""
        taken = []
        for part in parts:
            assert list(at(part)) == list(self._names)
            if isinstance(part, HostPart):
                self.parts.append(part)
            with self._visible():
                result = function(part)
            taken.append(take(part, result))
        return taken


def test_logs_of_other_machines_give_the_same_run(cluster: Path, tmp_path: Path) -> None:
    """The machines count excluded lines and find copies; the documents next to the logs are read there as well."""

    def copy(folder: Path) -> None:
        shutil.copy(folder / "node-0" / "stdout", folder / "node-0" / "stdout.1")

    logs = changed(cluster, tmp_path / "logs", copy)
    options: dict[str, Any] = {"exclude": ("node-1",), "filters": (), "genesis": cluster / GENESIS}
    here = ingest(tmp_path / "here", logs, **options).run
    machine = Remote(logs)
    there = ingest(tmp_path / "there", logs, machines=machine, **options).run
    assert there.manifest == here.manifest
    assert (there.path / "metrics.json").read_bytes() == (here.path / "metrics.json").read_bytes()
    assert "node-0/stdout.1 is a copy of node-0/stdout and was excluded" in there.manifest.warnings
    assert sum(there.manifest.counts["lines of node-1"].values()) > 0
    assert there.manifest.synthetic


def test_other_machines_use_the_requested_number_of_threads(cluster: Path, tmp_path: Path) -> None:
    """Two hosts share the threads; an excluded host has all of them."""
    machine = Remote(changed(cluster, tmp_path / "logs"))
    read(tmp_path / "both", tmp_path / "logs", machines=machine, threads=6)
    read(tmp_path / "one", tmp_path / "logs", machines=machine, threads=6, exclude=("node-1",))
    used = [(part.host, json.loads(part.order)["threads"]) for part in machine.parts]
    assert used == [("node-0", 3), ("node-1", 3), ("node-0", 6), ("node-1", 6)]


def test_temporary_folders_have_the_name_of_the_program_and_are_removed(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who finds one after a crash knows what created it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    listener = Listener()
    read(tmp_path / "run", cluster, listener)
    assert listener.temporary
    assert all(name.startswith("chainmark-") for name in listener.temporary)
    assert list(folder.iterdir()) == []


def test_the_stages_of_an_import_have_names(cluster: Path, tmp_path: Path) -> None:
    listener = Listener()
    read(tmp_path / "run", cluster, listener)
    assert listener.stages[:2] == ["searching for logs", "reading 2 hosts"]
    assert listener.stages[-1] == "computing the figures by the published rules"


def test_the_topology_is_stored_with_the_run_and_groups_its_hosts(cluster: Path, tmp_path: Path) -> None:
    """A late host is compared with the hosts of its own region, and a model uses the stored network."""
    run = ingest(tmp_path / "store", cluster, filters=()).run
    document = run.document("network")
    assert document is not None
    assert {host["name"]: host["region"] for host in document["hosts"]} == REGIONS
    assert {key: (group.label, group.of) for key, group in run.manifest.groups.items()} == {
        "host": ("region", REGIONS),
        "forger": ("region", REGIONS),
    }
    assert set(run.samples("block_region")["region"]) == set(REGIONS.values())
    bare = changed(cluster, tmp_path / "bare", lambda folder: (folder / "topology.json").unlink())
    plain = ingest(tmp_path / "store", bare, filters=()).run
    assert (plain.document("network"), plain.manifest.groups) == (None, {})


def test_the_name_of_a_run_depends_on_everything_that_changes_its_result(cluster: Path, tmp_path: Path) -> None:
    """Two imports with equal names are one run: only one of them would be in the store."""
    options = read(tmp_path / "first", cluster, keep_events=True).options
    network: Any = options["network"]
    assert [(host["name"], host["region"]) for host in network["hosts"]] == list(REGIONS.items())
    assert (options["keep_events"], options["synthetic"]) == (True, True)
    assert len(list((tmp_path / "first" / "events").glob("messages-*"))) == len(HOSTS)

    def without_documents(folder: Path) -> None:
        for name in ("meta.json", "topology.json", "truth.parquet"):
            (folder / name).unlink()

    real = changed(cluster, tmp_path / "real", without_documents)
    other = read(tmp_path / "second", real)
    assert (other.options["keep_events"], other.synthetic) == (False, False)
    assert other.options.keys() == {"genesis", "rules", "keep_events"}
    assert list((tmp_path / "second" / "events").glob("messages-*")) == []


def test_the_catalogue_of_a_cluster_differs_from_that_of_one_host(cluster: Path, tmp_path: Path) -> None:
    """Of one host, the blocks that it received are judged; of a cluster, the propagation of blocks is."""
    pair = read(tmp_path / "pair", cluster).catalogue
    one = read(tmp_path / "one", cluster / "node-0" / "stdout", genesis=cluster / GENESIS).catalogue
    judged = [{metric.population for metric in catalogue.metrics if metric.gating} for catalogue in (pair, one)]
    assert "received" not in {population.id for population in pair.populations}
    assert "block" in judged[0]
    assert "received" in judged[1]
    assert judged[1] <= {"received", "slot_host", "span"}


def test_switches_to_a_fork_count_as_adoptions_unless_stated_otherwise(cluster: Path, tmp_path: Path) -> None:
    stated = ("analysis.count_switches=false",)
    assert read(tmp_path / "default", cluster).workload["analysis.count_switches"] is True
    assert read(tmp_path / "stated", cluster, settings=stated).workload["analysis.count_switches"] is False


def test_hosts_named_differently_in_their_lines_are_reported_for_a_folder_only(cluster: Path, tmp_path: Path) -> None:
    """A folder's name is a host's name. A single file may have any name."""

    def rename(folder: Path) -> None:
        (folder / "node-1").rename(folder / "node-7")

    logs = changed(cluster, tmp_path / "logs", rename)
    reported = "the lines name other hosts than the folders or files they are in: node-7 (named node-1)"
    assert reported in warnings_of(tmp_path / "folder", logs)
    log = tmp_path / "last-night.txt"
    shutil.copy(cluster / "node-1" / "stdout", log)
    alone = warnings_of(tmp_path / "file", log, genesis=cluster / GENESIS)
    assert not any("name other hosts" in warning for warning in alone)


def test_a_described_load_without_any_line_about_it_is_reported(cluster: Path, tmp_path: Path) -> None:
    """Only the description shows that the mempool metrics lack data: without a load there would be none to lack."""

    def idle(line: str) -> str | None:
        return None if re.search(r'"ns":"(Mempool|TxSubmission)\.', line) else line

    logs = changed(cluster, tmp_path / "logs", *(edit_lines(f"{host}/stdout", idle) for host in HOSTS))
    sentence = "no host emits Mempool.AddedTx: mempool metrics have no data; enable Mempool.AddedTx at Info"
    assert sentence in warnings_of(tmp_path / "described", logs)
    unloaded = changed(logs, tmp_path / "unloaded", edit_json("meta.json", meta={"ident": "10.5.4"}))
    assert sentence not in warnings_of(tmp_path / "undescribed", unloaded)


def test_a_host_that_received_no_block_is_reported(cluster: Path, tmp_path: Path) -> None:
    """Its own blocks are on no other host's chain, so the cluster's figures do not cover it."""
    other = make_cluster(tmp_path / "other", hosts=2, slots=80, seed=2)

    def isolate(folder: Path) -> None:
        shutil.copy(other / "node-1" / "stdout", folder / "node-1" / "stdout")
        edit_lines("node-1/stdout", lambda line: line if '"ns":"Forge.' in line else None)(folder)

    logs = changed(cluster, tmp_path / "logs", isolate)
    assert "node-1 shares no block with the other hosts" in warnings_of(tmp_path / "run", logs)


def test_a_host_without_slots_does_not_change_the_published_rule_for_large_clusters(tmp_path: Path) -> None:
    """By the published rules, the highest hosts of a cluster are excluded once more hosts than centiles have slots."""

    def early(line: str) -> str | None:
        """The lines of the first twenty slots."""
        at = re.match(r'{"at":"([^"]*)"', line)
        return line if at is None or at[1] < "2026-02-05T18:52:36" else None

    count = len(STANDARD_CENTILES)
    whole = make_cluster(tmp_path / "whole", hosts=count + 1, slots=40)
    short = changed(whole, tmp_path / "short", edit_lines("node-1/stdout", early))
    for logs, limit in ((whole, count), (short, None)):
        options: dict[str, Any] = {"published_rules": True, "filters": ("SlotGEq=30",)}
        catalogue = read(tmp_path / f"run of {logs.name}", logs, **options).catalogue
        limits = {population.id: population.lowest_means for population in catalogue.populations}
        assert limits["slot_host"] == limit


def test_blocks_that_were_not_all_counted_are_an_error_of_the_program(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums are checked for every import; the error states the first one that does not balance."""
    monkeypatch.setattr(AnalysisResult, "imbalances", ["7 blocks of the chain in 6 parts"])
    with pytest.raises(InternalError) as failed:
        read(tmp_path / "run", cluster)
    assert failed.value.message == "the blocks were not all counted: 7 blocks of the chain in 6 parts"
