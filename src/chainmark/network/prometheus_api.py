"""Data of a Prometheus server, queried over its HTTP API; responses are stored and can be replayed without the server.

Written against Prometheus' documented API (`/api/v1/query`, `/api/v1/query_range`, `/api/v1/label/…/values`), which
Thanos, Mimir and VictoriaMetrics implement too. Partial results are never silent: an error of the server is raised, and
its warnings (a store did not respond, results were truncated) are in :attr:`Prometheus.warnings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from chainmark._native import ZstdWriter
from chainmark.core.compressed import DamagedFileError, open_zstd
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.storage import storage_errors
from chainmark.core.times import NS

TIMEOUT_S = 120.0
# A server refuses to return more points than this per series, so longer ranges are queried in parts. Raw samples have
# no such limit, but the same part size keeps responses small: at one scrape per second it is three hours.
POINTS_MAX = 11_000
PART_NS_MIN = 60 * NS
_MS = 1_000_000
_HINT = "give the server's address, as you would open it in a browser, e.g. `http://localhost:9090`"
_TOO_MUCH = "too many samples"

Parameters = Mapping[str, str]


class ServerError(EnvironmentFailure):
    """The server reported an error; ``kind`` is its own name for the error."""

    def __init__(self, kind: str, reason: str, place: str) -> None:
        super().__init__(f"the Prometheus server {place} returned an error ({kind}): {reason}")
        self.kind = kind
        self.reason = reason


class PrometheusSource(Protocol):
    """A source of responses: a server, or stored responses."""

    place: str

    def ask(self, path: str, parameters: Parameters) -> dict[str, Any]:
        """The whole response, as the API's envelope of `status`, `data`, `warnings`."""


@dataclass(frozen=True)
class TimeSeries:
    """One time series: samples in the order of time.

    Attributes:
        times_ns: shape (n,), time of each sample, ns since 1970-01-01 UTC, exact to the millisecond.
        values: shape (n,), in the metric's own unit.
    """

    labels: Mapping[str, str]
    times_ns: list[int]
    values: list[float]

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.labels.get("__name__", "")


class LiveServer:
    """A server, queried over HTTP; ``user:password@`` in the address is used and never stored."""

    def __init__(self, url: str) -> None:
        try:
            address = httpx.URL(url.rstrip("/") + "/")
            # Neither a proxy of the environment nor a password of .netrc: requests go exactly where the address points.
            self._client = httpx.Client(base_url=address, timeout=TIMEOUT_S, follow_redirects=True, trust_env=False)
        except (httpx.InvalidURL, ValueError) as error:
            raise UsageError(f"`{url}` is not a valid server URL ({error})", _HINT) from error
        self.place = str(address.copy_with(username=None, password=None)).rstrip("/")

    def ask(self, path: str, parameters: Parameters) -> dict[str, Any]:
        """Send one request; error responses of the API are responses too."""
        try:
            response = self._client.get(path.lstrip("/"), params=dict(parameters))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reported = str(error) or type(error).__name__
            raise EnvironmentFailure(
                f"the Prometheus server {self.place} cannot be queried ({reported})", _HINT
            ) from error
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or "status" not in answer:
            raise EnvironmentFailure(
                f"{self.place} does not respond like a Prometheus server: {path} returned {response.status_code}",
                _HINT,
            )
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


@dataclass
class StoredResponses:
    """Responses that :class:`Prometheus` stored in a folder, looked up by the same query."""

    folder: Path
    place: str = ""
    _answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place = self.place or str(self.folder)
        for path in sorted(self.folder.glob("*.json.zst")):
            content = read_recorded(path)
            self._answers[_key(content["path"], content["parameters"])] = content["answer"]

    def ask(self, path: str, parameters: Parameters) -> dict[str, Any]:
        """The stored response."""
        try:
            return self._answers[_key(path, parameters)]
        except KeyError:
            question = parameters.get("query", path)
            raise UsageError(
                f"the stored responses in {self.folder} do not include the query `{question}`",
                "query the server itself, or use the same query as before",
            ) from None


