"""Runs of two versions under several workloads and on several machines: their pairs, and the joint verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.compare.charts import deciding
from chainmark.compare.gates import same_workload
from chainmark.compare.headline import most_telling, predicate
from chainmark.compare.inputs import RunData
from chainmark.core import units
from chainmark.core.by_workload import ByWorkload
from chainmark.core.caveats import Caveats
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.labels import same_cell
from chainmark.core.manifest import Manifest, Scalar
from chainmark.core.verdict import Verdict, worst
from chainmark.core.wording import enumerated, name_of

_WORDS_MOST = 4  # of a workload's settings in its name
_NAMED_MOST = 4  # workloads in a sentence


@dataclass(frozen=True)
class Pair:
    """The runs of two versions under one workload on one kind of machine."""

    label: str
    baseline: Sequence[RunData]
    candidate: Sequence[RunData]


@dataclass(frozen=True)
class Matched:
    """The pairs, and a sentence for each group without a partner."""

    pairs: Sequence[Pair]
    alone: Sequence[str]


def matched(baseline: Sequence[Sequence[RunData]], candidate: Sequence[Sequence[RunData]]) -> Matched:
    """Pair the runs of two versions that were made alike.

    Args:
        baseline: the runs of one version by workload and machine, the newest group last.
        candidate: likewise.
    """
    runs: list[tuple[Sequence[RunData], Sequence[RunData]]] = []
    alone: list[Sequence[RunData]] = []
    for group in candidate:
        # Imported runs state only a part of their workload, so one group may have several partners.
        partner = next((item for item in reversed(baseline) if _are_alike(item[-1].manifest, group[-1].manifest)), None)
        if partner is None:
            alone.append(group)
        else:
            runs.append((partner, group))
    matched_runs = {run.manifest.run_id for left, _ in runs for run in left}
    alone += [group for group in baseline if group[-1].manifest.run_id not in matched_runs]
    names = _names([group[-1].manifest for group in [*(right for _, right in runs), *alone]])
    pairs = [Pair(name, *pair) for name, pair in zip(names, runs, strict=False)]
    rest = zip(names[len(runs) :], alone, strict=True)
    messages = [f"only {group[-1].manifest.subject.version} was run under {name}" for name, group in rest]
    return Matched(sorted(pairs, key=_by_numbers), messages)


def _by_numbers(pair: Pair) -> list[tuple[int, str]]:
    """Sort key of names in numerical order: a rate of 400 before one of 1600."""
    parts = filter(None, re.split(r"(\d+)", pair.label))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _are_alike(left: Manifest, right: Manifest) -> bool:
    is_one_place = left.host.hardware_class == right.host.hardware_class and same_cell(left.labels, right.labels)
    return is_one_place and same_workload(left, right)


def _names(manifests: Sequence[Manifest]) -> list[str]:
    """Distinguishing names of the workloads: cells, profiles, or else the first differing settings and the machine."""
    cells = _cell_names(manifests)
    if len(set(cells)) == len(cells) and all(cells):
        return cells
    profiles = [manifest.profile_name for manifest in manifests]
    if len(set(profiles)) == len(profiles):
        return [profile.rpartition("/")[2] for profile in profiles]
    keys = sorted({key for manifest in manifests for key in manifest.workload})
    differing = [key for key in keys if len({repr(manifest.workload.get(key)) for manifest in manifests}) > 1]
    words = [
        [
            _word(key, manifest.workload[key])
            for key in differing[:_WORDS_MOST]
            if manifest.workload.get(key) is not None
        ]
        for manifest in manifests
    ]
    names = [" · ".join(dict.fromkeys(word)) for word in words]  # two settings may have one text
    if len(set(names)) < len(names):
        hosts = [manifest.host.hardware_class for manifest in manifests]
        names = [" · ".join(filter(None, parts)) for parts in zip(names, hosts, strict=True)]
    return [
        name if name and names.count(name) == 1 else f"{name or manifest.profile_name} ({index})"
        for index, (name, manifest) in enumerate(zip(names, manifests, strict=True), start=1)
    ]


def _cell_names(manifests: Sequence[Manifest]) -> list[str]:
    """Their cells in the words that not all of them share; "" if one has none."""
    cells = [manifest.cell for manifest in manifests]
    keys = dict.fromkeys(key for cell in cells for key in cell)
    differing = [key for key in keys if len({cell.get(key) for cell in cells}) > 1] or list(keys)
    return [" · ".join(dict.fromkeys(cell[key] for key in differing if key in cell)) for cell in cells]


def _word(key: str, value: Scalar | list[Scalar]) -> str:
    """A setting in a name; a number needs its key."""
    text = units.scalar(value)
    return text if isinstance(value, str) else f"{key.rpartition('.')[2]} {text}"


def joined(pairs: Sequence[Pair], comparisons: Sequence[Comparison], alone: Sequence[str]) -> ByWorkload:
    """The joint result of the comparisons: the worst of their verdicts.

    Args:
        pairs: of the versions, one per workload.
        comparisons: of the pairs, in order.
        alone: sentences about workloads of only one version.
    """
    labels = [pair.label for pair in pairs]
    left, right = comparisons[0].labels
    date = max(comparison.date for comparison in comparisons)
    return ByWorkload(
        tool_version=comparisons[0].tool_version,
        title=f"{comparisons[0].candidate.subject.name} {right} against {left}",
        subtitle=f"{units.plural(len(labels), 'workload')} · {date}",
        date=date,
        verdict=worst(comparison.verdict for comparison in comparisons),
        sentence=_sentence(labels, comparisons),
        labels=labels,
        comparisons=[comparison.model_copy(update={"charts": deciding(comparison)}) for comparison in comparisons],
        unmatched=list(alone),
        caveats=Caveats.joined([comparison.caveats for comparison in comparisons]),
    )


def _sentence(labels: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    parts = []
    for verdict in Verdict:
        results = [
            label for label, comparison in zip(labels, comparisons, strict=True) if comparison.verdict is verdict
        ]
        if results:
            named = enumerated(results) if len(labels) <= _NAMED_MOST else f"{len(results)} of {len(labels)} workloads"
            parts.append(f"{predicate(verdict)} under {named}")
    sentence = most_telling(
        [
            (label, comparison.verdict, comparison.sentence)
            for label, comparison in zip(labels, comparisons, strict=True)
        ]
    )
    verdicts = f"{comparisons[0].labels[1]} {enumerated(parts)}"
    return f"{'; '.join([verdicts, *_besides(labels, comparisons)])}.{sentence}"


def _besides(labels: Sequence[str], comparisons: Sequence[Comparison]) -> list[str]:
    """The undecided metrics of a pass, and how many margins are wider than the catalogue's, to make them visible."""
    texts = [
        f"{name_of(comparison.catalogue, item)} under {label}"
        for label, comparison in zip(labels, comparisons, strict=True)
        for item in comparison.judgements
        if comparison.verdict is Verdict.PASS and item.gating and item.outcome is Outcome.INCONCLUSIVE
    ]
    gating = [item for comparison in comparisons for item in comparison.judgements if item.gating]
    wider = sum(item.worse_beyond is not None for item in gating)
    reported = [f"undecided within re-run noise: {enumerated(texts)}"] if texts else []
    return [*reported, f"{wider} of {len(gating)} margins widened to re-run noise"] if wider else reported
