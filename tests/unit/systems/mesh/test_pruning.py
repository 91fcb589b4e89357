"""A server's pruning is read from the server, because a setting typed by hand may be outdated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chainmark.systems.mesh.client import MeshClient
from chainmark.systems.mesh.discovery import discover
from chainmark.systems.mesh.pruning import PRUNING, Pruning, read_pruning
from chainmark.systems.mesh.system import SYSTEM

from tests.unit.systems.mesh.scripted_server import Script, answer, chain, serving


def _read(script: Script) -> Pruning:
    with serving(script) as url, MeshClient(url) as client:
        return read_pruning(discover(client), client)


def _telling(oldest: int, **of_chain: int) -> Script:
    """A server whose status contains its oldest block, as the standard requires for pruned servers."""
    script = chain(**of_chain)

    def status(body: dict[str, Any]) -> Any:
        reply = script["/network/status"](body)
        return answer({**json.loads(reply[2]), "oldest_block_identifier": {"index": oldest, "hash": "b"}})

    return {**script, "/network/status": status}


def test_a_server_with_all_blocks_is_not_pruned() -> None:
    pruning = _read(chain())
    assert (pruning.pruned, pruning.condition) == (False, "off")


@pytest.mark.parametrize("telling", [True, False])
def test_a_pruned_server_is_detected_whether_it_reports_it_or_not(telling: bool) -> None:
    pruned = {"height": 1_000, "pruned_below": 737}
    pruning = _read(_telling(737, **pruned) if telling else chain(**pruned))
    assert (pruning.pruned, pruning.oldest, pruning.available, pruning.is_reported) == (True, 737, 264, telling)
    assert pruning.words.startswith("on, oldest block 737 (")
    assert ("oldest_block_identifier" in pruning.words) is telling


def test_a_reported_oldest_block_that_is_not_available_is_ignored() -> None:
    """Only available blocks count, because the load uses them."""
    pruning = _read(_telling(500, height=1_000, pruned_below=737))
    assert (pruning.oldest, pruning.is_reported) == (737, False)


def test_an_unavailable_genesis_block_is_not_pruning() -> None:
    assert _read(chain(pruned_below=1)).condition == "off"
    assert _read(chain(pruned_below=2)).pruned


def test_without_blocks_the_pruning_is_not_stated() -> None:
    script = {path: reply for path, reply in chain().items() if path != "/block"}
    assert (_read(script).pruned, _read(script).words) == (None, "not stated")
    refusing = {**chain(), "/block": lambda _: answer({"code": 1, "message": "no", "retriable": False}, 500)}
    assert _read(refusing).condition == "not stated"


def test_a_moving_window_is_the_same_condition_but_another_size_is_not() -> None:
    """Otherwise every comparison of two tests of one server would warn, and warnings would be ignored."""
    week = Pruning(True, 10_000_000, 30_240).condition
    assert Pruning(True, 10_000_700, 30_191).condition == week
    assert Pruning(True, 9_900_000, 129_600).condition != week
    assert "30,000" in week


def test_pruning_is_a_condition_of_comparisons() -> None:
    assert PRUNING in SYSTEM.catalogue().conditions
