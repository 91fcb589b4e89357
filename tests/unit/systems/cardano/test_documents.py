"""Files next to a cluster's logs: every form that benchmark runs have used is read, others are rejected clearly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.systems.cardano.documents import (
    GENESIS_FILES,
    Meta,
    StatedGenesis,
    find_genesis,
    find_meta,
    named_as_logged,
    read_genesis,
    read_meta,
    read_topology,
    resolve_genesis,
)
from chainmark.systems.cardano.topology import ListedHost, ListedTopology

GENESIS: dict[str, Any] = {
    "activeSlotsCoeff": 0.05,
    "epochLength": 8000,
    "networkMagic": 42,
    "protocolParams": {"maxBlockBodySize": 90112, "maxTxSize": 16384},
    "securityParam": 40,
    "slotLength": 1,
    "systemStart": "2026-02-05T18:52:16Z",
}
START_NS = 1_770_317_536 * 10**9


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", GENESIS_FILES)
def test_a_genesis_is_found_in_the_usual_places_of_a_benchmark_run(tmp_path: Path, name: str) -> None:
    path = _write(tmp_path / name, GENESIS)
    file_path = find_genesis(tmp_path, None)
    assert file_path == path
    genesis = read_genesis(path)
    assert (genesis.system_start_ns, genesis.epoch_slots, genesis.network_magic) == (START_NS, 8000, 42)
    assert genesis.slot_start_ns(2) == START_NS + 2 * 10**9
    assert find_genesis(tmp_path, Path("given.json")) == Path("given.json")


def test_stated_values_override_values_from_the_file(tmp_path: Path) -> None:
    """A user who corrects one value of a genesis does not have to write a new file."""
    path = _write(tmp_path / "g.json", GENESIS)
    genesis, notes = resolve_genesis(path, StatedGenesis(slot_length_s=0.2))
    assert (genesis.slot_length_s, genesis.epoch_slots, genesis.system_start_ns, notes) == (0.2, 8000, START_NS, [])


def test_missing_values_are_reported_with_the_assumed_value() -> None:
    stated = StatedGenesis.model_validate({"system_start": "2026-02-05T18:52:16Z", "epoch_slots": 500})
    genesis, notes = resolve_genesis(None, stated)
    assert (genesis.system_start_ns, genesis.epoch_slots, genesis.security_parameter) == (START_NS, 500, 40)
    assert len(notes) == 1
    assert "security_parameter 40" in notes[0]
    assert "epoch_slots" not in notes[0]
    with pytest.raises(UsageError, match="the start of the slots is unknown"):
        resolve_genesis(None, StatedGenesis())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a Shelley genesis"),
        (json.dumps({**GENESIS, "systemStart": "yesterday"}), "`systemStart` is missing or invalid"),
        (json.dumps({**GENESIS, "slotLength": 0}), "`slotLength` is missing"),
        (json.dumps({**GENESIS, "epochLength": None}), "`epochLength` is missing"),
        (json.dumps({**GENESIS, "slotLength": -1}), "`slotLength` is missing"),
        (json.dumps({**GENESIS, "slotLength": 1e300}), "`slotLength` is missing"),
        (json.dumps({**GENESIS, "securityParam": 10**30}), "`securityParam` is missing"),
        (json.dumps({**GENESIS, "activeSlotsCoeff": float("nan")}), "`activeSlotsCoeff` is missing"),
    ],
)
def test_an_invalid_genesis_is_refused_with_the_reason(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "genesis.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as refused:
        read_genesis(path)
    assert "--genesis FILE" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_genesis(tmp_path / "none.json")


def test_a_genesis_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "genesis.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GENESIS).encode())
    assert read_genesis(path).epoch_slots == 8000


def test_an_unreadable_file_is_an_environment_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root can read everything, so the denial is simulated."""

    def refuse(*_: Any, **__: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(EnvironmentFailure, match="may not be read"):
        read_genesis(tmp_path / "genesis.json")
    monkeypatch.setattr(Path, "is_file", refuse)
    for find in (find_genesis, find_meta, read_topology):
        with pytest.raises(EnvironmentFailure, match="may not be read"):
            find(tmp_path, None)


def test_old_and_new_descriptions_contain_versions_and_commits(tmp_path: Path) -> None:
    """Old descriptions contain a commit where later ones contain a package, under older names."""
    new = {"cardano-node": {"name": "cardano-node", "version": "10.6.2", "commit": "0d697f1"}}
    meta = read_meta(_write(tmp_path / "new.json", {"meta": {"manifest": new, "profile_content": {}}}))
    assert (meta.identifier, meta.package("cardano-node").commit) == ("10.6.2", "0d697f1")
    assert meta.package("plutus-core").version == "unknown"
    old = {"cardano-node": "aaa", "ouroboros-network": "bbb", "plutus": "ccc", "cardano-ledger": "ddd"}
    meta = read_meta(_write(tmp_path / "old.json", {"meta": {"manifest": old, "ident": "1.35", "batch": None}}))
    assert meta.identifier == "1.35"
    names = ("cardano-node", "ouroboros-consensus", "cardano-ledger-core", "plutus-core")
    assert [meta.package(name).commit for name in names] == ["aaa", "bbb", "ddd", "ccc"]
    assert meta.node_version is None


@pytest.mark.parametrize(
    ("content", "era"),
    [
        ({"era": "conway", "profile_content": {"era": "alonzo"}}, "conway"),
        ({"profile_content": {"era": "alonzo", "generator": {"era": "babbage"}}}, "alonzo"),
        ({"profile_content": {"generator": {"era": "babbage"}}}, "babbage"),
        ({}, None),
    ],
)
def test_the_era_is_found_in_every_known_place(content: dict[str, Any], era: str | None) -> None:
    assert Meta.model_validate(content).era_name == era


@pytest.mark.parametrize(
    ("generator", "script"),
    [
        ({"plutus": {"type": "LimitSaturationLoop", "script": "Loop2024"}}, "Loop2024"),
        ({"plutus": {"type": "", "script": "Loop"}}, None),
        ({"plutus": {"type": None, "script": None}}, None),
        ({"plutusMode": True, "plutusAutoMode": True}, "Loop"),
        ({"plutusMode": True, "plutusAutoMode": False}, None),
        ({}, None),
    ],
)
def test_the_transaction_script_is_read(generator: dict[str, Any], script: str | None) -> None:
    meta = Meta.model_validate({"profile_content": {"generator": generator}})
    assert meta.profile_content.generator.plutus_script == script


def test_an_invalid_description_is_refused(tmp_path: Path) -> None:
    assert find_meta(tmp_path, None) is None
    with pytest.raises(UsageError, match="is not the description of a benchmark run"):
        read_meta(_write(tmp_path / "meta.json", {"tag": "x"}))
    with pytest.raises(UsageError, match=r"`meta\.manifest` in .* is invalid"):
        read_meta(_write(tmp_path / "meta.json", {"meta": {"manifest": 7}}))
    assert find_meta(tmp_path, None) == tmp_path / "meta.json"
    rate = {"profile_content": {"generator": {"tps": float("inf")}}}
    with pytest.raises(UsageError, match=r"`meta\.profile_content\.generator\.tps` in .* is invalid"):
        read_meta(_write(tmp_path / "meta.json", {"meta": rate}))
    with pytest.raises(UsageError, match="is not JSON"):
        read_meta(_write(tmp_path / "meta.json", {"meta": {"batch": "\ud800"}}))


def test_a_topology_gives_every_host_its_region(tmp_path: Path) -> None:
    assert read_topology(tmp_path, None) == (None, None)
    node = {"name": "node-0", "region": "eu-central-1", "producers": []}
    path = _write(tmp_path / "topology.json", {"coreNodes": [node]})
    file_path, topology = read_topology(tmp_path, None)
    assert (file_path, topology) == (
        path,
        ListedTopology(hosts=[ListedHost(name="node-0", region="eu-central-1", producers=[])]),
    )
    with pytest.raises(UsageError, match="is the name of a rule"):
        read_topology(tmp_path, Path("torus-dense"))
    with pytest.raises(UsageError, match="nor a readable file"):
        read_topology(tmp_path, tmp_path / "none.json")


def test_hosts_named_after_their_addresses_keep_their_regions() -> None:
    """cardano-tracer names its folders "node-0_30001"; without their regions no route would be measured."""
    listed = _ring("node-0", "node-1", "node-2")
    named = named_as_logged(["node-0_30000", "node-1_30001", "node-2"], listed)
    assert named == _ring("node-0_30000", "node-1_30001", "node-2")
    # It is unknown which of them is meant.
    for names in (["node-0_30000", "node-0_30001"], ["node-0", "node-0_30001"], ["127.0.0.1_30000"]):
        assert named_as_logged(names, listed) == listed


def _ring(*names: str) -> ListedTopology:
    """Hosts in a ring: each fetches from the previous one and has its own region."""
    hosts = zip(names, ("eu", "us", "ap"), names[-1:] + names[:-1], strict=True)
    return ListedTopology(
        hosts=[ListedHost(name=name, region=region, producers=[peer]) for name, region, peer in hosts]
    )


def test_relays_do_not_forge_and_an_explorer_is_not_a_host(tmp_path: Path) -> None:
    """A relay that forged in the model would send blocks from a place where no block originated."""
    core = {"name": "node-0", "region": "eu", "producers": ["relay-0"]}
    pools = [
        {**core, "pools": 3},
        {**core, "name": "node-1", "pools": 1, "stakePool": False},
        {**core, "name": "node-2", "pools": None},
    ]
    relays = [{**core, "name": "relay-0"}, {**core, "name": "explorer"}]
    path = _write(tmp_path / "topology.json", {"coreNodes": pools, "relayNodes": relays})
    _, topology = read_topology(tmp_path, path)
    assert topology is not None
    assert [(host.name, host.pools) for host in topology.hosts] == [
        ("node-0", 3),
        ("relay-0", 0),
        ("node-1", 0),
        ("node-2", 1),
    ]
