"""The files that the published analysis writes: `blockprop.json`, `clusterperf.json`, `summary.json`, single CDFs.

Source of their forms: its own types, as it writes them to JSON. Durations are in seconds, times in ISO 8601.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.verified.statistics import (
    AVERAGE,
    AVERAGE_OF_MEANS,
    DEVIATION,
    HIGH,
    LOW,
    MEANS,
    MEDIAN,
    SIZE,
    VALUE,
    Statistic,
    fraction_name,
    group_name,
    place_name,
    shown_average,
)

HINT = (
    "give `blockprop.json`, `clusterperf.json` or `summary.json` of one run, one of its CDFs as JSON, or "
    "`cdf/METRIC.cdf`"
)
_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
# Prefixes of figures that are not distributions: of blocks, of slots, of logs.
BLOCKS, SLOTS, SUMMARY, SINGLE = "blockprop", "clusterperf", "summary", "CDF"
_KINDS = {"bp": BLOCKS, "mp": SLOTS, "sum": SUMMARY}
# Keys about the analysis and not about the run; `sumMeta` and the like are compared separately.
_UNMEASURED = {
    "bpVersion",
    "mpVersion",
    "sumAnalysisTime",
    "sumChainRejectionStats",
    "sumProfilingData",
    "sumGenesisSpec",
}
STATED = {"sumMeta", "sumGenesis", "sumWorkload", "sumGenerator", "sumFilters"}
_PROPAGATION, _RESOURCES = "bpPropagation", "mpResourceCDFs"
_RESOURCES_KIND = "Resources"
_DOMAINS = {
    *("bpDomainSlots", "bpDomainBlocks", "bpDomainCDFSlots", "bpDomainCDFBlocks", "mpDomainSlots", "mpDomainCDFSlots"),
    *("sumDomainTime", "sumStartSpread", "sumStopSpread", "sumDomainSlots", "sumDomainBlocks"),
}
_SCALARS = {"sumHosts", "sumLogObjectsTotal", "sumBlocksRejected"}


class _Range(BaseModel):
    model_config = _STRICT

    low: float
    high: float


class _Plain(BaseModel):
    """A first-order distribution; files of older versions have no median."""

    model_config = _STRICT

    size: int = Field(alias="cdfSize", ge=0)
    average: float = Field(alias="cdfAverage")
    median: float | None = Field(default=None, alias="cdfMedian")
    stddev: float = Field(alias="cdfStddev")
    range: _Range = Field(alias="cdfRange")
    samples: list[tuple[float, float]] = Field(alias="cdfSamples")


class _Nested(BaseModel):
    """A distribution of distributions, one per host."""

    model_config = _STRICT

    size: int = Field(alias="cdfSize", ge=0)
    average: _Plain = Field(alias="cdfAverage")
    median: float | None = Field(default=None, alias="cdfMedian")
    stddev: float = Field(alias="cdfStddev")
    range: _Range = Field(alias="cdfRange")
    samples: list[tuple[float, _Plain]] = Field(alias="cdfSamples")


@dataclass(frozen=True)
class Theirs:
    """The content of a file.

    Attributes:
        kind: the kind of file.
        figures: by name, the statistics of each.
        stated: its facts about the run and its workload.
        hosts: the number of hosts, if it follows from the file.
        printed: per figure one unit of the last digit, if the file prints fewer digits than were known.
    """

    path: Path
    kind: str
    figures: Mapping[str, Mapping[Statistic, float]]
    stated: Mapping[str, Any] = field(default_factory=dict)
    hosts: int | None = None
    printed: Mapping[tuple[str, Statistic], float] = field(default_factory=dict)


def read_theirs(path: Path) -> Theirs:
    """Read one of their files.

    Raises:
        UsageError: it cannot be read, is not one of theirs, or is of several runs.
    """
    if path.suffix == ".cdf":
        return _printed_cdf(path)
    content = _content(path)
    kinds = _kinds(content) if isinstance(content, dict) else []
    if not kinds:
        raise UsageError(f"`{path}` is not a file of the published analysis", HINT)
    if kinds == [SINGLE]:
        return Theirs(path, SINGLE, {path.stem: _distribution(path, path.stem, content)}, hosts=_hosts_of(content))
    if len(kinds) > 1:
        raise UsageError(f"`{path}` has fields of both {' and '.join(kinds)}", HINT)
    figures = dict(_figures(path, content))
    stated = {name: content[name] for name in STATED & content.keys()}
    return Theirs(path, kinds[0], figures, stated, _hosts(kinds[0], figures))


def _content(path: Path) -> Any:
    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"`{path}` cannot be read: {reason}", HINT) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{path}` is not JSON: {error}", HINT) from error


def _kinds(content: Mapping[str, Any]) -> list[str]:
    """The kind of file with such fields."""
    if "cdfSize" in content:
        return [SINGLE]
    return [kind for start, kind in _KINDS.items() if any(_begins(name, start) for name in content)]


def _begins(name: str, start: str) -> bool:
    return name.startswith(start) and name[len(start) :][:1].isupper()


def _figures(path: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, dict[Statistic, float]]]:
    for name, value in content.items():
        if name in _UNMEASURED or name in STATED:
            continue
        if name in {_PROPAGATION, _RESOURCES}:
            if not isinstance(value, dict) or (name == _RESOURCES and value.get("kind") not in {None, _RESOURCES_KIND}):
                raise _malformed(path, name, "it must contain distributions by name")
            parts = {part: item for part, item in value.items() if part != "kind"}
            yield from ((part, _distribution(path, part, item)) for part, item in parts.items())
        elif name in _DOMAINS:
            yield from _domain(path, name, value)
        elif name in _SCALARS:
            yield name, {Statistic("", VALUE): _number(path, name, value)}
        elif name.startswith("cdf"):
            yield name, _distribution(path, name, value)
        else:
            raise UsageError(
                f"`{path}` has the field `{name}`, which is unknown in all versions of the published analysis", HINT
            )


def _number(path: Path, name: str, value: Any) -> float:
    """A number, or a time as seconds since 1970."""
    if isinstance(value, dict):
        raise _malformed(path, name, "it is of several runs, whose averages are not the figures of a run")
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(_microseconds(value)).timestamp()
        except ValueError as error:
            raise _malformed(path, name, f"`{value}` is not a valid time") from error
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _malformed(path, name, f"`{value}` is not a number")
    return float(value)


def _microseconds(text: str) -> str:
    """An ISO time with at most six decimals: what the standard library reads."""
    whole, point, rest = text.removesuffix("Z").partition(".")
    return f"{whole}{point}{rest[:6]}+00:00"


def _domain(path: Path, name: str, value: Any) -> Iterator[tuple[str, dict[Statistic, float]]]:
    """The bounds of a range; one per host is reported elsewhere as a distribution."""
    if isinstance(value, list):
        return
    fields = {"ddRaw", "ddFiltered", "ddRawCount", "ddFilteredCount"}
    if not isinstance(value, dict) or not value.keys() <= fields:
        raise _malformed(path, name, f"it must have the fields {', '.join(sorted(fields))}")
    for part, item in value.items():
        ends = (
            {f"{part}.low": item.get("low"), f"{part}.high": item.get("high")} if _is_interval(item) else {part: item}
        )
        for place, end in ends.items():
            if isinstance(end, dict):
                yield f"{name}.{place}", _distribution(path, f"{name}.{place}", end)
            elif end is not None:
                yield f"{name}.{place}", {Statistic("", VALUE): _number(path, f"{name}.{place}", end)}


def _is_interval(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"low", "high"}


def _distribution(path: Path, name: str, content: Any) -> dict[Statistic, float]:
    nested = isinstance(content, dict) and isinstance(content.get("cdfAverage"), dict)
    try:
        if nested:
            return _of_hosts(_Nested.model_validate_json(json.dumps(content)))
        return _of_one(_Plain.model_validate_json(json.dumps(content)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _malformed(path, f"{name}.{place}" if place else name, first["msg"].lower()) from error


def _moments(plain: _Plain | _Nested, average: float, group: str = "") -> dict[Statistic, float]:
    result = {
        SIZE: float(plain.size),
        AVERAGE: average,
        DEVIATION: plain.stddev,
        LOW: plain.range.low,
        HIGH: plain.range.high,
    }
    result |= {} if plain.median is None else {MEDIAN: plain.median}
    return {Statistic(group, name): value for name, value in result.items()}


def _of_one(plain: _Plain) -> dict[Statistic, float]:
    samples = {Statistic("", fraction_name(fraction)): value for fraction, value in plain.samples}
    return _moments(plain, plain.average) | samples


def _of_hosts(nested: _Nested) -> dict[Statistic, float]:
    means = [value for _, value in nested.average.samples]
    result = {Statistic("", AVERAGE_OF_MEANS): nested.average.average}
    sizes = [float(inner.size) for _, inner in nested.samples]
    average = shown_average(sizes, means) if any(sizes) and means else nested.average.average
    result |= _moments(nested, average) | _among(MEANS, nested.average)
    for fraction, inner in nested.samples:
        if inner.median is not None:
            result[Statistic("", fraction_name(fraction))] = inner.median
        result |= _among(group_name(fraction), inner)
    return result


def _among(group: str, plain: _Plain) -> dict[Statistic, float]:
    values = [value for _, value in plain.samples]
    places = {Statistic(group, place_name(place, len(values))): value for place, value in enumerate(values, start=1)}
    return _moments(plain, plain.average, group) | places


def _hosts_of(content: Mapping[str, Any]) -> int | None:
    average = content.get("cdfAverage")
    return average.get("cdfSize") if isinstance(average, dict) else None


def _hosts(kind: str, figures: Mapping[str, Mapping[Statistic, float]]) -> int | None:
    """The number of hosts of a file."""
    places = {
        BLOCKS: ("cdfBlocksPerHost", Statistic("", SIZE)),
        SLOTS: ("cdfStarts", Statistic(MEANS, SIZE)),
        SUMMARY: ("sumHosts", Statistic("", VALUE)),
    }
    name, statistic = places[kind]
    result = figures.get(name, {}).get(statistic)
    return None if result is None else round(result)


def _malformed(path: Path, name: str, reason: str) -> UsageError:
    return UsageError(f"`{path}` is malformed at `{name}`: {reason}", HINT)


def _printed_cdf(path: Path) -> Theirs:
    """The chart data of one figure: one centile per line, with its value or, over hosts, with median, minimum, maximum.

    Values are cut to a width, so they are known to one unit of their last digit.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{path}` cannot be read: {error}", HINT) from error
    figures: dict[Statistic, float] = {}
    printed: dict[tuple[str, Statistic], float] = {}
    for line in (item for item in lines if item.strip() and not item.startswith("#")):
        texts = line.split()
        if len(texts) not in {2, 6}:
            raise _malformed(path, line, "each line must be a centile with one value, or with five")
        numbers = [_printed(path, text) for text in texts]
        group = group_name(numbers[0])
        names = [Statistic("", fraction_name(numbers[0])), Statistic(group, LOW), Statistic(group, HIGH)]
        for name, value, text in zip(names, numbers[1:4], texts[1:4], strict=False):
            figures[name] = value
            printed[path.stem, name] = _last_digit(text)
    if not figures:
        raise UsageError(f"`{path}` contains no centiles", HINT)
    return Theirs(path, SINGLE, {path.stem: figures}, printed=printed)


def _printed(path: Path, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise _malformed(path, text, "it is not a number") from error
    if not math.isfinite(value):
        raise _malformed(path, text, "it is not a number")
    return value


def _last_digit(text: str) -> float:
    """One unit of a printed number's last digit."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals)
