#!/usr/bin/env python3
"""Print how far chainmark's delay switch is from the delays that are set, and what it costs, next to a proxy.

First datagrams at fixed rates between four namespaces, all through one switch on one core: the added error over the
intended delay, packets out of order, and CPU time per packet. Then round trips of one small TCP message at a time:
loopback as the floor, the switch, and toxiproxy with the same delay. Nothing is asserted: read the tables.

Needs root (or CAP_NET_ADMIN and CAP_SYS_ADMIN), /dev/net/tun, cargo and, for the peer, toxiproxy's server:
`go install github.com/Shopify/toxiproxy/v2/cmd/server@latest`, then `--toxiproxy ~/go/bin/server`. Nothing is
installed; what is missing is named and left out.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from chainmark.network.emulation import EmulationPlan, available, emulated_links
from chainmark.network.zones import ZoneTable

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chainmark"
RATES_PER_S = (10_000, 50_000, 100_000)
PAYLOADS = (200, 1400)
NODES = 4
ONE_WAY_MS = 20
PORT, PROXY_PORT, CONTROL_PORT = 7001, 7002, 7003
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    stream, _ = server.accept()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := stream.recv(65536):
        stream.sendall(data)
"""
CLIENT = """
import json, socket, sys, time
stream = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(int(sys.argv[3])):
    begin = time.perf_counter_ns()
    stream.sendall(b"x" * 100)
    got = 0
    while got < 100:
        got += len(stream.recv(100))
    times.append(time.perf_counter_ns() - begin)
print(json.dumps(times))
"""


def build() -> Path:
    """Build the generator of datagrams; return its program."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "target")
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--example", "flood", "--package", "chainmark-net"]
    subprocess.run(command, cwd=REPOSITORY, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, check=True)
    return target / "release" / "examples" / "flood"


def flood(program: Path, rate_per_s: int, payload: int, seconds: int) -> dict[str, float]:
    """Run the generator once, with a higher priority than other processes: it must measure the switch, not itself."""
    order = [str(value) for value in (rate_per_s, seconds, payload, ONE_WAY_MS, NODES)]
    done = subprocess.run(["nice", "-n", "-20", program, *order], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def print_floods(program: Path, seconds: int) -> None:
    """Print the table of the datagrams."""
    print(
        f"\nDatagrams among {NODES} namespaces, {ONE_WAY_MS} ms one way, {seconds} s each; errors in ms over the delay"
    )
    widths = (10, 6, 8, 10, 8, 8, 9, 8, 8, 10, 8, 14, 10)
    titles = [
        "offered/s",
        "bytes",
        "sent/s",
        "switch p50",
        "p99",
        "max",
        "path p50",
        "p99",
        "max",
        "reordered",
        "missing",
    ]
    titles += ["CPU µs/packet", "of a core"]
    print(" ".join(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True)))
    for payload in PAYLOADS:
        for rate_per_s in RATES_PER_S:
            seen = flood(program, rate_per_s, payload, seconds)
            errors = [
                seen[f"{place}_{part}_ns"] / 1e6 for place in ("switch", "path") for part in ("p50", "p99", "max")
            ]
            cells = [str(rate_per_s), str(payload), f"{seen['sent'] / seen['send_s']:.0f}"]
            cells += [f"{error:.3f}" for error in errors]
            cells += [f"{seen['reordered']:.0f}", f"{seen['sent'] - seen['received']:.0f}"]
            cells += [
                f"{seen['switch_cpu_s'] / seen['sent'] * 1e6:.2f}",
                f"{seen['switch_cpu_s'] / seen['send_s']:.0%}",
            ]
            print(" ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[None]:
    """Run a process while the context is open."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def wait_for_port(address: str, port: int) -> None:
    """Wait until the port accepts connections."""
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
            return
        time.sleep(0.05)
    raise SystemExit(f"nobody listens on {address}:{port}")


