"""A metric over time, thinned to a drawable number of points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray
from chainmark.stats.replicates import Instants

_SERIES_POINTS = 1000
_SCATTER_POINTS = 20_000


@dataclass(frozen=True)
class Track:
    """Arrays of one length, ascending in time; ``low`` and ``high`` are the range that each value is the mean of.

    Attributes:
        step: number of neighbours that were averaged to one point.
    """

    time: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    step: int = 1

    def grouped(self, starts: IntArray) -> Track:
        """Means and ranges of consecutive groups, given by the index at which each one starts.

        The sums are in row order: with a parallel group-by the last bit would depend on the threads.
        """
        sizes = np.diff(np.append(starts, len(self.time)))
        return Track(
            np.add.reduceat(self.time, starts) / sizes,
            np.add.reduceat(self.value, starts) / sizes,
            np.minimum.reduceat(self.low, starts),
            np.maximum.reduceat(self.high, starts),
        )


def _timed(values: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times and values of the samples that have both."""
    retained = np.isfinite(values) & np.isfinite(times)
    return times[retained], values[retained]


def track_of(values: FloatArray, times: FloatArray, instants: Instants | None, *, averaged: bool) -> Track | None:
    """A metric over time, one value per time value and at most 1,000 points; None without samples.

    Args:
        values: shape (rows,), in total order, in the metric's unit, NaN if there is none.
        times: shape (rows,), NaN if there is none.
        instants: of the rows; None if some row has no time.
        averaged: whether the values of one time are averaged.
    """
    if averaged and instants is not None:
        track = _at_instants(values, instants)
    else:
        track = _plain(*_timed(values, times), averaged=averaged)
    if track is None:
        return None
    step = math.ceil(len(track.time) / _SERIES_POINTS)
    return replace(track.grouped(np.arange(0, len(track.time), step)), step=step) if step > 1 else track


def _plain(times: FloatArray, values: FloatArray, *, averaged: bool) -> Track | None:
    if len(values) == 0:
        return None
    track = Track(times, values, values, values)
    if not averaged:
        return track
    starts = np.flatnonzero(np.diff(times, prepend=np.nan) != 0.0)
    return replace(track.grouped(starts), time=times[starts])


def _at_instants(values: FloatArray, instants: Instants) -> Track | None:
    """Means and ranges of the values of every instant that has some."""
    present = np.isfinite(values)
    if not bool(present.all()):
        values, instants = values[present], instants.of(present)
    if len(values) == 0:
        return None
    sizes = np.diff(instants.starts, append=instants.rows)
    return Track(
        instants.times,
        np.add.reduceat(values, instants.starts) / sizes,
        np.minimum.reduceat(values, instants.starts),
        np.maximum.reduceat(values, instants.starts),
    )


@dataclass(frozen=True)
class Dots:
    """Times and values of samples; only every ``step``-th one and the extremes are kept."""

    time: FloatArray
    value: FloatArray
    step: int


def dots_of(values: FloatArray, times: FloatArray) -> Dots:
    """At most 20,000 dots; arguments as `track_of`."""
    times, values = _timed(values, times)
    if len(times) <= _SCATTER_POINTS:
        return Dots(times, values, 1)
    step = math.ceil(len(times) / (_SCATTER_POINTS - 2))
    extremes = [int(values.argmin()), int(values.argmax())]
    retained = np.unique(np.concatenate([np.arange(0, len(times), step), extremes]))
    return Dots(times[retained], values[retained], step)
