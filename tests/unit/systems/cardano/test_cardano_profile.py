"""Cardano's profiles: an impossible network is rejected with an error that names the problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import CAPABILITIES, ModelSource, launchable, predictable
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.topology import ListedTopology, RandomPeers

from tests.support import Lab
from tests.unit.systems.cardano.made_up import profile, write

NODES = [
    {"name": "node-10", "region": "eu-central-1", "producers": ["node-2"]},
    {"name": "node-2", "region": "AP", "producers": ["node-10"]},
]


def _refusal(*settings: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        profile("cardano/value", *settings)
    return caught.value.message, caught.value.hint or ""


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("stages.ticked_s=-1", "`stages.ticked_s` is -1, but must be at least 0", "0.02142"),
        ("stages.ticking_s=1", "`stages.ticking_s` is not a key", "stages.ticked_s"),
        ("network.hosts=1", "`network.hosts` is 1, but must be at least 2", "52"),
        ("network.topology=ring", "the topology `ring` is neither a rule nor a readable file", "torus-dense"),
        ("network.rtt_s=[[1]]", "`network.rtt_s` must have 3 rows of 3 values", "EU, US, AP"),
        (
            "network.rtt_s=[[0.1,0.1,0.1],[0.1,0.1,-0.1],[0.1,0.1,0.1]]",
            "`network.rtt_s` is -0.1 s for US–AP",
            "more than 0",
        ),
        ('network.regions=[{name="A"},{name="B",aliases=["A"]}]', "names `A` twice", "one region only"),
        ("parameters.window_limit_segments=5", "less than the initial window of 10", "never grows"),
        ("parameters.pipelining=perhaps", "`parameters.pipelining` is 'perhaps'", "True"),
        ("chain.active_slots_coefficient=0", "must be more than 0", "0.05"),
    ],
)
def test_an_impossible_network_is_refused(setting: str, message: str, hint: str) -> None:
    text, hinted = _refusal(setting)
    assert message in text
    assert hint in hinted


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ({"nodes": []}, "is not a topology"),
        ({"coreNodes": [{"name": "node-0"}]}, "is not a topology"),
        ({"coreNodes": []}, "lists no hosts"),
        ({"coreNodes": [{"name": "n", "region": "mars", "producers": []}]}, "the unknown region `mars`"),
    ],
)
def test_an_invalid_topology_file_is_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "topology.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    text, hinted = _refusal(f'network.topology="{path}"')
    assert message in text
    assert hinted


def test_a_topology_file_determines_the_number_of_hosts(tmp_path: Path) -> None:
    path = write(tmp_path / "two.json", {"coreNodes": NODES, "relayNodes": []})
    cluster = profile("cardano/value", f'network.topology="{path}"').network.cluster()
    assert cluster.hosts == cluster.host_count == 2
    assert isinstance(cluster.topology, ListedTopology)
    assert [host.name for host in cluster.topology.hosts] == ["node-2", "node-10"]
    assert cluster.counts() == {0: 1, 2: 1}
    text, hinted = _refusal(f'network.topology="{path}"', "network.hosts=3")
    assert "`network.hosts` is 3, but the topology file lists 2" in text
    assert "omit `network.hosts`" in hinted


def test_a_rule_of_random_peers_is_read() -> None:
    cluster = profile("cardano/value", "network.topology=random:5+2").network.cluster()
    assert cluster.topology == RandomPeers(in_region=5, per_other_region=2)


def test_block_parameters_follow_from_the_chain() -> None:
    scenario = profile("cardano/plutus", "chain.active_slots_coefficient=0.1", "chain.slot_length_s=2").scenario(1)
    assert scenario.block_interval_s == pytest.approx(20.0)
    assert scenario.block_bytes == 2996.0


def test_a_system_reports_unsupported_commands() -> None:
    """Otherwise a user waits for a cluster of Cardano nodes that never starts."""
    assert predictable(load_system("cardano")).name == "cardano"
    with pytest.raises(UsageError, match="cannot run `cardano` nodes itself") as caught:
        launchable(SYSTEM)
    assert "`chainmark predict`" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="cannot predict `cometbft`") as caught:
        predictable(load_system("cometbft"))
    assert "`chainmark run`" in (caught.value.hint or "")
    assert all("{}" in capability.verb for capability in CAPABILITIES)


def test_running_a_network_of_cardano_is_refused_with_alternatives(lab: Lab) -> None:
    ended = lab.run("run", "cardano/value", "--version", "10.6.2", code=2)
    assert "chainmark cannot run `cardano` nodes itself" in ended.stderr
    assert "hint: for `cardano`, use `chainmark ingest`; `chainmark predict`" in ended.stderr
    assert lab.run("nodes", "list").stdout


@pytest.mark.parametrize("source_settings", [{}, {"document": Path("a"), "profile": profile()}])
def test_a_model_has_one_source(source_settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="needs one source"):
        ModelSource("x", **source_settings)  # type: ignore[arg-type]
