"""Runs as the columns of a report in the published style.

Values are means, by the published rules if the runs store those figures, otherwise by the runs' own rules. Several runs
of one version are combined as those reports combine them: the mean of the runs' means, and chart by chart, at every
centile, the mean of the runs' values weighted by their samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from chainmark.compare.gates import workload_differences
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.sides import SelectedRuns, select
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import caveats_of
from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Manifest
from chainmark.core.metric import Metric, Population
from chainmark.core.side_by_side import FactRow
from chainmark.core.wording import capitalised
from chainmark.systems.cardano.published.entries import published_of, reports_of
from chainmark.systems.cardano.published.figures import FIGURES, Figure, OverHosts, figures_of
from chainmark.systems.cardano.published.results import (
    PublishedColumn,
    PublishedFigure,
    PublishedLine,
    PublishedReport,
    PublishedRow,
    PublishedTable,
    PublishedValue,
    ReportStyle,
    data_dictionary,
    published_label,
    published_unit,
)
from chainmark.systems.cardano.published.values import typst_value

_RULES, _PUBLISHED = "analysis.rules", "published"  # the key of a run's workload or profile, and its value
_SAMPLES_SHOWN = 4  # characters of a sample count in the org style
_NO_TABLE_HINT = "`chainmark compare A B` compares these runs in chainmark's own style"


def published_column(
    runs: Sequence[RunData],
    style: ReportStyle,
    *,
    tool_version: str,
    label: str | None = None,
    published_rules: bool = True,
) -> PublishedReport:
    """One version's runs as a report of one column.

    Args:
        runs: one or more of one version; a run with a failed gate is omitted as long as another one remains.
        style: of the report with the column: it decides labels, units and which charts are drawn.
        tool_version: recorded in the result.
        label: heading of the column; None uses the version.
        published_rules: use the figures by the published rules, if all of these runs have them.

    Raises:
        UsageError: there are no runs, they are of several versions, or their system publishes no such reports.
    """
    selected = select("column", runs)
    included = selected.included or selected.runs
    catalogue = included[0].catalogue
    values = _Values(included, published_rules=published_rules)
    tables = _tables(catalogue, values, style)
    if not tables:
        raise UsageError(
            f"there is no published style for {catalogue.title}: its catalogue does not define one",
            _NO_TABLE_HINT,
        )
    manifest = selected.first
    name = label or selected.version
    facts = _facts(values.facts())
    return PublishedReport(
        tool_version=tool_version,
        style=style,
        title=name,
        workload=workload_name(catalogue, manifest),
        date=max(run.manifest.started_at for run in included)[:10],
        statement="",
        columns=[
            PublishedColumn(
                label=name,
                beside=_beside(catalogue, facts),
                runs=[run.run_id for run in included],
                rules=values.rules(),
            )
        ],
        facts=facts,
        tables=tables,
        figures=_figures(catalogue, values, style, name),
        dictionary=data_dictionary(catalogue, style),
        notes=_run_notes(name, selected),
        caveats=caveats_of(run.manifest for run in selected.runs),
    )


def workload_name(catalogue: Catalogue, manifest: Manifest) -> str:
    """The name of the run's workload: by the key in the catalogue, otherwise by its profile."""
    reports = reports_of(catalogue)
    key = reports.workload if reports is not None else "workload.name"
    result = manifest.workload.get(key)
    return str(result if result is not None else _at(manifest.profile, key) or manifest.profile_name)


def _at(tree: Mapping[str, object], key: str) -> object:
    """The value of a dotted key; None if there is none."""
    result: object = tree
    for part in key.split("."):
        result = result.get(part) if isinstance(result, Mapping) else None
    return result


def rules_of(catalogue: Catalogue, manifest: Manifest) -> str:
    """The rules of a run's own values, in a sentence."""
    if not _is_by_published_rules(catalogue, manifest):
        return "values by chainmark's own rules, so they may differ from those of a published report of the same run"
    return f"values by the rules of the published reports{_lowest(_limit(catalogue))}"


def _is_by_published_rules(catalogue: Catalogue, manifest: Manifest) -> bool:
    return manifest.workload.get(_RULES, _at(manifest.profile, _RULES)) == _PUBLISHED or _limit(catalogue) is not None


def _limit(catalogue: Catalogue) -> int | None:
    """The number of lowest means over which a mean is computed; None: all."""
    return min((item.lowest_means for item in catalogue.populations if item.lowest_means is not None), default=None)


def _lowest(limit: int | None) -> str:
    return "" if limit is None else f", which average only the {limit} lowest means if there are more"


def has_published(run: LoadedRun) -> bool:
    """Whether a run has figures by the published rules: stored next to its own, or its own are by them."""
    return run.figures(FIGURES) is not None or _is_by_published_rules(run.catalogue, run.manifest)


