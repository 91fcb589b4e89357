"""Preconditions of valid figures from a Prometheus server: complete responses, complete scrapes, steady nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import polars as pl

from chainmark.core import units
from chainmark.core.manifest import Gate, GateStatus, Incident
from chainmark.core.times import NS
from chainmark.systems.cometbft.analyse import Window

HEIGHT = "cometbft_consensus_height"
START = "process_start_time_seconds"
# A node that was silent for more than this many scrape intervals was not scraped in between.
GAP = 2.5
_NAMED = 3


@dataclass(frozen=True)
class Coverage:
    """The completeness of the scrapes of a window.

    Attributes:
        shares: by node, scrapes as a share of those that the window should have, at most 1.
        gaps: node, begin and end of every silence, ns since 1970-01-01 UTC.
        restarts: node and time of every restart, in chronological order.
    """

    shares: Mapping[str, float]
    gaps: tuple[tuple[str, int, int], ...]
    restarts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, scrapes: pl.DataFrame, window: Window, interval_s: float) -> Self:
        """Check all nodes."""
        inside = scrapes.filter((pl.col("metric") == HEIGHT) & window.contains("time_ns")).sort("time_ns")
        expected = max(1.0, (window.end_ns - window.start_ns) / NS / interval_s) if interval_s > 0 else 1.0
        shares, gaps = {}, []
        for host in sorted(scrapes["host"].unique()):
            times = [window.start_ns, *inside.filter(pl.col("host") == host)["time_ns"], window.end_ns]
            shares[host] = min(1.0, (len(times) - 2) / expected)
            gaps += [
                (host, item, other) for item, other in pairwise(times) if other - item > GAP * max(interval_s, 0) * NS
            ]
        return cls(shares, tuple(gaps), tuple(_restarts(scrapes, window)))

    def incidents(self) -> list[Incident]:
        """Silences and restarts, as a reader must know them."""
        silent = [
            Incident(time_ns=begin_ns, what=f"{host} was not scraped for {units.number((end_ns - begin_ns) / NS, 1)} s")
            for host, begin_ns, end_ns in self.gaps
        ]
        restarts = [Incident(time_ns=time_ns, what=f"{host} restarted") for host, time_ns in self.restarts]
        return sorted([*silent, *restarts], key=lambda incident: (incident.time_ns, incident.what))


def _restarts(scrapes: pl.DataFrame, window: Window) -> list[tuple[str, int]]:
    """A process with a new start time, or a height that fell."""
    ordered = scrapes.filter(pl.col("metric").is_in([HEIGHT, START])).sort("time_ns")
    step = pl.col("value").diff().over("metric", "host")
    moved = ((pl.col("metric") == START) & (step != 0)) | ((pl.col("metric") == HEIGHT) & (step < 0))
    frame = (
        ordered.filter(moved & window.contains("time_ns")).select("host", "time_ns").unique().sort("time_ns", "host")
    )
    return list(frame.iter_rows())


@dataclass(frozen=True)
class GateLimits:
    """The limits of the gates."""

    complete_min: float
    blocks_min: int


@dataclass(frozen=True)
class PrometheusGateInputs:
    """The input of the gates."""

    coverage: Coverage
    limits: GateLimits
    blocks: int
    warnings: tuple[str, ...]


def find_gates(judged: PrometheusGateInputs) -> list[Gate]:
    """All gates of an import, in display order."""
    coverage, limits = judged.coverage, judged.limits
    worst = min(coverage.shares, key=lambda host: (coverage.shares[host], host))
    least = coverage.shares[worst]
    restarted = sorted({host for host, _ in coverage.restarts})
    named = ", ".join(restarted[:_NAMED]) + (" …" if len(restarted) > _NAMED else "")
    return [
        _gate(
            "answered",
            "the server's responses were complete",
            judged.warnings[0] if judged.warnings else "no warning",
            "no warning",
            passed=not judged.warnings,
        ),
        _gate(
            "scraped",
            "every node was scraped throughout",
            f"{units.share_beside(limits.complete_min, least)} of {worst}",
            f"≥ {units.plain_percent(limits.complete_min, decimals=1)} of every node",
            passed=least >= limits.complete_min,
        ),
        # It is unknown here whether this was requested, so that the run reports nothing.
        _gate("nodes_steady", "no node restarted", named or "none", "none", passed=not restarted),
        _gate(
            "blocks",
            "enough blocks",
            f"{judged.blocks} blocks",
            f"≥ {limits.blocks_min} blocks",
            passed=judged.blocks >= limits.blocks_min,
        ),
    ]


def _gate(gate_id: str, label: str, measured: str, limit: str, *, passed: bool) -> Gate:
    status = GateStatus.PASS if passed else GateStatus.FAIL
    return Gate(id=gate_id, label=label, status=status, measured=measured, limit=limit)
