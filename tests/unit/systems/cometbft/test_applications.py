"""Application adapters: errors for their authors, and the resulting homes, genesis and transactions."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.systems.cometbft import programs
from chainmark.systems.cometbft.applications.adapter import Adapter, adapter_of, line_of, shipped_adapters
from chainmark.systems.cometbft.applications.homes import GENESIS, NodeHome, file_values, fund_accounts, make_homes
from chainmark.systems.cometbft.applications.loading import TransactionRequest, prepared
from chainmark.systems.cometbft.profile import Load
from chainmark.systems.cometbft.system import SYSTEM

LOAD = Load(rate=10, warm_up_s=1, duration_s=4, size_bytes=512)
GUIDE = Path(__file__).resolve().parents[4] / "docs" / "guides" / "test-your-chain.md"
# A chain's program as a script: it creates homes as the SDK's commands do, and has no command group `genesis`.
PROGRAM = """#!/bin/sh
case "$1" in
  --help) echo "commands: init keys fund join collect" ;;
  version) echo 1.2.3 ;;
  init) mkdir -p "$3/config/gentx"; echo '{"of": "'$2'"}' > "$3/config/genesis.json" ;;
  keys) echo "a warning"; echo "addr-$2" ;;
  fund) echo "$2 $3" >> "$4/funded" ;;
  join) [ "$2" = node1 ] && [ -n "$FAIL" ] && { echo "Error: no balance"; echo "Usage: join" ; exit 1; } >&2
        echo "$3" > "$4/config/gentx/$2.json" ;;
  collect) cat "$2"/config/gentx/*.json | tr '\\n' ' ' > "$2/config/genesis.json" ;;
  *) echo "Error: unknown command $1" >&2; exit 1 ;;
esac
"""
COMMANDS = {
    "name": "test",
    "program": {"name": "chain"},
    "chain": {"denom": "coin"},
    "home": {"init": ["init", "{node}", "{home}"]},
    "start": {"command": ["start", "{home}"]},
    "validator": {
        "group": "genesis",
        "address": ["keys", "{node}"],
        "fund": ["{group}", "fund", "{operator}", "{balance}", "{home}"],
        "join": ["{group}", "join", "{node}", "{stake}", "{home}"],
        "collect": ["collect", "{home}"],
        "stake": 10,
    },
    "files": {"config/app.toml": {"grpc.address": "{address}:9090", "grpc.enable": False}},
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An executable called `chain`."""
    path = tmp_path / "bin" / "chain"
    path.parent.mkdir()
    path.write_text(PROGRAM, encoding="utf-8")
    path.chmod(0o755)
    return path


def nodes(program: Path, folder: Path, *powers: int) -> list[NodeHome]:
    return [
        NodeHome(f"node{index}", folder / f"node{index}", f"127.9.0.{index + 1}", program, power)
        for index, power in enumerate(powers)
    ]


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        adapter_of(str(path))
    return caught.value.message, caught.value.hint or ""


def test_a_misspelt_key_is_reported_with_its_line_and_the_correct_key(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('extends = "cosmos-sdk"\nname = "own"\n\n[chain]\nprefix = "own"\n\ndenomination = "uown"\n')
    message, hint = refused(path)
    assert message == f"{path}, line 7: `chain.denomination` is not a key of an application adapter"
    assert hint == "did you mean `denom`?"


@pytest.mark.parametrize(
    ("lines", "reported"),
    [
        ("[transaction]\nfee = -1", ", line 4: `transaction.fee` is -1, but must be greater than or equal to 0"),
        ('[transaction]\nkind = "swap"', ", line 4: `transaction.kind` is 'swap', but must be 'payload', 'bank-send'"),
        ("[start]\ncommand = []", ", line 4: `start.command` is [], but"),
        ('[accounts]\ngenesis = "none"', '`transaction.kind = "bank-send"` needs `accounts.genesis = "cosmos-sdk"`'),
        ("[chain]\nid = ", "is not valid TOML: Invalid value (at line 4, column 6)"),
    ],
)
def test_an_impossible_value_is_reported_with_its_line(tmp_path: Path, lines: str, reported: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'extends = "cosmos-sdk"\n\n{lines}\n')
    assert reported in refused(path)[0]


def test_missing_keys_and_unknown_references_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[program]\nname = "ownd"\n')
    assert "the section `home` is missing" in refused(path)[0]
    assert refused(tmp_path / "none.toml")[0] == f"there is no application `{tmp_path / 'none.toml'}`"
    with pytest.raises(UsageError) as caught:
        adapter_of("cosmos-sdq")
    assert caught.value.hint == "did you mean `cosmos-sdk`?"
    path.write_text('extends = "own.toml"\n')
    assert refused(path)[0].endswith("extends itself")


def test_lines_are_found_below_quoted_and_dotted_sections() -> None:
    text = '[a]\nb.c = 1\n[files."config/app.toml"]\n"grpc.enable" = 1\n'
    assert line_of(text, ("a", "b", "c")) == 2
    assert line_of(text, ("files", "config/app.toml", "grpc.enable")) == 4
    assert line_of(text, ("x",)) is None


def test_an_adapter_changes_only_the_keys_that_it_sets(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('extends = "cosmos-sdk"\nname = "own"\n[chain]\nprefix = "own"\n[transaction]\nfee = 7\n')
    adapter = adapter_of({"extends": str(path), "transaction": {"gas": 90_000}})
    assert (adapter.chain.prefix, adapter.chain.denom) == ("own", "stake")
    assert (adapter.transaction.fee, adapter.transaction.gas) == (7, 90_000)
    # A run's manifest contains the complete adapter, so the run can be repeated without the file.
    assert adapter_of(adapter.model_dump(mode="json")) == adapter


def test_the_adapters_and_the_function_of_the_guide_work_as_written(tmp_path: Path) -> None:
    blocks = re.findall(r"```(toml|python)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (function,) = (text for kind, text in blocks if kind == "python")
    (tmp_path / "swaps.py").write_text(function, encoding="utf-8")
    adapters: dict[str, Adapter] = {}
    for kind, text in blocks:
        if kind == "toml" and text.startswith("extends"):
            path = tmp_path / f"{len(adapters)}.toml"
            path.write_text(text, encoding="utf-8")
            adapters[adapter_of(str(path)).name] = adapter_of(str(path))
    assert list(adapters) == ["My chain", "My chain, swaps"]
    assert adapters["My chain"].files["config/app.toml"]["minimum-gas-prices"] == "0.0001umy"
    load_prepared = prepared(adapters["My chain, swaps"], LOAD, seed=7)
    assert load_prepared is not None
    assert load_prepared.given == [[b"0-%d=7" % number for number in range(50)]]


def install(folder: Path, module: str, offered: str) -> None:
    """Install a package with one adapter, as pip does."""
    (folder / "their_chain.py").write_text(module, encoding="utf-8")
    about = folder / "their_chain-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-chain\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[chainmark.cometbft.applications]\n{offered}\n", encoding="utf-8")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on Python's search path. Modules imported from it are removed after the test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "their_chain", ModuleType("their_chain"))
    monkeypatch.delitem(sys.modules, "their_chain")
    return tmp_path


@pytest.mark.parametrize("kind", ["table", "function"])
def test_an_installed_package_offers_an_adapter_by_name(packages: Path, kind: str) -> None:
    table = "{'extends': 'cosmos-sdk', 'name': 'Theirs', 'chain': {'prefix': 'th'}}"
    install(packages, f"table = {table}\n\ndef function():\n    return table\n", f"theirs = their_chain:{kind}")
    adapter = adapter_of("theirs")
    assert (adapter.name, adapter.chain.prefix, adapter.transaction.kind) == ("Theirs", "th", "bank-send")
    assert adapter_of({"extends": "theirs", "name": "Ours"}).chain.prefix == "th"
    with pytest.raises(UsageError) as raised:
        adapter_of("their")
    assert raised.value.hint == "did you mean `theirs`?"


@pytest.mark.parametrize(
    ("module", "reported"),
    [
        ("make = lambda: 1 / 0", "(`their_chain:make`) failed: ZeroDivisionError: division by zero"),
        ("make = 'theirs.toml'", "(`their_chain:make`) is str, not a table of adapter keys"),
        ("make = {'name': 'x', 'strat': {}}", ": `strat` is not a key of an application adapter"),
        ("", "(`their_chain:make`) failed: AttributeError: module 'their_chain' has no attribute 'make'"),
    ],
)
def test_an_invalid_adapter_of_a_package_is_reported(packages: Path, module: str, reported: str) -> None:
    install(packages, module, "theirs = their_chain:make")
    with pytest.raises(UsageError) as raised:
        adapter_of("theirs")
    assert str(raised.value) == f"the installed adapter `theirs`{' ' if reported[0] == '(' else ''}{reported}"


@pytest.mark.parametrize("name", shipped_adapters())
def test_profiles_select_adapters_by_name_and_record_them_in_the_workload(name: str) -> None:
    profile = SYSTEM.profile({"system": "cometbft", "name": "p", "application": name})
    workload = SYSTEM.workload(profile)
    assert workload["application"] == adapter_of(name).name
    assert "node.app" not in workload
    plain = SYSTEM.workload(SYSTEM.profile({"system": "cometbft", "name": "p"}))
    assert not [key for key in plain if key.startswith(("application", "transaction", "accounts"))]


def test_an_impossible_size_of_a_bank_send_is_refused_before_the_start() -> None:
    content = {"system": "cometbft", "name": "p", "application": "cosmos-sdk", "load": {"size_bytes": 100}}
    with pytest.raises(UsageError, match="100 bytes is too small for a bank send; the smallest size is 3"):
        SYSTEM.profile(content)


def test_all_nodes_get_the_same_genesis(program: Path, tmp_path: Path) -> None:
    adapter = Adapter.model_validate(COMMANDS)
    homes = nodes(program, tmp_path, 1, 3, 0)
    make_homes(adapter, homes)
    genesis = {(node.folder / GENESIS).read_text() for node in homes}
    assert genesis == {"10coin 30coin "}
    # Every operator has funds on its own home, where it joins, and on the first home, where all are collected.
    assert (homes[0].folder / "funded").read_text() == "addr-node0 20coin\naddr-node1 60coin\n"
    assert (homes[1].folder / "funded").read_text() == "addr-node1 60coin\n"
    assert file_values(adapter, homes[1]) == {
        "config/app.toml": {"grpc.address": "127.9.0.2:9090", "grpc.enable": False}
    }


def test_a_command_that_fails_shows_its_error_and_its_last_lines(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(EnvironmentFailure) as caught:
        make_homes(Adapter.model_validate(COMMANDS), nodes(program, tmp_path, 1, 1))
    assert caught.value.message == "`chain join node1 10coin` failed for node1: no balance"
    assert caught.value.hint == "its last lines:\nError: no balance\nUsage: join"


def test_an_init_that_writes_no_genesis_is_reported(program: Path, tmp_path: Path) -> None:
    adapter = Adapter.model_validate({**COMMANDS, "home": {"init": ["version"]}})
    with pytest.raises(EnvironmentFailure, match=r"`chain version` did not write config/genesis\.json"):
        make_homes(adapter, nodes(program, tmp_path, 1))


def test_a_program_is_found_by_its_name_and_other_programs_are_refused(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    adapter = Adapter.model_validate(COMMANDS)
    subject = programs.install(str(program), adapter)
    assert subject.version.startswith("1.2.3@sha-")
    assert programs.binary_path(subject.version, adapter).read_text() == PROGRAM
    assert programs.install(subject.version, adapter) == subject
    with pytest.raises(UsageError, match="there is no binary"):
        programs.install(str(program.with_name("none")), adapter)
    with pytest.raises(UsageError, match="is not a version of test's chain"):
        programs.install("main@1234567", adapter)
    with pytest.raises(UsageError, match="does not name its module"):
        programs.install("v1.0.0", adapter)


def genesis_of(tmp_path: Path, **auth: Any) -> Path:
    content = {
        "app_state": {
            "auth": {"params": {"max_memo_characters": "256"}, "accounts": [{"account_number": "0"}] * 2, **auth},
            "bank": {"balances": [], "supply": [{"denom": "stake", "amount": "5"}, {"denom": "x", "amount": "1"}]},
        }
    }
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(content))
    return path


def test_accounts_are_numbered_funded_and_counted_in_the_supply(tmp_path: Path) -> None:
    adapter = adapter_of("cosmos-sdk")
    content = json.loads(fund_accounts(genesis_of(tmp_path), ["a", "b"], adapter, 512))["app_state"]
    assert [account["account_number"] for account in content["auth"]["accounts"]] == ["0", "1", "2", "3"]
    assert [balance["address"] for balance in content["bank"]["balances"]] == ["a", "b"]
    assert content["bank"]["supply"][0]["amount"] == str(5 + 2 * adapter.accounts.balance)
    assert content["auth"]["params"]["max_memo_characters"] == "512"
    other = tmp_path / "genesis.json"
    other.write_text("{}")
    with pytest.raises(EnvironmentFailure, match="has no accounts and balances in the sections of the Cosmos SDK"):
        fund_accounts(other, ["a"], adapter, 512)


def test_equal_seeds_give_equal_accounts_and_a_load_has_enough_accounts() -> None:
    adapter = adapter_of("cosmos-sdk")
    first, again, other = (prepared(adapter, LOAD, seed, 4) for seed in (1, 1, 2))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.addresses == again.addresses
    assert not set(first.addresses) & set(other.addresses)
    assert len(set(first.addresses)) == 50  # 10 transactions per second for 5 s
    assert all(address.startswith("cosmos1") for address in first.addresses)


def python_adapter(tmp_path: Path, code: str) -> Adapter:
    (tmp_path / "made.py").write_text(code)
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[transaction]\nkind = "python"\nmake = "made.py:make"\n')
    return adapter_of(str(path))


def test_a_python_function_of_the_adapter_makes_the_transactions(tmp_path: Path) -> None:
    code = (
        "def make(order):\n"
        "    numbers = range(order.per_connection)\n"
        "    return [[b'%d=%d' % (c, n) for n in numbers] for c in range(order.connections)]"
    )
    load_prepared = prepared(python_adapter(tmp_path, code), LOAD, 1)
    assert load_prepared is not None
    assert load_prepared.given is not None
    assert (len(load_prepared.given), len(load_prepared.given[0]), load_prepared.given[0][49]) == (1, 50, b"0=49")
    assert TransactionRequest.__annotations__.keys() == {
        "connections",
        "per_connection",
        "size_bytes",
        "seed",
        "chain_id",
    }


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        ("def make(order): raise KeyError('x')", "made.py:make` failed: KeyError: 'x'"),
        ("def make(order): return 5", "returned int instead of transactions"),
        ("def make(order): return [['text']]", "returned 'text' as a transaction"),
        ("def made(order): return []", "has no such function"),
        ("import nothing_of_that_name", "cannot be imported: No module named"),
    ],
)
def test_a_function_without_transactions_is_reported_with_the_reason(tmp_path: Path, code: str, reported: str) -> None:
    with pytest.raises(UsageError) as caught:
        prepared(python_adapter(tmp_path, code), LOAD, 1)
    assert reported in caught.value.message
