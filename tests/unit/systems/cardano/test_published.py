"""Runs and printed reports in the published style: values, order, and gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from chainmark.core.errors import UsageError
from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published import columns
from chainmark.systems.cardano.published.entries import published_of, reports_of
from chainmark.systems.cardano.published.figures import FACTS, FIGURES, OverHosts, PublishedFigures, cdf_of
from chainmark.systems.cardano.published.joined import compare_published, joined, restyled
from chainmark.systems.cardano.published.results import (
    PublishedReport,
    PublishedValue,
    ReportStyle,
    chosen,
    find_version,
)

from tests.unit.compare.published_runs import HOSTS, run
from tests.unit.compare.synthetic_runs import SyntheticRun
from tests.unit.systems.cardano.printed_reports import printed_report, printed_row

TYPST, ORG = ReportStyle.TYPST, ReportStyle.ORG


def _printed(
    *versions: str, style: ReportStyle = TYPST, values: tuple[str, ...] = ("0.60000", "0.66000")
) -> PublishedReport:
    printed_changes = [("0.060", "10")] * (len(versions) - 1)
    row = printed_row("Spread", "s", 4, *values[: len(versions)], printed_changes=printed_changes, metric_id="spread_s")
    return printed_report([row], *versions, style=style, table=("spreading", "Spreading"))


def test_tables_charts_and_dictionary_have_the_published_order_and_names() -> None:
    """Readers of the old reports look in the same places, under the same labels."""
    report = compare_published([[run("1.0")], [run("1.1", factor=1.1)]], TYPST, tool_version="test")
    assert report.title == "1.1 against 1.0"
    assert report.statement == "We compare 1.1 (Conway) relative to 1.0 (Conway), under cometbft/demo workload."
    assert [table.title for table in report.tables] == ["Resource Usage", "Spreading"]
    assert [(row.label, row.unit) for table in report.tables for row in table.rows] == [
        ("Kernel RSS", "MiB"),
        ("Spread", "s"),
    ]
    assert [figure.published_id for figure in report.figures] == ["RSS", "cdfSpread"]
    assert [len(figure.lines) for figure in report.figures] == [2, 2]
    assert [part.title for part in report.dictionary] == ["Spreading metrics", "Machine metrics"]
    assert [entry.published_id for entry in report.dictionary[0].entries] == ["cdfDelay", "cdfSpread"]


def test_the_org_style_has_its_own_units_charts_and_sample_counts() -> None:
    """Both styles come from one catalogue, which describes their differences."""
    report = compare_published([[run("1.0")], [run("1.1")]], ORG, tool_version="test")
    assert report.tables[0].rows[0].unit == "MB"
    assert report.tables[0].sample_counts == ["(200)", "(200)"]
    assert [figure.published_id for figure in report.figures] == ["RSS", "cdfSpread", "cdfDelay"]


def test_values_are_full_means_averaged_over_several_runs() -> None:
    """The mean is not weighted by run, as in reports of several runs. The manifest shows the median run's values."""
    runs = [run("1.0", number, seed=number) for number in (1, 2, 3)]
    report = compare_published([runs, [run("1.1")]], TYPST, tool_version="test")
    means = [float(np.mean(run.frames["block"]["spread_s"].to_numpy())) for run in runs]
    assert report.tables[1].rows[0].values[0].value == pytest.approx(sum(means) / 3, rel=1e-12)
    assert next(fact for fact in report.facts if fact.label == "Run time, s").values == ["1020.5", "1010.5"]
    assert report.columns[0].runs == [run.manifest.run_id for run in runs]
    centile = dict(zip(report.figures[1].lines[0].fractions, report.figures[1].lines[0].values, strict=True))
    medians = [sorted(run.frames["block"]["spread_s"].to_list())[60] for run in runs]
    assert centile[0.5] == pytest.approx(sum(medians) / 3, rel=1e-12)


