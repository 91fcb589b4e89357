"""Profiles of programs: fetched from their pprof pages while a load runs, and parsed as stacks of functions.

The files are stored as received, so that `go tool pprof` opens them. For processes without such pages `perf` samples
the CPU time.

Source: https://pkg.go.dev/net/http/pprof
"""

from __future__ import annotations

import glob
import gzip
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import polars as pl

from chainmark._native import read_pprof
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.profiles import BLOCK, CPU, GOROUTINE, HEAP, MUTEX, ProfilesRecord
from chainmark.core.storage import storage_errors
from chainmark.core.times import NS
from chainmark.network import perf

BEGIN, END = "begin", "end"
ANSWER_TIMEOUT_S = 30.0
# Unlike the stack, the owner names no function of Go's own library: it is the caller of the library.
PROFILE_SCHEMA: Mapping[str, type[pl.DataType] | pl.DataType] = {
    "kind": pl.String,
    "moment": pl.String,
    "host": pl.String,
    "stack": pl.List(pl.String),
    "owner": pl.String,
    "value": pl.Float64,
}


@dataclass(frozen=True)
class _Page:
    """The page of a kind of profile, which of its values counts, and its factor to the unit of the kind."""

    path: str
    value: str
    factor: float


_PAGES: Mapping[str, _Page] = {
    CPU: _Page("profile", "cpu", 1e-9),
    HEAP: _Page("heap", "inuse_space", 1.0),
    GOROUTINE: _Page("goroutine", "goroutine", 1.0),
    MUTEX: _Page("mutex", "delay", 1e-9),
    BLOCK: _Page("block", "delay", 1e-9),
}
_VERSION = re.compile(r"v\d+")
_SAMPLED = f".{CPU}.perf.txt.gz"
# Of "github.com/owner/name": what follows is a folder of the repository.
_REPOSITORY_PARTS = 3
_CLOSURE = re.compile(r"(\.func\d+|\.gowrap\d+|\.deferwrap\d+|-fm|-range\d+|(?<=\d)\.\d+)+$")
# Values that Go's runtime counts since the program's start.
_SINCE_START = frozenset({MUTEX, BLOCK})
# Moments of the period at which goroutines are recorded: their mean shows where they wait, which no CPU profile does.
LOOKS = 20
_GOLDEN = 0.618034  # multiples of it are spread evenly, and are in step with no period of the program


