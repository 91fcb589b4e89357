"""Links by the kernel: a bridge in a separate namespace, a veth pair to each node, and a tc tree in each node.

The tree of a node has one class for each other node, selected by that node's own address, so each packet has exactly
the delay of its pair. A class that matched the addresses of all zones but its own would give nearly every pair the
first zone's delay, because the first filter wins. netem gets a rate even if none is requested: with one it keeps the
order of packets, without it jitter reorders them.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chainmark.core.errors import EnvironmentFailure
from chainmark.network.links import LinkStats
from chainmark.network.namespaces import Namespace, required_tool

NODE_DEVICE = "wan0"
# Faster than the machine: a class must have a rate, and one that is not held back needs a burst.
RATE_MAX_BPS = 10_000_000_000
BURST_BYTES = 1_000_000
QUEUE_PACKETS = 65_536
_FIRST_CLASS = 16
_UNTOUCHED_CLASS = 1
_PREFIX_BITS = 24


@dataclass(frozen=True)
class LinkDirection:
    """One direction between two nodes, by the address of the other one."""

    address: str
    delay_s: float
    jitter_share: float
    loss: float
    bandwidth_bps: int | None


def tc_tree(lines: Sequence[LinkDirection], device: str = NODE_DEVICE) -> list[str]:
    """The commands, one per line for ``tc -batch``, that delay packets to each address and leave all others unchanged.

    Traffic to the host is among the others, as is ARP.
    """
    fast = f"htb rate {RATE_MAX_BPS}bit burst {BURST_BYTES}b cburst {BURST_BYTES}b quantum 60000"
    commands = [
        f"qdisc add dev {device} root handle 1: htb default {_UNTOUCHED_CLASS}",
        f"class add dev {device} parent 1: classid 1:{_UNTOUCHED_CLASS:x} {fast}",
    ]
    for index, line in enumerate(lines):
        minor = f"{_FIRST_CLASS + index:x}"
        commands += [
            f"class add dev {device} parent 1: classid 1:{minor} {fast}",
            f"qdisc add dev {device} parent 1:{minor} handle {minor}: {netem(line)}",
            f"filter add dev {device} parent 1: protocol ip prio 1 u32 match ip dst {line.address}/32 flowid 1:{minor}",
        ]
    return commands


def tc_change(index: int, line: LinkDirection, device: str = NODE_DEVICE) -> str:
    """The command that changes the figures of line ``index`` of a tree."""
    minor = f"{_FIRST_CLASS + index:x}"
    return f"qdisc change dev {device} parent 1:{minor} handle {minor}: {netem(line)}"


def netem(line: LinkDirection) -> str:
    """A netem queue with the figures of one line, in tc's syntax."""
    words = ["netem", f"limit {QUEUE_PACKETS}", f"delay {_microseconds(line.delay_s)}"]
    if line.delay_s and line.jitter_share:
        words.append(f"{_microseconds(line.delay_s * line.jitter_share)} distribution normal")
    if line.loss:
        words.append(f"loss {line.loss:.6%}")
    words.append(f"rate {line.bandwidth_bps or RATE_MAX_BPS}bit")
    return " ".join(words)


def _microseconds(value_s: float) -> str:
    return f"{round(value_s * 1e6)}us"


@functools.cache
def kernel_has_netem() -> bool:
    """Whether the kernel supports a complete tree, tried in a temporary namespace."""
    line = LinkDirection("198.18.0.1", 0.01, 0.05, 0.01, None)
    return _batch(Namespace(), "tc", tc_tree([line], "lo")).returncode == 0


def _batch(namespace: Namespace, tool: str, commands: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = namespace.command([required_tool(tool), "-batch", "-"])
    text = "".join(f"{line}\n" for line in commands)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def _carry_out(namespace: Namespace | None, tool: str, commands: Sequence[str]) -> None:
    if namespace is None:
        command = [required_tool(tool), "-batch", "-"]
        done = subprocess.run(command, input="\n".join(commands) + "\n", capture_output=True, text=True, check=False)
    else:
        done = _batch(namespace, tool, commands)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0]
        raise EnvironmentFailure(
            f"the kernel refuses links between namespaces: {reason}", f"the message is from `{tool}`"
        )


class Bridge:
    """Namespaces joined by a bridge, and the host with them. Nothing is delayed.

    The bridge is in a namespace without processes, so that it disappears with this process, and with it the host's end.
    """

    def __init__(self, addresses: Sequence[str], host_address: str, host_device: str) -> None:
        self.hub = Namespace()
        self.namespaces = [Namespace() for _ in addresses]
        _carry_out(self.hub, "ip", self._hub_commands(host_device))
        for namespace, address in zip(self.namespaces, addresses, strict=True):
            _carry_out(namespace, "ip", _address_commands(NODE_DEVICE, address))
        _carry_out(None, "ip", _address_commands(host_device, host_address))

    def _hub_commands(self, host_device: str) -> list[str]:
        ends = [(f"node{index}", NODE_DEVICE, namespace.path) for index, namespace in enumerate(self.namespaces)]
        ends.append(("uplink", host_device, f"/proc/{os.getpid()}/ns/net"))
        commands = ["link add br0 type bridge stp_state 0 forward_delay 0", "link set br0 up"]
        for port, device, path in ends:
            commands += [
                f"link add {port} type veth peer name {device} netns {path}",
                f"link set {port} master br0 up",
            ]
        return commands

    def close(self) -> None:
        """Remove the bridge, and with it every link."""
        _carry_out(self.hub, "ip", ["link delete uplink", "link delete br0"])


