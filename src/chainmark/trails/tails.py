"""From the tail of a distribution to the blocks in it, and to their traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.compare.inputs import LoadedRun
from chainmark.compare.sides import SelectedRuns
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Better, Metric, Population
from chainmark.stats.description import TAIL_SAMPLES
from chainmark.store.sealed import SealedRun
from chainmark.trails.followed import Tails
from chainmark.trails.follower import Follower
from chainmark.trails.following import EventsOf, sealed_events
from chainmark.trails.results import Tail, TailSample
from chainmark.trails.trace import Trace, follow_command
from chainmark.trails.trail import Trail, trails_of

MOST_TRACES = 12  # maximum per comparison: one of a cluster of 52 hosts takes 20 kB


@dataclass(frozen=True)
class _Sample:
    """One sample of a tail, before its number and its trace are known."""

    run: LoadedRun
    trail: Trail
    key: str
    place: str
    value: float

    @property
    def thing(self) -> tuple[str, str, str]:
        return self.run.run_id, self.trail.id, self.key


@dataclass(frozen=True)
class _SampledTail:
    metric: Metric
    side: str
    samples: list[_Sample]


def tails_of(sides: Sequence[SelectedRuns], catalogue: Catalogue, events_of: EventsOf = sealed_events) -> Tails | None:
    """The most extreme samples of every traceable metric, and the traces of the most informative ones.

    None if no sample can be followed.

    The first of every tail gets a trace before the second of any, gating metrics before others, and the candidate
    before the baseline.

    Args:
        sides: baseline and candidate.
        catalogue: of the comparison.
        events_of: returns the rows of a trail.
    """
    metrics = [metric for metric in catalogue.ordered() if metric.is_shown_closely]
    all_tails = [_tail(metric, catalogue.population(metric.population), side) for metric in metrics for side in sides]
    tails = [tail for tail in all_tails if tail.samples]
    if not tails:
        return None
    followers = _followers(tails, events_of)
    chosen = _chosen(tails)
    traces: list[Trace] = []
    place_of: dict[tuple[str, str, str], int] = {}
    for (run_id, trail_id), follower in followers.items():
        reported = follower.traces([key for run, trail, key in chosen if (run, trail) == (run_id, trail_id)])
        usual = follower.usual_s() if reported and not follower.has_places else []
        for key, trace in reported.items():
            trace.usual_s = usual
            place_of[run_id, trail_id, key] = len(traces)
            traces.append(trace)
    order = [thing for thing in chosen if thing in place_of]
    numbers = _numbers(tails, followers)
    index = {thing: position for position, thing in enumerate(order)}
    return Tails(
        tails=[_written(tail, numbers, index) for tail in tails],
        traces=[traces[place_of[thing]] for thing in order],
    )


def _trail_of(run: LoadedRun, metric: Metric) -> Trail | None:
    return next((trail for trail in trails_of(run.catalogue) if metric.population in trail.populations), None)


def _tail(metric: Metric, population: Population, side: SelectedRuns) -> _SampledTail:
    results = [sample for run in side.included or side.runs for sample in _samples(run, metric, population)]
    sign = 1.0 if metric.better is Better.HIGHER else -1.0
    results.sort(key=lambda sample: (sign * sample.value, sample.run.run_id, sample.key, sample.place))
    return _SampledTail(metric, side.name, results[:TAIL_SAMPLES])


def _samples(run: LoadedRun, metric: Metric, population: Population) -> list[_Sample]:
    """A run's most extreme samples, each of another item."""
    trail = _trail_of(run, metric)
    if trail is None or _are_alike(run, metric):
        return []
    tail = run.tail(metric, population)
    return [_Sample(run, trail, extreme.key, extreme.place, extreme.value) for extreme in tail]


def _are_alike(run: LoadedRun, metric: Metric) -> bool:
    """Whether all samples have one value, so that none is extreme: as of a run that committed everything."""
    summary = run.summary(metric.id)
    whole = summary.distribution if summary else None
    return whole is not None and whole.min == whole.max


def _followers(tails: Sequence[_SampledTail], events_of: EventsOf) -> dict[tuple[str, str], Follower]:
    """Per run and trail, the follower that finds its traces; runs without events have none."""
    followers: dict[tuple[str, str], Follower] = {}
    for tail in tails:
        for sample in tail.samples:
            key = (sample.run.run_id, sample.trail.id)
            run = sample.run.data
            if key in followers or not isinstance(run, SealedRun):
                continue
            if (events := events_of(run, sample.trail)) is not None:
                followers[key] = Follower(events, sample.trail, sample.run.manifest)
    return followers


def _chosen(tails: Sequence[_SampledTail]) -> list[tuple[str, str, str]]:
    ranked = [
        (rank, not tail.metric.gating, -position, sample.thing)
        for position, tail in enumerate(reversed(tails))
        for rank, sample in enumerate(tail.samples)
    ]
    return list(dict.fromkeys(thing for *_, thing in sorted(ranked, key=_telling)))[:MOST_TRACES]


def _telling(candidate: tuple[int, bool, int, tuple[str, str, str]]) -> tuple[int, bool, int]:
    rank, is_diagnostic, position, _ = candidate
    return rank, is_diagnostic, position


def _numbers(
    tails: Sequence[_SampledTail], followers: dict[tuple[str, str], Follower]
) -> dict[tuple[str, str, str], int]:
    things = sorted({sample.thing for tail in tails for sample in tail.samples})
    results: dict[tuple[str, str, str], int] = {}
    for which, follower in followers.items():
        numbers = follower.numbers([key for run_id, trail_id, key in things if (run_id, trail_id) == which])
        results |= {(*which, key): number for key, number in numbers.items()}
    return results


def _extreme(metric: Metric) -> str:
    if metric.better is Better.HIGHER:
        return "lowest"
    return "slowest" if metric.unit == "s" and metric.better is Better.LOWER else "highest"


def _written(
    tail: _SampledTail, numbers: dict[tuple[str, str, str], int], traces: dict[tuple[str, str, str], int]
) -> Tail:
    return Tail(
        metric_id=tail.metric.id,
        side=tail.side,
        label=tail.samples[0].trail.label,
        extreme=_extreme(tail.metric),
        samples=[
            TailSample(
                run_id=sample.run.run_id,
                key=sample.key,
                number=numbers.get(sample.thing),
                place=sample.place,
                value=sample.value,
                trace_index=traces.get(sample.thing),
                command=follow_command(sample.trail.id, sample.run.run_id, sample.key),
            )
            for sample in tail.samples
        ],
    )
