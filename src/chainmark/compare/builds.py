"""Whether both sides are one build: then their differences are noise, and the report is an A/A."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainmark.compare.sides import SelectedRuns
from chainmark.core import units
from chainmark.core.caveats import A_A, Caveats
from chainmark.core.comparison import Comparison, ConfigurationDifference
from chainmark.core.manifest import Manifest
from chainmark.lab.protocols import UNVERSIONED

SAME_BUILD = "both sides are the same build"
SAME_LOGS = "both sides consist of the same logs under two names"


def is_one_build(manifests: Iterable[Manifest]) -> bool:
    """Whether all runs are of one build: by the binaries, else by revisions, else by versions.

    A version alone is only a label, so it does not count if the logs contradict it or many builds share it. Nor does
    a revision of zeros, which builds outside of a repository report.

    Args:
        manifests: of the runs.
    """
    runs = list(manifests)
    binaries = {run.subject.binary_sha256 for run in runs}
    if None not in binaries or len(binaries) > 2:
        return len(binaries) == 1
    revisions = {(run.subject.revision or "").strip("0") for run in runs}
    if len(revisions - {""}) > 1 or len({run.subject.build for run in runs}) > 1:
        return False
    if "" not in revisions:
        return True
    if any(run.contradictions for run in runs) or len({run.subject.version for run in runs}) > 1:
        return False
    return common_version(runs) is not None


def common_version(runs: Iterable[Manifest]) -> str | None:
    """The version that all runs are of, from their logs if possible, else from their labels.

    None if there are several, or it is unknown.
    """
    versions: set[str] = set()
    for run in runs:
        subject = run.subject
        is_known = subject.logged_version or not (run.contradictions or subject.is_version_unknown)
        versions.add((subject.logged_version or subject.version) if is_known else UNVERSIONED)
    return versions.pop() if len(versions) == 1 and UNVERSIONED not in versions else None


def may_be_one_build(manifests: Iterable[Manifest]) -> bool:
    """Whether only the runs' labels distinguish their builds.

    Args:
        manifests: of the runs.
    """
    runs = list(manifests)
    subjects = [run.subject for run in runs]
    builds = [
        {subject.binary_sha256 for subject in subjects},
        {(subject.revision or "").strip("0") or None for subject in subjects},
    ]
    is_alike = all(len(result - {None}) < 2 for result in builds) and len({subject.build for subject in subjects}) == 1
    return is_alike and common_version(runs) is not None


def _logs(runs: Iterable[Manifest]) -> set[str]:
    """The hashes of all logs of the runs, except for logs without a line."""
    return {source.blake3 for run in runs for source in run.sources if source.place is not None and source.size_bytes}


def build_caveats(
    baseline: SelectedRuns, candidate: SelectedRuns, differences: Sequence[ConfigurationDifference]
) -> Caveats:
    """A caveat that both sides are one build, and whether their configurations are equal; or that they may be one.

    Args:
        baseline: one side.
        candidate: the other.
        differences: between their configurations.
    """
    left, right = ([run.manifest for run in side.included or side.runs] for side in (baseline, candidate))
    if _logs(left) & _logs(right):
        return Caveats(badges=(A_A,), sentences=(SAME_LOGS,))
    if not is_one_build([*left, *right]):
        version = common_version([*left, *right]) if may_be_one_build([*left, *right]) else None
        return Caveats(sentences=(_one_version(version),) if version else ())
    if differences:
        places = units.plural(len(differences), "place")
        return Caveats(sentences=(f"{SAME_BUILD}: only its configuration differs, in {places}",))
    return Caveats(badges=(A_A,))


def _one_version(version: str) -> str:
    return f"both sides have version {version} and indistinguishable builds: this may compare a build with itself"


def title_of(name: str, labels: tuple[str, str], caveats: Caveats) -> str:
    """The title of a comparison: what is compared, and whether it is one build with itself.

    Args:
        name: of the subject.
        labels: of the sides, the baseline first.
        caveats: from `build_caveats`.
    """
    title = f"{name} {labels[1]} against {labels[0]}"
    return f"{A_A}: {SAME_BUILD}, {title}" if A_A in caveats.badges else title


def all_one_build(comparisons: Sequence[Comparison]) -> Caveats:
    """A caveat that every one of the comparisons is an A/A."""
    are = bool(comparisons) and all(A_A in comparison.caveats.badges for comparison in comparisons)
    return Caveats(badges=(A_A,)) if are else Caveats()
