"""The report for a network that stops, and how a user's own application is started."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Configuration
from chainmark.core.progress import Silent
from chainmark.network.processes import ProcessGroup
from chainmark.systems.cometbft import workload
from chainmark.systems.cometbft.current import heights
from chainmark.systems.cometbft.external import application_of
from chainmark.systems.cometbft.launch import CometNetwork, CometNode, wait_until_healthy
from chainmark.systems.cometbft.network_plan import NodeEndpoints
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.shape import Role
from chainmark.systems.cometbft.workload import Stall


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """The current time of this clock."""
        return self.now_s


def _page(height: int) -> bytes:
    return f'cometbft_consensus_latest_block_height{{chain_id="x"}} {height}\n'.encode()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own_clock = Clock()
    monkeypatch.setattr(workload, "time", own_clock)
    return own_clock


def _height_of(pages: Mapping[str, bytes]) -> int:
    return max(heights(pages).values(), default=-1)


def _looks(
    clock: Clock,
    looks: list[tuple[float, dict[str, bytes]]],
    *,
    meant: bool = False,
    height_of: Callable[[Mapping[str, bytes]], int] = _height_of,
) -> list[str]:
    clock.now_s = 0.0
    stall = Stall(30.0, height_of)
    messages = []
    for now_s, pages in looks:
        clock.now_s = now_s
        messages.append(stall.look(pages, is_intended=meant))
    return messages


def test_a_network_without_new_blocks_is_reported_with_its_height(clock: Clock) -> None:
    """Otherwise the run would wait until the load and the draining are over."""
    twelve = {"node0": _page(11), "node1": _page(12)}
    assert _looks(clock, [(2.0, twelve), (32.0, twelve), (33.1, twelve)]) == ["", "", "no block for 30 s at height 12"]


def test_a_new_block_of_any_node_counts(clock: Clock) -> None:
    looks = [(29.0 * number, {"node0": _page(7), "node1": _page(number)}) for number in range(8, 20)]
    assert _looks(clock, looks) == [""] * len(looks)


def test_a_network_that_never_reports_a_height_has_stopped(clock: Clock) -> None:
    assert _looks(clock, [(29.0, {}), (31.0, {})]) == ["", "no block for 30 s at height 0"]


def test_an_intended_halt_is_not_a_failure(clock: Clock) -> None:
    """A partition in the profile stops the chain on purpose."""
    halted = [(5.0, {"node0": _page(9)}), (100.0, {"node0": _page(9)})]
    assert _looks(clock, halted, meant=True) == ["", ""]
    assert _looks(clock, halted, meant=False)[1] == "no block for 30 s at height 9"


def test_pages_are_read_only_as_often_as_they_are_scraped(clock: Clock) -> None:
    """Each page has tens of kilobytes of text, and reading it uses the processors that are being measured."""
    read: list[Mapping[str, bytes]] = []

    def height_of(pages: Mapping[str, bytes]) -> int:
        read.append(pages)
        return -1

    _looks(clock, [(number / 10, {}) for number in range(41)], height_of=height_of)
    assert len(read) == 4


def test_the_placeholders_of_an_application_are_filled_for_each_node(tmp_path: Path) -> None:
    application = application_of(["sh", "-c", "app --listen={address} --name={node} {home}/x"])
    assert application is not None
    command = application.command("node2", "127.1.0.3:26658", tmp_path)
    assert command[0].endswith("/sh")
    assert command[2] == f"app --listen=tcp://127.1.0.3:26658 --name=node2 {tmp_path}/x"
    assert str(application) == "sh -c app --listen={address} --name={node} {home}/x"
    assert application_of([]) is None


def test_the_files_of_an_application_are_found(tmp_path: Path) -> None:
    """They are not on other machines. The program itself, folders and missing files are no such files."""
    rules = tmp_path / "rules.txt"
    words = ["sh", "{address}", str(rules), str(tmp_path)]
    application = application_of(words)
    assert application is not None
    assert application.file() is None
    rules.touch()
    assert application.file() == str(rules)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["no-such-program", "{address}"], "`application.command` names `no-such-program`, which is not a program"),
        (["sh", "-c", "true"], "`application.command` does not pass the application its address"),
    ],
)
def test_an_unusable_application_is_reported(command: list[str], expected: str) -> None:
    with pytest.raises(UsageError) as error:
        application_of(command)
    assert error.value.message == expected
    assert error.value.hint


def test_two_applications_at_once_are_refused() -> None:
    both = {"command": ["sh", "{address}"], "vote_extension_size_bytes": 0}
    with pytest.raises(ValueError, match="cannot be combined"):
        CometBFTProfile.model_validate({"system": "cometbft", "name": "x", "application": both})


def test_a_disk_that_is_full_while_a_network_starts_is_not_a_fault_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes are never healthy, which would count as a failed start of their release a minute later."""
    with ProcessGroup() as processes:
        node = CometNode("node0", Role.VALIDATOR, NodeEndpoints("127.0.0.1"), tmp_path, Path("program"))
        node.current = processes.start("node0", ["sleep", "60"], tmp_path / "log")
        network = CometNetwork([node], processes, Configuration(), {}, {})
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=(64 << 20) - 1))
        with pytest.raises(EnvironmentFailure, match=f"the disk is full: 63 MiB are left in {tmp_path}"):
            wait_until_healthy(network, 60.0, Silent())
