"""Nodes that join under load: when each starts, from when on it has caught up, and what is reported of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from chainmark.systems.cometbft import rotating
from chainmark.systems.cometbft.profile import Rotating
from chainmark.systems.cometbft.rotating import HEIGHT_SCHEMA, JOINER_SCHEMA, Rotation
from chainmark.systems.cometbft.rpc import SyncState
from chainmark.systems.cometbft.shape import Role

from tests.unit.systems.cometbft.recorded_instruments import Recorded
from tests.unit.systems.cometbft.scripted_network import BEGAN_S, NS, Clock

ROLES = {"node0": Role.VALIDATOR, "node1": Role.FULL, "joiner0": Role.JOINER, "joiner1": Role.JOINER}
HEIGHT = "height of node0"
JOINED = ["start joiner0 as program", "planned: joiner0 joined"]
BEHIND = SyncState(3, catching_up=True)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    clock = Clock()
    monkeypatch.setattr(rotating, "time", clock)
    own = Recorded(tmp_path, clock, ROLES)
    own.reached = 20
    return own


def _rotation(recorded: Recorded, timeout_s: float = 30.0) -> Rotation:
    return Rotation(cast(Any, recorded), Rotating(joiners=2, min_height=20, catch_up_timeout_s=timeout_s))


def _step(rotation: Rotation, recorded: Recorded, after_s: float, state: SyncState | None = None) -> list[str]:
    """What is done at that time, without reading the network's height; the current joining node reports ``state``."""
    recorded.clock.now_s = BEGAN_S + after_s
    recorded.states = {"joiner0": state, "joiner1": state}
    rotation.step()
    first, *done = recorded.done() or [HEIGHT]
    assert first == HEIGHT  # of one node: the network must not be queried more than necessary
    return done


def test_a_node_joins_at_the_least_height_and_the_next_one_when_it_has_left(recorded: Recorded) -> None:
    rotation = _rotation(recorded)
    recorded.reached = 19
    assert _step(rotation, recorded, 0.0) == []
    recorded.reached = 20
    assert _step(rotation, recorded, 1.0) == JOINED
    recorded.process("joiner0").ignores = True
    assert _step(rotation, recorded, 2.0) == []
    assert _step(rotation, recorded, 3.0, SyncState(20, catching_up=False)) == ["joiner0 SIGTERM ends"]
    assert _step(rotation, recorded, 4.0) == []  # it still runs
    recorded.process("joiner0").is_over = True
    assert _step(rotation, recorded, 5.0) == []
    assert not rotation.finished()
    assert _step(rotation, recorded, 6.0) == ["start joiner1 as program", "planned: joiner1 joined"]
    assert _step(rotation, recorded, 7.0, SyncState(21, catching_up=False)) == ["joiner1 SIGTERM ends"]
    assert _step(rotation, recorded, 8.0) == []
    assert rotation.finished()
    rotation.step()
    assert recorded.done() == []
    assert not rotation.failed()
    assert rotation.problems() == []
    frame = rotation.frame()
    assert dict(frame.schema) == {name: kind() for name, kind in JOINER_SCHEMA.items()}
    assert frame.rows() == [
        ("joiner0", 101 * NS, 103 * NS, 103 * NS, 20, True),
        ("joiner1", 106 * NS, 107 * NS, 107 * NS, 21, True),
    ]


def test_a_joining_node_that_ignores_its_signal_is_killed_after_20_s(recorded: Recorded) -> None:
    """The load would wait for it forever, and the next node would not join."""
    rotation = _rotation(recorded)
    recorded.reached = 20
    assert _step(rotation, recorded, 1.0) == JOINED
    recorded.process("joiner0").ignores = True
    assert _step(rotation, recorded, 3.0, SyncState(20, catching_up=False)) == ["joiner0 SIGTERM ends"]
    assert _step(rotation, recorded, 23.0) == []
    assert _step(rotation, recorded, 23.5) == [
        "joiner0 SIGKILL ends", "joiner0 did not stop on SIGTERM and was killed"
    ]  # fmt: skip
    assert _step(rotation, recorded, 24.0) == ["start joiner1 as program", "planned: joiner1 joined"]
    assert rotation.joiners[0].caught_up_ns is not None


