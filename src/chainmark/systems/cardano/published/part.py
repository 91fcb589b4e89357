"""One workload of a release page: its runs as the published reports show them, without uninformative rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.compare.inputs import RunData
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.release_page import PublishedPart
from chainmark.core.side_by_side import FactRow
from chainmark.core.wording import capitalised
from chainmark.report.blocks import Block, Remarks, Table, row_of, words
from chainmark.report.side_facts import manifest_table
from chainmark.systems.cardano.facts import ANALYSIS_DATE
from chainmark.systems.cardano.published.columns import in_published_order
from chainmark.systems.cardano.published.document import (
    dictionary_blocks,
    figure_blocks,
    notes_of,
    table_blocks,
)
from chainmark.systems.cardano.published.joined import compare_published
from chainmark.systems.cardano.published.results import PublishedReport, PublishedTable, ReportStyle
from chainmark.systems.cardano.published.text import worded

_ZEROS = frozenset("-0.")
# The phrase for each setting that a sentence names.
_SENTENCES = (
    ("TPS", "{} transactions per second"),
    ("Tx inputs", "inputs of a transaction: {}"),
    ("Tx Outputs", "outputs: {}"),
    ("Plutus script", "script: {}"),
    ("Machines", "{} machines"),
    ("Era", "{} era"),
    ("Block size", "blocks of {} bytes on average"),
)


class CardanoPart(PublishedPart):
    """One workload.

    Attributes:
        report: of the current style, worded.
        hosts: by version the hosts of each region; without regions under "". A printed run lists none.
    """

    report: PublishedReport
    hosts: dict[str, dict[str, list[str]]]

    def workload(self) -> str:
        """Its name in the reports."""
        return self.report.workload

    def setting(self) -> str:
        """The candidate's load and network, as far as stated."""
        stated = {fact.label: fact.values for fact in self.report.facts}
        stated |= {row.label: row.shown for table in self.report.tables for row in table.rows}
        messages = []
        for label, sentence in _SENTENCES:
            value = stated.get(label, [""])[-1].rstrip(".")
            if value not in {units.UNSET, units.NO_DATA, ""}:
                messages.append(sentence.format(capitalised(value)))
        return f"{capitalised(self.report.workload)} workload: {', '.join(messages)}." if messages else ""

    def parameters(self) -> Sequence[Block]:
        """The facts in the manifests, and the hosts."""
        labels = [column.label for column in self.report.columns]
        return [manifest_table(self.report.facts, labels), *self._hosts()]

    def _hosts(self) -> list[Block]:
        if not any(self.hosts.values()):
            return [Remarks("hosts", "Hosts", ["Published reports state the number of hosts, but do not list them."])]
        rows = [
            row_of(f"{version}, {region}" if region else version, units.count(len(names)), ", ".join(names))
            for version, regions in self.hosts.items()
            for region, names in regions.items()
        ]
        return [Table("hosts", "Hosts", words("version", "hosts", "names"), rows)]

    def tables(self) -> Sequence[Block]:
        """The figures, and how they were computed."""
        notes = notes_of(self.report)
        return [*table_blocks(self.report), *([Remarks("figures-notes", "About the figures", notes)] if notes else [])]

    def charts(self) -> Sequence[Block]:
        """The known distributions."""
        return figure_blocks(self.report)

    def dictionary(self) -> Sequence[Block]:
        """The meaning of the figures."""
        return dictionary_blocks(self.report)


def cardano_part(
    sides: Sequence[Sequence[RunData]], days: Mapping[str, str], catalogue: Catalogue, tool_version: str
) -> CardanoPart:
    """One workload's runs.

    Args:
        sides: the runs of each version, the baseline's first.
        days: by run, the day of its analysis; a printed run states its own.
        catalogue: the system's own: it defines the positions of rows and charts.
        tool_version: recorded in the result.
    """
    compared = compare_published(sides, ReportStyle.TYPST, tool_version=tool_version)
    report = in_published_order(compared, catalogue)
    report.facts = [_dated(report, fact, days) for fact in report.facts]
    report = worded(report)
    report.tables = [published_table for table in report.tables if (published_table := _without_zeros(table)).rows]
    labels = [column.label for column in report.columns]
    hosts = {label: _hosts_of(runs) for label, runs in zip(labels, sides, strict=True)}
    return CardanoPart(report=report, hosts={label: host for label, host in hosts.items() if host})


def _dated(report: PublishedReport, fact: FactRow, days: Mapping[str, str]) -> FactRow:
    """The day of the analysis, if the manifest has that of the last log line."""
    if fact.label != ANALYSIS_DATE:
        return fact
    messages = [[days[run] for run in column.runs if run in days] for column in report.columns]
    values = [max(own) if own else value for own, value in zip(messages, fact.values, strict=True)]
    return FactRow(label=fact.label, values=values)


def _without_zeros(table: PublishedTable) -> PublishedTable:
    """The table without rows that are zero or empty in every version."""
    rows = [row for row in table.rows if not all(_is_zero(text) for text in row.shown)]
    return table.model_copy(update={"rows": rows})


def _is_zero(text: str) -> bool:
    return text == units.NO_DATA or set(text) <= _ZEROS


def _hosts_of(runs: Sequence[RunData]) -> dict[str, list[str]]:
    """The hosts by region, over all runs of a version."""
    results: dict[str, set[str]] = {}
    for run in runs:
        if run.manifest.printed:
            continue
        grouping = run.manifest.groups.get("host")
        names = run.samples("host", ["host"]).get_column("host").to_list()
        for name in names:
            results.setdefault(grouping.of.get(name, "") if grouping else "", set()).add(str(name))
    return {region: sorted(names, key=_natural) for region, names in sorted(results.items())}


def _natural(name: str) -> tuple[str, int]:
    """Names in natural order: node-2 before node-10."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)
