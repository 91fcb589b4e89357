"""The cost of a deliberate change: the changes with their intervals, without a judgement."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.compare.decide import Decided
from chainmark.compare.past import noise_notes
from chainmark.compare.verdict import VerdictFinding
from chainmark.core import units
from chainmark.core.comparison import Judgement
from chainmark.core.metric import Better
from chainmark.core.verdict import Verdict
from chainmark.core.wording import change_with_interval, enumerated, name_of


def costs_of(decided: Decided) -> VerdictFinding:
    """Report the increases and decreases of the gating metrics, each with its interval, instead of a verdict.

    Sides that must not be compared stay invalid: their costs are unknown.

    Args:
        decided: as for a verdict.
    """
    if decided.finding.verdict is Verdict.INVALID:
        return decided.finding
    gating = [item for item in decided.judgements if item.gating]
    moved = [item for item in gating if item.beyond_noise]
    more, less = ([item for item in moved if _is_worse(decided, item) is worse] for worse in (True, False))
    parts = [
        f"{word}: {enumerated([_change_text(decided, item) for item in judgements])}"
        for word, judgements in (("more", more), ("less", less))
        if judgements
    ]
    unclear = units.plural(sum(item.beyond_noise is False for item in gating), "gating metric")
    sentence = "; ".join([*parts, f"{unclear} moved no more than re-runs do"])
    reasons = noise_notes(decided.releases, decided.judgements, decided.catalogue) if decided.releases else []
    names = decided.labels
    return VerdictFinding(
        Verdict.INFORMATIONAL, f"cost of {names[1]} against {names[0]}: {sentence}", [*reasons, *_open(gating)], []
    )


def _is_worse(decided: Decided, item: Judgement) -> bool:
    is_higher_better = decided.catalogue.metric(item.metric_id).better is Better.HIGHER
    return ((item.change or 0.0) > 0.0) is not is_higher_better


def _change_text(decided: Decided, item: Judgement) -> str:
    metric = decided.catalogue.metric(item.metric_id)
    return f"{name_of(decided.catalogue, item)} {change_with_interval(item, metric)}"


def _open(gating: Sequence[Judgement]) -> list[str]:
    missing = [item for item in gating if item.beyond_noise is None]
    return [f"the cost in {units.plural(len(missing), 'gating metric')} is unknown"] if missing else []
