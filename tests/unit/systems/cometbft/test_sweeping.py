"""Saturation tests give the same result after any interruption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from chainmark.core.errors import UsageError
from chainmark.core.qa_plan import QaPlan
from chainmark.lab.profiles import read_profile
from chainmark.lab.qualifying import QaMade, Qualifier
from chainmark.lab.scenarios import QaRequest
from chainmark.lab.schedules import (
    Standing,
    SweepLoad,
    SweepPlan,
    SweepRun,
    bisected_cells,
    most_loads_needed,
    next_cells,
)
from chainmark.lab.sweeping import Bisected, Sweep, Sweeper, SweepRequest
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.cometbft import SYSTEM
from chainmark.systems.cometbft.saturation.evaluation import (
    cells_of,
    saturation_of,
    saturation_report,
    standings,
)
from chainmark.systems.cometbft.saturation.results import CellRun
from chainmark.systems.cometbft.sweep import load_of
from chainmark.systems.sweeping import saturable

from tests.unit.lab.stand_in import Followed
from tests.unit.systems.cometbft.saturation_samples import METRICS, run, whole_test
from tests.unit.systems.cometbft.scripted_sweep import Profile, Quiet, Scripted

_LOADS = [load_of(c, r) for c in (1, 2, 4) for r in (200, 400, 800, 1600)]


def test_a_profile_defines_its_loads() -> None:
    profile = SYSTEM.profile(read_profile("cometbft/saturation"))
    plan = saturable(SYSTEM).sweep_plan(profile)
    assert plan.loads == tuple(_LOADS)
    assert plan.tolerance == 0.1
    at = SYSTEM.at_load(profile, load_of(4, 800))
    assert (at.load.connections, at.load.rate) == (4, 800)
    assert at.model_copy(update={"load": profile.load}) == profile


def test_a_profile_that_cannot_be_swept_is_refused() -> None:
    with pytest.raises(UsageError, match="saturation of `cardano`"):
        saturable(load_system("cardano"))
    several = SYSTEM.profile(read_profile("cometbft/saturation", ["load.targets=[0, 1]"]))
    with pytest.raises(UsageError, match="loads one node"):
        SYSTEM.sweep_plan(several)


_CAPACITIES = {"a": 500, "b": 700}
_PLAN = SweepPlan(tuple(_LOADS[:3]), 0.1, step=1, first_load=100, most_load=6400, relative_gap=0.1)


def _made(
    folder: Path, order: SweepRequest, interrupted_at: int | None = None, search: Literal["grid", "bisect"] = "grid"
) -> tuple[Sweep, Scripted]:
    system = Scripted(_CAPACITIES, replace(_PLAN, search=search), interrupted_at)
    return Sweeper(Store(folder), system).make(Profile(), order, Quiet()), system


def _document(sweep: Sweep, system: Scripted) -> str:
    versions = [system.swept_version(name, runs) for name, runs in sweep.runs.items()]
    return saturation_report(whole_test(), versions, METRICS).model_dump_json()


@pytest.mark.parametrize(("adaptive", "search"), [(False, "grid"), (True, "grid"), (False, "bisect")])
def test_an_interrupted_sweep_gives_the_same_result(
    tmp_path: Path, adaptive: bool, search: Literal["grid", "bisect"]
) -> None:
    """Finished runs are kept and none is repeated."""
    order = SweepRequest(("a", "b"), 2, seed=5, adaptive=adaptive)
    whole, system = _made(tmp_path / "whole", order, search=search)
    total = len(system.made)
    assert total == len(whole.all_runs()) >= 8
    for at in (1, 2, 5, total - 1):
        part, before = _made(tmp_path / f"part-{at}", order, at, search)
        assert part.interrupted
        assert len(part.all_runs()) == at
        again = SweepRequest(("a", "b"), 2, seed=5, adaptive=adaptive, resume=part.experiment_id)
        rest, after = _made(tmp_path / f"part-{at}", again, search=search)
        assert not rest.interrupted
        assert before.made + after.made == system.made
        assert _document(rest, after) == _document(whole, system)


def test_an_adaptive_sweep_runs_the_same_loads_for_every_version(tmp_path: Path) -> None:
    sweep, system = _made(tmp_path, SweepRequest(("a", "b"), 1, seed=1, adaptive=True))
    loads = {name: sorted(load for version, load in system.made if version == name) for name in ("a", "b")}
    assert loads["a"] == loads["b"]
    versions = [system.swept_version(name, runs) for name, runs in sweep.runs.items()]
    saturations = [version.chosen for version in saturation_report(whole_test(), versions, METRICS).versions]
    # A load is sustained until 90 % of it exceeds the capacity.
    for saturation, capacity in zip(saturations, _CAPACITIES.values(), strict=True):
        assert saturation.load_per_s is not None
        assert saturation.load_per_s * 0.9 <= capacity
        assert saturation.load_per_s * 1.1 * 0.9 >= capacity * 0.99


def test_versions_take_turns_to_be_first_in_an_adaptive_sweep(tmp_path: Path) -> None:
    """Otherwise a slow drift of the machine would favour one version at every load."""
    _, system = _made(tmp_path, SweepRequest(("a", "b"), 2, seed=1, adaptive=True))
    order = "".join(version for version, _ in system.made)
    assert order == "abba" * (len(order) // 4)
    _, system = _made(tmp_path / "single", SweepRequest(("a", "b"), 1, seed=1, adaptive=True))
    order = "".join(version for version, _ in system.made)
    assert order == ("abba" * len(order))[: len(order)]


def _bisected(
    share: Callable[[SweepRun], float], versions: tuple[str, ...] = ("a",), loads: Sequence[SweepLoad] = tuple(_LOADS)
) -> dict[str, list[CellRun]]:
    """The runs that a bisection requests."""
    cells = bisected_cells(loads, versions, 1)
    planned: list[SweepRun] = []
    runs: dict[str, list[CellRun]] = {version: [] for version in versions}
    while True:
        by_version = {version: standings(cells_of(its, 0.1), load_of) for version, its in runs.items()}
        sweep_runs = next_cells(cells, planned, by_version)
        if not sweep_runs:
            return runs
        for cell in sweep_runs:
            assert cell not in planned, "a run was requested twice"
            planned.append(cell)
            runs[cell.version].append(_run(cell.load, share(cell)))


def _run(load: SweepLoad, share: float) -> CellRun:
    connections, rate = load.key
    return run(connections, rate, min(1.0, share))


def _capacity(capacity: float) -> Callable[[SweepRun], float]:
    return lambda cell: capacity / cell.load.per_s


_ANSWER = ("state", "load_per_s", "low_per_s", "high_per_s", "connections", "rate_per_s")


def _answers(runs: list[CellRun]) -> list[object]:
    saturation = saturation_of(cells_of(runs, 0.1), 0.1, "committed")
    return [getattr(saturation, name) for name in _ANSWER]


@given(st.lists(st.floats(50, 10_000), min_size=3, max_size=3))
@example([1440.0, 2745.0, 1440.0])  # a load that is lost with four connections is doubtful with two
@example([190.0, 380.0, 8000.0])
def test_a_bisection_finds_the_same_edge_as_the_grid(capacities: list[float]) -> None:
    """For any capacity per number of connections, both find the same load and confirmed bounds, or no edge."""
    of = dict(zip((1, 2, 4), capacities, strict=True))
    grid = [_run(load, of[load.key[0]] / load.per_s) for load in _LOADS]
    runs = _bisected(lambda cell: of[cell.load.key[0]] / cell.load.per_s)["a"]
    assert _answers(runs) == _answers(grid)


@pytest.mark.parametrize("capacity", [100, 250, 450, 850, 1300, 1700, 3300, 9000])
def test_a_bisection_runs_fewer_loads(capacity: float) -> None:
    runs = _bisected(_capacity(capacity), ("a", "b"))
    assert len(runs["a"]) <= most_loads_needed(_LOADS, [{}]) < len(_LOADS)
    assert len(runs["a"]) <= 8
    assert Counter(map(_place, runs["a"])) == Counter(map(_place, runs["b"]))


def test_the_number_of_runs_of_a_bisection_includes_those_that_only_the_second_measure_needs() -> None:
    """The edge by the first measure is known. By the second it is above both loads: two more are needed."""
    loads = tuple(load_of(1, rate) for rate in range(100, 900, 100))
    first: dict[SweepLoad, Standing] = {loads[3]: "kept up", loads[4]: "lost"}
    second: dict[SweepLoad, Standing] = {loads[3]: "kept up", loads[4]: "kept up"}

    class Measured(Scripted):
        """Two measures with these standings."""

        def standings(self, runs: object, tolerance: float) -> list[Mapping[SweepLoad, Standing]]:
            """By both measures."""
            return [first, second]

    search = Bisected(Measured({"a": 1}, _PLAN), replace(_PLAN, loads=loads, search="bisect"), ["a"], 1)
    assert search.most == 4
    made = [place for place, cell in enumerate(search.cells) if cell.load in first and cell.repetition == 1]
    (following,) = search.next_positions(made, {"a": []})
    assert search.cells[following].load == loads[6]
    assert search.most == 2 + 2


def _place(cell_run: CellRun) -> tuple[int, int]:
    return cell_run.connections, cell_run.rate_per_s


def test_the_edges_of_versions_of_different_capacity_are_found() -> None:
    of = {"a": 500.0, "b": 1300.0}
    runs = _bisected(lambda cell: of[cell.version] / cell.load.per_s, ("a", "b"))
    for version, capacity in of.items():
        assert _answers(runs[version]) == _answers([_run(load, capacity / load.per_s) for load in _LOADS])
    assert [_place(cell_run) for cell_run in runs["a"]] == [_place(cell_run) for cell_run in runs["b"]]


def test_a_load_that_only_one_version_sustains_is_repeated_once() -> None:
    """The difference between the versions then rests on two runs of each."""
    of = {"a": 500.0, "b": 1300.0}
    runs = _bisected(lambda cell: of[cell.version] / cell.load.per_s, ("a", "b"))
    for version in of:
        counts = Counter(map(_place, runs[version]))
        assert {connections * rate for (connections, rate), count in counts.items() if count > 1} == {800}
        assert max(counts.values()) == 2


def test_one_unusual_run_does_not_make_a_version_worse() -> None:
    """One run of 1,600 per second over one connection had an obstacle; the versions are equal."""

    def share(cell: SweepRun) -> float:
        obstacle = cell.version == "b" and cell.load.key == (1, 1600) and cell.repetition == 1
        return 0.8 if obstacle else 2000 / cell.load.per_s

    line = [load for load in _LOADS if load.key[0] == 1]
    runs = _bisected(share, ("a", "b"), [*line, load_of(1, 3200)])
    assert Counter(map(_place, runs["b"]))[1, 1600] == 2
    a, b = (saturation_of(cells_of(its, 0.1), 0.1, "committed") for its in runs.values())
    assert (a.state, a.load_per_s, a.high_per_s) == ("found", 1600, 3200)
    assert b.high_per_s == 3200, "the load must not be clearly lost"
    assert b.state == "unclear"


def test_a_contradicting_load_is_repeated_once() -> None:
    """One bad run at c1r400 is repeated. The mean share is then above the threshold, and the edge is found."""
    stumbles = iter([0.84])
    runs = _bisected(lambda cell: next(stumbles, 1.0) if cell.load.key == (1, 400) else 1300 / cell.load.per_s)["a"]
    assert Counter(map(_place, runs))[1, 400] == 2
    assert saturation_of(cells_of(runs, 0.1), 0.1, "committed").load_per_s == 800


def test_loads_that_contradict_again_stay_undecided_after_the_whole_grid() -> None:
    of = {1: 9000.0, 2: 450.0, 4: 9000.0}
    runs = _bisected(lambda cell: of[cell.load.key[0]] / cell.load.per_s)["a"]
    assert saturation_of(cells_of(runs, 0.1), 0.1, "committed").state == "contradictory"
    assert set(map(_place, runs)) == {load.key for load in _LOADS}


class _Qualified(Scripted):
    """A scripted system with the methods that a plan needs."""

    profile_kinds = ()

    def qa_plans(self) -> list[str]:
        """The system has no plans."""
        return []

    def qa_plan(self, name: str) -> Mapping[str, object]:
        """The system has no plans."""
        return {}

    def qa_plots(self) -> Sequence[Mapping[str, object]]:
        """The system has no plots."""
        return []

    def lacking(self, need: str, versions: Sequence[str]) -> str:
        """Nothing is missing."""
        return ""

    def commit(self, version: str) -> str:
        """The commit is unknown."""
        return ""

    def expected_seconds(self, profile: BaseModel) -> float:
        """A minute for every run."""
        return 60.0


def _plan(folder: Path) -> QaPlan:
    folder.mkdir(exist_ok=True)
    profile = folder / "scripted.toml"
    profile.write_text('system = "scripted"\n', encoding="utf-8")
    scenario = {"id": "saturation", "title": "t", "question": "q", "method": "m", "kind": "sweep", "repetitions": 1}
    return QaPlan.model_validate(
        {"system": "scripted", "name": "n", "title": "t", "description": "d",
         "scenario": [{**scenario, "profile": str(profile)}]}
    )  # fmt: skip


@pytest.mark.parametrize("stop", range(1, 9))
def test_a_plan_bisects_wherever_it_is_interrupted(tmp_path: Path, stop: int) -> None:
    """An invalid run is repeated once, even if it was the last run before the interruption."""

    def qualified(interrupted_at: int | None) -> _Qualified:
        plan = replace(_PLAN, loads=tuple(_LOADS), search="bisect")
        return _Qualified(_CAPACITIES, plan, interrupted_at, invalid=frozenset({("b", 400)}))

    def shape(qualification: QaMade) -> list[tuple[str, int, int]]:
        (scenario,) = qualification.scenarios
        return [
            (place.side, place.position, run.manifest.seed)
            for run in scenario.runs
            if (place := run.manifest.experiment)
        ]

    order = QaRequest(_plan(tmp_path), "a", "b", seed=3)
    whole = Qualifier(Store(tmp_path / "whole"), qualified(None)).make(order, Followed())
    broken = Qualifier(Store(tmp_path / "broken"), qualified(stop)).make(order, Followed())
    assert broken.interrupted
    listener = Followed()
    resumed = Qualifier(Store(tmp_path / "broken"), qualified(None)).resume(broken.experiment, listener)
    assert shape(resumed) == shape(whole)
    assert len(whole.scenarios[0].runs) < 2 * len(_LOADS)
    assert all(number <= total.runs for _, number, total, _ in listener.steps)


def test_another_test_is_not_resumed(tmp_path: Path) -> None:
    part, _ = _made(tmp_path, SweepRequest(("a", "b"), 1, seed=1), interrupted_at=2)
    for other, difference in (
        (SweepRequest(("b", "a"), 1, 1), "the place a/c1r400 instead of b/c1r400"),
        (SweepRequest(("a", "b"), 1, 2), "the seed 1 instead of 2"),
    ):
        with pytest.raises(UsageError, match=f"differs by {difference}$"):
            _made(tmp_path, SweepRequest(other.versions, 1, other.seed, resume=part.experiment_id))
    with pytest.raises(UsageError, match="the store has no runs of an experiment"):
        _made(tmp_path, SweepRequest(("a",), 1, 1, resume="nothing"))


def test_a_version_named_twice_and_a_sweep_without_a_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the version `a` is given twice"):
        _made(tmp_path, SweepRequest(("a", "a"), 1, 1))
    with pytest.raises(KeyboardInterrupt):
        _made(tmp_path, SweepRequest(("a",), 1, 1), interrupted_at=0)


def test_runs_of_one_second_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distinguishing digits of folder names are random, and short runs draw many of them per second."""
    drawn = iter(["aaaa", "aaaa", "bbbb"] * 3)
    monkeypatch.setattr("chainmark.store.runs.secrets.token_hex", lambda _size: next(drawn))
    monkeypatch.setattr("chainmark.store.runs.datetime", _Standing)
    run_ids = [Store(tmp_path).create("s", "p", "v", {}).run_id for _ in range(2)]
    assert len(set(run_ids)) == 2


class _Standing:
    """A clock that does not move."""

    @staticmethod
    def now(_zone: object) -> datetime:
        """Always the same second."""
        return datetime(2026, 1, 2, tzinfo=UTC)


def test_a_load_without_a_valid_run_has_no_data() -> None:
    cells = [run(1, 200, 1.0), run(1, 200, 0.85), run(1, 400, 1.0, excluded="lost"), run(1, 800, 0.5)]
    by_rate = {load.per_s: standing for load, standing in standings(cells_of(cells, 0.1), load_of)[0].items()}
    assert by_rate == {200: "leans to kept up", 400: "no data", 800: "lost"}
