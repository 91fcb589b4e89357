"""When the runs of two sides were looked at, as their manifests say."""

from __future__ import annotations

from chainmark.compare.sides import SelectedRuns
from chainmark.stats.sequential import FIRST_LOOK, Looks


def looks_of(baseline: SelectedRuns, candidate: SelectedRuns) -> Looks:
    """All looks at the judged runs so far.

    An experiment that ends when it is decided was looked at after every pair of runs from the second on. One with a
    fixed number of runs is looked at once; every run beyond what was planned is one more look. Runs that no experiment
    made together are looked at now, for the first time.

    Args:
        baseline, candidate: each with at least one judged run.
    """
    now = len(baseline.included), len(candidate.included)
    places = [run.manifest.experiment for side in (baseline, candidate) for run in side.included]
    plans = [place.length for place in places if place is not None and place.length is not None]
    if not plans:
        return Looks((now,), min(now))
    planned = max(plan.most for plan in plans)
    stops_early = any(plan.stops_early for plan in plans)
    first = min(FIRST_LOOK, planned) if stops_early else planned
    earlier = [(runs, runs) for runs in range(first, min(now))]
    return Looks((*earlier, now), planned if stops_early or min(now) > planned else min(now))
