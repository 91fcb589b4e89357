"""The current state of a running load and its nodes, for live display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from chainmark.core.progress import LiveFigures

if TYPE_CHECKING:
    from chainmark.systems.cometbft.generating import LoadSource

_HEIGHT, _MEMPOOL, _TOTAL = (
    "cometbft_consensus_latest_block_height",
    "cometbft_mempool_size",
    "cometbft_consensus_total_txs",
)
_FAMILIES = (_HEIGHT, _MEMPOOL, _TOTAL)


def current_figures(load: LoadSource, rate_per_s: float, pages: Mapping[str, bytes]) -> LiveFigures:
    """The load's own counts, and figures of the nodes' last pages.

    Args:
        load: the running load.
        rate_per_s: total of all its connections.
        pages: the last scraped page by node.
    """
    counts = load.progress()
    reported = {node: _values(page) for node, page in sorted(pages.items())}
    totals = [values[_TOTAL] for values in reported.values() if _TOTAL in values]
    return LiveFigures(
        offered=counts["due"],
        sent=counts["sent"],
        accepted=counts["accepted"],
        failed=counts["answered"] - counts["accepted"],
        in_flight=counts["sent"] - counts["answered"],
        schedule_lag_s=max(0, counts["due"] - counts["sent"]) / rate_per_s,
        committed=max(totals, default=None),
        heights={node: values[_HEIGHT] for node, values in reported.items() if _HEIGHT in values},
        waiting={node: values[_MEMPOOL] for node, values in reported.items() if _MEMPOOL in values},
    )


def heights(pages: Mapping[str, bytes]) -> dict[str, int]:
    """By node, the height of its newest block, if its last page reports it."""
    reported = {node: _values(page) for node, page in pages.items()}
    return {node: values[_HEIGHT] for node, values in reported.items() if _HEIGHT in values}


def _values(page: bytes) -> dict[str, int]:
    """The needed families of a page, which have one series each."""
    # Most of a page's lines are histogram buckets, and parsing them would use CPU time of the processors under test.
    lines = [line for line in page.decode().splitlines() if line.startswith(_FAMILIES)]
    families = text_string_to_metric_families("\n".join(lines) + "\n")
    return {
        sample.name: int(sample.value) for family in families for sample in family.samples if sample.name in _FAMILIES
    }
