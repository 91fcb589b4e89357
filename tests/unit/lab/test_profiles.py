"""Profiles: a mistyped key or value is reported by name, with a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.lab.profiles import apply_setting, differing_keys, read_profile, shipped_profiles
from chainmark.systems.base import load_system


def _error(*settings: str, profile: str = "cometbft/demo") -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        load_system("cometbft").profile(read_profile(profile, settings))
    return caught.value.message, caught.value.hint or ""


@pytest.mark.parametrize("name", shipped_profiles())
def test_every_shipped_profile_is_valid(name: str) -> None:
    content = read_profile(name)
    load_system(content["system"]).profile(content)


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("load.rate=-5", "`load.rate` is -5, but must be at least 1", "`--set load.rate=200` is the default"),
        ("load.raet=5", "`load.raet` is not a key of a profile", "did you mean `load.rate`?"),
        ("lod.rate=5", "`lod` is not a key of a profile", ""),
        ("load.rate=fast", "`load.rate` is 'fast', but must be", "`--set load.rate=200` is the default"),
        ("load.schedule=bursty", "`load.schedule` is 'bursty', but must be 'even', 'poisson' or 'burst'", "even"),
        ("load.targets=[4]", "`load.targets` names node 4, but the nodes are 0 to 3", ""),
        ("load.size_bytes=20", "`load.size_bytes` cannot be used", ""),
        ("load.size_bytes=1023", "1022", ""),
        ("load.size_bytes=1023", "1024", ""),
        ("network.validators=0", "`network.validators` is 0, but must be at least 1", "=4"),
    ],
)
def test_a_wrong_setting_is_named_with_a_hint(setting: str, message: str, hint: str) -> None:
    reported, hinted = _error(setting)
    assert message in reported + hinted
    assert hint in hinted


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="is not `key=value`"):
        apply_setting({}, "load.rate")


def test_an_unknown_profile_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="there is no profile `cometbft/dmo`") as caught:
        read_profile("cometbft/dmo")
    assert caught.value.hint == "did you mean `cometbft/demo`?"


def test_a_custom_profile_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('system = "cometbft"\n[load]\nrate = 7\n')
    profile = load_system("cometbft").profile(read_profile(str(path)))
    assert profile.model_dump()["name"] == "mine"
    assert profile.model_dump()["load"]["rate"] == 7
    path.write_text("not toml")
    with pytest.raises(UsageError, match="is not valid TOML"):
        read_profile(str(path))
    path.write_text("[load]\nrate = 7\n")
    with pytest.raises(UsageError, match="does not name its system"):
        read_profile(str(path))


def test_changing_one_node_setting_leaves_the_others(tmp_path: Path) -> None:
    """Otherwise a test of a longer timeout would silently test a smaller cache as well."""

    def config(*settings: str) -> object:
        profile = load_system("cometbft").profile(read_profile("cometbft/demo", settings))
        return profile.model_dump()["node"]["config"]

    assert config() == {"mempool": {"cache_size": 200_000}}
    assert config("node.config.consensus.timeout_commit=1.5s") == {
        "mempool": {"cache_size": 200_000},
        "consensus": {"timeout_commit": "1.5s"},
    }
    assert config("node.config.mempool.cache_size=10000", "node.config.moniker=m") == {
        "mempool": {"cache_size": 10_000},
        "moniker": "m",
    }


def test_profiles_differ_by_their_dotted_keys() -> None:
    made = {"load": {"rate": 1, "size": 2}, "name": "a", "only": {"here": 1}}
    assert differing_keys(made, made) == []
    assert differing_keys(made, {"load": {"rate": 2, "size": 2, "new": 0}, "name": "b"}) == [
        "load.new", "load.rate", "name", "only",
    ]  # fmt: skip


def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no system `bitcoin`"):
        load_system("bitcoin")


@given(st.text(max_size=30))
def test_any_text_is_a_setting_or_is_refused_clearly(text: str) -> None:
    valid_key = "=" in text and text.partition("=")[0].strip()
    if valid_key:
        assert isinstance(apply_setting({}, text), dict)
    else:
        with pytest.raises(UsageError, match="is not `key=value`"):
            apply_setting({}, text)
