"""How the builds of two sides differ: commits, modules, compiler."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.build import BuildDifferences, Commit
from chainmark.core.comparison import Comparison
from chainmark.report.blocks import IN_FULL, MARKDOWN, ON_PAGES, Block, Column, Details, Remarks, Section, Table, row_of
from chainmark.report.side_facts import differs, pairs_table

_SHORT = 10
# Facts that identify the build; the others describe its contents.
_NAMES = {"requested version", "reported version", "commit"}
_MOST_NAMED = 4
_LONG_LIST = 4  # equal entries


def build_sections(comparison: Comparison) -> list[Section]:
    """The differences between the builds; empty if there are none, or they are unknown."""
    builds = comparison.builds
    if builds is None or not difference_summary(builds):
        return []
    facts = [_without_equal_entries(fact) for fact in builds.facts if differs([fact])]
    left, right = comparison.labels
    blocks: list[Block] = [pairs_table("build-facts", "", (left, right), facts, ON_PAGES)] if facts else []
    blocks += [Remarks("commits-unknown", "", [builds.unknown_reason])] if builds.unknown_reason else []
    for id_, side, commits, in_all in (
        ("added", right, builds.added, builds.added_in_all),
        ("removed", left, builds.removed, builds.removed_in_all),
    ):
        if commits:
            summary = f"{units.plural(in_all, 'commit')} only in {side}"
            blocks.append(Details(f"{id_}-details", summary, [_commits(id_, commits, in_all)]))
    if builds.modules:
        in_all = len(builds.modules) + builds.shared_modules
        summary = f"Modules: {len(builds.modules)} of {in_all} differ"
        blocks.append(Details("modules-details", summary, [_modules(builds, (left, right))]))
    return [
        Section("builds", "Differences between the builds", blocks, media=IN_FULL),
        Section("builds-in-brief", f"Builds: {difference_summary(builds)}", blocks, media=MARKDOWN),
    ]


def _without_equal_entries(fact: tuple[str, str, str]) -> tuple[str, str, str]:
    """A fact whose values are long lists, reduced to the entries of only one side."""
    label, *values = fact
    entries = [dict.fromkeys(value.split(",")) for value in values]
    equal = entries[0].keys() & entries[1].keys()
    if len(equal) < _LONG_LIST:
        return fact
    left, right = (", ".join(entry for entry in side if entry not in equal) or units.UNSET for side in entries)
    return f"{label} (without {len(equal)} equal entries)", left, right


def difference_summary(build_differences: BuildDifferences) -> str:
    """The differences besides the builds' names, in a few words; "" if there are none."""
    messages = [
        units.plural(build_differences.added_in_all + build_differences.removed_in_all, "commit"),
        units.plural(len(build_differences.modules), "module"),
        *[label for label, fact, other in build_differences.facts if label not in _NAMES and fact != other][
            :_MOST_NAMED
        ],
    ]
    return ", ".join(text for text in messages if not text.startswith("0 "))


def _commits(id_: str, commits: Sequence[Commit], in_all: int) -> Table:
    rows = [row_of(commit.id[:_SHORT], commit.subject) for commit in commits]
    rest = in_all - len(commits)
    notes = [f"and {units.plural(rest, 'earlier commit')}"] if rest else []
    return Table(id_, "", [Column("commit", kind="code"), Column("subject", kind="words")], rows, notes)


def _modules(build_differences: BuildDifferences, labels: tuple[str, str]) -> Table:
    rows = [row_of(name, left or units.UNSET, right or units.UNSET) for name, left, right in build_differences.modules]
    columns = [Column("module", kind="code"), *(Column(label, kind="code") for label in labels)]
    return Table("modules", "", columns, rows)
