"""Saturation tests: whatever interrupts one, it says the same in the end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.lab.profiles import read_profile
from chainmark.lab.schedules import SweepPlan
from chainmark.lab.sweeping import Sweep, Sweeper, SweepOrder
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.cometbft import SYSTEM
from chainmark.systems.cometbft.saturation.evaluation import saturation_report
from chainmark.systems.cometbft.sweep import kept_up, load_of
from chainmark.systems.sweeping import saturable

from tests.unit.systems.cometbft.saturation_samples import METRICS, run, whole_test
from tests.unit.systems.cometbft.scripted_sweep import Profile, Quiet, Scripted

_LOADS = [load_of(c, r) for c in (1, 2, 4) for r in (200, 400, 800, 1600)]


def test_a_profile_says_its_loads() -> None:
    profile = SYSTEM.profile(read_profile("cometbft/saturation"))
    plan = saturable(SYSTEM).sweep_plan(profile)
    assert plan.loads == tuple(_LOADS)
    assert plan.tolerance == 0.1
    at = SYSTEM.at_load(profile, load_of(4, 800))
    assert (at.load.connections, at.load.rate) == (4, 800)
    assert at.model_copy(update={"load": profile.load}) == profile


def test_what_cannot_be_swept_says_so() -> None:
    with pytest.raises(UsageError, match="saturation of `cardano`"):
        saturable(load_system("cardano"))
    several = SYSTEM.profile(read_profile("cometbft/saturation", ["load.targets=[0, 1]"]))
    with pytest.raises(UsageError, match="loads one node"):
        SYSTEM.sweep_plan(several)


_CAPACITIES = {"a": 500, "b": 700}
_PLAN = SweepPlan(tuple(_LOADS[:3]), 0.1, step=1, first_load=100, most_load=6400, relative_gap=0.1)


def _made(folder: Path, order: SweepOrder, interrupted_at: int | None = None) -> tuple[Sweep, Scripted]:
    system = Scripted(_CAPACITIES, _PLAN, interrupted_at)
    return Sweeper(Store(folder), system).make(Profile(), order, Quiet()), system


def _document(sweep: Sweep, system: Scripted) -> str:
    versions = [system.swept_version(name, runs) for name, runs in sweep.runs.items()]
    return saturation_report(whole_test(), versions, METRICS).model_dump_json()


@pytest.mark.parametrize("adaptive", [False, True], ids=["grid", "adaptive"])
def test_a_sweep_interrupted_anywhere_says_the_same_in_the_end(tmp_path: Path, adaptive: bool) -> None:
    """Finished runs are kept and none is made twice."""
    order = SweepOrder(("a", "b"), 2, seed=5, adaptive=adaptive)
    whole, system = _made(tmp_path / "whole", order)
    total = len(system.made)
    assert total == len(whole.all_runs()) > 8
    for at in (1, 2, 5, total - 1):
        part, before = _made(tmp_path / f"part-{at}", order, interrupted_at=at)
        assert part.interrupted
        assert len(part.all_runs()) == at
        again = SweepOrder(("a", "b"), 2, seed=5, adaptive=adaptive, resume=part.experiment_id)
        rest, after = _made(tmp_path / f"part-{at}", again)
        assert not rest.interrupted
        assert before.made + after.made == system.made
        assert _document(rest, after) == _document(whole, system)


def test_an_adaptive_sweep_gives_every_version_the_same_loads(tmp_path: Path) -> None:
    sweep, system = _made(tmp_path, SweepOrder(("a", "b"), 1, seed=1, adaptive=True))
    loads = {name: sorted(load for version, load in system.made if version == name) for name in ("a", "b")}
    assert loads["a"] == loads["b"]
    versions = [system.swept_version(name, runs) for name, runs in sweep.runs.items()]
    found = [one.chosen for one in saturation_report(whole_test(), versions, METRICS).versions]
    # 90 % of the offered load is kept up until load × 0.9 exceeds the capacity.
    for one, capacity in zip(found, _CAPACITIES.values(), strict=True):
        assert one.load_per_s is not None
        assert one.load_per_s * 0.9 <= capacity
        assert one.load_per_s * 1.1 * 0.9 >= capacity * 0.99


def test_another_test_is_not_resumed(tmp_path: Path) -> None:
    part, _ = _made(tmp_path, SweepOrder(("a", "b"), 1, seed=1), interrupted_at=2)
    for other in (SweepOrder(("b", "a"), 1, 1), SweepOrder(("a", "b"), 1, 2)):
        with pytest.raises(UsageError, match="was made with other"):
            _made(tmp_path, SweepOrder(other.versions, 1, other.seed, resume=part.experiment_id))
    with pytest.raises(UsageError, match="there is no run"):
        _made(tmp_path, SweepOrder(("a",), 1, 1, resume="nothing"))


def test_a_version_named_twice_and_a_sweep_without_a_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="named twice"):
        _made(tmp_path, SweepOrder(("a", "a"), 1, 1))
    with pytest.raises(KeyboardInterrupt):
        _made(tmp_path, SweepOrder(("a",), 1, 1), interrupted_at=0)


def test_runs_of_one_second_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits that tell them apart are drawn, and short runs draw many in a second."""
    drawn = iter(["aaaa", "aaaa", "bbbb"] * 3)
    monkeypatch.setattr("chainmark.store.runs.secrets.token_hex", lambda _size: next(drawn))
    monkeypatch.setattr("chainmark.store.runs.datetime", _Standing)
    made = [Store(tmp_path).create("s", "p", "v", {}).run_id for _ in range(2)]
    assert len(set(made)) == 2


class _Standing:
    """A clock that stands still."""

    @staticmethod
    def now(_zone: object) -> datetime:
        """Always the same second."""
        return datetime(2026, 1, 2, tzinfo=UTC)


def test_a_load_without_a_valid_run_is_not_kept_up() -> None:
    cells = [run(1, 200, 1.0), run(1, 200, 0.85), run(1, 400, 1.0, excluded="lost"), run(1, 800, 0.5)]
    assert kept_up(cells, 0.1) == {200: True, 400: False, 800: False}
