"""Small comparisons for the tests of the renderings, with one for each verdict."""

from __future__ import annotations

import math

from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import (
    ChartData,
    ChartLine,
    Comparison,
    ConditionDifference,
    ConfigurationDifference,
    DistributionRow,
    EffectSize,
    Judgement,
    Outcome,
    RunEntry,
    Scale,
    Side,
    SideValue,
)
from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.manifest import ConfigChange, Gate, GateStatus, HostFacts, Incident, Subject
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, SharedFact
from chainmark.core.verdict import Verdict


def _metric(id_: str, label: str, unit: str, **more: object) -> Metric:
    base: dict[str, object] = {
        "id": id_,
        "label": label,
        "unit": unit,
        "kind": Kind.POSITIVE,
        "better": Better.LOWER,
        "statistics": ["mean"],
        "judged_by": "mean",
        "table": "resources",
        "order": 1,
        "population": "second",
        "description": f"What {label} is.",
        "source": ["metrics.scrape"],
    }
    return Metric.model_validate(base | more)


def catalogue() -> Catalogue:
    """A catalogue with every kind of metric."""
    return Catalogue(
        system="demo",
        title="Demo chain",
        populations=[
            Population(id="transaction", label="transaction", keys=["tx"], time_key="time_s"),
            Population(id="second", label="node × second", keys=["node", "second"], time_key="second"),
        ],
        tables=[MetricGroup(id="end_to_end", title="End to end"), MetricGroup(id="resources", title="Resource usage")],
        conditions=[SharedFact(id="indexer", label="transaction indexer", explanation="Indexing costs CPU.")],
        metrics=[
            _metric(
                "tx_latency_s",
                "tx latency",
                "s",
                published_id="experiment latency",
                statistics=["mean", "p50", "p99"],
                judged_by=["p50", "p99"],
                table="end_to_end",
                population="transaction",
                gating=True,
                floor=0.005,
                charts=[ChartKind.CDF, ChartKind.SCATTER],
            ),
            _metric("committed_tx_per_s", "committed", "tx/s", better=Better.HIGHER, table="end_to_end", gating=True),
            _metric("lost_tx", "lost transactions", "tx", kind=Kind.DIFFERENCE, gating=True, floor=1.0, order=2),
            _metric("rss_bytes", "resident memory", "B", order=1, charts=[ChartKind.SERIES]),
            _metric("p2p_bytes_per_s", "p2p bytes sent", "B/s", order=2, better=Better.NEITHER),
            _metric("goroutines", "goroutines", "1", order=3),
            _metric("gc_pauses", "GC pauses", "1", order=4, kind=Kind.COUNT),
        ],
    )


def _judgement(metric_id: str, statistic: str, values: tuple[float, float], **more: object) -> Judgement:
    left, right = values
    base: dict[str, object] = {
        "metric_id": metric_id,
        "statistic": statistic,
        "gating": True,
        "baseline": SideValue(value=left, per_run=[left * 0.99, left, left * 1.01], samples=71_982),
        "candidate": SideValue(value=right, per_run=[right * 0.99, right, right * 1.01], samples=71_990),
        "scale": Scale.RELATIVE,
        "change": right / left - 1.0 if left else 0.0,
        "margin_low": -0.1,
        "margin_high": 0.1,
        "outcome": Outcome.EQUAL,
        "noise": "between 3 + 3 runs",
        "degrees_of_freedom": 3.6,
        "p_worse": 0.0004,
        "detectable": 0.12,
    }
    return Judgement.model_validate(base | more)


