"""A server's own metrics, in the text format of Prometheus: fetched during the load, and parsed afterwards."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.secrets import without_password
from chainmark.network.sampling import Scraper, read_pages
from chainmark.network.server_series import Name, Readings, Resource, SeriesRecorder, Sort
from chainmark.network.server_usage import NoReading

# A server under load may be slow to return its metrics, too; a late page is better than none.
TIMEOUT_S = 5.0
_FORM = "for example `--scrape pool=http://127.0.0.1:8080/metrics`"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
# Of a histogram or a summary the sum and the count are kept; buckets and centiles are many and are not gauges.
_LEFT_OUT = re.compile(r'^[^{\s]+_(?:bucket|created)[{\s]|[{,]quantile="')
# The word in a gauge's name for the amount in use, and its replacement in the name of the limit.
_PAIRS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("in_use", ("max_open", "max", "limit", "size")),
    ("acquired", ("max_allocated", "max", "limit")),
    ("active", ("max", "pool_max", "limit", "size", "capacity")),
    ("busy", ("config_max", "max", "limit", "size", "capacity")),
    ("used", ("max", "limit", "capacity")),
    ("current", ("max", "limit")),
    ("open", ("max",)),
    ("usage", ("max", "limit")),
)
# Parts of a heap that are filled and emptied in turn: being full is normal for them.
_EMPTIED = re.compile(r"eden|survivor|nursery", re.IGNORECASE)
_WAITING = re.compile(r"(?:^|_)(?:pending|waiting|queued|queue_size|queue_length)(?:_|$)")
_CORES = ("go_sched_gomaxprocs_threads", "system_cpu_count", "process_cpus_available")
_SHARES = ("process_cpu_usage", "nodejs_eventloop_utilization")


def parse_scrape(text: str, taken: Collection[str]) -> tuple[str, str]:
    """`NAME=URL`, or a URL, which is named by its host and port: the name and the URL.

    Raises:
        UsageError: it is not an address, or its name is taken.
    """
    name, separator, url = text.partition("=")
    if not separator or "/" in name:
        name, url = "", text
    if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
        raise UsageError(f"`--scrape {without_password(text)}` is not a valid URL of a metrics endpoint", _FORM)
    parts = urlsplit(url)
    name = name or f"{parts.hostname}-{parts.port}".removesuffix("-None").replace(":", "-")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` is not a valid name for a metrics endpoint", f"use letters, digits, `.`, `_` and `-`; {_FORM}"
        )
    if name in taken:
        raise UsageError(f"two sources have the name `{name}`", _FORM)
    return name, url


def without_user(url: str) -> str:
    """The address without credentials."""
    return re.sub(r"//[^/?#]*@", "//", url)


class MetricsPage:
    """A page of metrics, fetched once a second and stored as received.

    Args:
        name: of the source.
        url: address of the page; ``user:password@`` in it is used, and never stored.
        folder: where the pages are stored.

    Raises:
        EnvironmentFailure: there is no response, or it is another kind of page.
    """

    glances = False

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.source = name
        self.what = f"metrics at {without_user(url)}"
        self._path = folder / f"{name}.prom.zst"
        self._scraper = Scraper({name: url}, folder, timeout_s=TIMEOUT_S, verify=True)
        self._scraper.scrape()
        page = self._scraper.last_pages.get(name)
        if page is None or not _is_page(page.decode(errors="replace")):
            self._scraper.close()
            reported = "does not return a page of metrics" if page is not None else "does not respond"
            raise EnvironmentFailure(f"{without_user(url)} {reported}", "check the address in a browser")

    def read(self, recorder: SeriesRecorder) -> None:
        """Fetch the page.

        Raises:
            Silent: the fetch failed.
        """
        missed = self._scraper.missed[self.source]
        self._scraper.scrape()
        if self._scraper.missed[self.source] > missed:
            raise NoReading("no response, or an error response")

    def glance(self) -> None:
        """Nothing more."""

    def close(self) -> None:
        """Finish the file."""
        self._scraper.close()

    def parse(self, recorder: SeriesRecorder) -> None:
        """Parse the stored pages: gauges, and counters."""
        names: dict[tuple[str, tuple[tuple[str, str], ...]], Name] = {}
        for time_ns, text in read_pages(self._path):
            try:
                for sample, sort in _samples(text):
                    key = sample.name, tuple(sample.labels.items())
                    if key not in names:
                        names[key] = Name(self.source, _series_name(sample), _unit(sample.name, sort), sort)
                    name = names[key]
                    recorder.add(time_ns, name, sample.value)
            except ValueError:
                # A truncated page; its beginning is used.
                continue

    def resources(self, series: Collection[Readings]) -> Iterator[Resource]:
        """The readings, with their limits if other metrics on the page state them."""
        return page_resources(
            {
                reading_series.name.series: reading_series
                for reading_series in series
                if reading_series.name.source == self.source
            }
        )


def _is_page(text: str) -> bool:
    try:
        return any(True for _ in _samples(text))
    except ValueError:
        return False


def _samples(text: str) -> Iterator[tuple[Sample, Sort]]:
    retained = "\n".join(line for line in text.splitlines() if not _LEFT_OUT.search(line))
    for family in text_string_to_metric_families(retained + "\n"):
        for sample in family.samples:
            if not isinstance(sample.value, int | float) or not math.isfinite(sample.value):
                continue
            if family.type in {"counter", "histogram", "summary"} or sample.name.endswith(("_total", "_sum", "_count")):
                yield sample, "counter"
            elif _WAITING.search(sample.name):
                yield sample, "waiting"
            else:
                yield sample, "gauge"


def _series_name(sample: Sample) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
    return f"{sample.name}{{{labels}}}" if labels else sample.name


def _unit(name: str, sort: Sort) -> str:
    """By naming conventions."""
    base = name.removesuffix("_total").removesuffix("_sum")
    if base.endswith("cpu_seconds"):
        return "cores"
    if base.endswith("bytes"):
        return "bytes/s" if sort == "counter" else "bytes"
    if sort == "counter":
        return "s/s" if base.endswith("seconds") else "/s"
    return ""


@dataclass(frozen=True)
class _Series:
    """The parts of a series' name."""

    name: str
    labels: str

    @classmethod
    def of(cls, series: str) -> _Series:
        name, _, labels = series.partition("{")
        return cls(name, labels.removesuffix("}"))


