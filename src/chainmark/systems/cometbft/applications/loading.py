"""The transactions of an application, made by the load generator or by a user's function."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainmark._native import BankSends
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.systems.cometbft.applications.adapter import Adapter

if TYPE_CHECKING:
    from chainmark.systems.cometbft.profile import Load

# Maximum total size of the transactions that a function makes, bytes.
GIVEN_BYTES_MAX = 2 << 30


@dataclass(frozen=True)
class TransactionRequest:
    """The request to a function: a number of transactions per connection, in the order in which they are sent.

    Attributes:
        connections: number of lists.
        per_connection: number of transactions in each; missing ones are not sent, and counted as unsent.
        size_bytes: of each, from the profile.
        seed: of everything drawn at random: equal seeds must give equal transactions.
        chain_id: of the genesis.
    """

    connections: int
    per_connection: int
    size_bytes: int
    seed: int
    chain_id: str


@dataclass(frozen=True)
class Prepared:
    """Transactions for the load generator: one of the two, or neither for the load tool's own."""

    bank_sends: BankSends | None = None
    given: list[list[bytes]] | None = None

    @property
    def addresses(self) -> list[str]:
        """Of the accounts that the genesis must hold."""
        return [] if self.bank_sends is None else self.bank_sends.addresses()


def prepared(adapter: Adapter, load: Load, seed: int, first_account_number: int = 0) -> Prepared | None:
    """The transactions of a load; None for the load tool's own.

    Args:
        first_account_number: of the first account, as the chain will count it.

    Raises:
        UsageError: they cannot be made.
    """
    if adapter.transaction.kind == "bank-send":
        return Prepared(bank_sends=_bank_sends(adapter, load, seed, first_account_number))
    if adapter.transaction.kind == "python":
        return Prepared(given=_given(adapter, load, seed))
    return None


def check_transactions(adapter: Adapter, load: Load) -> None:
    """Reject what cannot be made, before anything is started.

    Raises:
        UsageError: the size is too small, the prefix invalid, or the function does not exist.
    """
    if adapter.transaction.kind == "bank-send":
        item = adapter.model_copy(update={"accounts": adapter.accounts.model_copy(update={"per_connection": 1})})
        _bank_sends(item, load, 0, 0)
    elif adapter.transaction.kind == "python":
        _function(adapter.transaction.make)


def _bank_sends(adapter: Adapter, load: Load, seed: int, first_account_number: int) -> BankSends:
    duration_s = load.warm_up_s + load.duration_s
    try:
        return BankSends(
            chain_id=adapter.chain.id,
            prefix=adapter.chain.prefix,
            denom=adapter.chain.denom,
            fee=adapter.transaction.fee,
            gas=adapter.transaction.gas,
            size_bytes=load.size_bytes,
            connections=load.total_connections,
            accounts_per_connection=adapter.accounts_per_connection(load.rate, duration_s),
            first_account_number=first_account_number,
            seed=seed,
        )
    except ValueError as error:
        raise UsageError.from_native(error) from error


def _given(adapter: Adapter, load: Load, seed: int) -> list[list[bytes]]:
    make = adapter.transaction.make
    order = TransactionRequest(
        connections=load.total_connections,
        per_connection=int(load.rate * (load.warm_up_s + load.duration_s) + 1e-9),
        size_bytes=load.size_bytes,
        seed=seed,
        chain_id=adapter.chain.id,
    )
    try:
        transactions = _function(make)(order)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"`{make}` failed: {type(error).__name__}: {error}", "test the function alone, as the guide shows"
        ) from error
    return _checked(transactions, make, order)


def _checked(made: Any, make: str, order: TransactionRequest) -> list[list[bytes]]:
    """The result of a function, if it consists of transactions."""
    wanted = f"it must return {units.plural(order.connections, 'list')} of bytes, one for each connection"
    if not isinstance(made, Sequence) or len(made) != order.connections:
        raise UsageError(f"`{make}` returned {type(made).__name__} instead of transactions", wanted)
    lists = [list(item) for item in made]
    if invalid := next((item for part in lists for item in part if not isinstance(item, bytes) or not item), None):
        raise UsageError(f"`{make}` returned {invalid!r} as a transaction", wanted)
    total = sum(len(item) for part in lists for item in part)
    if total > GIVEN_BYTES_MAX:
        raise UsageError(
            f"`{make}` made {units.byte_size(total)} of transactions; the limit is {units.byte_size(GIVEN_BYTES_MAX)}",
            "lower `load.rate`, `load.duration_s` or the transactions' size",
        )
    return lists


def _function(make: str) -> Callable[[TransactionRequest], Any]:
    """The function with this name.

    Raises:
        UsageError: there is none.
    """
    place, _, name = make.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:
        raise UsageError(
            f"`transaction.make` names `{place}`, which cannot be imported: {error}",
            "name a file next to the adapter, such as `transactions.py:make`, or an installed module",
        ) from error
    result = getattr(module, name, None)
    if not callable(result):
        raise UsageError(f"`transaction.make` names `{name}`, but {place} has no such function")
    function: Callable[[TransactionRequest], Any] = result
    return function


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
