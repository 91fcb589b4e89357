"""A saturation test: the sustained load, the tables and the plot of the published reports, and the reasons."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.manifest import Fact
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.blocks import Block, Remarks, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.systems.cometbft.saturation import text
from chainmark.systems.cometbft.saturation.charts import saturation_charts
from chainmark.systems.cometbft.saturation.results import (
    Saturation,
    SaturationResult,
    SaturationVersion,
    candidate_verdict,
)
from chainmark.systems.cometbft.saturation.tables import (
    cell_tables,
    comparison_tables,
    diagonal_table,
    processed_tables,
    run_table,
    saturation_table,
)


class SaturationReport(SaturationResult):
    """One saturation test, which lays itself out."""

    def document(self) -> Document:
        """As a document of its own."""
        return saturation_document(self)

    def blocks(self) -> list[Block]:
        """As a part of a qualification."""
        return saturation_blocks(self)


def saturation_document(report: SaturationResult) -> Document:
    """Lay out a saturation test."""
    charts = saturation_charts(report)
    sections = [
        Section(
            "saturation", "Saturation load", [saturation_table(report), Remarks("why", "Why", text.reasons(report))]
        ),
        Section("plots", "Processed vs. offered load", charts[:2]),
        Section("processed", "Tables as in the published reports", [*processed_tables(report), diagonal_table(report)]),
        Section("latency", "Latency vs. throughput", charts[2:]),
        Section("comparison", "Versions at equal loads", comparison_tables(report)),
        Section("cells", "Every load", cell_tables(report)),
        Section("conditions", "Conditions", _conditions(report)),
    ]
    profile = f"profile {report.profile_name}" if report.profile_name else "published tables"
    versions = units.plural(len(report.versions), "version")
    return Document(
        kind="saturation",
        title=report.title,
        subtitle=one_line([versions, profile, report.experiment, units.utc(report.started_at)]),
        verdict=report.verdict,
        sentence=text.sentence(report),
        suites=_suites(report),
        sections=[section for section in sections if section.blocks],
        notes=["The test was interrupted: runs are missing."] if report.interrupted else [],
        result=report,
    ).noted_once()


def saturation_blocks(report: SaturationResult) -> list[Block]:
    """A saturation test as a part of another report: the results, the plots, the published tables."""
    why = Remarks("why", "Why these loads", text.reasons(report))
    return [
        saturation_table(report),
        why,
        *saturation_charts(report),
        *processed_tables(report),
        diagonal_table(report),
        *comparison_tables(report),
        *cell_tables(report),
    ]


def _suites(report: SaturationResult) -> list[Suite]:
    """A case for each version's load, and one for each version that is compared with the first."""
    versions = report.measured
    cases = [
        Case(
            f"{version.label}.load",
            f"Saturation load of {version.label}",
            version.verdict,
            version.chosen.reason,
            figures=_figures(version.chosen),
        )
        for version in versions
    ]
    cases += [
        Case(
            f"{other.label}.against.{versions[0].label}",
            f"{other.label} sustains what {versions[0].label} sustains",
            candidate_verdict(versions[0].chosen, other.chosen),
            f"{text.between(other.chosen)} against {text.between(versions[0].chosen)}",
        )
        for other in versions[1:]
    ]
    if report.interrupted:
        cases.append(Case("whole-test", "whole test", Verdict.PARTIAL, "interrupted: runs are missing"))
    return [Suite(report.title, cases, started_at=report.started_at, output=text.reasons(report))]


def _figures(saturation: Saturation) -> dict[str, float | str]:
    figures = {
        "load_per_s": saturation.load_per_s,
        "low_per_s": saturation.low_per_s,
        "high_per_s": saturation.high_per_s,
    }
    return {"state": saturation.state, **{name: value for name, value in figures.items() if value is not None}}


def _conditions(report: SaturationResult) -> list[Block]:
    blocks: list[Block] = []
    runs = run_table(report)
    if runs is not None:
        blocks.append(runs)
    how = [report.order, *report.notes]
    if any(how):
        blocks.append(Remarks("how", "Method", [item for item in how if item]))
    if report.machine:
        rows = [row_of(fact.label, fact.value) for fact in report.machine]
        blocks.append(Table("machine", "The machine", words("", ""), rows))
    blocks.append(_versions(report))
    for number, version in enumerate(report.versions):
        remarks = [*version.notes, *_excluded(version)]
        if remarks:
            blocks.append(Remarks(f"notes-{number}", f"{version.label}: caveats", remarks))
    return blocks


def _versions(report: SaturationResult) -> Table:
    """The definitions of the versions' figures, side by side."""
    columns = [_facts(version) for version in report.versions]
    labels = list(dict.fromkeys(fact.label for facts in columns for fact in facts))
    rows = []
    for label in labels:
        cells = [TableCell(label)]
        for facts in columns:
            value = next((fact.value for fact in facts if fact.label == label), "")
            cells.append(TableCell(value) if value else text.QUIET)
        rows.append(TableRow(cells))
    return Table("versions", "The versions", words("", *(version.label for version in report.versions)), rows)


def _facts(version: SaturationVersion) -> list[Fact]:
    subject = version.subject
    reported = {
        "Version": f"{subject.name} {subject.version}",
        "Build": subject.build or "",
        "From": version.source,
        **{name.replace("_", " "): value for name, value in version.conditions.items()},
    }
    return [*(Fact(label=label, value=value) for label, value in reported.items() if value), *version.facts]


def _excluded(version: SaturationVersion) -> list[str]:
    results = [
        f"{cell.name}, run {run.repetition or 1} is excluded ({run.excluded})."
        for cell in version.cells
        for run in cell.runs
        if run.excluded
    ]
    busy = [cell.name for cell in version.cells if any(run.limits for run in cell.runs)]
    if busy:
        reported = dict.fromkeys(
            limit.partition(":")[0] for cell in version.cells for run in cell.runs for limit in run.limits
        )
        results.append(
            f"At {'; '.join(busy)}: {' and '.join(reported)}. These runs do not show whether the limit was the network "
            "or the machine that it runs on."
        )
    return results
