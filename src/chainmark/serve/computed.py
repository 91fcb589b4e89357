"""How a figure was computed: from which events, by which rules, and with a query that recomputes it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Better, Kind, Metric, Population, Weighting
from chainmark.core.tool import tool_version
from chainmark.report.blocks import Block, Column, Listing, Remarks, Section, Table, phrased, row_of, words
from chainmark.report.document import Document
from chainmark.report.phrases import Phrase
from chainmark.report.wording import BETTER_WORDS
from chainmark.serve.pages import own_document, run_address
from chainmark.store.sealed import SealedRun

_BY_KIND = {
    Kind.POSITIVE: "The ratio of both sides' values is compared, on the logarithmic scale.",
    Kind.DIFFERENCE: "The difference of both sides' values is compared.",
    Kind.COUNT: "Counts per sample are compared as Poisson rates.",
    Kind.PROPORTION: "Shares of samples are compared as proportions.",
}
_OF_SAMPLES = {
    Weighting.TIMES: "Samples of the same time are averaged first. The result is the mean over all times.",
    Weighting.SAMPLES: "Every sample has the same weight.",
    Weighting.KEYS: "The samples of each {key} are averaged first. Every {key} has the same weight.",
}


class Computed(BaseModel):
    """``computed.json``: a metric's definition, and its figure in some runs."""

    schema_version: int = 1
    tool_version: str
    metric: Metric
    population: Population
    statistic: str
    query: str
    runs: list[ComputedRun]


class ComputedRun(BaseModel):
    """A figure of one run, with its basis."""

    run: str
    samples: int
    without_value: int
    value: float | None
    standard_error: float | None
    method: str
    file: str
    sources: int


Computed.model_rebuild()


def computed_document(catalogue: Catalogue, metric_id: str, statistic: str, runs: Sequence[SealedRun]) -> Document:
    """How a statistic of a metric is computed.

    Raises:
        UsageError: the catalogue has no such metric.
    """
    metric = catalogue.metric(metric_id)
    population = catalogue.population(metric.population)
    chosen = statistic if statistic in metric.statistics else metric.judged_by[0]
    computed_runs = [computed_run for run in runs if (computed_run := _of_run(run, metric, chosen)) is not None]
    result = Computed(
        tool_version=tool_version(), metric=metric, population=population, statistic=chosen,
        query=query_of(metric, population, chosen), runs=computed_runs,
    )  # fmt: skip
    blocks: list[Block] = [_what(catalogue, metric, population)]
    sections = [
        Section("definition", "Definition", blocks),
        Section("run", "In one run", [
            Remarks("rules", "Rules", _rules(metric, population, chosen)),
            Listing("query", "The same figure with DuckDB, in the folder of a run", [("", result.query)]),
        ]),
        Section("runs", "Runs", [_figures(computed_runs, metric)] if computed_runs else []),
        Section("judged", "Between two sides", [Remarks("judged", "", _judged(metric))]),
    ]  # fmt: skip
    title = f"How {metric.label} {chosen} was computed" if runs else f"How {metric.label} {chosen} is computed"
    retained = [section for section in sections if section.blocks]
    return own_document("computed", title, f"{catalogue.title} · {metric.id}", retained, result)


def _what(catalogue: Catalogue, metric: Metric, population: Population) -> Table:
    table = next(table.title for table in catalogue.tables if table.id == metric.table)
    facts = {
        "definition": metric.description,
        "unit": metric.unit or "none",
        "one sample per": f"{population.label} (keys: {', '.join(population.keys)})",
        "source events": ", ".join(metric.source) or units.UNSET,
        "statistics": f"{', '.join(metric.statistics)}; judged by {', '.join(metric.judged_by)}",
        "published as": metric.published_id or "",
        "table": table,
    }
    rows = [row_of(label, text) for label, text in facts.items() if text]
    return Table("what", "", words("", ""), rows)


def _rules(metric: Metric, population: Population, statistic: str) -> list[str]:
    rules = [f"The system's analysis turns the source events into samples/{population.id}.parquet, column "
             f"{metric.id}, within the profile's window and with its filters. A sample without a value is null "
             "and is counted."]  # fmt: skip
    if statistic == "mean":
        weighting = population.weighting if population.average_over else Weighting.SAMPLES
        rules.append(_OF_SAMPLES[weighting].format(key=" × ".join(population.average_over)))
        if population.lowest_means:
            rules.append(f"Only the {population.lowest_means} lowest of these means are used.")
        if population.silent_keys_are_zero:
            rules.append("A key without samples counts as 0.")
    elif statistic.startswith("p"):
        fraction = units.tidy(float(statistic[1:]) / 100.0)
        rules.append(
            f"Nearest rank: the sample at position floor({fraction} n) + 1 of n samples in ascending order, or the "
            "last one. It is not interpolated, and not estimable if fewer than one sample is expected beyond it."
        )
        if population.keys_apart:
            rules.append("It is computed per key. The result is the median over the keys.")
    else:
        rules.append("The extreme of all samples. It has no standard error.")
    rules.append("The standard error is that of a single run. The table of runs lists the method.")
    return rules


