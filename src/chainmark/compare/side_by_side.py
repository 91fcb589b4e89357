"""Three or more versions side by side: each is compared with the first, as two alone would be."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.compare.assemble import Follow, compare
from chainmark.compare.charts import in_summary
from chainmark.compare.decide import Past
from chainmark.compare.facts import facts_beside
from chainmark.compare.headline import most_telling, predicate
from chainmark.compare.inputs import RunData
from chainmark.compare.sides import select
from chainmark.compare.split import PartsOf
from chainmark.core.catalogue import NO_MARGINS, Margins
from chainmark.core.caveats import A_A, Caveats, caveats_of
from chainmark.core.comparison import ChartData, Comparison
from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.core.question import Question
from chainmark.core.side_by_side import SideBySide
from chainmark.core.verdict import Verdict, worst
from chainmark.core.wording import enumerated


def compare_side_by_side(
    sides: Sequence[Sequence[RunData]],
    *,
    history: Sequence[RunData] = (),
    past: Past | None = None,
    follow: Follow | None = None,
    parts: PartsOf | None = None,
    margins: Margins = NO_MARGINS,
    question: Question = Question.WORSE,
    machines: Machines | None = None,
    tool_version: str,
) -> SideBySide:
    """Compare every further version with the first.

    The candidates are judged separately: margins and corrections for many metrics are those of two sides alone.

    Args:
        sides: the runs of each version, the baseline's first.
        history, past: archived runs and their use, as for two sides.
        follow: of the runs' system, as for two sides.
        parts: likewise.
        margins, question, machines: as for two sides.
        tool_version: recorded in the result.

    Returns:
        All comparisons and the worst of their verdicts: fail, then invalid, then inconclusive, then pass.

    Raises:
        UsageError: there are fewer than three sides, a candidate is named twice, or two sides cannot be compared.
    """
    if len(sides) < 3:
        raise UsageError(
            "a side-by-side comparison requires at least three versions", "compare two with `chainmark compare A B`"
        )
    selected = [select(f"side {number}", runs) for number, runs in enumerate(sides, start=1)]
    label_counts: dict[str, int] = {}
    for number, side in enumerate(selected, start=1):
        for run in side.runs:
            if run.run_id in label_counts:
                raise UsageError(
                    f"the run `{run.run_id}` was given for version {label_counts[run.run_id]} and for version {number}",
                    "give each run once; versions are numbered in the given order",
                )
            label_counts[run.run_id] = number
    comparisons = [
        compare(
            sides[0],
            side,
            history=history,
            past=past,
            follow=follow,
            parts=parts,
            margins=margins,
            question=question,
            machines=machines,
            tool_version=tool_version,
        )
        for side in sides[1:]
    ]
    labels = _labels([side.version for side in selected])
    verdict = worst(each.verdict for each in comparisons)
    profiles = list(dict.fromkeys(side.first.profile_name for side in selected))
    counts = " + ".join(str(len(side.included)) for side in selected)
    runs = [run.manifest for side in selected for run in side.runs]
    date = max(comparison.date for comparison in comparisons)
    return SideBySide(
        tool_version=tool_version,
        title=f"{selected[-1].first.subject.name} {enumerated(labels[1:])} against {labels[0]}",
        subtitle=f"{'profile' if len(profiles) == 1 else 'profiles'} {enumerated(profiles)} · {counts} runs · {date}",
        date=date,
        verdict=verdict,
        sentence=_sentence(labels[1:], comparisons),
        labels=labels,
        comparisons=[comparison.model_copy(update={"charts": []}) for comparison in comparisons],
        facts=facts_beside([side.first for side in selected]),
        charts=_charts(labels, comparisons),
        caveats=Caveats.joined([caveats_of(runs), _same(labels, comparisons)]),
    )


def _same(labels: Sequence[str], comparisons: Sequence[Comparison]) -> Caveats:
    """A caveat about versions that are the same build as their reference."""
    same = [
        label for label, comparison in zip(labels[1:], comparisons, strict=True) if A_A in comparison.caveats.badges
    ]
    return Caveats(
        badges=(A_A,) if same else (),
        sentences=tuple(f"{A_A}: {label} and {labels[0]} are the same build" for label in same),
    )


def _labels(versions: Sequence[str]) -> list[str]:
    """The versions, numbered if two are equal."""
    labels: list[str] = []
    for index, version in enumerate(versions):
        number = versions[: index + 1].count(version)
        labels.append(f"{version} ({number})" if versions.count(version) > 1 else version)
    return labels


def _sentence(labels: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    parts = []
    for verdict in Verdict:
        results = [label for label, each in zip(labels, comparisons, strict=True) if each.verdict is verdict]
        if results:
            parts.append(f"{enumerated(results)} {predicate(verdict, len(results))}")
    sentence = most_telling([("", comparison.verdict, comparison.sentence) for comparison in comparisons])
    return f"{'; '.join(parts)}.{sentence}"


def _charts(labels: Sequence[str], comparisons: Sequence[Comparison]) -> list[ChartData]:
    """The charts of every metric with all versions: the pooled lines of the comparisons, the baseline's once.

    A line that belongs to both sides, such as a change, is in the comparison of these two versions.
    """
    charts: dict[str, ChartData] = {}
    for label, comparison in zip(labels[1:], comparisons, strict=True):
        for chart in comparison.charts:
            summary = in_summary(chart)
            lines = [line for line in summary.lines if line.side] if summary else []
            if not lines:
                continue
            combined = charts.setdefault(chart.id, chart.model_copy(update={"lines": []}))
            sides = {"baseline": labels[0], "candidate": label}
            new = [line.model_copy(update={"side": sides[line.side], "label": sides[line.side]}) for line in lines]
            drawn = {line.label for line in combined.lines}
            combined.lines.extend(line for line in new if line.label not in drawn)
    rank = {label: index for index, label in enumerate(labels)}
    for chart in charts.values():
        chart.lines.sort(key=lambda line: rank[line.label])
    return list(charts.values())