class ProfileTaker:
    """Records profiles of programs over the same period, each on its own thread.

    A CPU profile lasts from the beginning to the end; the others are recorded at both. Goroutines are also recorded in
    between.

    Args:
        places: by host, the address of its pprof pages: "127.1.0.1:6060".
        kinds: to record.
        folder: gets ``HOST.KIND.pb.gz``, and ``HOST.KIND.begin.pb.gz`` for profiles at the beginning, and
            ``HOST.goroutine.NUMBER.pb.gz`` for those in between.
        window_ns: the period, ns since 1970-01-01 UTC.
        processes: those without such pages, by name: sampled if CPU profiles are recorded, into
            ``NAME.cpu.perf.txt.gz``.
    """

    def __init__(
        self,
        places: Mapping[str, str],
        kinds: Sequence[str],
        folder: Path,
        window_ns: tuple[int, int],
        processes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self._kinds = [kind for kind in _PAGES if kind in kinds]
        self._folder = folder
        self._begin_ns, self._end_ns = window_ns
        self._stopped = threading.Event()
        sampled = (processes or {}) if CPU in self._kinds else {}
        self._missing: dict[str, dict[str, str]] = {name: {} for name in [*places, *sampled]}
        looked_at = places if GOROUTINE in self._kinds else {}
        work: list[tuple[Callable[..., None], tuple[str, Any]]] = [
            *((self._take_all, place) for place in places.items()),
            *((self._look, place) for place in looked_at.items()),
            *((self._sample, item) for item in sampled.items()),
        ]
        self._threads = [
            (item[0], threading.Thread(target=target, args=item, name=f"profile {item[0]}", daemon=True))
            for target, item in work
        ]

    def start(self) -> None:
        """Start waiting for the beginning."""
        with storage_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        for _, thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Start no further profiles; running ones are not awaited."""
        self._stopped.set()

    def finish(self) -> list[str]:
        """Wait until all are recorded; returns a sentence per host on what is missing, and why."""
        until = self._end_ns / NS - time.time() + ANSWER_TIMEOUT_S
        deadline = time.monotonic() + max(0.0, until)
        for host, thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self._missing[host].setdefault(self._kinds[-1], "it did not respond in time")
        self.stop()
        return [sentence for host, result in self._missing.items() for sentence in _missing_sentences(host, result)]

    def _look(self, host: str, place: str) -> None:
        """Record the goroutines between the beginning and the end."""
        with _client(place) as client:
            for number in range(1, LOOKS):
                share = (number - 1 + number * _GOLDEN % 1.0) / LOOKS
                moment_ns = self._begin_ns + int(share * (self._end_ns - self._begin_ns))
                if not self._wait_until(moment_ns) or GOROUTINE in self._missing[host]:
                    return
                self._take(client, host, GOROUTINE, f"{host}.{GOROUTINE}.{number:02}.pb.gz")

    def _take_all(self, host: str, place: str) -> None:
        with _client(place) as client:
            if self._wait_until(self._begin_ns):
                for kind in self._kinds:
                    if kind != CPU:
                        self._take(client, host, kind, f"{host}.{kind}.{BEGIN}.pb.gz")
            if CPU in self._kinds and not self._stopped.is_set():
                self._take(client, host, CPU, f"{host}.{CPU}.pb.gz")
            if self._wait_until(self._end_ns):
                for kind in self._kinds:
                    if kind != CPU and kind not in self._missing[host]:
                        self._take(client, host, kind, f"{host}.{kind}.pb.gz")

    def _sample(self, name: str, pids: Sequence[int]) -> None:
        if not self._wait_until(self._begin_ns):
            return
        try:
            text = perf.sample(pids, (self._end_ns - time.time_ns()) / NS, self._stopped)
            (self._folder / f"{name}{_SAMPLED}").write_bytes(gzip.compress(text.encode(), mtime=0))
        except EnvironmentFailure as error:
            self._missing[name][CPU] = str(error)
        except OSError as error:
            self._missing[name][CPU] = str(error) or type(error).__name__

    def _wait_until(self, moment_ns: int) -> bool:
        """Whether it was reached before everything was stopped."""
        return not self._stopped.wait(max(0.0, (moment_ns - time.time_ns()) / NS))

    def _take(self, client: httpx.Client, host: str, kind: str, name: str) -> None:
        parameters, timeout_s = {}, ANSWER_TIMEOUT_S
        if kind == CPU:
            seconds = max(1, int((self._end_ns - time.time_ns()) / NS))
            parameters, timeout_s = {"seconds": str(seconds)}, seconds + ANSWER_TIMEOUT_S
        try:
            answer = client.get(f"/{_PAGES[kind].path}", params=parameters, timeout=timeout_s)
            if answer.is_error:
                self._missing[host][kind] = f"its pprof page returned status {answer.status_code}"
                return
            read_pprof(answer.content)
            (self._folder / name).write_bytes(answer.content)
        except httpx.ConnectError:
            self._missing[host][kind] = "its pprof port refuses connections"
        except httpx.TimeoutException:
            self._missing[host][kind] = "it did not respond in time"
        except ValueError as error:
            self._missing[host][kind] = f"the response is not a profile: {error}"
        except (httpx.HTTPError, OSError) as error:
            self._missing[host][kind] = str(error) or type(error).__name__


def _client(place: str) -> httpx.Client:
    return httpx.Client(base_url=f"http://{place}/debug/pprof", timeout=ANSWER_TIMEOUT_S, trust_env=False)


def _missing_sentences(host: str, result: Mapping[str, str]) -> list[str]:
    """One sentence for the kinds that are missing for the same reason."""
    reasons: dict[str, list[str]] = {}
    for kind, reason in result.items():
        reasons.setdefault(reason, []).append(kind)
    return [f"profiles of {host} are missing ({', '.join(kinds)}): {reason}" for reason, kinds in reasons.items()]


def read_profiles(folder: Path, kinds: Sequence[str]) -> pl.DataFrame:
    """All profiles of a folder, as `ProfileTaker` wrote them.

    Args:
        folder: of the files.
        kinds: those that were recorded.

    Returns:
        A row for each stack with a value: `PROFILE_SCHEMA`, values in the kind's unit. For values counted since the
        start of a program it is the growth between the beginning and the end; for goroutines it is their mean number.
    """
    parts = []
    for kind in kinds:
        for path in sorted(folder.glob(f"*.{kind}.pb.gz")):
            host = path.name.removesuffix(f".{kind}.pb.gz")
            between = sorted(folder.glob(f"{glob.escape(host)}.{kind}.[0-9]*.pb.gz"))
            end = _averaged([_stacks(each, kind, host, END) for each in [*between, path]])
            begin_path = path.with_name(f"{host}.{kind}.{BEGIN}.pb.gz")
            if not begin_path.is_file():
                parts.append(end)
                continue
            begin = _stacks(begin_path, kind, host, BEGIN)
            parts += [_grown(begin, end)] if kind in _SINCE_START else [begin, end]
    if CPU in kinds:
        parts += [_sampled(path) for path in sorted(folder.glob(f"*{_SAMPLED}"))]
    if not parts:
        return pl.DataFrame(schema=PROFILE_SCHEMA)
    return pl.concat(parts).filter(pl.col("value") != 0.0).sort("kind", "moment", "host", "stack")


def _averaged(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Several profiles as one: the mean of each stack's values, 0 where it does not occur."""
    if len(frames) == 1:
        return frames[0]
    keys = [name for name in PROFILE_SCHEMA if name != "value"]
    summed = pl.concat(frames).group_by(keys).agg(pl.col("value").sum() / len(frames))
    return summed.select(*PROFILE_SCHEMA)


def _grown(begin: pl.DataFrame, end: pl.DataFrame) -> pl.DataFrame:
    before = begin.with_columns(moment=pl.lit(END), value=-pl.col("value"))
    keys = [name for name in PROFILE_SCHEMA if name != "value"]
    return pl.concat([end, before]).group_by(keys).agg(pl.col("value").sum()).select(*PROFILE_SCHEMA)


def _stacks(path: Path, kind: str, host: str, moment: str) -> pl.DataFrame:
    page = _PAGES[kind]
    kinds, _, functions, stacks, values = read_pprof(path.read_bytes())
    names = [go_name(function) for function in functions]
    is_own = [not _is_of_library(function) for function in functions]
    column = [name for name, _ in kinds].index(page.value)
    rows = [
        (kind, moment, host, _calls(stack, names), _owner(stack, names, is_own), own[column] * page.factor)
        for stack, own in zip(stacks, values, strict=True)
        if stack
    ]
    return _summed(rows)


def _sampled(path: Path) -> pl.DataFrame:
    """The samples of a process from `perf`. Only names of Go show by themselves what is of a library."""
    host, rows = path.name.removesuffix(_SAMPLED), []
    for functions, seconds in perf.stacks(gzip.decompress(path.read_bytes()).decode(errors="replace")):
        names = [go_name(function) for function in functions]
        is_own = [not ("." in function and _is_of_library(function)) for function in functions]
        stack = range(len(names))
        rows.append((CPU, END, host, _calls(stack, names), _owner(stack, names, is_own), seconds))
    return _summed(rows)


def _summed(rows: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    """`PROFILE_SCHEMA` with one row for each stack."""
    keys = [name for name in PROFILE_SCHEMA if name != "value"]
    frame = pl.DataFrame(rows, schema=PROFILE_SCHEMA, orient="row")
    return frame.group_by(keys).agg(pl.col("value").sum()).select(*PROFILE_SCHEMA)


def _calls(stack: Sequence[int], names: Sequence[str]) -> list[str]:
    """The stack by names; a function that calls itself, or its own closure, is one call."""
    return [name for name, _ in groupby(names[at] for at in stack)]


def _owner(stack: Sequence[int], names: Sequence[str], is_own: Sequence[bool]) -> str:
    """The innermost function that is not of the library; for the library's own threads, their outermost one."""
    return names[next((at for at in reversed(stack) if is_own[at]), stack[0])]


def _is_of_library(function: str) -> bool:
    """Whether a function is of Go's standard library: only paths of modules begin with a name that has a dot."""
    first, slash, _ = function.partition("/")
    return "." not in first if slash else function.partition(".")[0] != "main"


@lru_cache(maxsize=100_000)
def go_name(function: str) -> str:
    """A function's name in a form that is stable over most versions of its module.

    Packages move within a repository, modules get a major version into their path, the parameters of a generic function
    do not identify it, and the closures of a function are renumbered whenever it changes: they count as the function
    itself.
    """
    path, slash, rest = re.sub(r"\[.*\]", "", function).rpartition("/")
    package, _, name = rest.partition(".")
    folders = [part for part in path.split("/") if part not in {"", "internal"} and not _VERSION.fullmatch(part)]
    if _VERSION.fullmatch(package) and folders:
        package = folders.pop()
    if folders and "." in folders[0]:
        folders = folders[:_REPOSITORY_PARTS]
    return "/".join([*folders, f"{package}.{_CLOSURE.sub('', name)}"]) if slash or name else function


def record_of(
    kinds: Sequence[str], frame: pl.DataFrame, missing: Sequence[str], **known: str | float
) -> ProfilesRecord:
    """The record of a run's profiles.

    Args:
        kinds: those requested.
        frame: of `read_profiles`.
        missing: of `ProfileTaker.finish`.
        known: the record's other fields.
    """
    reported = set(frame["kind"].unique())
    empty = [] if missing else [kind for kind in kinds if kind not in reported]
    return ProfilesRecord.model_validate({"kinds": list(kinds), "missing": list(missing), "empty": empty, **known})
