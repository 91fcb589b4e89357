"""The releases of one workload in sequence, and where the level of each figure changed.

A figure's values are compared over all releases, which finds a drift that no two neighbours show. Changes at a change
of the set-up are attributed to the set-up. Over all figures, at most the stated share of the changes is false.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from chainmark.compare.headline import noticed
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.noise import build_of, scaled
from chainmark.compare.releases import Releases
from chainmark.compare.steps import differences
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import caveats_of
from chainmark.core.epoch import Epoch
from chainmark.core.errors import UsageError
from chainmark.core.history_report import LEAST_CHANGE, HistoryReport, HistorySeries, LevelChange, MeasuredRelease
from chainmark.core.metric import Kind, Metric
from chainmark.core.wording import ChangeText, capitalised, command, first_sentence, judged_name
from chainmark.stats.change_points import ChangePoint, change_points
from chainmark.stats.intervals import Working
from chainmark.stats.multiple import benjamini_hochberg

FALSE_DISCOVERIES = 0.05
LEAST_RELEASES = 4


@dataclass(frozen=True)
class _Release:
    """Runs of one build under one set-up, in order of execution."""

    runs: list[LoadedRun]

    @property
    def started_at(self) -> str:
        return self.runs[0].manifest.started_at

    def value(self, metric: Metric, statistic: str) -> float | None:
        """The mean of its runs; the geometric mean for values that are compared by ratios."""
        results = [value for run in self.runs if (value := run.value(metric.id, statistic)) is not None]
        if not results:
            return None
        working = Working.LOG if metric.kind is Kind.POSITIVE and min(results) > 0.0 else Working.DIFFERENCE
        mean = math.fsum(scaled(results, working)) / len(results)
        return math.exp(mean) if working is Working.LOG else mean


def history_report(newest: RunData, history: Sequence[RunData], epochs: Sequence[Epoch], tool: str) -> HistoryReport:
    """The series of releases that a run belongs to.

    Args:
        newest: a run of the workload.
        history: any runs; those of the same workload, hardware and rules make the series.
        epochs: recorded changes of the set-up.
        tool: the version of the tool, for the result.

    Raises:
        UsageError: there are fewer than four releases.
    """
    like = LoadedRun(newest)
    releases_of_workload = Releases([like], history, epochs)
    runs = sorted([*releases_of_workload.runs, like], key=lambda run: (run.manifest.started_at, run.run_id))
    changes = [epoch for epoch in epochs if epoch.system == like.manifest.subject.system]
    setups = {
        *(epoch.since for epoch in changes),
        *(change.started for change in releases_of_workload.setup_changes),
    }
    releases = _releases(runs, setups)
    if len(releases) < LEAST_RELEASES:
        raise UsageError(
            f"this workload has {units.plural(len(releases), 'release')}, but a history requires {LEAST_RELEASES}",
            "`chainmark ingest` imports logs and published reports of earlier releases",
        )
    labels = _labels(releases)
    series = _corrected([_series(item, releases, releases_of_workload, changes, labels) for item in _judged(like)])
    first, last = releases[0].started_at[:10], releases[-1].started_at[:10]
    return HistoryReport(
        tool_version=tool,
        system=like.catalogue.system,
        title=f"History of {like.manifest.subject.name}",
        subtitle=f"profile {like.manifest.profile_name} · {units.plural(len(releases), 'release')} · {first} to {last}",
        date=last,
        sentence=_sentence(series, releases, labels, like.catalogue),
        releases=_described(releases, labels, changes),
        series=series,
        false_discoveries=FALSE_DISCOVERIES,
        caveats=caveats_of(run.manifest for run in runs),
    )


def _sentence(
    series: Sequence[HistorySeries], releases: Sequence[_Release], labels: Sequence[str], catalogue: Catalogue
) -> str:
    """The newest change for the worse, or else the newest; the number of the others; the command to examine it."""
    changes = [(entry, change) for entry in series for change in entry.changes]
    over = units.plural(len(releases), "release")
    changed = units.count(sum(bool(entry.changes) for entry in series))
    moved = f"the level of {changed} of {units.plural(len(series), 'metric')}"
    if not changes:
        newest = _compared(releases, len(releases) - 2, len(releases) - 1)
        none = capitalised(units.none_of(len(series), "metric"))
        return first_sentence(
            f"{none} changed its level over {over}; {labels[-1]} alone is not judged here",
            next_step=f"judge it with {newest}",
        )
    item, change = max(
        changes,
        key=lambda pair: (
            pair[0].effect_of(pair[1]) == "worse",
            pair[0].gating,
            pair[1].release,
            abs(pair[1].change),
        ),
    )
    shown = _noticed(item, change, catalogue.metric(item.metric_id))
    index = change.release
    since = f"Gradually, mostly around {change.label}" if change.is_gradual else f"Since {change.label}"
    pair = (0, len(releases) - 1) if change.is_gradual else (index - 1, index)
    purpose = "how the first and the last release differ" if change.is_gradual else "what else changed"
    return first_sentence(
        f"{since}, {shown}",
        f"{moved} changed over {over}",
        next_step=f"see {purpose} with {_compared(releases, *pair)}",
    )


def _noticed(series: HistorySeries, change: LevelChange, metric: Metric) -> str:
    low, high = change.low, change.high
    name = judged_name(metric, series.statistic)
    if low is None or high is None:
        return f"{name} has a different level"
    if series.is_relative:
        factor, decimals, unit = 100.0, units.percent_decimals(low, high), "%"
    else:
        shown = units.display_unit(series.unit, [value for value in series.values if value is not None])
        factor, unit = shown.factor, units.symbol_of_change(shown)
        decimals = units.decimals_for(
            [change.change * factor, low * factor, high * factor], (high - low) * factor / 2.0
        )
    reported, *ends = (units.number(end * factor, decimals, signed=True) for end in (change.change, low, high))
    text = ChangeText(reported, ends[0], ends[1], unit)
    words = metric.rises if change.change > 0.0 else metric.falls
    effect = series.effect_of(change)
    verb = "changed" if effect == "moved" else f"became {effect}"
    return noticed(words, f"{name} {verb} by", text, series.statistic, (low, high))


def _compared(releases: Sequence[_Release], before: int, after: int) -> str:
    """The command that compares two of them, by version if that identifies one of them."""
    versions = [release.runs[0].manifest.subject.version for release in releases]
    chosen = [
        versions[index] if versions.count(versions[index]) == 1 else releases[index].runs[0].run_id
        for index in (before, after)
    ]
    return command("compare", *chosen)


def _judged(like: LoadedRun) -> Iterator[tuple[Metric, str]]:
    return ((metric, statistic) for metric in like.catalogue.ordered() for statistic in metric.judged_by)


def _releases(runs: Sequence[LoadedRun], setups: Collection[str]) -> list[_Release]:
    """Runs by build and set-up, each in the position of its first run.

    Args:
        runs: in order of execution.
        setups: the moments at which the set-up changed.
    """
    groups: dict[tuple[str, int], list[LoadedRun]] = {}
    for run in runs:
        setup = sum(run.manifest.started_at >= moment for moment in setups)
        groups.setdefault((build_of(run), setup), []).append(run)
    return sorted((_Release(group) for group in groups.values()), key=lambda release: release.started_at)


def _labels(releases: Sequence[_Release]) -> list[str]:
    """Versions; with the day if one occurs more than once."""
    versions = [release.runs[0].manifest.subject.version for release in releases]
    return [
        version if versions.count(version) == 1 else f"{version} of {release.started_at[:10]}"
        for version, release in zip(versions, releases, strict=True)
    ]


def _described(releases: Sequence[_Release], labels: Sequence[str], epochs: Sequence[Epoch]) -> list[MeasuredRelease]:
    """The releases in their displayed form; a change of the set-up is shown with the first release after it."""
    made, before = [], ""
    for index, (release, label) in enumerate(zip(releases, labels, strict=True)):
        manifests = [run.manifest for run in release.runs]
        made.append(
            MeasuredRelease(
                label=label,
                version=manifests[0].subject.version,
                started_at=release.started_at,
                run_ids=[run.run_id for run in release.runs],
                is_printed=any(manifest.printed for manifest in manifests),
                notes=[epoch.text for epoch in epochs if before < epoch.since <= release.started_at],
                changed=differences(releases[index - 1].runs[-1], release.runs[-1]) if index else [],
            )
        )
        before = release.started_at
    return made


def _series(
    judged: tuple[Metric, str],
    releases: Sequence[_Release],
    known: Releases,
    epochs: Sequence[Epoch],
    labels: Sequence[str],
) -> HistorySeries:
    metric, statistic = judged
    values = [release.value(metric, statistic) for release in releases]
    setups = [
        index
        for index in range(1, len(releases))
        if any(epoch.divides(metric.id, *_moments(releases, index)) for epoch in epochs)
        or any(_is_between(change.started, *_moments(releases, index)) for change in known.setup_changes
               if change.metric_id == metric.id)
    ]  # fmt: skip
    present = [index for index, value in enumerate(values) if value is not None]
    messages = [value for value in values if value is not None]
    is_relative = metric.kind is Kind.POSITIVE and min(messages, default=0.0) > 0.0
    working = Working.LOG if is_relative else Working.DIFFERENCE
    bounds = [next((at for at, index in enumerate(present) if index >= setup), len(present)) for setup in setups]
    result = change_points(
        scaled(messages, working),
        epochs=bounds,
        least_deviation=_error_within(releases, metric, statistic, is_relative=is_relative),
        level=FALSE_DISCOVERIES,
    )
    return HistorySeries(
        metric_id=metric.id,
        statistic=statistic,
        label=metric.label,
        unit=metric.unit,
        better=metric.better,
        gating=metric.gating,
        is_relative=is_relative,
        values=values,
        setups=setups,
        changes=[
            _change(change_point, present[change_point.index], labels, is_relative=is_relative)
            for change_point in result
            if abs(change_point.change) >= (LEAST_CHANGE if is_relative else metric.floor)
        ],
    )


def _error_within(releases: Sequence[_Release], metric: Metric, statistic: str, *, is_relative: bool) -> float:
    """The root mean square of the errors within runs, at least that of their rounding, on the scale of the series."""
    squares = []
    for run in (run for release in releases for run in release.runs):
        value, error = run.value(metric.id, statistic), run.standard_error(metric.id, statistic)
        if value is not None and error is not None:
            squares.append((error / (value if is_relative else 1.0)) ** 2)
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else 0.0


def _moments(releases: Sequence[_Release], place: int) -> tuple[str, str]:
    return releases[place - 1].started_at, releases[place].started_at


def _is_between(moment: str, before: str, after: str) -> bool:
    return before < moment <= after


def _change(point: ChangePoint, place: int, labels: Sequence[str], *, is_relative: bool) -> LevelChange:
    def shown(value: float) -> float:
        return math.expm1(value) if is_relative else value

    return LevelChange(
        release=place,
        label=labels[place],
        change=shown(point.change),
        low=None if point.low is None else shown(point.low),
        high=None if point.high is None else shown(point.high),
        p_value=point.p_value,
        q_value=point.p_value,
        is_gradual=point.is_gradual,
    )


def _corrected(series: Sequence[HistorySeries]) -> list[HistorySeries]:
    """Changes with at most the stated share of false ones; a series without any has the p-value 1."""
    p_values = [change.p_value for entry in series for change in entry.changes]
    p_values += [1.0 for entry in series if not entry.changes]
    adjusted = iter(benjamini_hochberg(p_values))
    corrected = []
    for item in series:
        changes = [change.model_copy(update={"q_value": next(adjusted)}) for change in item.changes]
        level_changes = [change for change in changes if change.q_value <= FALSE_DISCOVERIES]
        corrected.append(item.model_copy(update={"changes": level_changes}))
    return corrected
