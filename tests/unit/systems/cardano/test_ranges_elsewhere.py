"""A host's logs read range by range by several machines: the run is that of the logs as a whole."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.errors import EnvironmentFailure
from chainmark.systems.cardano import decoding_elsewhere
from chainmark.systems.cardano.decoders import RangePart

from tests.unit.systems.cardano.clusters import changed, edit_lines, ingest, make_cluster
from tests.unit.systems.cardano.test_ingest_values import Remote

RANGE_BYTES = 1 << 16


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hosts with several logs each, and some lines that cannot be read."""
    folder = tmp_path_factory.mktemp("cluster") / "logs"
    return make_cluster(folder, hosts=2, slots=160, faults=("corrupt:node-1=1%",), rotation="4000")


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of which these logs have several."""
    monkeypatch.setattr(decoding_elsewhere, "LEAST_RANGE_BYTES", RANGE_BYTES)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def imported(store: Path, logs: Path, **options: Any) -> dict[str, bytes]:
    return contents(ingest(store, logs, filters=(), **options).run.path)


def ranges_of(machines: Remote) -> Counter[str]:
    """By host, the number of parts that were ranges."""
    return Counter(part.host for part in machines.parts if isinstance(part, RangePart))


def compress_a_log(folder: Path) -> None:
    log = sorted((folder / "node-0").glob("stdout*"))[-1]
    log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


@pytest.mark.parametrize("threads", [6, 10_000_000])
def test_a_host_is_read_range_by_range_if_the_other_threads_would_wait(
    threads: int, cluster: Path, tmp_path: Path
) -> None:
    logs = changed(cluster, tmp_path / "logs", compress_a_log)
    expected = imported(tmp_path / "here", logs)
    machines = Remote(logs, ("one", "other"))
    assert imported(tmp_path / "there", logs, machines=machines, threads=threads) == expected
    assert set(ranges_of(machines)) == {"node-0", "node-1"}
    orders = [json.loads(part.order) for part in machines.parts]
    whole = [order["path"] for order in orders if order["range"] is None]
    assert [Path(path).suffix for path in whole if path.endswith(".gz")] == [".gz"]
    assert sum(order["range"] is not None for order in orders) > len(orders) / 2


@pytest.mark.parametrize(("names", "threads"), [(("one", "other"), 1), (("one",), 6)])
def test_hosts_are_read_as_a_whole_where_ranges_are_of_no_use(
    names: tuple[str, ...], threads: int, cluster: Path, tmp_path: Path
) -> None:
    """Either the hosts occupy all threads, or only one machine has the logs."""
    machines = Remote(changed(cluster, tmp_path / "logs"), names)
    ingest(tmp_path / "store", tmp_path / "logs", filters=(), machines=machines, threads=threads)
    assert not ranges_of(machines)
    assert [part.host for part in machines.parts] == ["node-0", "node-1"]


def test_wrapped_lines_are_not_sent_to_the_client(cluster: Path, tmp_path: Path) -> None:
    """A range's findings would contain all of their text."""

    def wrapped(line: str) -> str:
        return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-02-05T19:00:00.5Z"})

    names = [str(log.relative_to(cluster)) for log in cluster.glob("node-0/stdout*")]
    logs = changed(cluster, tmp_path / "logs", *(edit_lines(name, wrapped) for name in names))
    expected = imported(tmp_path / "here", logs)
    machines = Remote(logs, ("one", "other"))
    assert imported(tmp_path / "there", logs, machines=machines, threads=6) == expected
    assert set(ranges_of(machines)) == {"node-1"}


def test_excluded_hosts_are_counted_range_by_range(cluster: Path, tmp_path: Path) -> None:
    logs = changed(cluster, tmp_path / "logs")
    expected = imported(tmp_path / "here", logs, exclude=("node-1",))
    machines = Remote(logs, ("one", "other"))
    assert imported(tmp_path / "there", logs, exclude=("node-1",), machines=machines, threads=6) == expected
    assert ranges_of(machines)["node-1"] > 1


class Losing(Remote):
    """Machines whose second host loses a log before it is read."""

    def map(self, function: Any, parts: Any, **options: Any) -> Any:
        """Read the parts without the log."""
        for log in self._hidden.glob("node-1/stdout*"):
            log.unlink()
        return super().map(function, parts, **options)


def test_a_range_that_cannot_be_read_is_an_error_unless_its_host_is_excluded(cluster: Path, tmp_path: Path) -> None:
    logs = changed(cluster, tmp_path / "logs")
    with pytest.raises(EnvironmentFailure, match=r"the log .*/node-1/stdout.* cannot be read: No such file") as caught:
        ingest(tmp_path / "one", logs, filters=(), machines=Losing(logs, ("one", "other")), threads=6)
    assert caught.value.hint == "`--exclude node-1` leaves the host out"
    (tmp_path / "again").mkdir()
    again = changed(cluster, tmp_path / "again" / "logs")
    machines = Losing(again, ("one", "other"))
    run = ingest(tmp_path / "other", again, filters=(), exclude=("node-1",), machines=machines, threads=6).run
    assert any("node-1" in warning and "cannot be read" in warning for warning in run.manifest.warnings)
