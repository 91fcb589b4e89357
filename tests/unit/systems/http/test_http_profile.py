"""Profiles for any HTTP API: templates filled from rows, checks of responses, and one clear error per mistake."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.model import Endpoint, LevelKind, LoadLevel
from chainmark.core.errors import UsageError
from chainmark.lab.profiles import read_profile, shipped_profiles
from chainmark.systems.http import SYSTEM
from chainmark.systems.http.profile import filled, filled_value
from chainmark.systems.http.system import chosen, corpus_hash, endpoints_of

BLOCK = {
    "endpoint": "block",
    "path": "/block?height={height}",
    "headers": {"X-Chain": "{chain}"},
    "rows": [{"height": 1, "chain": "a"}, {"height": 22, "chain": "b"}],
    "checks": [{"pointer": "/result/height", "is": "{height}"}],
}


def _content(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "system": "http",
        "name": "api",
        "request": [copy.deepcopy(request) for request in requests or (BLOCK,)],
        **more,
    }


def _endpoints(*requests: dict[str, Any]) -> tuple[Endpoint, ...]:
    return endpoints_of(SYSTEM.profile(_content(*requests)))


def test_every_row_becomes_a_request_with_its_own_expectation() -> None:
    (block,) = _endpoints()
    assert [request.path for request in block.requests] == ["/block?height=1", "/block?height=22"]
    assert block.requests[1].headers == (("X-Chain", "b"),)
    # A value keeps its type: a server that answers "22" for 22 is wrong.
    expected = [{"pointer": "/result/height", "is": 22}]
    assert block.requests[1].expect == {"status": [200], "json": True, "checks": expected}


def test_requests_are_read_from_the_rows_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "accounts.csv"
    path.write_text('\ufeffaddress,name\nabc,"Smith, J."\ndef,"{x}"\n', encoding="utf-8")
    request = {"endpoint": "account", "method": "POST", "path": "/account/{address}", "csv": str(path)}
    (account,) = _endpoints({**request, "body": '{{"name":"{name}"}}'})
    assert [request.path for request in account.requests] == ["/account/abc", "/account/def"]
    # The content of a row is data and is not expanded as a template.
    assert [request.body for request in account.requests] == ['{"name":"Smith, J."}', '{"name":"{x}"}']


def test_entries_of_one_endpoint_are_measured_together() -> None:
    first = {"endpoint": "node", "path": "/health", "contains": "ok"}
    node, block = _endpoints(first, BLOCK, {"endpoint": "node", "path": "/status", "label": "late"})
    assert (node.id, node.label) == ("node", "/health")
    assert [request.path for request in node.requests] == ["/health", "/status"]
    assert node.requests[0].expect == {"status": [200], "json": False, "contains": "ok"}
    assert chosen((node, block), ["/health"]) == (node,)
    with pytest.raises(UsageError, match="there is no endpoint `nod`") as caught:
        chosen((node, block), ["nod"])
    assert caught.value.hint == "endpoints: node, block"


def test_the_hash_identifies_the_requests() -> None:
    changed = {**BLOCK, "checks": [{"pointer": "/result/height", "type": "number"}]}
    assert corpus_hash(_endpoints()) == corpus_hash(_endpoints())
    assert corpus_hash(_endpoints()) != corpus_hash(_endpoints(changed))


def test_checks_are_passed_to_the_engine_unchanged() -> None:
    checks = [
        {"pointer": "", "type": "array"},
        {"pointer": "/0/error", "absent": True},
        {"pointer": "", "each": {"pointer": "/ok", "is": None}},
    ]
    (node,) = _endpoints({"endpoint": "node", "path": "/", "checks": checks})
    assert node.requests[0].expect["checks"] == checks


def test_fixed_levels_of_both_kinds_are_read() -> None:
    profile = SYSTEM.profile(_content(fixed={"rates": {"block": [20, 10]}, "clients": {"block": [4]}}))
    levels = profile.fixed_levels()["block"]
    assert levels == (
        LoadLevel(LevelKind.CLIENTS, 4.0),
        LoadLevel(LevelKind.RATE, 10.0),
        LoadLevel(LevelKind.RATE, 20.0),
    )


@given(st.text(), st.text())
def test_a_template_inserts_values_unchanged(before: str, value: str) -> None:
    text = before.replace("{", "{{").replace("}", "}}") + "{name}"
    assert filled(text, {"name": value}, "here") == before + value
    assert filled_value(["{name}", {"a": "{name}"}], {"name": value}, "here") == [value, {"a": value}]


def test_the_shipped_profiles_are_valid() -> None:
    names = [name for name in shipped_profiles() if name.startswith("http/")]
    assert names
    for name in names:
        assert endpoints_of(SYSTEM.profile(read_profile(name)))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"request": []}, "`request`"),
    ({"request": [{**BLOCK, "path": "block"}]}, "`request.0.path` is 'block'"),
    ({"request": [{**BLOCK, "endpoint": "Block"}]}, "`request.0.endpoint` is 'Block'"),
    ({"request": [{**BLOCK, "method": "LIST"}]}, "`request.0.method` is 'LIST'"),
    ({"request": [{**BLOCK, "status": [99]}]}, "99"),
    ({"request": [{**BLOCK, "rows": [{"height": 1}]}]}, "uses `{chain}`, which is missing from its data"),
    ({"request": [{**BLOCK, "check": []}]}, "`request.0.check` is not a key of a profile"),
    ({"request": [{**BLOCK, "checks": [{"pointer": "/a"}]}]}, "the check of `/a` has 0 conditions, not one"),
    ({"request": [{**BLOCK, "checks": [{"pointer": "/a", "is": 1, "absent": True}]}]}, "has 2 conditions, not one"),
    ({"request": [{**BLOCK, "checks": [{"pointer": "a", "is": 1}]}]}, "'a'"),
    ({"request": [{**BLOCK, "csv": "/no/such.csv"}]}, "/no/such.csv"),
    ({"request": [{**BLOCK, "path": "/{height}", "rows": [], "headers": {}}]}, "uses `{height}`"),
    ({"sla_of": {"blok": {"p99_s": 1}}}, "`sla_of` names the endpoint `blok`, which no request has"),
    ({"require": {"blok": {"rate": 1}}}, "`require` names the endpoint `blok`, which no request has"),
    ({"fixed": {"rates": {"blok": [1]}}}, "`fixed.rates` names the endpoint `blok`, which no request has"),
    ({"fixed": {"clients": {"block": [0]}}}, "`fixed.clients.block.0` is 0"),
    ({"ramp": {"rates": {"blok": [1, 2]}}}, "`ramp.rates` names the endpoint `blok`, which no request has"),
    ({"ramp": {"rates": {"block": [2, 1]}}}, "`rates.block` goes from 2 to 1"),
    ({"spike": {"clients": {"block": [1]}}}, "`spike.clients.block`"),
    ({"sla": {"p99_s": 0}}, "`sla.p99_s` is 0"),
    ({"sla": {"p99_s": 1, "p95_s": 2}}, "`p95_s` is 2, which never decides"),
    ({"sla": {"p98_s": 1}}, "`sla.p98_s` is not a key"),
    ({"search": {"clients_first": 8, "clients_last": 4}}, "a search from 8 to 4 clients"),
    ({"search": {"kinds": ["users"]}}, "'users'"),
    ({"steps": {"duration_s": 0}}, "`steps.duration_s` is 0"),
    ({"error_pointers": ["code"]}, "'code'"),
]


@pytest.mark.parametrize(("changed", "expected"), WRONG)
def test_an_invalid_profile_is_reported_in_one_sentence(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        SYSTEM.profile({**_content(), **changed})
    assert expected in caught.value.message
    assert "\n" not in caught.value.message


def test_an_invalid_data_file_is_refused(tmp_path: Path) -> None:
    empty, binary, ragged = tmp_path / "empty.csv", tmp_path / "binary.csv", tmp_path / "ragged.csv"
    empty.write_text("address\n", encoding="utf-8")
    binary.write_bytes(b"address\n\xff\xfe\n")
    ragged.write_text("address,name\nabc\n", encoding="utf-8")
    expected = {empty: "has no row", binary: "cannot be read", ragged: "line 2"}
    for path, reason in expected.items():
        with pytest.raises(UsageError, match=reason) as caught:
            _endpoints({"endpoint": "account", "path": "/{address}/{name}", "csv": str(path)})
        assert str(path) in caught.value.message