def read_recorded(path: Path) -> dict[str, Any]:
    """One stored query with its response.

    Raises:
        UsageError: the file is of another kind.
    """
    try:
        with open_zstd(path) as file:
            content = json.loads(file.read())
    except (OSError, DamagedFileError, ValueError) as error:
        raise UsageError(f"{path} does not contain a response of a Prometheus server ({error})") from error
    if not isinstance(content, dict) or not {"path", "parameters", "answer"} <= content.keys():
        raise UsageError(f"{path} does not contain a response of a Prometheus server (keys are missing)")
    return content


def _key(path: str, parameters: Parameters) -> str:
    return json.dumps([path, dict(parameters)], sort_keys=True)


@dataclass
class Prometheus:
    """A reader of a server's data.

    Args:
        source: sends the queries.
        keep: a folder in which every response is stored with its query; None stores nothing.

    Attributes:
        warnings: warnings in the server's responses, each once.
    """

    source: PrometheusSource
    keep: Path | None = None
    warnings: list[str] = field(default_factory=list)
    _stored: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if isinstance(self.source, LiveServer):
            self.source.close()

    def label_values(self, label: str, begin_ns: int, end_ns: int) -> list[str]:
        """Every value that a label had in the range."""
        data = self._data(f"/api/v1/label/{label}/values", {"start": _seconds(begin_ns), "end": _seconds(end_ns)})
        if not isinstance(data, list):
            raise self._odd("the values of a label are not a list")
        return sorted(str(value) for value in data)

    def samples(self, selector: str, begin_ns: int, end_ns: int) -> list[TimeSeries]:
        """The samples of every series that a selector matches, as scraped, with the times of their scrapes.

        Args:
            selector: in PromQL, e.g. ``{__name__="up",job="node0"}``.
            begin_ns: start of the range, in ns since 1970-01-01 UTC.
            end_ns: end of the range, exclusive.

        Raises:
            ServerError: the server reports an error, for example for an invalid selector.
        """
        all_series: dict[tuple[tuple[str, str], ...], TimeSeries] = {}
        for part_begin, part_end in _parts(begin_ns, end_ns, POINTS_MAX * NS):
            for series in self._raw(selector, part_begin, part_end):
                _append(all_series, series)
        return [all_series[key] for key in sorted(all_series)]

    def query_range(self, expression: str, begin_ns: int, end_ns: int, step_ns: int) -> list[TimeSeries]:
        """The values of an expression at ``begin_ns``, and every ``step_ns`` after it before ``end_ns``.

        As in the server's graphs, a value holds until the next scrape, so a gap in the scrapes may stay invisible.
        """
        all_series: dict[tuple[tuple[str, str], ...], TimeSeries] = {}
        for part_begin, part_end in _parts(begin_ns, end_ns, POINTS_MAX * step_ns):
            last_ns = part_begin + (part_end - 1 - part_begin) // step_ns * step_ns
            parameters = {
                "query": expression,
                "start": _seconds(part_begin),
                "end": _seconds(last_ns),
                "step": _seconds(step_ns),
            }
            for series in self._matrix("/api/v1/query_range", parameters):
                _append(all_series, series)
        return [all_series[key] for key in sorted(all_series)]

    def _raw(self, selector: str, begin_ns: int, end_ns: int) -> Iterator[TimeSeries]:
        # Whether a sample at the very beginning of a range belongs to it depends on the server's version.
        length_ms = (end_ns - begin_ns) // _MS + 1
        parameters = {"query": f"{selector}[{length_ms}ms]", "time": _seconds(end_ns)}
        try:
            answered = list(self._matrix("/api/v1/query", parameters))
        except ServerError as error:
            if _TOO_MUCH not in error.reason or end_ns - begin_ns < 2 * PART_NS_MIN:
                raise
            middle_ns = begin_ns + (end_ns - begin_ns) // 2 // NS * NS
            answered = [*self._raw(selector, begin_ns, middle_ns), *self._raw(selector, middle_ns, end_ns)]
        for series in answered:
            inside = [begin_ns <= time_ns < end_ns for time_ns in series.times_ns]
            if any(inside):
                yield TimeSeries(
                    series.labels,
                    [time_ns for time_ns, retained in zip(series.times_ns, inside, strict=True) if retained],
                    [value for value, retained in zip(series.values, inside, strict=True) if retained],
                )

    def _matrix(self, path: str, parameters: Parameters) -> Iterator[TimeSeries]:
        data = self._data(path, parameters)
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            raise self._odd("the result of a range query is not a matrix")
        try:
            for result in data["result"]:
                values = result.get("values", [])
                yield TimeSeries(
                    {str(name): str(value) for name, value in result["metric"].items()},
                    [round(float(time_s) * 1_000) * _MS for time_s, _ in values],
                    [float(value) for _, value in values],
                )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._odd(f"a series cannot be read: {error}") from error

    def _data(self, path: str, parameters: Parameters) -> Any:
        answer = self.source.ask(path, parameters)
        if self.keep is not None:
            self._stored += 1
            _write(self.keep / f"{self._stored:04d}.json.zst", path, parameters, answer)
        for reported in answer.get("warnings") or []:
            if reported not in self.warnings:
                self.warnings.append(str(reported))
        if answer["status"] != "success":
            raise ServerError(str(answer.get("errorType")), str(answer.get("error")), self.source.place)
        return answer.get("data")

    def _odd(self, what: str) -> EnvironmentFailure:
        return EnvironmentFailure(f"{self.source.place} does not respond like a Prometheus server: {what}", _HINT)


