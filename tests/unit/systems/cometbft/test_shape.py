"""The shape of a network: its nodes, connections and versions, and which networks are too large for a machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.lab.profiles import check_profile, read_profile
from chainmark.systems.cometbft.profile import CometBFTProfile, NodeNetwork
from chainmark.systems.cometbft.shape import Role, members_of, need_of, peer_choice, require_capacity, runs_other

GIB = 1 << 30


def _profile(**sections: Any) -> CometBFTProfile:
    return check_profile(CometBFTProfile, {"system": "cometbft", "name": "made up", **sections})


def test_every_node_knows_one_seed_and_all_seeds_know_each_other() -> None:
    network = {"validators": 5, "full_nodes": 2, "seeds": 3, "topology": "seeds"}
    members = members_of(_profile(network=network), "v1", seed=1)
    assert [member.name for member in members] == [*(f"node{index}" for index in range(7)), "seed0", "seed1", "seed2"]
    nodes, seeds = members[:7], members[7:]
    # 7 nodes over 3 seeds: 3, 2, 2.
    assert [member.seeds for member in nodes].count(("seed0",)) == 3
    assert all(len(member.seeds) == 1 and not member.peers and member.pex for member in nodes)
    assert [member.peers for member in seeds] == [("seed1", "seed2"), ("seed0", "seed2"), ("seed0", "seed1")]
    # The node's own tool numbers all nodes consecutively. Validators come first.
    assert [member.generated for member in members] == [f"node{index}" for index in range(10)]
    assert [member.role for member in members] == [Role.VALIDATOR] * 5 + [Role.FULL] * 2 + [Role.SEED] * 3


def test_joining_nodes_are_created_but_neither_started_nor_waited_for() -> None:
    profile = _profile(network={"validators": 4}, rotating={"joiners": 2})
    members = members_of(profile, "v1", seed=1)
    joiners = [member for member in members if member.role is Role.JOINER]
    assert [member.name for member in joiners] == ["joiner0", "joiner1"]
    assert not any(member.starts for member in joiners)
    assert all(member.peers == ("node0", "node1", "node2", "node3") for member in joiners)
    assert not any("joiner" in peer for member in members for peer in member.peers)


@pytest.mark.parametrize(
    ("nodes", "share", "expected"), [(4, 0.5, 2), (4, 0.3333, 1), (9, 0.3333, 3), (9, 0.6667, 6), (200, 0.5, 100)]
)
def test_a_mix_has_the_requested_share(nodes: int, share: float, expected: int) -> None:
    network = {"validators": nodes, "other_version": "v0.38.17", "other_share": share}
    members = members_of(_profile(network=network), "v1.0.1", seed=1)
    assert sum(member.version == "v0.38.17" for member in members) == expected


@given(st.integers(1, 300), st.floats(0.01, 0.99))
def test_versions_are_mixed_evenly(nodes: int, share: float) -> None:
    """In every prefix of the list of nodes, the share of the other version is correct to within one node."""
    others = [runs_other(index, share) for index in range(nodes)]
    for count in range(1, nodes + 1):
        assert abs(sum(others[:count]) - count * share) <= 1
    assert not others[0] or share >= 0.99


@given(st.integers(5, 30), st.integers(1, 3), st.integers(0, 500))
def test_present_nodes_are_connected_without_the_absent_ones(nodes: int, peers: int, seed: int) -> None:
    absent = (nodes - 1) // 3
    network = NodeNetwork(validators=nodes, absent_validators=absent, topology="random", peers_per_node=peers + 1)
    chosen = peer_choice(network, seed)
    there = set(network.started_nodes)
    assert there == set(range(nodes - absent))
    reached, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        near = (set(chosen[node]) | {other for other in there if node in chosen[other]}) & there
        waiting += near - reached
        reached |= near
    assert reached == there


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"network": {"seeds": 2}}, "seeds and the topology"),
        ({"network": {"topology": "seeds"}}, "seeds and the topology"),
        ({"network": {"validators": 3, "absent_validators": 1}}, "halts the chain"),
        ({"network": {"validators": 6, "absent_validators": 2}}, "halts the chain"),
        ({"network": {"absent_validators": 1, "voting_powers": [1, 1, 1, 2]}}, "with 40 % of the voting power offline"),
        ({"network": {"voting_powers": [1, 1, 1]}}, "has 3 entries, but there are 4 validators"),
        ({"network": {"validators": 2, "absent_validators": 2, "allow_halt": True}}, "leaves no validator"),
        ({"network": {"validators": 4, "absent_validators": 1}, "load": {"targets": [3]}}, "that validator is offline"),
        ({"network": {"loss": 0.1}}, "needs `network.links"),
        ({"perturbation": [{"kind": "kill", "nodes": [0], "at_s": 1}]}, "which receives the load"),
        ({"perturbation": [{"kind": "kill", "nodes": [4], "at_s": 1}]}, "which is not started"),
        ({"perturbation": [{"kind": "pause", "nodes": [3], "at_s": 25, "for_s": 6}]}, "ends 31 s into the window"),
        ({"perturbation": [{"kind": "disconnect", "nodes": [3], "at_s": 1}]}, "cuts connections, which needs"),
        ({"perturbation": [{"kind": "upgrade", "nodes": [3], "at_s": 1}]}, "requires `version`"),
        ({"perturbation": [{"kind": "kill", "nodes": [3], "at_s": 1, "version": "v1"}]}, "has no `version`"),
        (
            {
                "perturbation": [
                    {"kind": "pause", "nodes": [2, 3], "at_s": 1, "for_s": 5},
                    {"kind": "kill", "nodes": [3], "at_s": 4},
                ]
            },
            "begins on node 3 before an earlier one ends",
        ),
        (
            {"application": {"vote_extension_size_bytes": 8}, "network": {"other_version": "v1"}},
            "needs a network of one version",
        ),
    ],
)
def test_an_impossible_profile_is_refused_before_the_start(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        _profile(**sections)
    assert message in refused.value.message


def test_a_halt_can_be_intended() -> None:
    network = _profile(network={"validators": 3, "absent_validators": 1, "allow_halt": True}).network
    assert network.started_nodes == [0, 1]


def test_half_of_a_network_can_be_cut_off_with_the_loaded_node() -> None:
    halves = [{"kind": "partition", "nodes": [0, 1], "at_s": 1, "for_s": 5}]
    assert _profile(network={"links": "namespaces"}, perturbation=halves).perturbation[0].end_s == 6


@pytest.mark.parametrize(
    ("network", "rate", "measured_cores"),
    [
        # Measured on two cores, per network: validators, connections per node, tx/s, total cores.
        ({"validators": 4}, 200, 0.25),
        ({"validators": 10}, 200, 0.83),
        ({"validators": 25, "topology": "random", "peers_per_node": 2}, 200, 1.04),
        ({"validators": 50, "topology": "random", "peers_per_node": 5}, 1, 1.63),
    ],
)
def test_the_estimated_need_is_near_the_measured_one(network: dict[str, Any], rate: int, measured_cores: float) -> None:
    need = need_of(_profile(network=network, load={"rate": rate}))
    assert need.cores == pytest.approx(measured_cores, rel=0.6)
    require_capacity(_profile(network=network, load={"rate": rate}), cores=2, memory_bytes=16 * GIB)


def test_a_network_known_to_collapse_is_refused() -> None:
    collapsed = {"validators": 25, "topology": "random", "peers_per_node": 5}
    with pytest.raises(EnvironmentFailure, match="25 nodes are too many for this machine"):
        require_capacity(_profile(network=collapsed, load={"rate": 200}), cores=2, memory_bytes=16 * GIB)


def test_the_published_network_is_refused_on_a_small_machine_and_accepted_on_a_big_one() -> None:
    profile = check_profile(CometBFTProfile, read_profile("cometbft/two-hundred-nodes"))
    assert len(members_of(profile, "v1.0.1", seed=1)) == 200
    with pytest.raises(ChainmarkError) as refused:
        require_capacity(profile, cores=2, memory_bytes=16 * GIB)
    assert "200 nodes are too many for this machine" in refused.value.message
    assert "network.check_capacity=false" in (refused.value.hint or "")
    require_capacity(profile, cores=64, memory_bytes=64 * GIB)
    unchecked = read_profile("cometbft/two-hundred-nodes", ["network.check_capacity=false"])
    require_capacity(check_profile(CometBFTProfile, unchecked), cores=2, memory_bytes=16 * GIB)


def test_a_saturating_load_is_not_refused() -> None:
    require_capacity(_profile(network={"validators": 4}, load={"rate": 6400}), cores=2, memory_bytes=8 * GIB)


def test_unused_settings_are_not_part_of_the_workload() -> None:
    """Runs made before a setting existed stay comparable with later runs."""
    plain = _profile().workload()
    network = {key for key in plain if key.startswith("network.")}
    assert network == {f"network.{key}" for key in ("validators", "full_nodes", "topology", "peers_per_node")}
    assert not any(key.startswith(("perturbation", "rotating", "application")) for key in plain)
    used = _profile(network={"validators": 4, "absent_validators": 1, "check_capacity": False}).workload()
    assert used["network.absent_validators"] == 1
    assert "network.check_capacity" not in used
