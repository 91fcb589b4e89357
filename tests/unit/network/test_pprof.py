"""Profiles: the content of real ones, and the warnings if a node does not provide one.

The files in `profiled` were made by the program in the same folder, whose source describes its work. The expected
figures are the output of `go tool pprof -top` for these files.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from chainmark._native import read_pprof
from chainmark.core.errors import UsageError
from chainmark.core.profiles import KINDS, profile_kinds
from chainmark.network.pprof import LOOKS, PROFILE_SCHEMA, ProfileTaker, go_name, read_profiles, record_of

FILES = Path(__file__).with_name("profiled")
ALL = tuple(KINDS)


def _owners(frame: pl.DataFrame, kind: str, moment: str = "end") -> dict[str, float]:
    rows = frame.filter(kind=kind, moment=moment).group_by("owner").agg(pl.col("value").sum())
    return dict(rows.iter_rows())


def test_library_time_is_attributed_to_the_calling_function() -> None:
    frame = read_profiles(FILES, ALL)
    assert dict(frame.schema) == dict(PROFILE_SCHEMA)
    cpu = _owners(frame, "cpu")
    assert cpu == {"main.spins": pytest.approx(0.09), "main.hashes": pytest.approx(0.02)}
    inside = frame.filter(kind="cpu", owner="main.hashes")["stack"].to_list()
    assert all(stack[:3] == ["runtime.main", "main.main", "main.hashes"] for stack in inside)
    assert any("sha256" in stack[-1] for stack in inside)


def test_memory_and_goroutines_match_the_program() -> None:
    frame = read_profiles(FILES, ALL)
    assert _owners(frame, "heap")["main.keeps"] == 8 << 20
    assert "main.keeps" not in _owners(frame, "heap", "begin")
    assert _owners(frame, "goroutine")["main.waits"] == 3.0


def test_profiles_within_the_window_are_averaged(tmp_path: Path) -> None:
    """A function that waits during a quarter of the window has a quarter of a goroutine. Memory replaces them here."""
    shutil.copyfile(FILES / "node0.heap.pb.gz", tmp_path / "node0.heap.pb.gz")
    for number in range(1, 4):
        shutil.copyfile(FILES / "node0.heap.begin.pb.gz", tmp_path / f"node0.heap.{number:02}.pb.gz")
    end, begin = (_owners(read_profiles(FILES, ALL), "heap", moment) for moment in ("end", "begin"))
    averaged = _owners(read_profiles(tmp_path, ["heap"]), "heap")
    assert averaged == {owner: (end.get(owner, 0.0) + 3.0 * begin.get(owner, 0.0)) / 4.0 for owner in {*end, *begin}}
    assert averaged["main.keeps"] == 2 << 20


def test_a_kind_that_a_program_does_not_record_is_reported() -> None:
    """Programs must enable mutex profiles: an empty table must not be read as "no waiting"."""
    frame = read_profiles(FILES, ["cpu", "mutex"])
    assert record_of(["cpu", "mutex"], frame, []).empty == ["mutex"]


def test_cumulative_counts_are_reduced_by_their_initial_value(tmp_path: Path) -> None:
    """Goroutines replace mutex waits here. Equal profiles at both ends mean that nothing happened in between."""
    for name in ("node0.mutex.pb.gz", "node0.mutex.begin.pb.gz"):
        shutil.copyfile(FILES / "node0.mutex.pb.gz", tmp_path / name)
    assert read_profiles(tmp_path, ["mutex"]).is_empty()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("github.com/a/b/internal/consensus.(*State).run", "github.com/a/b/consensus.(*State).run"),
        ("github.com/a/b/v2/libs/consensus.(*State).run.func1.2", "github.com/a/b/consensus.(*State).run"),
        ("github.com/a/b/api/types/v1.(*Part).Unmarshal", "github.com/a/b/types.(*Part).Unmarshal"),
        ("github.com/a/b.(*DB).Set-fm", "github.com/a/b.(*DB).Set"),
        ("sync.(*Map[go.shape.string,go.shape.[]int]).Load", "sync.(*Map).Load"),
        ("net/http.HandlerFunc.ServeHTTP", "net/http.HandlerFunc.ServeHTTP"),
        ("runtime.mcall", "runtime.mcall"),
        ("main.main.func2.1", "main.main"),
        ("0x2a", "0x2a"),
    ],
)
def test_a_function_has_the_same_name_in_every_version_of_its_module(function: str, name: str) -> None:
    """Otherwise every function that moved to another package would be new on one side and removed on the other."""
    assert go_name(function) == name


@contextmanager
def _pages(answers: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """The address of a server that sends these responses, selected by the last part of the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, content = answers.get(self.path.partition("?")[0].rpartition("/")[2], (404, b"404 page not found\n"))
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called above
            """Ignore the message."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _taken(places: dict[str, str], folder: Path, kinds: tuple[str, ...]) -> list[str]:
    now_ns = time.time_ns()
    taker = ProfileTaker(places, kinds, folder, (now_ns, now_ns))
    taker.start()
    return taker.finish()


def test_profiles_are_stored_unchanged(tmp_path: Path) -> None:
    answers = {page: (200, (FILES / f"node0.{kind}.pb.gz").read_bytes()) for page, kind in
               {"profile": "cpu", "heap": "heap", "goroutine": "goroutine"}.items()}  # fmt: skip
    with _pages(answers) as place:
        assert _taken({"node1": place}, tmp_path, ("heap", "cpu", "goroutine")) == []
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "node1.cpu.pb.gz",
        *(f"node1.{kind}{moment}.pb.gz" for kind in ("heap", "goroutine") for moment in ("", ".begin")),
        *(f"node1.goroutine.{number:02}.pb.gz" for number in range(1, LOOKS)),
    }
    assert (tmp_path / "node1.cpu.pb.gz").read_bytes() == (FILES / "node0.cpu.pb.gz").read_bytes()


def test_a_node_without_a_profile_is_reported_and_the_others_are_kept(tmp_path: Path) -> None:
    """A refused port, a missing page and an invalid response give warnings, and do not fail the run."""
    good = {"profile": (200, (FILES / "node0.cpu.pb.gz").read_bytes()), "heap": (200, b"\x1f\x8bnothing")}
    with _pages(good) as place, _pages({}) as other:
        places = {"node0": place, "node1": other, "node2": "127.0.0.1:1"}
        messages = _taken(places, tmp_path, ("cpu", "heap"))
    assert [path.name for path in tmp_path.iterdir()] == ["node0.cpu.pb.gz"]
    message_of_node0 = "profiles of node0 are missing (heap): the response is not a profile: it is no profile in"
    assert messages[0].startswith(message_of_node0)
    assert messages[1:] == [
        "profiles of node1 are missing (heap, cpu): its pprof page returned status 404",
        "profiles of node2 are missing (heap, cpu): its pprof port refuses connections",
    ]


def test_a_stopped_taker_takes_no_further_profiles(tmp_path: Path) -> None:
    later_ns = time.time_ns() + 3600 * 10**9
    with _pages({}) as place:
        taker = ProfileTaker({"node0": place}, ("heap",), tmp_path, (later_ns, later_ns))
        taker.start()
        taker.stop()
        for _, thread in taker._threads:
            thread.join(timeout=60)
            assert not thread.is_alive()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"404 page not found\n", b"\x1f\x8b\x08", b"\x00" * 64])
def test_an_invalid_profile_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="it is no profile in the pprof format"):
        read_pprof(content)


def test_unknown_kinds_are_refused_with_the_list_of_known_ones() -> None:
    assert profile_kinds("cpu, heap,cpu") == ("cpu", "heap")
    assert profile_kinds("none") == ()
    for text in ("cpus", "", "cpu,none"):
        with pytest.raises(UsageError) as refused:
            profile_kinds(text)
        assert "`cpu`, `heap`, `goroutine`, `mutex` and `block`" in str(refused.value.hint)
