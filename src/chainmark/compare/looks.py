"""When the runs of two sides were looked at, according to their manifests."""

from __future__ import annotations

from chainmark.compare.sides import SelectedRuns
from chainmark.stats.sequential import FIRST_LOOK, Looks


def looks_of(baseline: SelectedRuns, candidate: SelectedRuns) -> Looks:
    """All looks at the judged runs so far.

    An experiment that ends when it is decided was looked at after every pair of runs from the second on, one with a
    fixed number of runs at its end. Added runs make one more look, when all of them are complete. Runs that were not
    made by one experiment are looked at now, for the first time. A single pair shows no noise of its own, and is not a
    look at the runs that follow it.

    Args:
        baseline, candidate: each with at least one judged run.
    """
    now = len(baseline.included), len(candidate.included)
    fewest = min(now)
    places = [run.manifest.experiment for side in (baseline, candidate) for run in side.included]
    lengths = [place.length for place in places if place is not None and place.length is not None]
    if not lengths:
        return Looks((now,), fewest)
    planned = min(length.most for length in lengths)
    looks = {length.most for length in lengths}
    if any(length.stops_early for length in lengths):
        looks |= set(range(planned + 1))
    else:
        planned = min(planned, fewest)
    earlier = [(runs, runs) for runs in sorted(looks) if FIRST_LOOK <= runs < fewest]
    return Looks((*earlier, now), max(planned, min(FIRST_LOOK, fewest)))
