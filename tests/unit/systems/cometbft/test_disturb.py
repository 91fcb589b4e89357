"""Perturbations: what is done to which nodes and when, and from when on a node counts as recovered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from chainmark.core.errors import EnvironmentFailure
from chainmark.systems.cometbft import disturb
from chainmark.systems.cometbft.disturb import PERTURBATION_SCHEMA, Disturber
from chainmark.systems.cometbft.profile import Perturbation
from chainmark.systems.cometbft.rpc import SyncState
from chainmark.systems.cometbft.shape import Role

from tests.unit.systems.cometbft.recorded_instruments import Recorded
from tests.unit.systems.cometbft.scripted_network import BEGAN_S, NS, Clock

ROLES = {**dict.fromkeys(("node0", "node1", "node2"), Role.VALIDATOR), "node3": Role.FULL, "seed0": Role.SEED}
OTHERS = "height of node0 node3"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(disturb, "time", own)
    return own


@pytest.fixture
def recorded(tmp_path: Path, clock: Clock) -> Recorded:
    return Recorded(tmp_path, clock, ROLES)


def _plan(kind: str, nodes: tuple[int, ...] = (1, 2), at_s: float = 1.0, for_s: float = 2.0) -> Perturbation:
    version = "v2" if kind == "upgrade" else ""
    return Perturbation(kind=cast(Any, kind), nodes=list(nodes), at_s=at_s, for_s=for_s, version=version)


def _disturber(recorded: Recorded, *plans: Perturbation, timeout_s: float = 60.0) -> Disturber:
    """The window begins at 100 s."""
    own = cast(Any, recorded)
    return Disturber(own, plans, round(BEGAN_S * NS), timeout_s, own)


def _step(disturber: Disturber, recorded: Recorded, after_s: float) -> list[str]:
    """What is done at that time after the window's start."""
    recorded.clock.now_s = BEGAN_S + after_s
    disturber.step()
    return recorded.done()


def _started(name: str, program: str = "program") -> list[str]:
    return [f"start {name} as {program}", f"answers of {name}"]


