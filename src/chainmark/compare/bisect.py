"""The statistics of a search among revisions: the tracked quantity, the evidence of the runs so far, and the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainmark.compare.decide import Decided
from chainmark.compare.estimates import SideEstimates, collect
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.judge import working_scale
from chainmark.compare.noise import Archive, difference_of_noise, scaled
from chainmark.compare.verdict import is_failure
from chainmark.core.bisect_report import BisectStep, RevisionLevel, SideState
from chainmark.core.comparison import Judgement, Outcome, Scale
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Status
from chainmark.core.metric import Metric
from chainmark.core.verdict import Verdict
from chainmark.core.wording import judged_name
from chainmark.lab.bisecting import Bisection
from chainmark.stats.centiles import FloatArray
from chainmark.stats.change_place import DOUBT, SearchedRevisions, SearchedRuns, changes, until_each
from chainmark.stats.intervals import Contrast, Spread, Working, mean_and_variance, own_spread

FAILING = "failing runs"


@dataclass(frozen=True)
class SearchTarget:
    """The quantity that a search tracks from revision to revision.

    Attributes:
        metric: None if it is whether runs fail.
        statistic: of the metric.
        working: LOG or DIFFERENCE: the scale on which runs are compared.
        sign: +1 if the bad side's values are larger, -1 if they are smaller.
    """

    metric: Metric | None = None
    statistic: str = ""
    working: Working = Working.DIFFERENCE
    sign: float = 1.0

    @property
    def name(self) -> str:
        """Its name in a sentence."""
        return judged_name(self.metric, self.statistic) if self.metric else FAILING

    @property
    def scale(self) -> Scale:
        """The unit of reported changes."""
        return Scale.RELATIVE if self.working is Working.LOG else Scale.ABSOLUTE

    def value(self, run: RunData) -> float | None:
        """A run's value with worse up; None if it has none."""
        status = run.manifest.status
        if self.metric is None:
            return float(status is Status.FAILED) if run.manifest.is_evidence else None
        result = LoadedRun(run).value(self.metric.id, self.statistic) if status is Status.VALID else None
        if result is None or not math.isfinite(result) or (self.working is Working.LOG and result <= 0.0):
            return None
        return self.sign * scaled([result], self.working)[0]

    def reported_change(self, value: float) -> float:
        """A change on the working scale in its reported form: a share of the good side's value, or in the unit."""
        change = self.sign * value
        return math.expm1(change) if self.working is Working.LOG else change


def followed_of(decided: Decided, metric_name: str | None) -> SearchTarget | None:
    """Select the quantity to track, if the runs of both ends establish that it changed.

    Args:
        decided: the bad side against the good one.
        metric_name: a metric, or one of its statistics (``METRIC.p99``), which must differ; None: the verdict
            must be fail, and of the metrics that cause it, the one with the largest change over noise is tracked.

    Raises:
        UsageError: there is no such judged metric.
    """
    if metric_name is not None:
        judgement = judgement_of(decided, metric_name)
        return _followed(decided, judgement) if differs(judgement) else None
    if decided.finding.verdict is not Verdict.FAIL:
        return None
    gating = [item for item in decided.judgements if item.gating]
    worse = [item for item in gating if is_failure(item)] or [gating[place] for place in decided.family.together]
    if not worse:
        return SearchTarget()  # the failure of its runs
    return _followed(decided, max(worse, key=lambda item: _clearness(decided, item)))


def judgement_of(decided: Decided, metric_name: str) -> Judgement:
    """The judgement of a metric, by its id or with a statistic; of several the first.

    Raises:
        UsageError: there is none.
    """
    names = {f"{item.metric_id}.{item.statistic}": item for item in reversed(decided.judgements)}
    names |= {item.metric_id: item for item in reversed(decided.judgements)}
    if metric_name not in names:
        gating = dict.fromkeys(item.metric_id for item in decided.judgements if item.gating)
        raise UsageError(f"`{metric_name}` is not a judged metric", f"gating metrics: {', '.join(gating)}")
    return names[metric_name]


def differs(judgement: Judgement) -> bool:
    """Whether the interval, which is valid over all looks, excludes zero."""
    return judgement.low is not None and judgement.high is not None and (judgement.low > 0.0 or judgement.high < 0.0)


def is_equal(judgement: Judgement) -> bool:
    """Whether it is shown to be within its margin and no change is established."""
    return judgement.outcome is Outcome.EQUAL and judgement.equivalent and not differs(judgement)


def _sides(decided: Decided, metric: Metric, statistic: str) -> tuple[SideEstimates, SideEstimates]:
    return (
        collect(decided.baseline.included, metric, statistic),
        collect(decided.candidate.included, metric, statistic),
    )


def _followed(decided: Decided, judgement: Judgement) -> SearchTarget:
    metric = decided.catalogue.metric(judgement.metric_id)
    working = working_scale(metric, *_sides(decided, metric, judgement.statistic))
    # None is a growth too large for a ratio.
    is_lower = judgement.change is not None and judgement.change < 0.0
    return SearchTarget(
        metric,
        judgement.statistic,
        Working.LOG if working is Working.LOG else Working.DIFFERENCE,
        -1.0 if is_lower else 1.0,
    )


