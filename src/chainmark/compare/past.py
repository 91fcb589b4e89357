"""Notes on the earlier releases behind a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainmark.compare.releases import Releases, SetupChange
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement
from chainmark.core.wording import enumerated
from chainmark.stats.intervals import Working

_LISTED = 4


def noise_notes(releases: Releases, judgements: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    """The noise that the verdict used, and unrecorded changes of the set-up.

    Args:
        releases: the series.
        judgements: of all metrics.
        catalogue: names the metrics.
    """
    spreads = {}
    for item in judgements:
        spread = releases.spread(item.metric_id, item.statistic, Working.LOG) if item.gating else None
        if spread is not None:
            spreads[item.metric_id] = spread
    messages = []
    if spreads:
        least, most = (choose(spreads, key=lambda entry: spreads[entry].variance) for choose in (min, max))
        shares = [f"{_share(spreads[entry].variance)} ({catalogue.metric(entry).label})" for entry in (least, most)]
        first, last = (releases.runs[index].manifest.started_at[:10] for index in (0, -1))
        messages.append(
            f"noise between runs: {spreads[most].source}, {first} to {last}; standard deviation of one run: "
            f"{' to '.join(shares)}"
        )
    gating = {item.metric_id for item in judgements if item.gating}
    return [*messages, *_setups([change for change in releases.setup_changes if change.metric_id in gating], catalogue)]


def _share(variance: float) -> str:
    return units.plain_percent(math.sqrt(variance))


def _setups(changes: Sequence[SetupChange], catalogue: Catalogue) -> list[str]:
    """One sentence per pair of runs."""
    pairs: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        if change.working is Working.LOG:
            size = units.percent(math.expm1(change.change))
            label = catalogue.metric(change.metric_id).label
            pairs.setdefault((change.before, change.after, change.started[:10]), []).append(f"{label} {size}")
    return [
        f"treated as a change of the set-up by {day}, not as noise, because {before} and {after} are one build: "
        f"{enumerated(texts[:_LISTED])}; confirm it with `chainmark history note`"
        for (before, after, day), texts in pairs.items()
    ]
