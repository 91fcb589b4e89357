"""The two sides of a comparison and their configurations, as facts next to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.core import units
from chainmark.core.comparison import Comparison
from chainmark.core.manifest import ConfigChange
from chainmark.core.side_by_side import FactRow
from chainmark.report.blocks import (
    IN_FULL,
    ON_PAGES,
    Block,
    Column,
    Details,
    Medium,
    Remarks,
    Table,
    TableCell,
    TableRow,
    row_of,
    words,
)
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import flatten

Facts = Sequence[tuple[str, str, str]]  # label, baseline, candidate


def differs(facts: Facts) -> bool:
    """Whether the sides differ in any of them."""
    return any(left != right for _, left, right in facts)


def machine(comparison: Comparison) -> Facts:
    """The machines of the runs."""
    left, right = comparison.baseline.host, comparison.candidate.host
    return [
        _fact("CPU", left.cpu_model, right.cpu_model),
        _fact("cores", str(left.cores), str(right.cores)),
        _fact("memory", units.byte_size(left.memory_bytes), units.byte_size(right.memory_bytes)),
        _fact("operating system", left.operating_system, right.operating_system),
        _fact("kernel", left.kernel, right.kernel),
    ]


def subjects(comparison: Comparison) -> Facts:
    """The judged runs and samples."""
    left, right = comparison.baseline.subject, comparison.candidate.subject
    return [
        _fact("subject", left.name, right.name),
        _fact("version", left.version, right.version),
        _fact("revision", left.revision, right.revision),
        _fact("build", left.build, right.build),
        _fact("binary, SHA-256", left.binary_sha256, right.binary_sha256),
    ]


def _fact(label: str, left: str | None, right: str | None) -> tuple[str, str, str]:
    return label, left or units.UNSET, right or units.UNSET


def workload_differences(comparison: Comparison) -> Facts:
    """The differences in the work of the sides."""
    return [(key, _at(values, 0), _at(values, 1)) for key, values in sorted(comparison.workload_differences.items())]


def _at(values: Sequence[object], place: int) -> str:
    return units.scalar(values[place] if place < len(values) else None)


def pairs_table(
    id_: str, title: str, labels: tuple[str, str], facts: Facts, media: frozenset[Medium] = IN_FULL
) -> Table:
    """Facts of both sides; differences stand out, and unknown ones are counted."""
    stated = [(label, left, right) for label, left, right in facts if {left, right} != {units.UNSET}]
    rows = [
        row_of(label, *(TableCell(text, emphasis=_look(left, right)) for text in (left, right)))
        for label, left, right in stated
    ]
    unknown = len(facts) - len(stated)
    notes = (
        [f"{units.plural(unknown, 'more property is', 'more properties are')} unknown on both sides."]
        if unknown
        else []
    )
    return Table(id_, title, words("", *labels), rows, notes, media=media)


def facts_table(id_: str, title: str, facts: Sequence[tuple[str, str]], media: frozenset[Medium] = IN_FULL) -> Table:
    """Keys and values below each other."""
    rows = [row_of(key, value) for key, value in facts]
    return Table(id_, title, [Column(kind="code"), Column(kind="code")], rows, media=media)


def manifest_table(facts: Sequence[FactRow], labels: Sequence[str]) -> Table:
    """The manifests' contents, version by version."""
    rows = [row_of(fact.label, *fact.values) for fact in facts]
    return Table("facts", "Overall run parameters", words("", *labels), rows)


def workload(comparison: Comparison) -> list[tuple[str, str]]:
    """The workload of both sides."""
    return [(key, units.scalar(value)) for key, value in sorted(comparison.workload.items())]


def profile(comparison: Comparison) -> list[tuple[str, str]]:
    """The profile, resolved."""
    return flatten(comparison.profile)


def configuration_blocks(comparison: Comparison) -> list[Block]:
    """The differences between the sides' configurations, and what each changed from its version's defaults."""
    blocks: list[Block] = []
    for id_, title, none, defaults in (
        ("default-differences", "Differences between the versions' own defaults", "None.", True),
        ("made-differences", "Differences set by the profile or on the command line", "None.", False),
    ):
        table = configuration_table(comparison, id_, title, defaults=defaults)
        blocks.append(table if table.rows else Remarks(id_, title, [none], media=IN_FULL))
    for table, summary in (
        (_changed(comparison), "Settings that differ from the version's defaults"),
        (_changed_per_node(comparison), "Settings that differ from node to node"),
    ):
        if table.rows:
            blocks.append(Details(f"{table.id}-details", f"{summary} ({len(table.rows)})", [table], media=IN_FULL))
    return blocks


def configuration_table(comparison: Comparison, id_: str, title: str, *, defaults: bool | None = None) -> Table:
    """Keys whose effective values differ.

    Args:
        comparison: the comparison of the sides.
        id_: the table's.
        title: its heading.
        defaults: True: if the versions' own defaults differ; False: if a profile or the command line made the
            difference; None: all.
    """
    differences = [item for item in comparison.configuration_differences if defaults in (None, item.is_default_change)]
    # Differences from a profile come last.
    differences.sort(key=lambda item: not item.is_default_change)
    rows = [
        row_of(
            item.key,
            item.file,
            _configured(item.baseline, absent=item.only_in == "candidate"),
            _configured(item.candidate, absent=item.only_in == "baseline"),
        )
        for item in differences
    ]
    return Table(id_, title, _keys(*comparison.labels), rows, media=ON_PAGES)


def _keys(*values: str) -> list[Column]:
    return [Column("key", kind="code"), *words("file"), *(Column(value, kind="code") for value in values)]


def _configured(value: object, *, absent: bool) -> str:
    return "absent" if absent else units.scalar(value)


def _changed(comparison: Comparison) -> Table:
    rows = [
        row
        for side, files in sorted(comparison.changed_from_default.items())
        for row in _changes([_label(comparison, side)], files)
    ]
    return Table("changed", "", _change_columns("side"), rows)


def _changed_per_node(comparison: Comparison) -> Table:
    rows = [
        row
        for side, nodes in sorted(comparison.changed_per_node.items())
        for node, files in sorted(nodes.items())
        for row in _changes([_label(comparison, side), node], files)
    ]
    return Table("changed-per-node", "", _change_columns("side", "node"), rows)


def _change_columns(*where: str) -> list[Column]:
    return [
        Column("key", kind="code"),
        *words(*where, "file"),
        Column("default", kind="code"),
        Column("used", kind="code"),
    ]


def _changes(where: Sequence[str], files: Mapping[str, Mapping[str, ConfigChange]]) -> list[TableRow]:
    return [
        TableRow(list(map(TableCell, [key, *where, file, units.scalar(change.default), units.scalar(change.used)])))
        for file, changes in sorted(files.items())
        for key, change in sorted(changes.items())
    ]


def _label(comparison: Comparison, side: str) -> str:
    return {"baseline": comparison.baseline.label, "candidate": comparison.candidate.label}.get(side, side)


def _look(left: str, right: str) -> Emphasis:
    return "caution" if left != right else "plain"
