"""Whether both sides are one build: then what differs between them is noise, and the report is an A/A."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainmark.compare.sides import SelectedRuns
from chainmark.core import units
from chainmark.core.caveats import A_A, Caveats
from chainmark.core.comparison import Comparison, ConfigurationDifference
from chainmark.core.manifest import Manifest
from chainmark.lab.protocols import UNVERSIONED

SAME_BUILD = "both sides are the same build"


def is_one_build(manifests: Iterable[Manifest]) -> bool:
    """Whether all runs are of one build, as far as they tell: by the binaries, else by revisions, else by versions.

    A version alone is what somebody calls it, so one that the logs contradict says nothing, and neither does one that
    many builds have, or a revision of zeros, as builds outside of a repository tell it.

    Args:
        manifests: of the runs.
    """
    runs = list(manifests)
    binaries = {run.subject.binary_sha256 for run in runs}
    if None not in binaries or len(binaries) > 2:
        return len(binaries) == 1
    revisions = {(run.subject.revision or "").strip("0") for run in runs}
    versions = {run.subject.version for run in runs}
    if len(revisions - {""}) > 1 or len({run.subject.build for run in runs}) > 1:
        return False
    if "" not in revisions:
        return True
    if any(run.contradictions or run.subject.is_untold for run in runs):
        return False
    return len(versions) == 1 and UNVERSIONED not in versions


def build_caveats(
    baseline: SelectedRuns, candidate: SelectedRuns, differences: Sequence[ConfigurationDifference]
) -> Caveats:
    """That both sides are one build, and whether they are also configured alike.

    Args:
        baseline: one side.
        candidate: the other.
        differences: between their configurations.
    """
    if not is_one_build(run.manifest for side in (baseline, candidate) for run in side.included or side.runs):
        return Caveats()
    if differences:
        places = units.plural(len(differences), "place")
        return Caveats(sentences=(f"{SAME_BUILD}: what differs is its configuration, in {places}",))
    return Caveats(badges=(A_A,))


def title_of(name: str, labels: tuple[str, str], caveats: Caveats) -> str:
    """The title of a comparison: what was compared, and whether it is one build with itself.

    Args:
        name: of the subject.
        labels: of the sides, the baseline first.
        caveats: from `build_caveats`.
    """
    title = f"{name} {labels[1]} against {labels[0]}"
    return f"{A_A}: {SAME_BUILD}, {title}" if A_A in caveats.badges else title


def all_one_build(comparisons: Sequence[Comparison]) -> Caveats:
    """That every one of the comparisons is an A/A."""
    are = bool(comparisons) and all(A_A in one.caveats.badges for one in comparisons)
    return Caveats(badges=(A_A,)) if are else Caveats()
