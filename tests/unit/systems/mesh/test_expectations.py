"""Checks of responses: an undetected error would count as a successful request under load."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.systems.mesh import expectations
from chainmark.systems.mesh.bodies import canonical
from chainmark.systems.mesh.client import MeshResponse

HASH = "0196D7C1"


def _answer(document: Any, status: int = 200) -> MeshResponse:
    text = json.dumps(document)
    return MeshResponse(status, document, text, "application/json", 0.01, len(text))


def _block(**changes: Any) -> dict[str, Any]:
    transactions = [{"transaction_identifier": {"hash": HASH}, "operations": []}]
    block = {
        "block_identifier": {"index": 5, "hash": "b5"},
        "parent_block_identifier": {"index": 4, "hash": "b4"},
        "timestamp": 1,
        "transactions": transactions,
    }
    return {"block": {**block, **changes}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (_block(), None),
        (_block(timestamp=2), None),
        (_block(block_identifier={"index": 5, "hash": "b6"}), "/block/block_identifier/hash is 'b6', not 'b5'"),
        (
            _block(parent_block_identifier={"index": 3, "hash": "b4"}),
            "/block/parent_block_identifier/index is 3, not 4",
        ),
        (_block(transactions=[]), "/block/transactions/0 is missing"),
        (
            _block(transactions=[{"transaction_identifier": {"hash": HASH}, "operations": []}] * 2),
            "/block/transactions/1 is present",
        ),
        (
            _block(transactions=[{"transaction_identifier": {"hash": HASH}}]),
            "/block/transactions/0/operations is missing",
        ),
        ({"block": None}, "/block/block_identifier/index is missing"),
        ({"code": 3, "message": "no block", "retriable": False}, "200 code 3 “no block”"),
        ([], "/block/block_identifier/index is missing"),
    ],
)
def test_a_block_must_be_the_requested_one(document: Any, reason: str | None) -> None:
    expected = expectations.block({"index": 5, "hash": "b5"}, {"index": 4, "hash": "b4"}, transactions=1)
    assert expectations.failed(expected, _answer(document)) == reason


@pytest.mark.parametrize("value", ["1", "-12", "340282366920938463463374607431768211456"])
def test_balances_must_be_integers_in_text_form(value: str) -> None:
    assert expectations.failed(expectations.account_balance(), _answer(_balance(value))) is None


@pytest.mark.parametrize("value", [1, "1.5", "", "1e3", "0x10", None, "１"])
def test_invalid_balances_are_detected(value: object) -> None:
    """`１` is a full-width digit, which a careless pattern would accept."""
    reason = expectations.failed(expectations.account_balance(), _answer(_balance(value)))
    assert reason == f"/balances/1/value is {value!r}, not of type integer_text"


def _balance(value: object) -> dict[str, Any]:
    balances = [{"value": text, "currency": {"symbol": "x", "decimals": 0}} for text in ("0", value)]
    return {"block_identifier": {"index": 1, "hash": "b1"}, "balances": balances}


def test_true_does_not_equal_1() -> None:
    expected = {"checks": [{"pointer": "/a", "is": 1}]}
    assert expectations.failed(expected, _answer({"a": True})) == "/a is True, not 1"
    assert expectations.failed(expected, _answer({"a": 1})) is None


def test_text_is_looked_for_in_the_body() -> None:
    assert expectations.failed({"contains": "abc"}, _answer("xabcx")) is None
    assert expectations.failed({"contains": "abc"}, _answer("xx")) == "the response does not contain “abc”"


def test_a_status_is_reported_with_the_servers_message() -> None:
    error = {"code": 12, "message": "busy", "retriable": True}
    assert expectations.failed(expectations.mempool(), _answer(error, 500)) == "500 code 12 “busy” (retriable)"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~0", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _all_pointers(document: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Every value with its pointer, built from the document. The tested code looks values up by pointer."""
    pointers = [(prefix, document)]
    if isinstance(document, dict):
        for name, value in document.items():
            pointers += _all_pointers(value, f"{prefix}/{name.replace('~', '~0').replace('/', '~1')}")
    if isinstance(document, list):
        for position, value in enumerate(document):
            pointers += _all_pointers(value, f"{prefix}/{position}")
    return pointers


@given(JSON)
def test_every_value_is_found_at_its_pointer(document: Any) -> None:
    for pointer, value in _all_pointers(document):
        assert canonical({"": expectations.resolve(document, pointer)}) == canonical({"": value})
        with pytest.raises(LookupError):
            expectations.resolve(document, f"{pointer}/nothing")