def test_only_a_single_run_has_the_mean_of_the_lowest_means() -> None:
    """The reports average the lowest means for a single run and all means for several. Both can be reproduced."""
    by_host = [8000.5 + 100.0 * host for host in range(HOSTS)]
    single = columns.published_column([run("1.0", lowest_means=2)], TYPST, tool_version="test")
    several = columns.published_column(
        [run("1.0", number, seed=number, lowest_means=2) for number in (1, 2)], TYPST, tool_version="test"
    )
    assert several.tables[0].rows[0].values[0].value == pytest.approx(np.mean(by_host), abs=0.2)
    assert single.tables[0].rows[0].values[0].value == pytest.approx(np.mean(by_host[:2]), abs=0.2)
    assert "2 lowest" in single.columns[0].rules


def test_the_rules_behind_the_values_are_stated() -> None:
    """A value by one rule must not be mistaken for a value by another."""
    own = columns.published_column([run("1.0")], TYPST, tool_version="test")
    assert "chainmark's own rules" in own.columns[0].rules
    strict = run("1.0")
    strict.manifest.workload["analysis.rules"] = "published"
    report = columns.published_column([strict], TYPST, tool_version="test")
    assert "rules of the published reports" in report.columns[0].rules


@dataclass
class Keeping(SyntheticRun):
    """A run that also stores values by the published rules."""

    def figures(self, name: str) -> pl.DataFrame | None:
        """A memory of 3 on the middle one of three hosts, and facts for another number of machines."""
        hosts = {f"node-{value:.0f}": cdf_of([value, value + 1.0]) for value in (1.0, 3.0, 8.0)}
        figures = PublishedFigures({"RSS": OverHosts(hosts), "cdfSpread": cdf_of([0.25])}, [("Machines", "3")])
        return {FIGURES: figures.frame(), FACTS: figures.facts_frame()}.get(name)


def _keeping(version: str, number: int = 1) -> Keeping:
    own = run(version, number, seed=number)
    return Keeping(own.manifest, own.catalogue, own.frames)


def test_a_run_is_shown_with_its_stored_figures_by_the_published_rules() -> None:
    """The user does not have to choose the rules when importing the logs."""
    report = compare_published([[_keeping("1.0")], [_keeping("1.1"), _keeping("1.1", 2)]], TYPST, tool_version="test")
    memory, spread = (report.tables[place].rows[0].values for place in (0, 1))
    assert [value.value for value in (*memory, *spread)] == [4.5, 4.5, 0.25, 0.25]
    line = report.figures[0].lines[0]
    assert dict(zip(line.fractions, line.values, strict=True))[1.0] == 4.0  # the middle host's value, not the cluster's
    assert report.facts[0].values == ["3", "3"]
    assert "rules of the published reports" in report.columns[0].rules


def test_with_a_run_without_stored_figures_all_runs_use_their_own_rules() -> None:
    """Otherwise a change of rules would look like a change of the version."""
    report = compare_published([[run("1.0")], [_keeping("1.1")]], TYPST, tool_version="test")
    old, new = report.tables[0].rows[0].values
    assert old.value == pytest.approx(new.value, rel=0.01)
    assert all("chainmark's own rules" in column.rules for column in report.columns)


def test_incomparable_runs_are_omitted_or_marked() -> None:
    """The style has no verdict, so problems must be shown with the values."""
    bad = run("1.0", 2, seed=2, factor=9.0)
    gate = Gate(id="hosts", label="no host lost", status=GateStatus.FAIL, measured="51", limit="52")
    bad.manifest.gates.append(gate)
    bad.manifest.status = Status.INVALID
    mixed = columns.published_column([run("1.0"), bad], TYPST, tool_version="test")
    alone = columns.published_column([run("1.0")], TYPST, tool_version="test")
    assert mixed.tables == alone.tables
    assert any("no host lost" in note for note in mixed.notes)
    only = columns.published_column([bad], TYPST, tool_version="test")
    assert any("no run of this version is valid" in note for note in only.notes)
    other = run("1.1")
    other.manifest.workload["load.rate_tx_per_s"] = 999
    report = compare_published([[run("1.0")], [other]], TYPST, tool_version="test")
    assert any("load.rate_tx_per_s is 50 vs. 999" in note for note in report.notes)


