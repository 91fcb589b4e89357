"""A figure as statistics with names, the same for those of a file and those of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.systems.cardano.published.figures import Cdf, Figure, OverHosts, cdf_of

AVERAGE, AVERAGE_OF_MEANS = "average", "average of all hosts' means"
SIZE, MEDIAN, DEVIATION, LOW, HIGH = "size", "median", "standard deviation", "minimum", "maximum"
VALUE = "value"
MEANS = "hosts' means"


class Statistic(NamedTuple):
    """Identifies a statistic of a figure.

    Attributes:
        group: "" is the whole figure, otherwise the distribution over hosts at a centile, or of their means.
        name: "average", "median", "0.99".
    """

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}: {self.name}" if self.group else self.name


Statistics = Mapping[Statistic, float]


def fraction_name(fraction: float) -> str:
    """The name of a centile."""
    return repr(float(fraction))


def group_name(fraction: float) -> str:
    """The group of the hosts' values at a centile."""
    return f"hosts at {fraction_name(fraction)}"


def place_name(place: int, places: int) -> str:
    """The name of one of the hosts' values in ascending order."""
    return f"place {place} of {places}"


def statistics_of(figure: Figure) -> dict[Statistic, float]:
    """The published analysis's statistics of a figure."""
    result = dict(_whole(figure))
    if isinstance(figure, OverHosts):
        result[Statistic("", AVERAGE_OF_MEANS)] = figure.mean_of_means
        result |= _among(MEANS, figure.means, figure)
        for fraction, ordered in zip(STANDARD_CENTILES, figure.at_fractions, strict=True):
            result |= _among(group_name(fraction), ordered, figure)
    return result


def scalar_of(figure: Cdf) -> dict[Statistic, float]:
    """A figure that is a single number."""
    return {Statistic("", VALUE): figure.mean}


def _whole(figure: Figure, group: str = "") -> Iterator[tuple[Statistic, float]]:
    yield from _moments(figure, group)
    for fraction, value in zip(STANDARD_CENTILES, figure.centiles, strict=True):
        yield Statistic(group, fraction_name(fraction)), value


def _moments(figure: Figure, group: str) -> Iterator[tuple[Statistic, float]]:
    yield Statistic(group, SIZE), float(figure.n)
    yield Statistic(group, AVERAGE), figure.mean
    yield Statistic(group, MEDIAN), figure.median
    yield Statistic(group, DEVIATION), figure.sd
    yield Statistic(group, LOW), figure.low
    yield Statistic(group, HIGH), figure.high


def _among(group: str, ordered: Sequence[float], figure: OverHosts) -> dict[Statistic, float]:
    """One value per host, ascending, and their aggregates."""
    result = dict(_moments(cdf_of(ordered), group))
    # The file has each of the hosts' means once, and their centiles at positions that a small number of hosts repeats.
    values = ordered if group == MEANS else figure.places(ordered)
    return result | {
        Statistic(group, place_name(place, len(values))): value for place, value in enumerate(values, start=1)
    }


def shown_average(sizes: Sequence[float], means: Sequence[float]) -> float:
    """The average that the reports show of a figure of slots, from a file's values.

    Args:
        sizes: of the hosts' values at every centile of the file.
        means: of the hosts, ascending; only as many count as there are sizes.
    """
    pairs = list(zip(sizes, means, strict=False))
    return math.fsum(size * mean for size, mean in pairs) / math.fsum(size for size, _ in pairs)
