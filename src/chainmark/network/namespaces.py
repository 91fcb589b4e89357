"""Anonymous network namespaces, and an address range that no other process uses.

Only a file descriptor of this process refers to a namespace, and the processes that run in it, which the kernel kills
with this one. So nothing is left however chainmark ends: no namespace, no device, no address.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chainmark._native import NetworkNamespace
from chainmark.core.errors import EnvironmentFailure

# Set aside for benchmarks of networks (RFC 2544), so no route to a real host is hidden.
RANGE = ipaddress.IPv4Network("198.18.0.0/15")
PREFIX_BITS = 24
HOST_NUMBER = 254
NODES_MAX = HOST_NUMBER - 1
DEVICE_PREFIX = "cm-"
# In the environment of every process of ours in a namespace: the process that started it.
OWNER_VARIABLE = "CHAINMARK_LINKS_OWNER"
_ROUTES = Path("/proc/net/route")


class Namespace:
    """One network namespace, with loopback up and nothing else."""

    def __init__(self) -> None:
        try:
            self.native = NetworkNamespace()
        except OSError as error:
            raise EnvironmentFailure.from_native(error) from error

    @property
    def path(self) -> str:
        """A path by which any process of the same user finds it, as long as this object exists."""
        return f"/proc/{os.getpid()}/fd/{self.native.descriptor()}"

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs ``arguments`` in the namespace; the process becomes the program, with the same ID."""
        enter = [required_tool("nsenter"), f"--net={self.path}", "--", *arguments]
        return [required_tool("env"), f"{OWNER_VARIABLE}={own_identity()}", *enter]


def required_tool(name: str) -> str:
    """The path of a program.

    Raises:
        EnvironmentFailure: it is missing.
    """
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        package = {"ip": "iproute2", "tc": "iproute2", "ss": "iproute2", "env": "coreutils"}.get(name, "util-linux")
        raise EnvironmentFailure(f"`{name}` was not found", f"it is part of {package}: `apt install {package}`")
    return path


def own_identity() -> str:
    """This process, distinguishable from any earlier or later one with its ID."""
    return f"{os.getpid()}-{start_ticks(os.getpid())}"


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *fields = stat.rpartition(")")[2].split()
        return None if state == "Z" else int(fields[18])
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def claimed_network() -> Iterator[ipaddress.IPv4Network]:
    """A /24 network of the range that no route of this host leads to, and that no other experiment uses meanwhile.

    Raises:
        EnvironmentFailure: none is free.
    """
    routes = _routes()
    for network in RANGE.subnets(new_prefix=PREFIX_BITS):
        if any(network.overlaps(route) for route in routes):
            continue
        lock = try_lock(network)
        if lock is not None:
            with lock:
                yield network
            return
    raise EnvironmentFailure(
        f"no /{PREFIX_BITS} network of {RANGE} is free on this host", "`ip route` lists the networks in use"
    )


def try_lock(network: ipaddress.IPv4Network) -> socket.socket | None:
    """Claim a network for as long as the socket is open; None if another process has.

    The name is in the host's network namespace, which the claim is about, and disappears with the process.
    """
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0chainmark/{network}")
    except OSError:
        lock.close()
        return None
    return lock


def host_device(network: ipaddress.IPv4Network) -> str:
    """The name of the host's own end of a network: "cm-198-18-7"."""
    return DEVICE_PREFIX + "-".join(str(network.network_address).split(".")[:3])


def network_of_device(name: str) -> ipaddress.IPv4Network | None:
    """The network whose end on the host has this name, if it is one of ours."""
    if not name.startswith(DEVICE_PREFIX):
        return None
    try:
        network = ipaddress.IPv4Network(f"{name.removeprefix(DEVICE_PREFIX).replace('-', '.')}.0/{PREFIX_BITS}")
    except ValueError:
        return None
    return network if network.subnet_of(RANGE) else None


def _routes() -> list[ipaddress.IPv4Network]:
    """The destinations of this host's routes, except the default one."""
    try:
        lines = _ROUTES.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    networks = []
    for line in lines:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[index]), "little") for index in (1, 7))
        if mask:
            networks.append(ipaddress.IPv4Network((destination, mask.bit_count())))
    return networks
