"""Differences between the builds of two sides, from the data in their runs: compiler, settings, modules, commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.compare.inputs import KeepsDocuments, RunData
from chainmark.core import units
from chainmark.core.build import DOCUMENT, Build, BuildDifferences, Commit

COMMITS_SHOWN = 40
_SHORT = 12


def build_differences(baseline: RunData, candidate: RunData) -> BuildDifferences | None:
    """The differences between two runs' builds; None if one of them has no build data.

    Args:
        baseline: a run that represents its side.
        candidate: likewise.
    """
    left, right = _build(baseline), _build(candidate)
    if left is None or right is None:
        return None
    names = sorted(left.modules.keys() | right.modules.keys())
    modules = [(name, left.modules.get(name, ""), right.modules.get(name, "")) for name in names]
    different = [module for module in modules if module[1] != module[2]]
    result = BuildDifferences(
        facts=_facts(left, right), modules=different, shared_modules=len(modules) - len(different)
    )
    return result.model_copy(update=_commits(left, right))


def _build(run: RunData) -> Build | None:
    stored = run.document(DOCUMENT) if isinstance(run, KeepsDocuments) else None
    return None if stored is None else Build.model_validate(stored)


def _facts(left: Build, right: Build) -> list[tuple[str, str, str]]:
    messages = [
        ("requested version", left.ordered, right.ordered),
        ("reported version", left.reported, right.reported),
        ("commit", _short(left.commit), _short(right.commit)),
        ("uncommitted changes, SHA-256", _short(left.changes_sha256), _short(right.changes_sha256)),
        ("replaced modules", _pairs(left.replacements), _pairs(right.replacements)),
        ("compiler", left.toolchain, right.toolchain),
        ("flags", " ".join(left.flags), " ".join(right.flags)),
    ]
    names = sorted(left.settings.keys() | right.settings.keys())
    messages += [(name, left.settings.get(name, ""), right.settings.get(name, "")) for name in names]
    return [(label, item or units.UNSET, other or units.UNSET) for label, item, other in messages if item or other]


def _short(value: str | None) -> str:
    return (value or "")[:_SHORT]


def _pairs(replacements: Mapping[str, str]) -> str:
    return ", ".join(f"{module} => {target}" for module, target in sorted(replacements.items()))


def _commits(left: Build, right: Build) -> dict[str, object]:
    """The commits of one side alone, as far as the histories in the runs reach."""
    if not left.commits or not right.commits or left.commit == right.commit:
        return {}
    by_id = {commit.id: commit for commit in [*left.commits, *right.commits]}
    baseline_ids, candidate_ids = (_reached(build.commits[0].id, by_id) for build in (left, right))
    if not baseline_ids & candidate_ids:
        stored = max(len(left.commits), len(right.commits))
        reason = f"The commits between the two are unknown: their last {stored} commits have none in common."
        return {"unknown_reason": reason}
    added, removed = _only(right.commits, baseline_ids), _only(left.commits, candidate_ids)
    # All other commits are counted on both sides.
    is_sure = len(added) - len(removed) == right.ancestry - left.ancestry
    return {
        "added": added[:COMMITS_SHOWN],
        "removed": removed[:COMMITS_SHOWN],
        "added_in_all": len(added),
        "removed_in_all": len(removed),
        "unknown_reason": "" if is_sure else _UNSURE,
    }


_UNSURE = (
    "The commit histories in the runs are too short: there may be more commits between the two, and some of the listed "
    "commits may be in both."
)


def _reached(commit: str, known: Mapping[str, Commit]) -> set[str]:
    """All ancestors of a commit, itself included."""
    result, waiting = set[str](), [commit]
    while waiting:
        item = waiting.pop()
        if item not in result and item in known:
            result.add(item)
            waiting += known[item].parents
    return result


def _only(commits: Sequence[Commit], others: set[str]) -> list[Commit]:
    return [commit for commit in commits if commit.id not in others]