def _judgements(verdict: Verdict) -> list[Judgement]:
    tail: dict[str, object] = {"low": -0.04, "high": 0.021, "outcome": Outcome.EQUAL, "equivalent": True}
    p99 = (1.481, 1.466)
    if verdict is Verdict.FAIL:
        p99, tail = (1.481, 2.1), {"low": 0.31, "high": 0.53, "outcome": Outcome.WORSE, "p_worse_adjusted": 0.0009}
    elif verdict is Verdict.INCONCLUSIVE:
        p99 = (1.481, 1.62)
        tail = {"low": 0.01, "high": 0.17, "outcome": Outcome.INCONCLUSIVE}
    absent = SideValue(value=None, per_run=[], samples=0)
    return [
        _judgement("tx_latency_s", "p50", (0.741, 0.712), low=-0.071, high=-0.006, outcome=Outcome.BETTER),
        _judgement("tx_latency_s", "p99", p99, **tail),
        _judgement("committed_tx_per_s", "mean", (200.0, 200.0), low=0.0, high=0.0),
        _judgement(
            "lost_tx", "mean", (2.0, 2.2), scale=Scale.ABSOLUTE, change=0.2, low=-0.3, high=0.7,
            margin_low=-1.0, margin_high=1.0,
        ),
        _judgement(
            "rss_bytes", "mean", (412e6, 431e6), low=0.02, high=0.07, gating=False, trend=True, q_different=0.21
        ),
        _judgement("p2p_bytes_per_s", "mean", (1.2e6, 1.37e6), low=0.11, high=0.17, gating=False, moved=True),
        _judgement(
            "goroutines", "mean", (310.0, 242.0), low=-0.26, high=-0.18, gating=False, moved=True,
            outcome=Outcome.BETTER,
        ),
        _judgement(
            "gc_pauses", "mean", (1.0, 1.0), gating=False, baseline=absent, candidate=absent, change=None,
            outcome=Outcome.NO_DATA, note="the metric was not scraped",
        ),
    ]  # fmt: skip


def _side(label: str, version: str, *, lost: bool) -> Side:
    runs = []
    for repetition in range(1, 4):
        bad = lost and repetition == 2
        gates = [
            Gate(id="load", label="offered load met", status=GateStatus.FAIL if bad else GateStatus.PASS,
                 measured="61.2 %" if bad else "99.9 %", limit="at least 98 %",
                 detail="the sender fell behind" if bad else ""),
            Gate(id="cpu", label="CPU headroom", status=GateStatus.WARN, measured="81 % busy", limit="below 80 %"),
        ]  # fmt: skip
        runs.append(
            RunEntry(
                run_id=f"demo-small-{version}-20261120T10{repetition}000Z-a{repetition}f3",
                started_at=f"2026-11-20T10:{repetition}0:00Z",
                repetition=repetition,
                position=repetition,
                gates=gates,
                counts={"transactions": {"offered": 72_000, "committed": 71_990, "lost": 10}, "lines": {"decoded": 9}},
                incidents=[Incident(time_ns=1_795_255_800_000_000_000, what="node3 was restarted")] if bad else [],
                warnings=["the clock was adjusted by 2 ms"] if repetition == 3 else [],
                excluded_because="offered load met: 61.2 %, at least 98 % was required" if bad else None,
            )
        )
    return Side(
        label=label,
        subject=Subject(system="demo", name="Demo", version=version, revision="3f2a1b", binary_sha256="ab" * 32),
        runs=runs,
        host=HostFacts(
            cpu_model="AMD EPYC 7763",
            cores=8,
            memory_bytes=33_654_996_992,
            kernel="6.1.0",
            operating_system="Debian 12",
        ),
        conditions={"indexer": "kv" if label == "v1.0" else "null"},
    )


def _curve(side: str, label: str, scale: float, run_id: str | None = None) -> ChartLine:
    fractions = [(index + 0.5) / 60 for index in range(60)]
    values = [scale * math.exp(0.5 * (fraction - 0.5) * 3.2) for fraction in fractions]
    band = None if run_id else [value * 0.97 for value in values]
    upper = None if run_id else [value * 1.03 for value in values]
    return ChartLine(side=side, run_id=run_id, label=label, x=values, y=fractions, low=band, high=upper)


def _charts() -> list[ChartData]:
    fractions = [index / 20 for index in range(1, 20)]
    seconds = [float(index) for index in range(40)]
    shift = ChartLine(
        side="", run_id=None, label="change", x=fractions, y=[-0.04 + 0.06 * f for f in fractions],
        low=[-0.07 + 0.06 * f for f in fractions], high=[-0.01 + 0.06 * f for f in fractions],
    )  # fmt: skip
    series = [
        ChartLine(side=side, run_id=f"{side}-{run}", label=side, x=seconds, y=[4e8 + 1e6 * s * run for s in seconds])
        for side in ("baseline", "candidate")
        for run in (1, 2)
    ]
    dots = [
        ChartLine(
            side=side, run_id=f"{side}-1", label=side, x=seconds, y=[0.7 + 0.3 * math.sin(s) ** 2 for s in seconds]
        )
        for side in ("baseline", "candidate")
    ]
    cdf = [_curve("baseline", "v0.9", 0.74), _curve("candidate", "v1.0", 0.71), _curve("baseline", "v0.9", 0.73, "b-1")]
    return [
        ChartData(id="tx_latency_s-cdf", metric_id="tx_latency_s", kind=ChartKind.CDF, title="tx latency",
                  x_label="tx latency, s", y_label="fraction of transactions", lines=cdf, note="60 points a line"),
        ChartData(id="tx_latency_s-shift", metric_id="tx_latency_s", kind=ChartKind.SHIFT, title="tx latency, shift",
                  x_label="quantile", y_label="change", lines=[shift]),
        ChartData(id="tx_latency_s-scatter", metric_id="tx_latency_s", kind=ChartKind.SCATTER,
                  title="tx latency over time", x_label="time, s", y_label="tx latency, s", lines=dots),
        ChartData(id="rss_bytes-series", metric_id="rss_bytes", kind=ChartKind.SERIES, title="resident memory",
                  x_label="time, s", y_label="resident memory, B", lines=series),
    ]  # fmt: skip