def _append(all_series: dict[tuple[tuple[str, str], ...], TimeSeries], series: TimeSeries) -> None:
    known = all_series.setdefault(tuple(sorted(series.labels.items())), TimeSeries(series.labels, [], []))
    known.times_ns.extend(series.times_ns)
    known.values.extend(series.values)


def _write(path: Path, query_path: str, parameters: Parameters, answer: Mapping[str, Any]) -> None:
    """Series sorted by their labels: servers return them in any order, and equal responses should give equal bytes."""
    retained = dict(answer)
    data = retained.get("data")
    if isinstance(data, dict) and isinstance(data.get("result"), list):
        ordered = sorted(data["result"], key=lambda datum: json.dumps(datum, sort_keys=True))
        retained["data"] = {**data, "result": ordered}
    content = {"path": query_path, "parameters": dict(parameters), "answer": retained}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False).encode()
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with ZstdWriter(path) as file:
            file.write(text)


def _parts(begin_ns: int, end_ns: int, length_ns: int) -> Iterator[tuple[int, int]]:
    for start_ns in range(begin_ns, end_ns, length_ns):
        yield start_ns, min(start_ns + length_ns, end_ns)


def _seconds(time_ns: int) -> str:
    """The API's format of times and steps: seconds with all significant digits."""
    text = f"{time_ns // NS}.{time_ns % NS:09d}".rstrip("0")
    return text.removesuffix(".")


def matchers(conditions: Iterable[str]) -> str:
    """A selector of PromQL with all of the conditions that are not empty."""
    return "{" + ",".join(condition.strip(", ") for condition in conditions if condition.strip(", ")) + "}"


def any_of(names: Iterable[str]) -> str:
    """A quoted regular expression that matches exactly these texts, for ``=~``."""
    escaped = "|".join("".join(f"\\{char}" if char in _SPECIAL else char for char in name) for name in names)
    return json.dumps(escaped, ensure_ascii=False)


_SPECIAL = frozenset("\\.+*?()|[]{}^$")
