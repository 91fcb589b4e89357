"""Predictions, explanations and model records of an invented network, for tests of their renderings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Kind, Metric, MetricGroup, Population
from chainmark.report.document import Document
from chainmark.systems.cardano.model.evidence_document import evidence_document
from chainmark.systems.cardano.model.explanation_document import explanation_document
from chainmark.systems.cardano.model.prediction_document import prediction_document
from chainmark.systems.cardano.model.results import (
    AdoptionCurve,
    Contribution,
    EvidenceRow,
    EvidenceRun,
    Explanation,
    Modelled,
    ModelRecord,
    PartRow,
    Prediction,
    RoundTripRow,
    ScenarioEntry,
    ScenarioFigure,
    ScenarioRow,
    WholeRow,
)

LAYOUTS: dict[type[BaseModel], Callable[[Any], Document]] = {
    Prediction: prediction_document,
    Explanation: explanation_document,
    ModelRecord: evidence_document,
}
CENTILES = (50, 80, 90, 92, 94, 96, 98, 100)
STAGES = ("sealing", "announcement", "header", "round trips", "extra rounds", "request", "body", "check", "tails")
_SHARES = (0.07, 0.02, 0.02, 0.36, 0.34, 0.01, 0.05, 0.09, 0.04)
WHATIFS = (
    ("rtt +20%", 1.15, 0.003),
    ("page size ×2", 1.19, 0.004),
    ("initial window 20 and fetch concurrency 1, together", 0.97, 0.003),
    ("batch limit 4", 1.001, 0.003),
    ("lose region South", 0.53, 0.002),
    ("999 nodes", 1.82, 0.02),
    ("no pipelining", 1.16, 0.004),
)


def _metric(id_: str, label: str, table: str, order: int, unit: str = "s", **more: object) -> Metric:
    base: dict[str, object] = {
        "id": id_,
        "label": label,
        "unit": unit,
        "kind": Kind.POSITIVE,
        "better": "lower",
        "statistics": ["mean"],
        "judged_by": "mean",
        "table": table,
        "order": order,
        "population": "page",
        "description": f"What {label} is.",
        "source": ["ferry.log"],
    }
    return Metric.model_validate(base | more)


def catalogue() -> Catalogue:
    """A catalogue in which the table of the whole network is not the first table."""
    spread = [_metric(f"spread_p{c}_s", f"{c / 100:.2f} spread", "end_to_end", c) for c in CENTILES]
    return Catalogue(
        system="ferry",
        title="Ferry network",
        populations=[Population(id="page", label="page", keys=["page"])],
        tables=[
            MetricGroup(id="sealing", title="Sealing"),
            MetricGroup(id="readers", title="Readers"),
            MetricGroup(id="end_to_end", title="End-to-end spread"),
        ],
        metrics=[
            *spread,
            _metric("seal_started_s", "Started to seal", "sealing", 1),
            _metric("seal_lag_s", "Lag behind the clock", "sealing", 2, kind=Kind.DIFFERENCE),
            _metric("slot_to_announced_s", "Slot start to announced", "sealing", 3),
            _metric("page_size_bytes", "Page size", "sealing", 4, unit="B"),
            _metric("fetch_s", "Fetch duration", "readers", 1),
            _metric("check_s", "Fetched to checked", "readers", 2),
            _metric("late_readers", "Late readers", "readers", 3, unit="fraction", kind=Kind.PROPORTION),
        ],
    )


def _whole(centile: int) -> float:
    return 0.607 + 0.42 * ((centile - 50) / 50.0) ** 0.35 if centile > 50 else 0.607


def _cells(
    value: float, error: float, factors: Sequence[tuple[str, float, float]], formula: float | None = None
) -> list[ScenarioFigure]:
    cells = [ScenarioFigure(modelled=Modelled(value=value, standard_error=error), formula=formula)]
    for label, factor, relative in factors:
        cells.append(
            ScenarioFigure(
                modelled=Modelled(value=value * factor, standard_error=error * 1.1),
                change=None
                if label.startswith("999") and formula is None
                else Modelled(value=value * (factor - 1.0), standard_error=abs(value) * relative),
                formula=None if formula is None or label.startswith("lose") else formula * (1 + (factor - 1) * 0.93),
            )
        )
    return cells


def prediction(whatifs: int = 4) -> Prediction:
    """A prediction with this many scenarios in addition to the base (at most seven)."""
    factors = WHATIFS[:whatifs]
    rows = [
        ScenarioRow(
            metric_id=f"spread_p{c}_s",
            measured=_whole(c) * 1.004,
            cells=_cells(_whole(c), 0.003, factors, _whole(c) * 0.99),
        )
        for c in CENTILES
    ]
    still = [(label, 1.0, 0.001) for label, _, _ in factors]
    stages = [("seal_started_s", 0.0015, 0.00001), ("slot_to_announced_s", 0.068, 0.0002), ("check_s", 0.061, 0.0003)]
    rows += [ScenarioRow(metric_id=id_, measured=v, cells=_cells(v, e, still)) for id_, v, e in stages]
    rows += [
        ScenarioRow(metric_id="seal_lag_s", measured=0.0, cells=_cells(-0.002, 0.0004, factors)),
        ScenarioRow(metric_id="fetch_s", measured=0.3602, cells=_cells(0.3598, 0.002, factors)),
        ScenarioRow(metric_id="page_size_bytes", measured=88_903.0, cells=_cells(88_903.0, 0.0, still)),
        ScenarioRow(metric_id="late_readers", cells=_cells(0.031, 0.002, factors)),
    ]
    scales = [1.0, *(factor for _, factor, _ in factors)]
    labels = ["as published", *(label for label, _, _ in factors)]
    return Prediction(
        title="Ferry 10.7.1 on 52 hosts",
        source="release-10.7.1.json, version 10.7.1",
        catalogue=catalogue(),
        seed=1,
        scenarios=[
            ScenarioEntry(
                label=label,
                changes=[] if index == 0 else [label],
                hosts=999 if label.startswith("999") else 52,
                blocks=2048,
            )
            for index, label in enumerate(labels)
        ],
        rows=rows,
        curves=[curve(index, scale) for index, scale in enumerate(scales)],
        contribution_metric_ids=[f"spread_p{c}_s" for c in CENTILES],
        fractions={f"spread_p{c}_s": c / 100 for c in CENTILES},
        contributions=[
            Contribution(scenario=index, stage=stage, values=[_whole(c) * scale * share for c in CENTILES])
            for index, scale in enumerate(scales)
            for stage, share in zip(STAGES, _SHARES, strict=True)
        ],
        notes=[
            "Only two sizes of pages were ever measured: other sizes are an extrapolation.",
            "A change below 2 % is not to be claimed: the model itself is off by -1.5 to 1.5 %.",
        ],
    )


def curve(scenario: int, scale: float) -> AdoptionCurve:
    """A curve in 40 steps."""
    fractions = [round(0.025 * step, 3) for step in range(1, 41)]
    values = [scale * (0.25 + 0.8 / (1 + math.exp(-9 * (fraction - 0.45)))) for fraction in fractions]
    return AdoptionCurve(
        scenario=scenario, fractions=fractions, values=values, standard_errors=[0.004 + 0.004 * f for f in fractions]
    )


def explanation(*, explained: bool = False) -> Explanation:
    """An explanation; where it does not hold, only the last centile deviates."""
    whole = []
    for c in CENTILES:
        modelled = _whole(c) * (1.002 - 0.00005 * c)
        flagged = c == 100 and not explained
        measured = _whole(c) * (1.12 if flagged else 1.0)
        error = modelled / measured - 1.0
        whole.append(
            WholeRow(
                metric_id=f"spread_p{c}_s", measured=measured, modelled=Modelled(value=modelled, standard_error=0.003),
                error=error, limit=0.03 if c < 98 else 0.05, flagged=flagged, formula=_whole(c) * 0.985,
            )
        )  # fmt: skip
    return Explanation(
        title="Ferry 10.7.1: do the parts explain the whole?",
        source="release-10.7.1.json, version 10.7.1",
        catalogue=catalogue(),
        seed=1,
        blocks=4096,
        explained=explained,
        sentence="All 8 centiles follow from the stages." if explained
        else "1 of 8 centiles does not follow from the stages: 1.00 spread is -10.9 % off, its limit is 5 %.",
        whole=whole,
        parts=[
            PartRow(metric_id="check_s", measured=0.061, modelled=Modelled(value=0.06102, standard_error=0.0003),
                    calibrated=True),
            PartRow(metric_id="fetch_s", measured=0.3602, modelled=Modelled(value=0.371, standard_error=0.002),
                    calibrated=False),
            PartRow(metric_id="slot_to_announced_s", measured=0.068, modelled=Modelled(value=0.068, standard_error=0.0),
                    calibrated=True),
            PartRow(metric_id="seal_lag_s", measured=0.0, modelled=Modelled(value=-0.002, standard_error=0.0004),
                    calibrated=False),
        ],
        round_trips=[
            RoundTripRow(link="North – South", measured_s=0.273, inferred_s=0.252, standard_error_s=0.004,
                         inferred=True, differs=True),
            RoundTripRow(link="East – West", measured_s=0.1, inferred_s=0.102, standard_error_s=0.004,
                         inferred=True, differs=False),
            RoundTripRow(link="North – West", measured_s=0.09, inferred_s=0.09, standard_error_s=0.0, inferred=False,
                         differs=False),
        ],
        curve=curve(0, 1.0),
        contribution_metric_ids=[f"spread_p{c}_s" for c in CENTILES],
        fractions={f"spread_p{c}_s": c / 100 for c in CENTILES},
        contributions=[
            Contribution(scenario=0, stage=stage, values=[_whole(c) * share for c in CENTILES])
            for stage, share in zip(STAGES, _SHARES, strict=True)
        ],
        notes=["The link North – South differs from the reference by -8 %."],
    )  # fmt: skip


METHODS = ("simulation", "without the own fetches", "linear formula", "the run before")


def evidence(runs: int = 12) -> ModelRecord:
    """A model record with two groups and four methods."""
    rows, listed = [], []
    for group in ("small pages, after 10.3", "full pages, after 10.3"):
        for index, method in enumerate(METHODS):
            size = [0.009 * (1 + 0.6 * index) * (1 + 0.1 * c) for c in range(len(CENTILES))]
            rows.append(
                EvidenceRow(
                    group=group, method=method, runs=runs, mean=[-0.3 * s for s in size], root_mean_square=size,
                    largest=[2.4 * s for s in size], overall=sum(size) / len(size),
                )
            )  # fmt: skip
        for number in range(runs):
            errors = [
                0.01 * math.sin(number * 1.7 + 0.3 * c) - (0.08 if number == 5 and c == 7 else 0) for c in range(8)
            ]
            listed.append(
                EvidenceRun(group=group, label=f"10.{number}.1 ({number}a)", errors=errors, standard_errors=[0.004] * 8)
            )
    return ModelRecord(
        title="Ferry: the model's record",
        catalogue=catalogue(),
        seed=1,
        metric_ids=[f"spread_p{c}_s" for c in CENTILES],
        rows=rows,
        runs=listed,
        notes=["Fitted to the releases before 10.3 only."],
    )


def document_of(result: BaseModel) -> Document:
    """The document of a result of the model."""
    return LAYOUTS[type(result)](result)
