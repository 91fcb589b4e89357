"""A host's logs read range by range by several machines: the run is that of the logs as a whole."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
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


def reversed_after(log: Path, kept: int) -> None:
    """Another log of the same length, which begins in the same way."""
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:kept] + lines[kept:][::-1]))


class Changing(Remote):
    """Machines whose second host has another log of the same length when it is read."""

    def map(self, function: Any, parts: Any, **options: Any) -> Any:
        """Read the parts with the other log."""
        if not self.parts:
            for log in self._hidden.glob("node-1/stdout*"):
                reversed_after(log, 10)
        return super().map(function, parts, **options)


@pytest.mark.parametrize(("names", "threads"), [(("one", "other"), 6), (("one",), 1)])
def test_a_log_that_is_not_the_listed_one_is_not_decoded(
    names: tuple[str, ...], threads: int, cluster: Path, tmp_path: Path
) -> None:
    """Otherwise the run would be put together from ranges of different logs, without any sign of it."""
    logs = changed(cluster, tmp_path / "logs")
    machines = Changing(logs, names)
    expected = r"the log .*/node-1/stdout.* is not the one that was listed: it was changed, or is another one here"
    with pytest.raises(EnvironmentFailure, match=expected) as caught:
        ingest(tmp_path / "one", logs, filters=(), machines=machines, threads=threads)
    assert caught.value.hint == "repeat the import with the same logs on every worker, or `--exclude node-1`"
    assert (len(ranges_of(machines)) > 0) == (threads > 1)


def test_a_changed_log_of_an_excluded_host_is_reported(cluster: Path, tmp_path: Path) -> None:
    machines = Changing(changed(cluster, tmp_path / "logs"), ("one", "other"))
    run = ingest(tmp_path / "one", tmp_path / "logs", filters=(), exclude=("node-1",), machines=machines, threads=6).run
    assert any("node-1" in warning and "is not the one that was listed" in warning for warning in run.manifest.warnings)


class Growing(Remote):
    """Machines whose hosts write to their logs while these are read."""

    def map(self, function: Any, parts: Any, **options: Any) -> Any:
        """Read the parts of logs with one more line."""
        for log in self._hidden.glob("node-*/stdout*"):
            with log.open("ab") as file:
                file.write(b"one more line\n")
        return super().map(function, parts, **options)


def test_ranges_of_a_growing_log_are_those_that_were_listed(cluster: Path, tmp_path: Path) -> None:
    logs = changed(cluster, tmp_path / "logs")
    expected = imported(tmp_path / "here", logs)
    machines = Growing(logs, ("one", "other"))
    assert imported(tmp_path / "there", logs, machines=machines, threads=10_000_000) == expected
    assert set(ranges_of(machines)) == {"node-0", "node-1"}


class Different(Remote):
    """Machines with logs of the same names, lengths and beginnings, of which one differs."""

    def ask_each(self, function: Any, question: Any) -> Any:
        """Ask the second machine after the log was changed."""
        answers: dict[str, Any] = {}
        for name in self._names:
            answers |= {name: super().ask_each(function, question)[name]}
            reversed_after(next(self._hidden.glob("node-1/stdout*")), 10)
        return answers


def test_machines_with_different_logs_of_a_host_are_refused(cluster: Path, tmp_path: Path) -> None:
    logs = changed(cluster, tmp_path / "logs")
    with pytest.raises(UsageError, match="the logs of node-1 on other differ from those on one") as caught:
        ingest(tmp_path / "one", logs, filters=(), machines=Different(logs, ("one", "other")))
    assert caught.value.hint == "keep a host's logs on one machine, or on shared storage"