def test_a_system_without_published_metrics_is_refused() -> None:
    """An empty report would look like a report without changes."""
    plain = run("1.0")
    plain.catalogue = plain.catalogue.model_copy(
        update={"metrics": [metric.model_copy(update={"published": None}) for metric in plain.catalogue.metrics]}
    )
    with pytest.raises(UsageError, match="there is no published style for Demo chain"):
        compare_published([[plain], [run("1.1")]], TYPST, tool_version="test")


def test_printed_and_measured_columns_are_shown_next_to_each_other() -> None:
    """A local run and a published release: a value that one side does not have is empty, and its row is kept."""
    report = compare_published([_printed("1.0"), [run("1.1")]], TYPST, tool_version="test")
    assert [column.label for column in report.columns] == ["1.0", "1.1"]
    rows = {row.label: row for table in report.tables for row in table.rows}
    assert rows["Spread"].values[0] == PublishedValue(printed="0.60000")
    assert rows["Spread"].values[1].value is not None
    assert rows["Kernel RSS"].values[0] == PublishedValue()
    facts = {fact.label: fact.values for fact in report.facts}
    assert facts["Machines"] == ["52", str(HOSTS)]
    assert facts["Era"] == ["—", "conway"]


def test_a_version_in_two_reports_is_shown_once_and_namesakes_separately() -> None:
    """The last release of one report is the baseline of the next."""
    older, newer = _printed("1.0", "1.1"), _printed("1.1", "1.2", values=("0.66000", "0.70000"))
    assert [column.label for column in joined([older, newer]).columns] == ["1.0", "1.1", "1.2"]
    other = _printed("1.1", "1.2", values=("0.61000", "0.70000"))
    both = joined([older, other])
    assert [column.label for column in both.columns] == ["1.0", "1.1", "1.1 (2)", "1.2"]
    assert [change.printed for change in both.tables[0].rows[0].reported_changes] == [True, False, False]


def test_columns_are_selected_by_version_and_keep_only_changes_of_their_baseline() -> None:
    """A change against another baseline would be a wrong one."""
    report = _printed("1.0", "1.1", "1.2", values=("0.6", "0.7", "0.8"))
    published = chosen(report, [0, 2])
    assert [column.label for column in published.columns] == ["1.0", "1.2"]
    assert len(published.tables[0].rows[0].reported_changes) == 1
    assert chosen(report, [1, 2]).tables[0].rows[0].reported_changes == []
    assert find_version(report, "1.2") == 2
    with pytest.raises(UsageError, match=r"has no version `2\.0`"):
        find_version(report, "2.0")


def test_truncated_digits_cannot_be_shown_in_the_other_style() -> None:
    """The typst style needs digits that the org style truncates. In the other direction the printed digits suffice."""
    with pytest.raises(UsageError, match="org style"):
        restyled(_printed("1.0", "1.1", style=ORG), TYPST)
    assert restyled(_printed("1.0", "1.1"), ORG).tables[0].rows[0].reported_changes == []


def test_a_single_version_is_refused() -> None:
    """There is nothing to compare it with."""
    with pytest.raises(UsageError, match="at least two versions are required"):
        compare_published([[run("1.0")]], TYPST, tool_version="test")


def test_the_shipped_catalogue_contains_only_what_the_reports_need() -> None:
    """A misspelt table or key would be missing from every report without notice."""
    catalogue = SYSTEM.catalogue()
    reports = reports_of(catalogue)
    assert reports is not None
    named = {*reports.tables, *(table for part in reports.dictionary for table in part.tables)}
    assert named <= {table.id for table in catalogue.tables}
    shown = {metric.table for metric in catalogue.metrics if published_of(metric).width is not None}
    assert shown <= set(reports.tables)
