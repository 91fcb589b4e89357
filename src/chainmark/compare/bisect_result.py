"""The result of a search among revisions, with its sentence, its reasons and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chainmark.compare.bisect import Known
from chainmark.core import units
from chainmark.core.bisect_report import BisectReport, BisectStep, Revision, RevisionLevel, Way
from chainmark.core.comparison import Comparison, Scale
from chainmark.core.verdict import Verdict
from chainmark.lab.bisecting import GOOD, Bisection
from chainmark.stats.change_place import ERROR, Stretch

_VERDICTS = {Way.FOUND: Verdict.PASS, Way.RANGE: Verdict.PASS}
# Minimum share of the whole change that the found revision must account for; below it, another one is mentioned.
_WHOLE = 0.75
_SUREST = 0.999


@dataclass(frozen=True)
class Searched:
    """A search that has ended.

    Attributes:
        ends: the comparison of both ends.
        known: the evidence of all runs; None if no change was established.
        step_across: the comparison of the revisions around the result.
        stat: the commit's changes to files.
    """

    made: Bisection
    ends: Comparison
    way: Way
    known: Known | None = None
    steps: list[BisectStep] = field(default_factory=list)
    step_across: Comparison | None = None
    stat: list[str] = field(default_factory=list)


def bisect_report(searched: Searched, tool: str) -> BisectReport:
    """The result of a search.

    Args:
        searched: the search.
        tool: the version of the tool, for the result.
    """
    record, known = searched.made.record, searched.known
    words = _Words(searched)
    common: dict[str, object] = {
        "tool_version": tool,
        "title": f"Search for the change between {words.good.label} and {words.bad.label}",
        "subtitle": words.subtitle(),
        "date": max((run.manifest.started_at for run in searched.made.runs.values()), default="")[:10],
        "verdict": _VERDICTS.get(searched.way, Verdict.INCONCLUSIVE),
        "way": searched.way,
        "sentence": words.sentence(),
        "reasons": words.reasons(),
        "advice": words.advice(),
        "experiment": searched.made.id,
        "profile_name": str(record.profile.get("name", "")),
        "order": record.listed,
        "revisions": record.revisions,
        "error": ERROR,
        "runs": len(searched.made.runs),
        "most_runs": record.order.most_runs,
        "skipped": dict(sorted(record.skipped.items())),
        "stat": searched.stat,
        "ends": _figures_alone(searched.ends),
        "step_across": searched.step_across and _with_charts_of(searched, searched.step_across),
        "caveats": searched.ends.caveats,
    }
    if known is None:
        return BisectReport.model_validate(common)
    stretch, levels = words.stretch, known.levels()
    metric = known.followed.metric
    return BisectReport.model_validate(
        common
        | {
            "metric_id": metric.id if metric else "",
            "statistic": known.followed.statistic,
            "followed": known.followed.name,
            "scale": known.followed.scale,
            "unit": metric.unit if metric else "",
            "effect": levels.get(searched.made.last),
            "levels": [levels[place] for place in sorted(levels)],
            "steps": searched.steps,
            "chances": [float(chance) for chance in known.chances],
            "first": stretch.before + 1,
            "last": stretch.at,
            "chance": min(1.0, stretch.chance),
            "references": [
                f"{searched.made.id}/{record.revisions[place].label}" for place in (stretch.before, stretch.at)
            ],
        }
    )


def _figures_alone(comparison: Comparison) -> Comparison:
    """The comparison without charts: the runs are kept and can be compared separately."""
    left_out: dict[str, object] = {"charts": [], "breakdowns": [], "distributions": [], "effect_sizes": []}
    return comparison.model_copy(update={**left_out, "followed": None, "splits": None})


def _with_charts_of(searched: Searched, comparison: Comparison) -> Comparison:
    """The comparison with the charts of the tracked metric alone."""
    tracked = searched.known.followed.metric if searched.known else None
    charts = [
        chart for chart in comparison.charts if chart.kind.in_summaries and tracked and chart.metric_id == tracked.id
    ]
    return _figures_alone(comparison).model_copy(update={"charts": charts})


@dataclass(frozen=True)
class _Words:
    """A search in words."""

    searched: Searched

    @property
    def revisions(self) -> Sequence[Revision]:
        return self.searched.made.record.revisions

    @property
    def good(self) -> Revision:
        return self.revisions[GOOD]

    @property
    def bad(self) -> Revision:
        return self.revisions[-1]

    @property
    def stretch(self) -> Stretch:
        """The label of the result, or of the likely revisions."""
        known = self.searched.known
        if known is None:
            return Stretch(GOOD, len(self.revisions) - 1, 1.0)
        return known.row.answer(known.chances) or known.row.likely(known.chances)

    def subtitle(self) -> str:
        """Profile, revisions, runs, experiment."""
        made = self.searched.made
        parts = [
            f"profile {made.record.profile.get('name', '')}",
            units.plural(len(self.revisions), "revision"),
            units.plural(len(made.runs), "run"),
            made.id,
        ]
        return " · ".join(parts)

    def sentence(self) -> str:
        """The sentence."""
        way, known = self.searched.way, self.searched.known
        if known is None:
            metric = self.searched.made.record.order.metric
            subject = f"`{metric}` of {self.bad.label}" if metric else self.bad.label
            if way is Way.NO_CHANGE:
                compared = "does not differ from that of" if metric else "is not worse than"
                searched = "change" if metric else "regression"
                return f"there is no {searched} to search for: {subject} {compared} {self.good.label}"
            compared = "differs from that of" if metric else "is worse than"
            return f"whether {subject} {compared} {self.good.label} is undecided, so the search cannot start yet"
        stretch, sure = self.stretch, _sure(self.stretch.chance)
        if way is Way.FOUND:
            return f"the change was introduced by {self.revisions[stretch.at].title}: {self._changed(known)}; {sure}"
        first, last = self.revisions[stretch.before + 1], self.revisions[stretch.at]
        many = units.plural(stretch.at - stretch.before, "revision")
        if way is Way.RANGE:
            range_text = f"the change was introduced by one of {many}, {first.label} to {last.label}"
            return f"{range_text}, {sure}: {self._changed(known)}"
        runs = units.plural(len(self.searched.made.runs), "run")
        return f"after {runs}, {many} may have introduced the change, {first.label} to {last.label}, {sure}"

    def _changed(self, known: Known) -> str:
        """The change of the tracked quantity, from the good side to the found revision."""
        levels = known.levels()
        level = levels.get(self.stretch.at) or levels.get(self.searched.made.last)
        return known.followed.name if level is None else f"{known.followed.name} {_level_text(level, known)}"

    def reasons(self) -> list[str]:
        """The evidence."""
        made, state = self.searched.made, self.searched.known
        if state is None:
            return [f"{self.searched.ends.sentence}", *self.searched.ends.reasons]
        messages = [self.searched.ends.sentence]
        level = state.levels().get(made.last)
        change_text = (
            f"{state.followed.name}, {_level_text(level, state)} on the bad side" if level else state.followed.name
        )
        chosen = "as requested" if made.record.order.metric else "the gating metric with the clearest regression"
        messages.append(
            f"the search uses {change_text}; {chosen if state.followed.metric else 'runs of the bad side fail'}"
        )
        if made.record.skipped:
            messages.append(f"{units.plural(len(made.record.skipped), 'revision')} skipped; they could not be measured")
        return [*messages, *self._rest(state)]

    def _rest(self, known: Known) -> list[str]:
        """A note if the found revision accounts for only a part of the change."""
        levels, stretch = known.levels(), self.stretch
        effect, at, before = (levels.get(place) for place in (self.searched.made.last, stretch.at, stretch.before))
        if self.searched.way is not Way.FOUND or effect is None or at is None or not effect.change:
            return []
        part = at.change - (before.change if before else 0.0)
        if part >= _WHOLE * effect.change > 0.0 or part <= _WHOLE * effect.change < 0.0:
            return []
        share = units.plain_percent(max(0.0, part / effect.change))
        return [
            f"this revision accounts for only {share} of the whole change: another revision probably contributes to it"
        ]

    def advice(self) -> list[str]:
        """The next step."""
        made, way, stretch = self.searched.made, self.searched.way, self.stretch
        if way is Way.UNCLEAR:
            longer = "use a longer load (`--set load.duration_s=…`), or search by a specific metric: `--metric M`"
            return [*self.searched.ends.advice, longer]
        if way is Way.NO_CHANGE:
            return [
                "search by a metric that differs (`--metric M`), use a profile that shows the change, or check "
                "`--good` and `--bad`"
            ]
        if way is Way.UNDECIDED:
            return [
                f"continue with `chainmark bisect --resume {made.id} --most-runs {2 * made.record.order.most_runs}`"
            ]
        before, at = (self.revisions[place].label for place in (stretch.before, stretch.at))
        compare = f"compare all metrics of both revisions with `chainmark compare {made.id}/{before} {made.id}/{at}`"
        return [compare]


def _sure(chance: float) -> str:
    """A probability as a percentage; never 100 %."""
    if chance >= _SUREST:
        return f"probability above {units.plain_percent(_SUREST, decimals=1)}"
    return f"probability {units.plain_percent(chance, decimals=1)}"


def _level_text(level: RevisionLevel, known: Known) -> str:
    """A change with its interval: "+31.0 % (90 % interval +28.1 … +34.0 %)"."""
    metric = known.followed.metric
    unit = metric.unit if metric and known.followed.scale is Scale.ABSOLUTE else None
    change, interval = units.change_and_interval(level.change, level.low, level.high, unit)
    return f"{change} (90 % interval {interval})"