def page_resources(read: Mapping[str, Readings]) -> Iterator[Resource]:
    """The resources of a page: pairs of gauges by their names first, those without a limit last.

    Args:
        read: by the series' names.
    """
    parts = {series: _Series.of(series) for series in read}
    limits = set()
    resources: list[Resource] = []
    for series, reading_series in read.items():
        limit = _limit_of(parts[series], reading_series, read, parts)
        if limit is None:
            continue
        limits.add(limit.name.series)
        resources.append(Resource(_label(series), reading_series, limit, f"`{limit.name.series}`"))
    reported = {resource.used.name.series for resource in resources}
    yield from sorted(resources, key=lambda resource: not _is_pool(resource.used.name.series))
    for series, reading_series in read.items():
        if parts[series].name in _SHARES:
            yield Resource(f"`{series}`", reading_series, 1.0, "100 %")
        elif reading_series.name.unit == "cores":
            cores = next((read[name] for name in _CORES if name in read), None)
            label = "the server's CPU" if parts[series].name.startswith("process_") else f"`{series}`"
            yield Resource(label, reading_series, cores, f"`{cores.name.series}`" if cores else "", is_cpu=True)
        elif series not in reported | limits:
            yield Resource(_label(series), reading_series)


def _limit_of(
    part: _Series, reading_series: Readings, read: Mapping[str, Readings], parts: Mapping[str, _Series]
) -> Readings | None:
    """The gauge with the limit of the resource whose use this one reports."""
    if reading_series.name.sort != "gauge" or _EMPTIED.search(part.labels):
        return None
    for used, others in _PAIRS:
        for name in _in_place(part.name, used, others):
            same = f"{name}{{{part.labels}}}" if part.labels else name
            alone = [series for series, its in parts.items() if its.name == name]
            limit = read.get(same) or (read[alone[0]] if len(alone) == 1 and not parts[alone[0]].labels else None)
            if limit is not None and limit.name.sort == "gauge":
                return limit
    return None


def _in_place(name: str, used: str, others: Collection[str]) -> Iterator[str]:
    """The name with the word for the amount in use replaced."""
    for match in re.finditer(rf"(?:^|(?<=_)){used}(?=_|$)", name):
        for other in others:
            yield name[: match.start()] + other + name[match.end() :]


def _is_pool(series: str) -> bool:
    return "pool" in series or "connections" in series


def _label(series: str) -> str:
    """Its name in a sentence."""
    name = series.partition("{")[0]
    if "connections" in name:
        return f"the connection pool (`{series}`)"
    if "threads" in name:
        return f"the thread pool (`{series}`)"
    if "pool" in name:
        return f"the pool (`{series}`)"
    if "fds" in name:
        return f"the server's open files (`{series}`)"
    return f"`{series}`"