@pytest.mark.parametrize(
    ("kind", "begun", "undone"),
    [
        (
            "kill",
            [
                *("silence of node1", "node1 SIGKILL ends", "silence of node2", "node2 SIGKILL ends", OTHERS),
                "planned: node1, node2 killed",
            ],
            [OTHERS, *_started("node1"), *_started("node2"), "planned: node1, node2 restarted"],
        ),
        (
            "restart",
            [
                *("silence of node1", "node1 SIGTERM ends", "silence of node2", "node2 SIGTERM ends", OTHERS),
                "planned: node1, node2 stopped",
            ],
            [OTHERS, *_started("node1"), *_started("node2"), "planned: node1, node2 restarted"],
        ),
        (
            "upgrade",
            [
                *("silence of node1", "node1 SIGTERM ends", "silence of node2", "node2 SIGTERM ends", OTHERS),
                "planned: node1, node2 stopped",
            ],
            [
                OTHERS,
                *_started("node1", "newer"),
                *_started("node2", "newer"),
                "planned: node1, node2 restarted with v2",
            ],
        ),
        (
            "pause",
            [
                *("silence of node1", "node1 SIGSTOP", "silence of node2", "node2 SIGSTOP", OTHERS),
                "planned: node1, node2 paused",
            ],
            [
                *(OTHERS, "node1 SIGCONT", "answers of node1", "node2 SIGCONT", "answers of node2"),
                "planned: node1, node2 resumed",
            ],
        ),
        (
            "disconnect",
            ["disconnect node1", "disconnect node2", OTHERS, "planned: node1, node2 disconnected"],
            [
                *(OTHERS, "reconnect node1", "answers of node1", "reconnect node2", "answers of node2"),
                "planned: node1, node2 resumed",
            ],
        ),
        (
            "partition",
            [
                "partition node1 node2 | node0 node3 seed0",
                "height of node0 node1 node2 node3",
                "planned: node1, node2 cut off from the others",
            ],
            [
                *("height of node0 node1 node2 node3", "answers of node1", "answers of node2", "heal"),
                "planned: node1, node2 resumed",
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_perturbation_is_done_and_undone_on_time(
    recorded: Recorded, kind: str, begun: list[str], undone: list[str]
) -> None:
    """A silenced node must count no missed page, but one that is only cut off still responds."""
    disturber = _disturber(recorded, _plan(kind))
    (disturbance,) = disturber.disturbances
    assert _step(disturber, recorded, 0.999) == []
    recorded.reached = 20
    assert _step(disturber, recorded, 1.0) == begun
    recorded.reached = 30
    assert _step(disturber, recorded, 2.999) == []
    assert _step(disturber, recorded, 3.0) == undone
    assert (disturbance.height_begun, disturbance.height_undone) == (20, 30)
    assert (disturbance.begun_ns, disturbance.undone_ns) == (101 * NS, 103 * NS)
    assert _step(disturber, recorded, 4.0) == []
    assert not disturber.finished()


def test_a_node_that_ignores_its_signal_is_killed_after_20_s(recorded: Recorded) -> None:
    """Only that one: another node may have stopped in time."""
    recorded.process("node2").ignores = True
    disturber = _disturber(recorded, _plan("restart"))
    _step(disturber, recorded, 1.0)
    assert _step(disturber, recorded, 3.0) == []
    assert _step(disturber, recorded, 21.0) == []
    assert _step(disturber, recorded, 21.5) == [
        *("node2 SIGKILL ends", "node2 did not stop on SIGTERM and was killed", OTHERS),
        *(*_started("node1"), *_started("node2"), "planned: node1, node2 restarted"),
    ]


@pytest.mark.parametrize(
    ("kind", "state", "is_recovered"),
    [
        ("kill", SyncState(30, False), True),
        ("kill", SyncState(31, False), True),
        ("kill", SyncState(29, False), False),
        ("kill", SyncState(30, True), False),
        ("kill", None, False),
        ("partition", SyncState(31, False), True),
        ("partition", SyncState(30, False), False),  # all have that height if the chain halted
    ],
)
def test_a_node_recovers_with_the_height_of_the_network(
    recorded: Recorded, kind: str, state: SyncState | None, *, is_recovered: bool
) -> None:
    disturber = _disturber(recorded, _plan(kind, (1,)))
    _step(disturber, recorded, 1.0)
    recorded.reached = 30
    _step(disturber, recorded, 3.0)
    waited_for = ["node0", "node1", "node2", "node3"] if kind == "partition" else ["node1"]
    recorded.states = dict.fromkeys(waited_for, state)
    assert _step(disturber, recorded, 4.0) == []
    (disturbance,) = disturber.disturbances
    assert disturbance.recovered_ns == (dict.fromkeys(waited_for, 104 * NS) if is_recovered else {})
    assert disturber.finished() is is_recovered


def test_recoveries_are_timed_separately_and_given_up_after_the_limit(recorded: Recorded) -> None:
    disturber = _disturber(recorded, _plan("kill", (0,), for_s=0.0), _plan("pause", (1, 2, 3)), timeout_s=2.5)
    for after_s in (1.0, 3.0):
        _step(disturber, recorded, after_s)
    kill, pause = disturber.disturbances
    recorded.states = {"node1": SyncState(9, False)}
    assert _step(disturber, recorded, 3.5) == []
    recorded.states = {"node0": SyncState(9, False), "node3": SyncState(9, False)}
    assert _step(disturber, recorded, 4.0) == []
    assert (kill.recovered_ns, kill.given_up) == ({"node0": 104 * NS}, False)
    assert _step(disturber, recorded, 5.5) == []
    assert not disturber.finished()
    assert _step(disturber, recorded, 5.75) == ["node2 has not recovered"]
    assert disturber.finished()
    assert (pause.recovered_ns, pause.given_up) == ({"node1": 103 * NS + NS // 2, "node3": 104 * NS}, True)
    # It is over: a later recovery does not count.
    recorded.states["node2"] = SyncState(9, False)
    assert _step(disturber, recorded, 6.0) == []
    assert disturber.problems() == ["node2 did not recover from perturbation 2 (pause)"]
    times = (101 * NS, 103 * NS)
    assert disturber.frame().rows() == [
        (1, "kill", "node0", "", *times, 104 * NS, 0, 0),
        (2, "pause", "node1", "", *times, 103 * NS + NS // 2, 0, 0),
        (2, "pause", "node2", "", *times, None, 0, 0),
        (2, "pause", "node3", "", *times, 104 * NS, 0, 0),
    ]


def test_as_many_rows_as_columns_stay_rows(recorded: Recorded) -> None:
    """Polars would read them as columns."""
    count = len(PERTURBATION_SCHEMA)
    frame = _disturber(recorded, *[_plan("kill", (1,))] * count).frame()
    assert dict(frame.schema) == {name: kind() for name, kind in PERTURBATION_SCHEMA.items()}
    assert frame.rows() == [(index + 1, "kill", "node1", "", None, None, None, 0, 0) for index in range(count)]


def test_a_row_has_the_version_and_the_heights(recorded: Recorded) -> None:
    disturber = _disturber(recorded, _plan("upgrade", (1,)))
    recorded.reached = 20
    _step(disturber, recorded, 1.0)
    recorded.reached = 24
    _step(disturber, recorded, 3.0)
    assert disturber.frame().rows() == [(1, "upgrade", "node1", "v2", 101 * NS, 103 * NS, None, 20, 24)]


@pytest.mark.parametrize(
    ("after_s", "stepped_s", "rest_s"),
    [
        (0.0, [], 0.2),  # nothing is due soon
        (0.9, [], 0.1),
        (1.5, [], 0.0),  # it is late
        (1.5, [1.0], 0.2),
        (2.9, [1.0], 0.1),
        (3.0, [1.0], 0.05),  # its process may end at any time
        (4.0, [1.0, 3.0], 0.05),
        (4.0, [1.0, 3.0, 3.5], 0.2),  # recovered
    ],
)
def test_the_next_step_is_not_missed(recorded: Recorded, after_s: float, stepped_s: list[float], rest_s: float) -> None:
    """A recovery is measured to 50 ms."""
    disturber = _disturber(recorded, _plan("pause", (1,)))
    recorded.states = {"node1": SyncState(9, False)}
    for moment_s in stepped_s:
        _step(disturber, recorded, moment_s)
    recorded.clock.now_s = BEGAN_S + after_s
    assert disturber.rest_s() == pytest.approx(rest_s)
    disturber.load_ended()


@pytest.mark.parametrize("kind", ["disconnect", "partition"])
def test_nodes_are_cut_off_only_by_emulated_links(recorded: Recorded, kind: str) -> None:
    disturber = Disturber(cast(Any, recorded), [_plan(kind)], round(BEGAN_S * NS), 60.0, None)
    with pytest.raises(EnvironmentFailure) as error:
        _step(disturber, recorded, 1.0)
    assert error.value.message == "nodes can be disconnected only if there are emulated links between them"
    assert error.value.hint == "add them with `--set network.links=namespaces`"