def round_trips(address: str, port: int, count: int, prefix: Sequence[str] = ()) -> list[float]:
    """Round-trip times in ms, sorted."""
    command = [*prefix, sys.executable, "-c", CLIENT, address, str(port), str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return sorted(value / 1e6 for value in json.loads(done.stdout))


def over_loopback(count: int) -> list[float]:
    """The floor: two processes and the kernel, without delay."""
    with running([sys.executable, "-c", ECHO, "127.0.0.1", str(PORT)]):
        wait_for_port("127.0.0.1", PORT)
        return round_trips("127.0.0.1", PORT, count)


def over_switch(count: int) -> list[float]:
    """Two namespaces and the switch."""
    delays = {("A", "A"): 0.0, ("B", "B"): 0.0, ("A", "B"): float(ONE_WAY_MS), ("B", "A"): float(ONE_WAY_MS)}
    table = ZoneTable("two", "this benchmark", ("A", "B"), delays)
    plan = EmulationPlan(("a", "b"), {"a": "A", "b": "B"}, table, jitter_share=0.0, backend="switch")
    with tempfile.TemporaryDirectory() as folder, emulated_links(plan, Path(folder)) as links:
        address = links.addresses["a"]
        with running(links.command("a", [sys.executable, "-c", ECHO, address, str(PORT)])):
            wait_for_port(address, PORT)
            return round_trips(address, PORT, count, links.command("b", []))


def over_toxiproxy(server: str, count: int) -> list[float]:
    """Loopback and the proxy, with the same delay in each direction."""
    control = ["-host", "127.0.0.1", "-port", str(CONTROL_PORT)]
    with running([sys.executable, "-c", ECHO, "127.0.0.1", str(PORT)]), running([server, *control]):
        wait_for_port("127.0.0.1", PORT)
        wait_for_port("127.0.0.1", CONTROL_PORT)
        proxy = {"name": "p", "listen": f"127.0.0.1:{PROXY_PORT}", "upstream": f"127.0.0.1:{PORT}", "enabled": True}
        post("/proxies", proxy)
        for stream in ("upstream", "downstream"):
            attributes = {"latency": ONE_WAY_MS, "jitter": 0}
            post("/proxies/p/toxics", {"type": "latency", "stream": stream, "attributes": attributes})
        return round_trips("127.0.0.1", PROXY_PORT, count)


def post(path: str, content: dict[str, object]) -> None:
    """Send a request to the proxy's API."""
    httpx.post(f"http://127.0.0.1:{CONTROL_PORT}{path}", json=content).raise_for_status()


def print_round_trips(count: int, toxiproxy: str | None) -> None:
    """Print the table of the small messages."""
    print(f"\nTCP round trips of 100 bytes, one at a time, n = {count}; ms over what was intended")
    print(f"{'way':>12} {'intended':>9} {'least':>8} {'p50':>8} {'p99':>8} {'max':>8}")
    ways = [("loopback", 0, over_loopback(count)), ("switch", 2 * ONE_WAY_MS, over_switch(count))]
    if toxiproxy is not None:
        ways.append(("toxiproxy", 2 * ONE_WAY_MS, over_toxiproxy(toxiproxy, count)))
    for name, intended, times in ways:
        p99 = statistics.quantiles(times, n=100)[98]
        excess = [value - intended for value in (times[0], statistics.median(times), p99, times[-1])]
        print(f"{name:>12} {intended:>9} " + " ".join(f"{value:>8.3f}" for value in excess))
    if toxiproxy is None:
        print("toxiproxy's server is not there; `--toxiproxy PATH` says where it is")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5, help="of each flood")
    parser.add_argument("--count", type=int, default=300, help="round trips of each way")
    parser.add_argument("--toxiproxy", default=shutil.which("toxiproxy-server"), help="toxiproxy's server")
    arguments = parser.parse_args()
    lacks = available().lacks
    if lacks is not None:
        print(f"left out: {lacks}")
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print_floods(build(), arguments.seconds)
    print_round_trips(arguments.count, arguments.toxiproxy)


if __name__ == "__main__":
    main()
