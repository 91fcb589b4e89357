"""Homes and genesis of an application's own nodes: created with its program's commands, as the adapter names them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainmark.core.errors import EnvironmentFailure, InternalError
from chainmark.core.storage import storage_errors
from chainmark.systems.cometbft.applications.adapter import Adapter

COMMAND_TIMEOUT_S = 120
LAST_LINES = 8
GENESIS = Path("config") / "genesis.json"


@dataclass(frozen=True)
class NodeHome:
    """A node's home to be created. ``power`` is its voting power, 0 for a node that is not a validator."""

    name: str
    folder: Path
    address: str
    binary: Path
    power: int


def make_homes(adapter: Adapter, nodes: Sequence[NodeHome]) -> None:
    """Create the homes of all nodes, with one genesis that has the validators and no other accounts.

    Raises:
        EnvironmentFailure: one of the program's commands failed; the hint has its last lines.
    """
    for node in nodes:
        make_home(adapter, node)
    validators = [node for node in nodes if node.power]
    first = validators[0]
    if adapter.validator.join:
        _join(adapter, validators)
    genesis = (first.folder / GENESIS).read_bytes()
    for node in nodes:
        if node is not first:
            _write(node.folder / GENESIS, genesis)


def make_home(adapter: Adapter, node: NodeHome) -> None:
    """Create one home, with its own genesis."""
    if adapter.home is None:
        raise InternalError(f"the adapter {adapter.name} does not define how to create a home")
    run(node, adapter.home.init, _places(adapter, node))
    if not (node.folder / GENESIS).is_file():
        raise EnvironmentFailure(
            f"`{node.binary.name} {adapter.home.init[0]}` did not write {GENESIS} below {node.folder}",
            "check that `home.init` of the adapter passes `{home}`",
        )
    if adapter.accounts.genesis == "cosmos-sdk" and "{stake}" in adapter.validator.join:
        _stake_with(node.folder / GENESIS, adapter.chain.denom)


def _stake_with(genesis_path: Path, denom: str) -> None:
    """Set the denomination of a Cosmos SDK chain's stake and of what it mints; `init` may have written another."""
    genesis = json.loads(genesis_path.read_text(encoding="utf-8"))
    state = genesis.get("app_state") or {}
    for module, key in (("staking", "bond_denom"), ("mint", "mint_denom")):
        parameters = (state.get(module) or {}).get("params") or {}
        if key in parameters:
            parameters[key] = denom
    _write(genesis_path, json.dumps(genesis, indent=2).encode())


def _join(adapter: Adapter, validators: Sequence[NodeHome]) -> None:
    """Make every validator a part of the first one's genesis."""
    commands, first = adapter.validator, validators[0]
    group = commands.group if commands.group and _knows(first, commands.group) else ""
    for node in validators:
        places = {**_places(adapter, node), "{group}": group}
        run(node, commands.key, places)
        places["{operator}"] = _last_word(run(node, commands.address, places))
        for home in {node.folder, first.folder}:
            run(node, commands.fund, {**places, "{home}": str(home)})
        run(node, commands.join, places)
        if node is not first:
            _collect(node.folder / commands.joined, first.folder / commands.joined)
    run(first, commands.collect, {**_places(adapter, first), "{group}": group})


def _collect(source: Path, target: Path) -> None:
    with storage_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.glob("*")):
            shutil.copyfile(path, target / path.name)


def _knows(node: NodeHome, group: str) -> bool:
    """Whether a program has a subcommand: for an unknown one it prints an error, or its general help."""
    own, output = _ended(node, ["--help"]), _ended(node, [group, "--help"])
    return output.returncode == 0 and output.stdout != own.stdout


def _places(adapter: Adapter, node: NodeHome) -> dict[str, str]:
    """The values of the placeholders in the commands and values of one node."""
    denom = adapter.chain.denom
    stake = adapter.validator.stake * node.power
    return {
        "{node}": node.name,
        "{home}": str(node.folder),
        "{address}": node.address,
        "{chain_id}": adapter.chain.id,
        "{denom}": denom,
        # The stake, and the same amount to pay with.
        "{balance}": f"{2 * stake}{denom}",
        "{stake}": f"{stake}{denom}",
    }


def filled(word: str, places: Mapping[str, str]) -> str:
    """A word with its placeholders replaced."""
    for place, value in places.items():
        word = word.replace(place, value)
    return word