class _Values:
    """The figures of one version's runs: by the published rules if all of the runs have them, otherwise their own."""

    def __init__(self, runs: Sequence[LoadedRun], *, published_rules: bool) -> None:
        self._runs = runs
        published_figures = [figures_of(run) for run in runs] if published_rules else []
        self._published = [item for item in published_figures if item is not None]
        if len(self._published) < len(runs):
            self._published = []

    def rules(self) -> str:
        """Their rules, in a sentence."""
        if not self._published:
            return rules_of(self._runs[0].catalogue, self._runs[0].manifest)
        hosts = [
            len(figure.hosts)
            for published_figures in self._published
            for figure in published_figures.figures.values()
            if isinstance(figure, OverHosts)
        ]
        limit = len(STANDARD_CENTILES) if max(hosts, default=0) > len(STANDARD_CENTILES) else None
        return f"values by the rules of the published reports{_lowest(limit)}"

    def facts(self) -> list[Sequence[tuple[str, str]]]:
        """The facts of every run."""
        if self._published:
            return [published_figures.facts for published_figures in self._published]
        return [[(fact.label, fact.value) for fact in run.manifest.facts] for run in self._runs]

    def average(self, metric: Metric) -> float | None:
        """The value of a metric in a report; None if no run has it."""
        result = self._figures(metric)
        if not self._published or result is None:
            return _average(self._runs, metric, self._runs[0].catalogue.population(metric.population))
        several = len(result) > 1
        means = [cdf.mean_of_means if several and isinstance(cdf, OverHosts) else cdf.mean for cdf in result]
        return sum(means) / len(means)

    def value(self, metric: Metric) -> PublishedValue:
        """The same; for one printed run in the format of current reports, as no more digits are known."""
        average, width = self.average(metric), published_of(metric).width
        if average is None or width is None or len(self._runs) > 1 or not self._runs[0].manifest.printed:
            return PublishedValue(value=average)
        return PublishedValue(printed=typst_value(average, width))

    def samples(self, metric: Metric) -> int:
        """The total number of samples of a metric in all runs."""
        return sum(n for n, _ in self._distributions(metric))

    def line(self, metric: Metric, name: str) -> PublishedLine:
        """A metric's distribution."""
        return _line([(n, centiles) for n, centiles in self._distributions(metric) if n], name)

    def _distributions(self, metric: Metric) -> list[tuple[int, Mapping[float, float]]]:
        result = self._figures(metric)
        if result is not None:
            return [(cdf.n, dict(zip(STANDARD_CENTILES, cdf.centiles, strict=True))) for cdf in result]
        own = [summary.distribution for run in self._runs if (summary := run.summary(metric.id))]
        return [
            (distribution.n, {at: value for at, value in distribution.centiles if value is not None})
            for distribution in own
            if distribution
        ]

    def _figures(self, metric: Metric) -> list[Figure] | None:
        """A metric's figures by the published rules; None if a run has none of it."""
        name = metric.published_id or ""
        cdfs = [
            published_figures.figures[name]
            for published_figures in self._published
            if name in published_figures.figures
        ]
        return cdfs if cdfs and len(cdfs) == len(self._runs) else None


def _beside(catalogue: Catalogue, facts: Sequence[FactRow]) -> str:
    reports = reports_of(catalogue)
    wanted = reports.beside_version if reports is not None else None
    result = next((fact.values[0] for fact in facts if fact.label == wanted), "")
    return capitalised(result)


