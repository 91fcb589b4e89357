"""A server's hardware is measured on this machine, or reported as the user states it, and never guessed."""

from __future__ import annotations

import socket

import psutil
import pytest

from chainmark.capacity.model import Target
from chainmark.capacity.profile import LoadProfile
from chainmark.lab.hardware import NOT_STATED, server_hardware
from chainmark.network.addresses import is_own

ELSEWHERE = "192.0.2.7"  # RFC 5737: an address for documentation, which no machine has


def _reported(url: str, hardware: str | dict[str, str] = "") -> str:
    profile = LoadProfile(system="x", name="x", hardware=hardware)
    return server_hardware(profile, Target("new", url)).value


@pytest.mark.parametrize("host", ["127.0.0.1", "127.21.3.4", "::1", "localhost"])
def test_a_loopback_address_belongs_to_this_machine(host: str) -> None:
    assert is_own(host)


def test_interface_addresses_belong_to_this_machine() -> None:
    """A test of the machine's external address is as local as a test of the loopback address."""
    interfaces = psutil.net_if_addrs().values()
    own = [address.address for addresses in interfaces for address in addresses if address.family == socket.AF_INET]
    assert own
    assert all(map(is_own, own))


@pytest.mark.parametrize("host", [ELSEWHERE, "no-such-host.invalid", "", "x" * 300])
def test_other_addresses_do_not_belong_to_this_machine(host: str) -> None:
    assert not is_own(host)


def test_the_hardware_text_of_a_report() -> None:
    assert _reported("http://127.0.0.1:8080").startswith("the machine that made the load")
    assert _reported(f"http://{ELSEWHERE}/rosetta") == NOT_STATED
    assert _reported(f"http://{ELSEWHERE}", "8 cores") == "8 cores (stated, not read)"
    assert _reported(f"http://{ELSEWHERE}", {"new": "8 cores"}) == "8 cores (stated, not read)"
    assert _reported(f"http://{ELSEWHERE}", {"old": "8 cores"}) == NOT_STATED
