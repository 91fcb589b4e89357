"""The correct response of each Mesh endpoint, as checks that the load engine runs on every response.

Only stable properties are checked: requested identifiers, the form of values, the number of transactions of a settled
block. Timestamps, balances, the mempool and the current block change, and are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chainmark.systems.mesh.client import MeshResponse

Check = dict[str, Any]
Expectation = dict[str, Any]

_INTEGER_TEXT = re.compile(r"-?[0-9]+")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_NOTHING = object()

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "integer_text": lambda value: isinstance(value, str) and _INTEGER_TEXT.fullmatch(value) is not None,
}


def expectation(checks: Sequence[Check]) -> Expectation:
    """A response with status 200, a JSON body, and these checks."""
    return {"status": [200], "json": True, "checks": list(checks)}


def network_list() -> Expectation:
    """At least one network, each with its two names."""
    each = [_each("/network_identifiers", _type(pointer, "string")) for pointer in ("/blockchain", "/network")]
    return expectation([_type("/network_identifiers/0", "object"), *each])


def network_options() -> Expectation:
    """Versions, operation types and errors."""
    version = [_type("/version/node_version", "string"), _type("/version/rosetta_version", "string")]
    errors = [_type("/allow/errors", "array"), _each("/allow/errors", _type("/code", "number"))]
    return expectation([*version, _type("/allow/operation_types", "array"), *errors])


def network_status(genesis: Mapping[str, Any] | None) -> Expectation:
    """A current block; the genesis block, which must match if it is known."""
    checks = [*_identifier("/current_block_identifier"), _type("/current_block_timestamp", "number")]
    return expectation([*checks, *_identifier("/genesis_block_identifier", genesis)])


def block(
    identifier: Mapping[str, Any], parent: Mapping[str, Any] | None = None, transactions: int | None = None
) -> Expectation:
    """The requested block, with its parent and number of inline transactions, if these are known."""
    return expectation(
        [
            *_identifier("/block/block_identifier", identifier),
            *_identifier("/block/parent_block_identifier", parent),
            _type("/block/timestamp", "number"),
            _type("/block/transactions", "array"),
            _each("/block/transactions", _type("/transaction_identifier/hash", "string")),
            _each("/block/transactions", _type("/operations", "array")),
            *_length("/block/transactions", transactions),
        ]
    )


def block_transaction(transaction_hash: str, operations: int | None = None) -> Expectation:
    """The requested transaction, with its number of operations."""
    return expectation(
        [
            {"pointer": "/transaction/transaction_identifier/hash", "is": transaction_hash},
            _type("/transaction/operations", "array"),
            _each("/transaction/operations", _type("/operation_identifier/index", "number")),
            *_length("/transaction/operations", operations),
        ]
    )


def account_balance() -> Expectation:
    """The block of the balances, and integers as text."""
    return expectation(
        [
            *_identifier("/block_identifier"),
            _type("/balances", "array"),
            _each("/balances", _type("/value", "integer_text")),
            _each("/balances", _type("/currency/symbol", "string")),
        ]
    )


def account_coins() -> Expectation:
    """The block of the coins, each with its identifier and an integer as text."""
    return expectation(
        [
            *_identifier("/block_identifier"),
            _type("/coins", "array"),
            _each("/coins", _type("/coin_identifier/identifier", "string")),
            _each("/coins", _type("/amount/value", "integer_text")),
        ]
    )


def search_by_hash(transaction_hash: str) -> Expectation:
    """That transaction, with the block it is in."""
    result = {"pointer": "/transactions/0/transaction/transaction_identifier/hash", "is": transaction_hash}
    return expectation([*_identifier("/transactions/0/block_identifier"), result])


def search_by_address() -> Expectation:
    """At least one transaction: the account was seen in one."""
    each = _each("/transactions", _type("/transaction/transaction_identifier/hash", "string"))
    return expectation([_type("/total_count", "number"), _type("/transactions/0", "object"), each])


def events_blocks() -> Expectation:
    """A list of events and its highest number."""
    return expectation([_type("/max_sequence", "number"), _type("/events", "array")])


def mempool() -> Expectation:
    """A list of transactions, which may be empty."""
    identifiers = "/transaction_identifiers"
    return expectation([_type(identifiers, "array"), _each(identifiers, _type("/hash", "string"))])


def construction_metadata() -> Expectation:
    """Some metadata; their content depends on the implementation."""
    return expectation([_type("/metadata", "object")])


def failed(expected: Mapping[str, Any], answer: MeshResponse) -> str | None:
    """The error in a response, in words; None if it is correct.

    The load engine checks the same expectations: this checks an item before the load.
    """
    if answer.status not in expected.get("status", [200]) or (expected.get("json") and answer.document is None):
        return answer.in_words()
    if expected.get("contains", "") not in answer.text:
        return f"the response does not contain “{expected['contains']}”"
    for check in expected.get("checks", []):
        if (reason := _failed_check(check, answer.document)) is not None:
            # An error in the body of a 200 is more informative than that the required member is missing.
            return f"{answer.in_words()}" if answer.body_error else reason
    return None


def resolve(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901).

    Raises:
        LookupError: there is none.
    """
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise LookupError(pointer)
    return value


def _failed_check(check: Check, document: Any) -> str | None:
    pointer = check["pointer"]
    try:
        value = resolve(document, pointer)
    except LookupError:
        value = _NOTHING
    if check.get("absent"):
        return None if value is _NOTHING else f"{pointer} is present"
    if value is _NOTHING:
        return f"{pointer} is missing"
    return _failed_value(check, pointer, value)


def _failed_value(check: Check, pointer: str, value: Any) -> str | None:
    if "is" in check:
        return None if _equal(value, check["is"]) else f"{pointer} is {value!r}, not {check['is']!r}"
    if "type" in check:
        return None if _TYPES[check["type"]](value) else f"{pointer} is {value!r}, not of type {check['type']}"
    if not isinstance(value, list):
        return f"{pointer} is {value!r}, not of type array"
    for number, element in enumerate(value):
        if (reason := _failed_check(check["each"], element)) is not None:
            return f"{pointer}/{number}{reason}"
    return None


def _equal(item: Any, other: Any) -> bool:
    """Equality of JSON values: unlike Python's, true is not 1."""
    return isinstance(item, bool) is isinstance(other, bool) and bool(item == other)


def _type(pointer: str, name: str) -> Check:
    return {"pointer": pointer, "type": name}


def _each(pointer: str, check: Check) -> Check:
    return {"pointer": pointer, "each": check}


def _identifier(pointer: str, known: Mapping[str, Any] | None = None) -> list[Check]:
    """A block identifier: the known values, and the form of the others."""
    known = known or {}
    return [
        {"pointer": f"{pointer}/{name}", "is": known[name]} if name in known else _type(f"{pointer}/{name}", kind)
        for name, kind in (("index", "number"), ("hash", "string"))
    ]


def _length(pointer: str, length: int | None) -> list[Check]:
    """Exactly this number of elements: the last exists, the next one does not."""
    if length is None:
        return []
    last = [_type(f"{pointer}/{length - 1}", "object")] if length else []
    return [*last, {"pointer": f"{pointer}/{length}", "absent": True}]
