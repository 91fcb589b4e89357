"""The runs of two versions that belong together, and the names of their workloads."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chainmark.compare.workloads import matched
from chainmark.core.manifest import Scalar

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun


def group(version: str, workload: Mapping[str, Scalar], **changes: object) -> list[SyntheticRun]:
    run = stub_run(version, 1.0, len(repr(workload)) + len(version), dict(workload))
    run.manifest.run_id = f"{version}-{workload}"
    for name, value in changes.items():
        setattr(run.manifest, name, value)
    return [run]


def test_every_workload_is_paired_and_unpaired_ones_are_named() -> None:
    """There are twelve tables per release. Silently selecting one of them would misrepresent the others."""
    old = [group("v1", {"load.rate": rate}) for rate in (1600, 400, 200)]
    new = [group("v2", {"load.rate": rate}) for rate in (200, 400, 800)]
    matches = matched(old, new)
    assert [pair.label for pair in matches.pairs] == ["rate 200", "rate 400"]
    for pair in matches.pairs:
        assert pair.baseline[0].manifest.workload == pair.candidate[0].manifest.workload
    assert matches.alone == ["only v2 was run under rate 800", "only v1 was run under rate 1600"]


def test_workloads_of_several_profiles_are_named_by_profile() -> None:
    old, new = (
        [group(version, {"load.rate": rate}, profile_name=f"x/{name}") for name, rate in (("slow", 1), ("quick", 9))]
        for version in ("v1", "v2")
    )
    assert [pair.label for pair in matched(old, new).pairs] == ["quick", "slow"]


@pytest.mark.parametrize(("printed", "pairs"), [(True, 2), (False, 0)])
def test_properties_that_a_printed_run_omits_do_not_separate_workloads(printed: bool, pairs: int) -> None:
    """Older pages state less. Our own runs state everything, so a missing setting means another workload."""
    old = [group("v1", {"scenario.profile": "mid"}, printed=printed)]
    new = [
        group("v2", {"scenario.profile": "mid", "scenario.pruning": setting}, printed=printed)
        for setting in ("on", "off")
    ]
    assert len(matched(old, new).pairs) == pairs


def test_of_several_partners_the_newest_is_compared() -> None:
    """The groups are in order of execution, and the others are reported."""
    old = [
        group("v1", {"scenario.profile": "mid", "scenario.pruning": setting}, printed=True) for setting in ("on", "off")
    ]
    (new,) = [group("v2", {"scenario.profile": "mid"}, printed=True)]
    matches = matched(old, [new])
    assert [(pair.baseline, pair.candidate) for pair in matches.pairs] == [(old[1], new)]
    assert matches.alone == ["only v1 was run under on"]