def file_values(adapter: Adapter, node: NodeHome) -> dict[str, dict[str, Any]]:
    """The adapter's `files` for one node."""
    places = _places(adapter, node)
    return {
        path: {key: filled(value, places) if isinstance(value, str) else value for key, value in values.items()}
        for path, values in adapter.files.items()
    }


def start_command(adapter: Adapter, node: NodeHome) -> list[str]:
    """The command that starts a node."""
    if adapter.start is None:
        raise InternalError(f"the adapter {adapter.name} does not define how to start a node")
    places = _places(adapter, node)
    words = [filled(word, places) for word in adapter.start.command]
    return [str(node.binary), *(word for word in words if word)]


def run(node: NodeHome, words: Sequence[str], places: Mapping[str, str]) -> str:
    """The output of one of the program's commands; "" without a command.

    Raises:
        EnvironmentFailure: it failed; the hint has its last lines.
    """
    if not words:
        return ""
    command = [word for word in (filled(word, places) for word in words) if word]
    ended = _ended(node, command)
    if ended.returncode == 0:
        return ended.stdout.strip() or ended.stderr.strip()
    lines = [line.rstrip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()] or ["no output"]
    reason = next((line.strip() for line in lines if line.startswith("Error:")), lines[-1])
    text = " ".join(word for word in command[:3] if not word.startswith("-"))
    raise EnvironmentFailure(
        f"`{node.binary.name} {text}` failed for {node.name}: {reason.removeprefix('Error: ')}",
        "its last lines:\n" + "\n".join(lines[-LAST_LINES:]),
    )


def _ended(node: NodeHome, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [str(node.binary), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFailure(
            f"`{node.binary.name} {words[0]}` did not end within {COMMAND_TIMEOUT_S} s",
            "the adapter's command must not wait for input",
        ) from error


def _last_word(text: str) -> str:
    """The last output of a command: some programs print warnings before it."""
    words = text.split()
    return words[-1] if words else ""


def fund_accounts(genesis_path: Path, addresses: Sequence[str], adapter: Adapter, size_bytes: int) -> bytes:
    """The genesis of a Cosmos SDK chain with further accounts, numbered after the existing ones.

    Args:
        genesis_path: of the genesis without them.
        addresses: of the accounts.
        adapter: defines each account's balance.
        size_bytes: of the transactions, whose memos must be allowed.

    Raises:
        EnvironmentFailure: it lacks the accounts or balances of the SDK's modules.
    """
    genesis = json.loads(genesis_path.read_text(encoding="utf-8"))
    balance, denom = adapter.accounts.balance, adapter.chain.denom
    try:
        auth, bank = genesis["app_state"]["auth"], genesis["app_state"]["bank"]
        accounts, parameters = auth["accounts"], auth["params"]
        balances, supply = bank["balances"], bank["supply"]
    except (KeyError, TypeError) as error:
        raise _not_sdk(genesis_path) from error
    for number, account in enumerate(accounts):
        account.get("base_account", account)["account_number"] = str(number)
    accounts += [_base_account(address, len(accounts) + index) for index, address in enumerate(addresses)]
    balances += [{"address": address, "coins": [{"denom": denom, "amount": str(balance)}]} for address in addresses]
    for coin in supply:
        if coin["denom"] == denom:
            coin["amount"] = str(int(coin["amount"]) + balance * len(addresses))
    parameters["max_memo_characters"] = str(max(int(parameters["max_memo_characters"]), size_bytes))
    return json.dumps(genesis).encode()


def _base_account(address: str, number: int) -> dict[str, Any]:
    return {
        "@type": "/cosmos.auth.v1beta1.BaseAccount",
        "address": address,
        "pub_key": None,
        "account_number": str(number),
        "sequence": "0",
    }


def accounts_in(genesis_path: Path) -> int:
    """The number of accounts in the genesis of a Cosmos SDK chain."""
    genesis = json.loads(genesis_path.read_text(encoding="utf-8"))
    try:
        return len(genesis["app_state"]["auth"]["accounts"])
    except (KeyError, TypeError) as error:
        raise _not_sdk(genesis_path) from error


def _not_sdk(path: Path) -> EnvironmentFailure:
    return EnvironmentFailure(
        f"the genesis of {path.parent.parent.name} has no accounts and balances in the sections of the Cosmos SDK",
        'set `accounts.genesis = "none"` to leave the genesis unchanged',
    )


def write_genesis(folders: Sequence[Path], content: bytes) -> None:
    """Copy one genesis to all homes."""
    for folder in folders:
        _write(folder / GENESIS, content)


def _write(path: Path, content: bytes) -> None:
    with storage_errors(path):
        path.write_bytes(content)
