"""Configurations: changed in place, and compared with the version's defaults."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.core.manifest import ConfigChange
from chainmark.systems.cometbft.configuration import change_config, change_genesis, describe, flatten

CONFIG = """# a comment
moniker = "{moniker}"
rate = 5.0 # which a node does not read as 5
label = 'C:\\"a"'
[consensus]
timeout_commit = "1s"
[mempool]
cache_size = 10000
[[part]]
names = []
[[part]]
names = ["a", "b"]
"""


def _home(folder: Path, moniker: str) -> Path:
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "config.toml").write_text(CONFIG.format(moniker=moniker))
    genesis = {"chain_id": moniker, "consensus_params": {"block": {"max_bytes": "22"}}, "validators": [{"power": "1"}]}
    (folder / "config" / "genesis.json").write_text(json.dumps(genesis))
    return folder


def test_flatten_keeps_scalars_and_counts_records() -> None:
    content = {"a": {"b": [1, 2]}, "c": [{"d": 1}, {"d": 2}], "e": "x"}
    assert flatten(content) == {"a.b": [1, 2], "c.count": 2, "e": "x"}


def test_a_change_preserves_the_other_keys_their_types_and_order(tmp_path: Path) -> None:
    path = _home(tmp_path, "m") / "config" / "config.toml"
    before = tomllib.loads(path.read_text())
    change_config(tmp_path, {"consensus.timeout_commit": "1.5s", "moniker": "n"}, "v1")
    after = tomllib.loads(path.read_text())
    assert (after["moniker"], after["consensus"]) == ("n", {"timeout_commit": "1.5s"})
    assert json.dumps(after) == json.dumps(before | {"moniker": "n", "consensus": after["consensus"]})


def test_a_key_that_the_version_does_not_have_is_refused(tmp_path: Path) -> None:
    home = _home(tmp_path, "m")
    with pytest.raises(
        UsageError, match=r"`consensus.timeout_comit` is not a key of the config.toml of CometBFT v1"
    ) as e:
        change_config(home, {"consensus.timeout_comit": "1s"}, "v1")
    assert e.value.hint == "did you mean `node.config.consensus.timeout_commit`?"
    with pytest.raises(UsageError, match="is not a key of the genesis"):
        change_genesis(home, {"consensus_params.block.max_byte": "1"}, "v1")


def test_the_difference_from_the_defaults_is_complete(tmp_path: Path) -> None:
    defaults = _home(tmp_path / "defaults", "default")
    homes = {name: _home(tmp_path / name, name) for name in ("node0", "node1")}
    for home in homes.values():
        change_config(home, {"mempool.cache_size": 200_000}, "v1")
        change_genesis(home, {"consensus_params.block.max_bytes": "33"}, "v1")
    configuration = describe(homes, defaults)
    assert configuration.changed == {
        "config.toml": {"mempool.cache_size": ConfigChange(default=10_000, used=200_000)},
        "genesis.json": {"consensus_params.block.max_bytes": ConfigChange(default="22", used="33")},
    }
    assert configuration.changed_per_node["node1"] == {
        "config.toml": {"moniker": ConfigChange(default="default", used="node1")}
    }
    assert configuration.effective["config.toml"]["consensus.timeout_commit"] == "1s"
    assert "chain_id" not in configuration.effective["genesis.json"]