def _clearness(decided: Decided, judgement: Judgement) -> float:
    """The change in standard deviations of a run."""
    metric, working = decided.catalogue.metric(judgement.metric_id), _followed(decided, judgement).working
    left, right = (scaled(side.values, working) for side in _sides(decided, metric, judgement.statistic))
    change = mean_and_variance(right)[0] - mean_and_variance(left)[0]
    noise = own_spread(left, right)
    return abs(change) / math.sqrt(max(noise.squares, 1e-300) / max(1.0, noise.degrees_of_freedom))


def archived(made: Bisection, followed: SearchTarget, history: Sequence[RunData]) -> Spread | None:
    """The noise of runs outside the search; None if they show none, or the search's runs contradict it.

    Args:
        made: the search.
        followed: the tracked quantity.
        history: archived runs, some of which may be comparable.
    """
    if followed.metric is None or not made.runs:
        return None
    ids = {run.run_id for run in made.runs.values()}
    like = next(iter(made.runs.values())).manifest
    spread = Archive(ids, like, history).spread(followed.metric.id, followed.statistic, followed.working)
    ends = [[value for run in made.of(place) if (value := followed.value(run)) is not None] for place in (0, made.last)]
    if spread is None or min(map(len, ends)) == 0 or difference_of_noise(own_spread(*ends), spread):
        return None
    return Spread(spread.squares, spread.degrees_of_freedom)


@dataclass(frozen=True)
class Known:
    """The evidence of the runs of a search."""

    row: SearchedRevisions
    seen: SearchedRuns
    chances: FloatArray
    followed: SearchTarget

    @classmethod
    def of(cls, made: Bisection, followed: SearchTarget, archive: Spread | None, visits: int | None = None) -> Known:
        """The evidence of all runs, or of those of the first visits.

        Args:
            made: the search.
            followed: the tracked quantity.
            archive: from `archived`.
            visits: None: all.
        """
        messages = [
            (made.place_of(run), visit, value)
            for position, run in made.counted()
            if (visits is None or made.visit_of(position) < visits) and (value := followed.value(run)) is not None
            for visit in [made.visit_of(position)]
        ]
        places, numbers, values = (np.array([item[column] for item in messages]) for column in range(3))
        seen = SearchedRuns(places, numbers, values.astype(float))
        skipped = frozenset(made.record.skipped)
        equal = tuple(pair for pair in made.equal if not skipped & set(pair))
        row = SearchedRevisions(made.last, skipped, equal, archive, followed.metric is None)
        return cls(row, seen, row.chances(seen), followed)

    @property
    def current(self) -> int | None:
        """The last measured revision; None before the first."""
        between = [place for place in self.seen.places.tolist() if 0 < place < self.row.last]
        return between[-1] if between else None

    def turn(self) -> int | None:
        """The revision to measure next; None: the search is complete."""
        return self.row.turn(self.chances, self.seen.places.tolist(), self.current)

    def chance_at(self, place: int) -> float:
        """The probability that a revision has the change."""
        return float(until_each(self.chances)[place])

    def side_of(self, place: int) -> SideState:
        """The state of a revision."""
        chance = self.chance_at(place)
        if DOUBT < chance < 1.0 - DOUBT:
            return SideState.DOUBTFUL
        return SideState.GOOD if chance <= DOUBT else SideState.BAD

    def levels(self) -> dict[int, RevisionLevel]:
        """The change of every measured revision relative to the good one."""
        if self.row.fails:
            return {}
        result = changes(self.seen, self.row.archive)
        return {place: self._level(place, contrast) for place, contrast in result.items()}

    def _level(self, place: int, contrast: Contrast) -> RevisionLevel:
        low, high = sorted((self.followed.reported_change(contrast.low), self.followed.reported_change(contrast.high)))
        runs = int((self.seen.places == place).sum())
        return RevisionLevel(
            place=place, runs=runs, change=self.followed.reported_change(contrast.change), low=low, high=high
        )


def steps_of(made: Bisection, followed: SearchTarget, archive: Spread | None) -> list[BisectStep]:
    """The path of a search: the state after every visit except the first."""
    steps = []
    for number, visit in enumerate(made.record.visits[1:], start=1):
        pairs = [run for run in made.of(visit.place, number) if followed.value(run) is not None]
        if not pairs:
            continue
        known = Known.of(made, followed, archive, number + 1)
        level = known.levels().get(visit.place)
        likely = known.row.likely(known.chances)
        steps.append(
            BisectStep(
                place=visit.place,
                pairs=len(pairs),
                outcome=known.side_of(visit.place),
                change=level.change if level else None,
                low=level.low if level else None,
                high=level.high if level else None,
                chance=known.chance_at(visit.place),
                left=likely.at - likely.before,
            )
        )
    return steps
