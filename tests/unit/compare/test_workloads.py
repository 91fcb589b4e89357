"""The runs of two versions that belong together, and the names of their workloads."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chainmark.compare.workloads import matched
from chainmark.core.manifest import Scalar

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import HOST, SyntheticRun

BIGGER = HOST.model_copy(update={"cores": 64})


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


def _labels(old: list[list[SyntheticRun]], new: list[list[SyntheticRun]]) -> list[str]:
    return [pair.label for pair in matched(old, new).pairs]


def test_workloads_are_named_by_all_settings_in_which_they_differ() -> None:
    settings = [{"load.rate": 1, "load.size": 10, "load.wait": 5}, {"load.rate": 2, "load.size": 20, "load.wait": 5}]
    old, new = ([group(version, workload) for workload in settings] for version in ("v1", "v2"))
    assert _labels(old, new) == ["rate 1 · size 10", "rate 2 · size 20"]


def test_runs_on_other_machines_or_in_other_cells_are_not_paired() -> None:
    old, elsewhere = group("v1", {"load.rate": 1}), group("v2", {"load.rate": 1}, host=BIGGER)
    assert _labels([old], [elsewhere]) == []
    cells = [group(version, {"load.rate": 1}, labels={"load": [version]}) for version in ("v1", "v2")]
    assert _labels(cells[:1], cells[1:]) == []


def test_workloads_are_in_numerical_order_and_texts_come_first() -> None:
    old, new = ([group(version, {"load.at.rate": rate}) for rate in (1600, 400)] for version in ("v1", "v2"))
    assert _labels(old, new) == ["rate 400", "rate 1600"]
    old, new = (
        [group(version, {"load.rate": rate}, profile_name=f"x/y/{name}") for rate, name in enumerate(("10", "9", "a"))]
        for version in ("v1", "v2")
    )
    assert _labels(old, new) == ["a", "9", "10"]
    old, new = (
        [group(version, {"load.rate": rate}, profile_name=f"x/{name}") for rate, name in enumerate(("0", "a"))]
        for version in ("v1", "v2")
    )
    assert _labels(old, new) == ["a", "0"]


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        ([("m", "low"), ("m", "high")], ["high", "low"]),
        ([("m", "low")], ["m · low"]),
        ([("m", "low"), ("n", "low"), ("n", "high")], ["m · low", "n · high", "n · low"]),
        ([("m", "low"), ("m", "low")], ["rate 0", "rate 1"]),  # two workloads of one cell
        ([("", "low"), ("", "")], ["rate 0", "rate 1"]),  # one belongs to no cell
    ],
)
def test_cells_are_named_by_the_words_in_which_they_differ(cells: list[tuple[str, str]], names: list[str]) -> None:
    old, new = (
        [
            group(
                version,
                {"load.rate": rate},
                labels={"machine": list(filter(None, [m])), "load": list(filter(None, [n]))},
            )
            for rate, (m, n) in enumerate(cells)
        ]
        for version in ("v1", "v2")
    )
    assert _labels(old, new) == names


def test_equal_workloads_on_several_machines_are_named_by_machine() -> None:
    small, big = HOST.hardware_class, BIGGER.hardware_class
    rates = [(1, HOST), (2, HOST), (1, BIGGER)]
    old, new = ([group(version, {"load.rate": rate}, host=host) for rate, host in rates] for version in ("v1", "v2"))
    assert sorted(_labels(old, new)) == sorted([f"rate 1 · {small}", f"rate 2 · {small}", f"rate 1 · {big}"])
    assert sorted(_labels([old[0], old[2]], [new[0], new[2]])) == sorted([small, big])


def test_workloads_that_nothing_distinguishes_are_numbered() -> None:
    groups = [group("v1", {"load.rate": rate}) for rate in (1, 1, 2)]
    machine = HOST.hardware_class
    assert matched(groups, []).alone == [
        f"only v1 was run under rate 1 · {machine} (1)",
        f"only v1 was run under rate 1 · {machine} (2)",
        f"only v1 was run under rate 2 · {machine}",
    ]
    nameless = [group("v1", {"load.rate": 1}, host=HOST.model_copy(update={"cores": 0, "cpu_model": ""}))] * 2
    assert matched(nameless, []).alone == [f"only v1 was run under cometbft/demo ({number})" for number in (1, 2)]
