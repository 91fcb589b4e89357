"""Loopback addresses: one per node, so that every node keeps the standard ports."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable, Sequence

import psutil

from chainmark.core.errors import EnvironmentFailure, UsageError

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


# Distance between the first addresses of networks that run at the same time.
LANE_ADDRESSES = 1024


def loopback_addresses(first: str, count: int, lane: int = 0) -> list[str]:
    """``count`` consecutive addresses of 127.0.0.0/8, from ``first`` on; different in each lane.

    Raises:
        UsageError: ``first`` is not a loopback address, or the range leaves the network.
    """
    try:
        start = ipaddress.IPv4Address(first) + lane * LANE_ADDRESSES
        last = start + count - 1
    except ValueError as error:
        raise UsageError(f"`{first}` is not an IPv4 address", "`127.1.0.1` is the default") from error
    if start not in LOOPBACK or last not in LOOPBACK:
        raise UsageError(f"{count} nodes from `{first}` on do not fit into {LOOPBACK}", "`127.1.0.1` is the default")
    return [str(start + offset) for offset in range(count)]


def is_own(host: str) -> bool:
    """Whether a host's name or address is of this machine; False if it does not resolve.

    A loopback address may be forwarded elsewhere (a tunnel, a container's port): that cannot be detected from here.
    """
    try:
        results = {str(info[4][0]).partition("%")[0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    own = {address.address.partition("%")[0] for interface in psutil.net_if_addrs().values() for address in interface}
    return bool(results) and all(ipaddress.ip_address(item).is_loopback or item in own for item in results)


def require_free_ports(addresses: Iterable[str], ports: Sequence[int]) -> None:
    """Check that every address and port can be listened on.

    Raises:
        EnvironmentFailure: one cannot; the message names it.
    """
    for address in addresses:
        for port in ports:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((address, port))
                except OSError as error:
                    raise _port_error(address, port, error) from error


def _port_error(address: str, port: int, error: OSError) -> EnvironmentFailure:
    if error.errno == errno.EADDRINUSE:
        return EnvironmentFailure(
            f"{address}:{port} is already in use",
            "another run may use it; `--set network.first_address=127.9.0.1` selects other addresses",
        )
    return EnvironmentFailure(f"{address}:{port} cannot be listened on ({error.strerror})")