def _address_commands(device: str, address: str) -> list[str]:
    return [f"address add {address}/{_PREFIX_BITS} dev {device}", f"link set {device} up"]


class NetemFabric:
    """Links with the figures of ``line(from, to)``, by numbers of nodes; raises EnvironmentFailure if refused."""

    def __init__(
        self, addresses: Sequence[str], host_address: str, host_device: str, line: Callable[[int, int], LinkDirection]
    ) -> None:
        self._nodes = len(addresses)
        self._line = line
        self._cut: set[int] = set()
        self._groups: Sequence[int] = [0] * self._nodes
        self._addresses = addresses
        self._bridge = Bridge(addresses, host_address, host_device)
        for node, namespace in enumerate(self.namespaces):
            _carry_out(namespace, "tc", tc_tree([line(node, other) for other in self._others(node)]))

    @property
    def namespaces(self) -> Sequence[Namespace]:
        """The namespace of each node."""
        return self._bridge.namespaces

    def cut(self, node: int, *, reset: bool) -> None:
        """Cut a node off from all others; with ``reset``, close the sockets between them."""
        self._change(self._cut | {node}, self._groups, reset=reset)

    def mend(self, node: int) -> None:
        """Undo :meth:`cut`."""
        self._change(self._cut - {node}, self._groups, reset=False)

    def partition(self, groups: Sequence[int], *, reset: bool) -> None:
        """Cut nodes of different groups off from one another."""
        self._change(self._cut, groups, reset=reset)

    def heal(self) -> None:
        """Undo :meth:`partition`."""
        self._change(self._cut, [0] * self._nodes, reset=False)

    def stats(self) -> LinkStats:
        """The kernel's counts at every node's lines to other nodes."""
        return queue_stats([self._queues(namespace) for namespace in self.namespaces])

    def close(self) -> LinkStats:
        """Remove the links; their last state."""
        last = self.stats()
        self._bridge.close()
        return last

    def _others(self, node: int) -> list[int]:
        return [other for other in range(self._nodes) if other != node]

    def _change(self, cut: set[int], groups: Sequence[int], *, reset: bool) -> None:
        """A cut line loses everything; all others are unchanged."""
        before = {pair for pair in self._pairs() if self._is_cut(*pair)}
        self._cut, self._groups = cut, groups
        for node, namespace in enumerate(self.namespaces):
            commands, closed = [], []
            for index, other in enumerate(self._others(node)):
                is_cut = self._is_cut(node, other)
                if is_cut != ((node, other) in before):
                    line = self._line(node, other)
                    commands.append(tc_change(index, replace(line, loss=1.0) if is_cut else line))
                    closed += [other] if is_cut and reset else []
            if commands:
                _carry_out(namespace, "tc", commands)
            for other in closed:
                close_sockets(namespace, self._addresses[other])

    def _pairs(self) -> list[tuple[int, int]]:
        return [(node, other) for node in range(self._nodes) for other in self._others(node)]

    def _is_cut(self, node: int, other: int) -> bool:
        return node in self._cut or other in self._cut or self._groups[node] != self._groups[other]

    @staticmethod
    def _queues(namespace: Namespace) -> str:
        command = namespace.command([required_tool("tc"), "-s", "-j", "qdisc", "show", "dev", NODE_DEVICE])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EnvironmentFailure(f"`tc` cannot read the links' counters: {done.stderr.strip()}")
        return done.stdout


def queue_stats(answers: Sequence[str]) -> LinkStats:
    """The sums over the output of ``tc -s -j qdisc show`` of each node.

    netem does not distinguish loss from a full queue, and does not report how many packets it received.
    """
    queues = [queue for answer in answers for queue in json.loads(answer) if queue.get("kind") == "netem"]
    sent, dropped, waiting = (sum(queue.get(key, 0) for queue in queues) for key in ("packets", "drops", "qlen"))
    sent_bytes = sum(queue.get("bytes", 0) for queue in queues)
    return LinkStats(
        packets=None,
        bytes=None,
        delivered=sent,
        delivered_bytes=sent_bytes,
        dropped={"lost or queue full": dropped},
        under_way=waiting,
    )


def close_sockets(namespace: Namespace, address: str) -> None:
    """Close every TCP socket of a namespace whose other end has this address.

    A kernel without CONFIG_INET_DIAG_DESTROY leaves them open, to time out.
    """
    command = namespace.command([required_tool("ss"), "--kill", "--tcp", "dst", address])
    subprocess.run(command, capture_output=True, check=False)