def query_of(metric: Metric, population: Population, statistic: str) -> str:
    """SQL for DuckDB that computes a run's figure from its samples; chainmark itself does not run it."""
    value, file = f'"{metric.id}"', f"'samples/{population.id}.parquet'"
    known = f"FROM {file} WHERE {value} IS NOT NULL"
    keys = ", ".join(f'"{key}"' for key in _grouped_by(population, statistic))
    of_group, of_all = _AGGREGATES.get(statistic, ("", ""))
    if not of_group:
        fraction = units.tidy(float(statistic[1:]) / 100.0)
        rank = f"CAST(floor(count({{0}}) * {fraction}::DOUBLE) AS BIGINT) + 1"
        ranked = f"list({{0}} ORDER BY {{0}})[least(count({{0}}), {rank})]"
        of_group, of_all = ranked, "median({0})"
    if not keys:
        return f"SELECT {of_group.format(value)} AS figure\n{known};"
    if population.silent_keys_are_zero and statistic == "mean":
        of_group, known = "coalesce(avg({0}), 0)", f"FROM {file}"
    lowest = f" ORDER BY mean LIMIT {population.lowest_means}" if population.lowest_means else ""
    inner = f"SELECT {of_group.format(value)} AS mean {known} GROUP BY {keys}{lowest}"
    return f"SELECT {of_all.format('mean')} AS figure\nFROM ({inner});"


_AGGREGATES = {"mean": ("avg({0})", "avg({0})"), "min": ("min({0})", "min({0})"), "max": ("max({0})", "max({0})")}


def _grouped_by(population: Population, statistic: str) -> list[str]:
    """The keys with a figure per value before these are combined; empty: one figure over all samples."""
    if not population.average_over or statistic in {"min", "max"}:
        return []
    if statistic != "mean":
        return population.average_over if population.keys_apart else []
    if population.weighting is Weighting.TIMES and population.time_key:
        return [population.time_key]
    return population.average_over if population.weighting is Weighting.KEYS else []


def _judged(metric: Metric) -> list[str]:
    floor = f", or {units.tidy_quantity(metric.floor, metric.unit)} if that is larger" if metric.floor else ""
    messages = [
        f"Judged by {', '.join(metric.judged_by)}; {BETTER_WORDS[metric.better]}. {_BY_KIND[metric.kind]}",
        f"Margin: {units.plain_percent(metric.margin)} of the baseline{floor}. A change is worse or better if its 90 % "
        "interval lies beyond the margin, equal if it lies within, and inconclusive otherwise.",
    ]
    if metric.gating:
        messages.append(
            "It is a gating metric: it decides the verdict, with Holm's correction over all gating metrics."
        )
    elif metric.better is not Better.NEITHER:
        messages.append("It is a diagnostic: a change is listed if q ≤ 0.05 (Benjamini-Hochberg).")
    return messages


def _of_run(run: SealedRun, metric: Metric, statistic: str) -> ComputedRun | None:
    summary = run.summaries().get(metric.id)
    estimate = summary.estimates.get(statistic) if summary else None
    if summary is None or estimate is None:
        return None
    return ComputedRun(
        run=run.run_id, samples=summary.n, without_value=summary.distribution.n_null if summary.distribution else 0,
        value=estimate.value, standard_error=estimate.standard_error, method=estimate.method,
        file=f"runs/{run.run_id}/samples/{metric.population}.parquet", sources=len(run.manifest.sources),
    )  # fmt: skip


def _figures(runs: Sequence[ComputedRun], metric: Metric) -> Table:
    rows = [
        row_of(
            phrased(Phrase(run.run, address=run_address(run.run, ""))),
            units.count(run.samples),
            units.count(run.without_value),
            units.quantity(run.value, metric.unit),
            "" if run.standard_error is None or math.isnan(run.standard_error)
            else units.quantity(run.standard_error, metric.unit),
            run.method,
            units.count(run.sources),
        )
        for run in runs
    ]  # fmt: skip
    columns = [*words("run"), *map(Column, ("samples", "without a value", "value", "standard error")),
               *words("method of the standard error"), Column("source files")]  # fmt: skip
    return Table("runs", "", columns, rows)