def test_every_check_of_a_joining_node_is_recorded(recorded: Recorded) -> None:
    """Its first response and its catching up have separate times. Five checks of five figures stay rows."""
    rotation = _rotation(recorded)
    for after_s, state in (
        (1.0, None),
        (2.0, None),
        (3.0, BEHIND),
        (4.0, SyncState(20, catching_up=True)),
        (5.0, SyncState(19, catching_up=False)),
        (6.0, None),
        (7.0, BEHIND),
        (8.0, SyncState(21, catching_up=False)),
    ):
        _step(rotation, recorded, after_s, state)
    heights = rotation.heights()
    assert dict(heights.schema) == {name: kind() for name, kind in HEIGHT_SCHEMA.items()}
    assert heights.rows() == [
        (103 * NS, "joiner0", 3, 20, True),
        (104 * NS, "joiner0", 20, 20, True),
        (105 * NS, "joiner0", 19, 20, False),
        (107 * NS, "joiner0", 3, 20, True),
        (108 * NS, "joiner0", 21, 20, False),
    ]
    assert rotation.frame().rows()[0] == ("joiner0", 101 * NS, 103 * NS, 108 * NS, 21, True)


@pytest.mark.parametrize("state", [None, BEHIND], ids=["silent", "behind"])
def test_a_node_that_is_too_slow_is_killed(recorded: Recorded, state: SyncState | None) -> None:
    rotation = _rotation(recorded)
    _step(rotation, recorded, 1.0)
    assert _step(rotation, recorded, 31.0, state) == []
    assert not rotation.joiners[0].over
    assert _step(rotation, recorded, 31.5, state) == ["joiner0 did not catch up", "joiner0 SIGKILL ends"]
    assert rotation.joiners[0].over
    assert rotation.failed()
    assert rotation.problems() == ["joiner0 did not catch up", "joiner1 was not started before the load ended"]


def test_a_node_that_dies_is_reported_as_such(recorded: Recorded) -> None:
    rotation = _rotation(recorded)
    _step(rotation, recorded, 1.0)
    recorded.process("joiner0").is_over = True
    assert _step(rotation, recorded, 2.0) == ["joiner0 died", "joiner0 SIGKILL ends"]
    assert rotation.joiners[0].over


def test_nothing_joins_after_the_load(recorded: Recorded) -> None:
    """The load may be the cause if none was started, so that this is not a failure of the node."""
    rotation = _rotation(recorded)
    rotation.load_ended()
    for joiner in rotation.joiners:
        assert not joiner.over
        assert _step(rotation, recorded, 1.0) == []
        assert joiner.over
    assert rotation.finished()
    assert not rotation.failed()
    assert rotation.problems() == [f"joiner{index} was not started before the load ended" for index in range(2)]
    assert rotation.frame().rows() == [(f"joiner{index}", None, None, None, None, False) for index in range(2)]


def test_a_node_that_catches_up_after_the_load_did_not_join_under_load(recorded: Recorded) -> None:
    rotation = _rotation(recorded)
    _step(rotation, recorded, 1.0)
    rotation.load_ended()
    _step(rotation, recorded, 2.0, SyncState(20, catching_up=False))
    assert not rotation.failed()
    assert rotation.problems()[0] == "joiner0 caught up only after the load"
    assert rotation.frame().rows()[0] == ("joiner0", 101 * NS, 102 * NS, 102 * NS, 20, False)


def test_as_many_rows_as_columns_stay_rows(tmp_path: Path) -> None:
    """Polars would read them as columns."""
    names = [f"joiner{index}" for index in range(len(JOINER_SCHEMA))]
    recorded = Recorded(tmp_path, Clock(), dict.fromkeys(names, Role.JOINER))
    assert _rotation(recorded).frame().rows() == [(name, None, None, None, None, False) for name in names]


def test_checks_are_frequent_until_all_have_left(recorded: Recorded) -> None:
    rotation = _rotation(recorded)
    assert rotation.rest_s() == 0.1
    for joiner in rotation.joiners:
        joiner.over = True
    assert rotation.rest_s() == 0.2