def _distributions() -> list[DistributionRow]:
    return [
        DistributionRow(
            metric_id="tx_latency_s", side=side, n=71_982, n_null=18, mean=0.75, sd=0.2, min=0.2, max=3.1,
            centiles=[(f, None if f == 0.9999 else 0.2 + f) for f in STANDARD_CENTILES],
        )
        for side in ("baseline", "candidate")
    ]  # fmt: skip


SENTENCES = {
    Verdict.PASS: "4 of 4 gating metrics are shown to be within 10 % of the baseline (90 % intervals).",
    Verdict.FAIL: "1 of 4 gating metrics is worse than the baseline by more than 10 %.",
    Verdict.INCONCLUSIVE: "1 of 4 gating metrics could not be decided.",
    Verdict.INVALID: "A run did not meet its offered load, so nothing may be concluded.",
}


def sample(verdict: Verdict = Verdict.PASS) -> Comparison:
    """A comparison with this verdict."""
    invalid = verdict is Verdict.INVALID
    return Comparison(
        tool_version="0.1.0",
        title="Demo v1.0 against v0.9",
        subtitle="profile demo/small · 3 + 3 runs, interleaved · 2026-11-20",
        date="2026-11-20",
        verdict=verdict,
        sentence=SENTENCES[verdict],
        reasons=[] if verdict is Verdict.PASS else ["tx latency p99: see the gating table"],
        advice=["3 runs per side suffice to detect +10 % with 80 % power"],
        baseline=_side("v0.9", "0.9", lost=False),
        candidate=_side("v1.0", "1.0", lost=invalid),
        profile_name="demo/small",
        profile={"name": "demo/small", "load": {"rate": 200, "connections": 1}, "nodes": ["a", "b"], "empty": {}},
        workload={"load.rate": 200, "network.nodes": 4},
        workload_differences={"load.rate": [200, 210]} if invalid else {},
        gates=[
            Gate(id="workload", label="same workload", status=GateStatus.FAIL if invalid else GateStatus.PASS,
                 measured="1 key differs" if invalid else "equal", limit="equal"),
        ],
        condition_differences=[
            ConditionDifference(id="indexer", label="transaction indexer", baseline="null", candidate="kv",
                                explanation="Indexing costs CPU.")
        ],
        configuration_differences=[
            ConfigurationDifference(file="config.toml", key="mempool.size", baseline=5000, candidate=10000,
                                    is_default_change=True),
            ConfigurationDifference(file="config.toml", key="storage.compact", candidate=False, only_in="candidate",
                                    is_default_change=True),
            ConfigurationDifference(file="config.toml", key="tx_index.indexer", baseline="null", candidate="kv",
                                    is_default_change=False),
        ],
        changed_from_default={
            side: {"config.toml": {"consensus.timeout_commit": ConfigChange(default="1s", used="500ms")}}
            for side in ("baseline", "candidate")
        },
        changed_per_node={
            "baseline": {
                "node0": {"config.toml": {"p2p.laddr": ConfigChange(default="", used="tcp://127.0.0.1:26656")}}
            }
        },
        judgements=_judgements(verdict),
        distributions=_distributions(),
        effect_sizes=[
            EffectSize(metric_id="tx_latency_s", probability_candidate_larger=0.46, wasserstein=0.031,
                       largest_gap=0.05, largest_gap_at=0.7)
        ],
        charts=_charts(),
        catalogue=catalogue(),
    )  # fmt: skip
