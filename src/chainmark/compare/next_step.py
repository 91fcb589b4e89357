"""The next step for a worse candidate: the one that this comparison suggests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chainmark.compare.attribution import apart
from chainmark.compare.sides import BASELINE, CANDIDATE, SelectedRuns
from chainmark.compare.verdict import VerdictFinding, is_failure
from chainmark.core import units
from chainmark.core.build import BuildDifferences
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Breakdown, ConfigurationDifference, Judgement, Outcome, Splits
from chainmark.core.profiled import FunctionChange, Profiled
from chainmark.core.verdict import Verdict
from chainmark.core.wording import command, name_of, some_of
from chainmark.lab.profiles import shipped_profiles

_NAMED = 2
_DECIDED = frozenset({Outcome.EQUAL, Outcome.BETTER})
_SHORT = 12
_MOST_OF_IT = 0.5  # of a change: a part with a larger share is the one to examine
_IS_RELEASE = re.compile(r"v?\d+(\.\d+)+([-.+]\w+)*")


@dataclass(frozen=True)
class Clues:
    """The evidence of a comparison besides its verdict.

    Attributes:
        sides: the baseline and the candidate.
        breakdowns: of its metrics, by host.
        profiled: the functions that changed, if profiles were taken.
        differences: of the configurations.
        builds: the differences between the builds, if the runs contain them.
        splits: changes as sums of the changes of their parts.
        charted: the metrics that have a chart.
    """

    sides: tuple[SelectedRuns, SelectedRuns]
    breakdowns: Sequence[Breakdown]
    profiled: Profiled | None
    differences: Sequence[ConfigurationDifference]
    builds: BuildDifferences | None
    splits: Splits | None
    charted: frozenset[str]


def with_next_step(
    finding: VerdictFinding, judgements: Sequence[Judgement], catalogue: Catalogue, clues: Clues
) -> VerdictFinding:
    """The finding of a worse candidate with the next step, in its sentence and first among its advice.

    Args:
        finding: of a comparison.
        judgements: of all metrics.
        catalogue: for their names.
        clues: possible sources of the change.
    """
    if finding.verdict is not Verdict.FAIL:
        return finding
    open_ = [item for item in judgements if item.gating and item.outcome not in _DECIDED and item.change is not None]
    worse = [item for item in open_ if is_failure(item)]
    failed = [run.run_id for side in reversed(clues.sides) for run in side.failed]
    if failed and not worse:
        return replace(finding, sentence=f"{finding.sentence}; look at `raw/logs` of the run {failed[0]}")
    if not open_:
        return finding
    step, remark = next(_steps(max(worse or open_, key=lambda item: item.clearness), catalogue, clues))
    advice = [f"{step}{remark}", *finding.advice]
    return replace(finding, sentence=f"{finding.sentence}; {step}", advice=advice)


def _steps(worst: Judgement, catalogue: Catalogue, clues: Clues) -> Iterator[tuple[str, str]]:
    """The steps that the result supports, the most specific first; each with a remark for the advice."""
    if hosts := apart(worst, clues.breakdowns, catalogue):
        yield f"look at {hosts}", ""
    if functions := _functions(clues.profiled):
        yield f"start with {some_of(functions, _NAMED)}, which clearly use more than before", ""
    if settings := [item.key for item in clues.differences if not item.is_default_change]:
        verb = "differs" if len(settings) == 1 else "differ"
        names = some_of([f"`{key}`" for key in settings], _NAMED, "settings")
        yield f"repeat with equal settings first: {names} {verb} between the sides", ""
    if search := _search(clues):
        yield search
    if part := _part(worst, clues.splits):
        yield part, ""
    if worst.metric_id in clues.charted:
        yield f"check the chart of {name_of(catalogue, worst)} to find which samples moved", ""
    if any(run.manifest.printed for side in clues.sides for run in side.runs):
        yield "import the logs of both versions, because printed figures do not show where the change is", ""
    yield f"check the value of {name_of(catalogue, worst)} in each run", ""


def _functions(profiled: Profiled | None) -> list[str]:
    """The functions that clearly take more than before."""
    grown = [
        function
        for change in (profiled.changes if profiled else [])
        if change.candidate > change.baseline
        for function in change.functions
        if function.low is not None and function.low > 0.0
    ]
    return [f"`{_name(change)}`" for change in sorted(grown, key=lambda item: (-item.change, item.function))]


def _name(change: FunctionChange) -> str:
    return change.function.rpartition("/")[2]


def _search(clues: Clues) -> tuple[str, str] | None:
    """The command to find the commit or release, or its name if there is only one."""
    runs = [side.first for side in clues.sides]
    builds = clues.builds
    if builds is not None and builds.added_in_all == 1 and not (builds.removed_in_all or builds.unknown_reason):
        only = builds.added[0]
        return f"look at the only commit between them, {only.id[:_SHORT]}: {only.subject}", ""
    places = [run.experiment for run in runs]
    if any(place is None or place.side not in {BASELINE, CANDIDATE} for place in places):
        return None  # imported runs cannot be extended
    profile = runs[1].profile_name
    if runs[0].profile_name != profile or profile not in shipped_profiles():
        return None
    remark = ", with the `--set` options of these runs, if any"
    revisions = [run.subject.revision or "" for run in runs]
    if builds is not None and builds.added_in_all > 1 and not builds.removed_in_all and all(revisions):
        good, bad = (revision[:_SHORT] for revision in revisions)
        search = command("bisect", profile, "--repo", "CHECKOUT", "--good", good, "--bad", bad)
        return f"search the {units.count(builds.added_in_all)} commits for the one responsible: {search}", remark
    versions = [run.subject.version for run in runs]
    if all(_IS_RELEASE.fullmatch(version) for version in versions) and versions[0] != versions[1]:
        search = command("bisect", profile, "--good", versions[0], "--bad", versions[1])
        return f"search for the release that introduced it: {search}", remark
    return None


def _part(worst: Judgement, splits: Splits | None) -> str:
    """The part that accounts for most of the change, if there is one with significance."""
    split = splits.split_of(worst.metric_id, worst.statistic) if splits else None
    if split is None or not split.change:
        return ""
    most = max(split.of(), key=lambda part: part.change / split.change, default=None)
    if most is None or most.low <= 0.0 <= most.high or most.change / split.change <= _MOST_OF_IT:
        return ""
    share = units.plain_percent(min(1.0, most.change / split.change))
    return f"look at {most.label} first, which accounts for {share} of the change"
