"""The published analysis's figures of a run, stored with the run next to its own.

A figure of blocks or of hosts is one distribution. A figure of slots is one distribution per host, and everything that
the reports show of it follows from those.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.stats.centiles import FloatArray, centile_index, centiles
from chainmark.store.schema import Schema, check_schema

if TYPE_CHECKING:  # an import compares nothing
    from chainmark.compare.inputs import KeepsFigures

FIGURES, FACTS = "published", "published_facts"  # the names of the two tables in the run
FIGURES_SCHEMA: Schema = {
    "figure": pl.String,
    "host": pl.String,
    "n": pl.Int64,
    "mean": pl.Float64,
    "sd": pl.Float64,
    "centiles": pl.List(pl.Float64),
}
FACTS_SCHEMA: Schema = {"label": pl.String, "value": pl.String}
_FRACTIONS = np.array(STANDARD_CENTILES)
_MEDIAN = STANDARD_CENTILES.index(0.5)
# With fewer hosts the published analysis uses the positions for this many, and so some hosts twice.
_FEWEST_PLACES = 7


@dataclass(frozen=True)
class Cdf:
    """A distribution as the published analysis stores it: all 0 without samples.

    Attributes:
        sd: with n - 1; 0 of one sample.
        centiles: at the 29 standard fractions, or at the requested ones.
    """

    n: int
    mean: float
    sd: float
    centiles: tuple[float, ...]

    @property
    def low(self) -> float:
        """The smallest sample."""
        return self.centiles[0]

    @property
    def high(self) -> float:
        """The largest sample."""
        return self.centiles[-1]

    @property
    def median(self) -> float:
        """The element at half of the samples, of the standard centiles."""
        return self.centiles[_MEDIAN]


def cdf_of(values: FloatArray | Sequence[float]) -> Cdf:
    """The distribution of some values without missing ones, in any order."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if n == 0:
        return Cdf(0, 0.0, 0.0, (0.0,) * len(_FRACTIONS))
    # Of equal values it is 0; their mean may be off by its last bit.
    sd = float(np.std(ordered, ddof=1)) if ordered[0] < ordered[-1] else 0.0
    return Cdf(n, float(ordered.mean()), sd, tuple(centiles(ordered, _FRACTIONS).tolist()))


@dataclass(frozen=True)
class OverHosts:
    """A figure of slots: one distribution per host, and the published analysis's aggregates of them.

    Attributes:
        hosts: by their names, at least one; a host without samples is all 0.

    Source: docs/concepts/cardano-analysis.md, "Where the published rules differ".
    """

    hosts: Mapping[str, Cdf]

    @property
    def n(self) -> int:
        """The samples of all hosts."""
        return sum(host.n for host in self.hosts.values())

    @cached_property
    def means(self) -> list[float]:
        """The hosts' means, ascending."""
        return sorted(host.mean for host in self.hosts.values())

    @property
    def mean(self) -> float:
        """As reports of one run show it: the mean of as many of the lowest means as there are standard centiles."""
        lowest = self.means[: len(STANDARD_CENTILES)]
        return math.fsum(lowest) / len(lowest)

    @property
    def mean_of_means(self) -> float:
        """The mean of all hosts' means, which reports of several runs show."""
        return math.fsum(self.means) / len(self.means)

    @property
    def sd(self) -> float:
        """The largest of the hosts' standard deviations."""
        return max(host.sd for host in self.hosts.values())

    @property
    def low(self) -> float:
        """The smallest sample of any host."""
        return min(host.low for host in self.hosts.values())

    @property
    def high(self) -> float:
        """The largest sample of any host."""
        return max(host.high for host in self.hosts.values())

    @property
    def median(self) -> float:
        """The median of the hosts' medians."""
        return self.centiles[_MEDIAN]

    @cached_property
    def centiles(self) -> tuple[float, ...]:
        """At every standard fraction the median of the hosts' centiles: for an even number the upper one."""
        return tuple(ordered[len(ordered) // 2] for ordered in self.at_fractions)

    @cached_property
    def at_fractions(self) -> list[list[float]]:
        """At every standard fraction the hosts' centiles, ascending."""
        return [sorted(column) for column in zip(*(host.centiles for host in self.hosts.values()), strict=True)]

    def places(self, ordered: Sequence[float]) -> list[float]:
        """The elements that the published analysis lists of one value per host: each once, of few hosts some twice."""
        places = max(_FEWEST_PLACES, len(ordered))
        return [ordered[centile_index(len(ordered), 1.0 / places * (place + 0.5))] for place in range(places)]


Figure = Cdf | OverHosts


@dataclass(frozen=True)
class PublishedFigures:
    """All figures of a run by the published rules.

    Attributes:
        figures: by the published analysis's names.
        facts: the rows of the reports' manifest, in order.
    """

    figures: Mapping[str, Figure]
    facts: Sequence[tuple[str, str]] = field(default=())

    def frame(self) -> pl.DataFrame:
        """One row per distribution; the host is null if there is one for all."""
        rows = [row for name, figure in sorted(self.figures.items()) for row in _rows(name, figure)]
        return pl.DataFrame(rows, schema=dict(FIGURES_SCHEMA), orient="row")

    def facts_frame(self) -> pl.DataFrame:
        """The facts, one row each."""
        return pl.DataFrame(list(self.facts), schema=dict(FACTS_SCHEMA), orient="row")


def _rows(name: str, figure: Figure) -> Iterable[tuple[object, ...]]:
    parts: Mapping[str, Cdf] | Mapping[None, Cdf] = {None: figure} if isinstance(figure, Cdf) else figure.hosts
    for host, part in parts.items():
        yield name, host, part.n, part.mean, part.sd, list(part.centiles)


def figures_of(run: KeepsFigures) -> PublishedFigures | None:
    """The stored figures by the published rules; None for a run that predates them, or is in memory."""
    frame = run.figures(FIGURES)
    if frame is None:
        return None
    check_schema("published figures", frame.schema, FIGURES_SCHEMA)
    figures: dict[str, Figure] = {}
    for (name,), rows in frame.group_by(["figure"], maintain_order=True):
        columns = rows.select("host", "n", "mean", "sd", "centiles")
        parts = {host: Cdf(n, mean, sd, tuple(values)) for host, n, mean, sd, values in columns.rows()}
        figures[str(name)] = parts[None] if None in parts else OverHosts(parts)
    facts = run.figures(FACTS)
    return PublishedFigures(figures, [] if facts is None else [(label, value) for label, value in facts.rows()])
