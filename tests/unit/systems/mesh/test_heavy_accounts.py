"""Load on the heaviest accounts: the correct accounts are requested, and their weight is reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.model import Target
from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import Service, ServiceRequest
from chainmark.systems.mesh.accounts import distinct_names
from chainmark.systems.mesh.system import SYSTEM

from tests.unit.systems.mesh.scripted_server import Reply, Script, answer, chain, serving

BLOCK = {"block_identifier": {"index": 1, "hash": "b1"}}
COIN = {"coin_identifier": {"identifier": "c"}, "amount": {"value": "1", "currency": {"symbol": "x", "decimals": 0}}}


def _weight(address: str) -> int:
    return int(address.removeprefix("a")) ** 2


def _accounts() -> Script:
    """The accounts a0 to a6 of the chain. a5 has 25 coins. Their balances are similar, as on most chains."""

    def coins(body: dict[str, Any]) -> Reply:
        address = body["account_identifier"]["address"]
        if not address.startswith("a"):
            return answer({"code": 7, "message": "no such account", "retriable": False}, 500)
        return answer({**BLOCK, "coins": [COIN] * _weight(address)})

    balance = {"value": "1", "currency": {"symbol": "x", "decimals": 0}}
    return {
        **chain(height=300),
        "/account/coins": coins,
        "/account/balance": lambda _: answer({**BLOCK, "balances": [balance]}),
    }


def _prepared(url: str, *settings: str, endpoints: tuple[str, ...] = ()) -> Service:
    profile = SYSTEM.profile(read_profile("mesh/huge-address", settings))
    return SYSTEM.prepare(profile, ServiceRequest(Target("server", url), endpoints=endpoints), Silent())


def _requested(service: Service, endpoint: str) -> set[str]:
    service_endpoint = next(
        service_endpoint for service_endpoint in service.endpoints if service_endpoint.id == endpoint
    )
    return {
        request.body.partition('"address":"')[2].partition('"')[0]
        for request in service_endpoint.requests
        if request.body
    }


def test_the_shipped_profile_requests_the_largest_accounts() -> None:
    with serving(_accounts()) as url:
        service = _prepared(url, "corpus.largest=2")
    assert {endpoint.id for endpoint in service.endpoints} == {"account_balance", "account_coins"}
    # Both endpoints get the same accounts, although the balances do not distinguish them.
    assert _requested(service, "account_coins") == _requested(service, "account_balance") == {"a5", "a6"}
    assert service.strata["account_coins"] == {"a6": 1, "a5": 1}
    assert service.sizes["account_coins"]["coins"] == (25, 36)
    low, high = service.sizes["account_coins"]["bytes"]
    assert 25 * 50 < low < high
    # One of the named endpoints is not offered: it is reported, and the others are measured.
    assert list(service.skipped) == ["/search/transactions (by address)"]


def test_addresses_are_selected_by_name() -> None:
    with serving(_accounts()) as url:
        service = _prepared(url, 'corpus.addresses=["a3", "a60"]')
        assert _requested(service, "account_coins") == {"a3", "a60"}
        assert service.sizes["account_coins"]["coins"] == (9, 3_600)
        with pytest.raises(
            UsageError, match="has no correct response for address `typo`: 500 code 7 “no such account”"
        ):
            _prepared(url, 'corpus.addresses=["a3", "typo"]')


def test_each_account_can_be_measured_separately() -> None:
    with serving(_accounts()) as url:
        service = _prepared(url, "corpus.largest=2", "mesh.by_stratum=true")
    assert service.sizes["account_coins__a6"]["coins"] == (36, 36)
    assert [endpoint.label for endpoint in service.endpoints if endpoint.id == "account_coins__a6"] == [
        "/account/coins, a6"
    ]


def test_an_endpoint_named_by_the_command_must_exist() -> None:
    with serving(_accounts()) as url, pytest.raises(UsageError, match="the corpus has no endpoint `search_by_address`"):
        _prepared(url, endpoints=("search_by_address",))


def test_a_file_without_requests_for_the_named_address_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "corpus.json"
    with serving(_accounts()) as url:
        order = ServiceRequest(Target("server", url), pinned=path)
        SYSTEM.prepare(SYSTEM.profile(read_profile("mesh/huge-address")), order, Silent())
        named = SYSTEM.profile(read_profile("mesh/huge-address", ['corpus.addresses=["a60"]']))
        with pytest.raises(UsageError, match="has no request for the address `a60`"):
            SYSTEM.prepare(named, ServiceRequest(Target("server", url), corpus=path), Silent())


@given(st.lists(st.text(min_size=1, max_size=120), max_size=30, unique=True))
def test_short_names_are_distinct(addresses: list[str]) -> None:
    """Two accounts with the same name would be one stratum."""
    names = distinct_names(addresses)
    assert len(set(names)) == len(addresses)