def _facts(reported: Sequence[Sequence[tuple[str, str]]]) -> list[FactRow]:
    """The runs' facts; of several runs the median if it is a number in all of them, otherwise the first run's."""
    rows = []
    for label, value in reported[0]:
        texts = [text for item in reported for name, text in item if name == label]
        numbers = [_number(text) for text in texts]
        if len(texts) == len(reported) and None not in numbers:
            ordered = sorted(zip(numbers, texts, strict=True), key=lambda pair: (pair[0] or 0.0, pair[1]))
            rows.append(FactRow(label=label, values=[ordered[len(ordered) // 2][1]]))
        else:
            rows.append(FactRow(label=label, values=[value]))
    return rows


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _run_notes(name: str, selected: SelectedRuns) -> list[str]:
    notes = [f"{name}: the run {run_id} is not valid: {reason}" for run_id, reason in selected.excluded.items()]
    if selected.excluded and not selected.included:
        notes.append(f"{name}: no run of this version is valid; its values are shown anyway.")
    return notes


def _published_tables(catalogue: Catalogue) -> list[tuple[str, str, list[Metric]]]:
    """ID, title and metrics of every table of the published reports, in their order."""
    reports = reports_of(catalogue)
    order = reports.tables if reports is not None else [t.id for t in catalogue.tables]
    titles = {table.id: table.title for table in catalogue.tables}
    results = []
    for id_ in order:
        metrics = [m for m in catalogue.ordered() if m.table == id_ and published_of(m).width is not None]
        if metrics:
            results.append((id_, titles[id_], metrics))
    return results


def _tables(catalogue: Catalogue, values: _Values, style: ReportStyle) -> list[PublishedTable]:
    tables = []
    for id_, title, metrics in _published_tables(catalogue):
        rows = [
            PublishedRow(
                metric_id=metric.id,
                label=published_label(metric, style),
                unit=published_unit(metric, style),
                width=published_of(metric).width,
                values=[values.value(metric)],
            )
            for metric in metrics
        ]
        counts = [_sample_count(values.samples(metrics[0]))] if style is ReportStyle.ORG else []
        tables.append(PublishedTable(id=id_, title=title, rows=rows, sample_counts=counts))
    return tables


def _sample_count(total: int) -> str:
    """The number of samples of a table's first metric: cut after three digits if there are more than four."""
    text = str(total)
    return f"({text if len(text) <= _SAMPLES_SHOWN else text[: _SAMPLES_SHOWN - 1] + '>'})"


def _average(runs: Sequence[LoadedRun], metric: Metric, population: Population) -> float | None:
    """The mean of the runs' own means; None if no run has one.

    A mean of only the lowest means of some keys is that of single runs. Of several runs the published reports average
    the means over all keys, so these are computed from the samples.
    """
    means = []
    for run in runs:
        summary = run.summary(metric.id)
        if summary is None:
            continue
        estimate, distribution = summary.estimates.get("mean"), summary.distribution
        mean = estimate.value if estimate is not None else None
        if mean is None and distribution is not None:
            mean = distribution.mean
        if mean is None:
            continue
        if len(runs) > 1 and population.lowest_means is not None and distribution is not None:
            mean = _mean_of_keys(run, metric, population)
        means.append(mean)
    return sum(means) / len(means) if means else None


def _mean_of_keys(run: LoadedRun, metric: Metric, population: Population) -> float:
    """The mean over all values of the averaged keys of the mean of each."""
    frame = run.samples(population.id, [*population.average_over, metric.id])
    values = frame.get_column(metric.id).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    numbers = frame.select(pl.struct(population.average_over).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    retained = np.isfinite(values)
    counts = np.bincount(numbers, weights=retained)
    sums = np.bincount(numbers, weights=np.where(retained, values, 0.0))
    means = sums / np.maximum(1, counts)
    return float((means if population.silent_keys_are_zero else means[counts > 0]).mean())


def _figures(catalogue: Catalogue, values: _Values, style: ReportStyle, name: str) -> list[PublishedFigure]:
    figures = []
    for figure, metric in _drawn(catalogue, style):
        line = values.line(metric, name)
        figures.append(figure.model_copy(update={"lines": [line] if line.values else []}))
    return figures


def _drawn(catalogue: Catalogue, style: ReportStyle) -> list[tuple[PublishedFigure, Metric]]:
    """The charts of a style in their order, without lines, and the metric of each."""
    drawn = [
        metric
        for metric in catalogue.metrics
        if (published := published_of(metric)).chart is not None and published.chart_style in {None, style.value}
    ]
    return [
        (
            PublishedFigure(
                metric_id=metric.id,
                published_id=metric.published_id or metric.id,
                label=published_label(metric, style),
                unit=published_unit(metric, style),
                description=" ".join(metric.description.split()),
                logarithmic=published_of(metric).logarithmic,
                lines=[],
            ),
            metric,
        )
        for metric in sorted(drawn, key=lambda item: (published_of(item).chart or 0, item.id))
    ]


def in_published_order(report: PublishedReport, catalogue: Catalogue) -> PublishedReport:
    """The report with rows and charts in the published order, those without data in their places.

    Args:
        report: of versions, some of which may lack metrics, as printed runs do.
        catalogue: the system's own, which has all.
    """
    places = {metric.id: place for place, metric in enumerate(catalogue.ordered())}
    last = len(places)
    tables = [
        table.model_copy(update={"rows": sorted(table.rows, key=lambda row: places.get(row.metric_id or "", last))})
        for table in report.tables
    ]
    known = {figure.metric_id: figure for figure in report.figures}
    figures = [known.get(figure.metric_id, figure) for figure, _ in _drawn(catalogue, report.style)]
    return report.model_copy(update={"tables": tables, "figures": figures})


def _line(reported: Sequence[tuple[int, Mapping[float, float]]], name: str) -> PublishedLine:
    """The centiles that all runs have, each the mean of the runs' weighted by their samples."""
    fractions = (
        [fraction for fraction in reported[0][1] if all(fraction in item for _, item in reported)] if reported else []
    )
    total = sum(n for n, _ in reported)
    values = [sum(n * centiles[fraction] for n, centiles in reported) / total for fraction in fractions]
    return PublishedLine(label=name, values=values, fractions=fractions)


def workload_notes(sides: Sequence[Sequence[RunData]]) -> list[str]:
    """One sentence per key of the workload in which a version differs from the first one.

    Args:
        sides: the runs of every version, the baseline's first.
    """
    selected = [select("column", runs) for runs in sides]
    notes = []
    for other in selected[1:]:
        base = selected[0]
        result = workload_differences(base, other)
        messages = [f"{key} is {units.scalar(left)} vs. {units.scalar(right)}" for key, (left, right) in result.items()]
        if messages:
            notes.append(f"{other.version} was not run like {base.version}: {', '.join(messages)}.")
    return notes
