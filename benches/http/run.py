#!/usr/bin/env python3
"""Print what chainmark's HTTP load costs per request and what it sees of a stopped server, next to other generators.

All send to the same nginx (one worker on one core, the generator on another), in turn. Nothing is asserted: read the
tables. CPU per request hardly depends on what else the machine does; requests per second do.

Needs cargo and, from Debian: nginx-light, wrk, nghttp2-client, apache2-utils. `cargo install oha --locked` for oha.
Nothing is installed; what is missing is named and left out.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chainmark"
PACKAGES = {"nginx": "nginx-light", "wrk": "wrk", "h2load": "nghttp2-client", "ab": "apache2-utils"}
SERVER_CORE, GENERATOR_CORE = "0", "1"
BODY = json.dumps({"network_identifier": {"blockchain": "cardano", "network": "mainnet"}, "padding": "x" * 120})
REPLIES = {"small": 301, "large": 10_240}
STALL_RATE, STALL_S, STALL_AT_S, STALL_STOP_S = 1000, 20, 14.0, 1.0
NGINX = """
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    listen 127.0.0.1:{port_2} http2 backlog=4096;
    root {folder}/files;
    error_page 405 =200 $uri;
  }}
}}
"""


@dataclass(frozen=True)
class Ran:
    """A generator that has ended: its output, its CPU time and peak memory."""

    output: str
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Figures:
    """One run of one generator."""

    requests: int
    per_s: float
    cpu_us: float


Generator = Callable[[str, int, Path], Figures]


def run(command: list[str], text: str = "") -> Ran:
    """Run a generator on its core to its end; the kernel's accounting covers all that it did."""
    with tempfile.TemporaryFile("w+") as source, tempfile.TemporaryFile("w+") as output:
        source.write(text)
        source.seek(0)
        process = subprocess.Popen(["taskset", "-c", GENERATOR_CORE, *command], stdin=source, stdout=output)
        pid, peak_mib = 0, 0.0
        while pid == 0:
            peak_mib = max(peak_mib, peak_rss_mib(process.pid))
            time.sleep(0.05)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        told = output.read()
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed with {process.returncode}:\n{told}")
    return Ran(told, usage.ru_utime + usage.ru_stime, peak_mib)


def peak_rss_mib(pid: int) -> float:
    """The peak so far, of the program itself: wait4's figure includes the fork of this interpreter."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) / 1024 if peaks else 0.0


def build() -> Path:
    """Build our generator; return its program."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "target")
    command = ["cargo", "build", "--release", "--locked", "--example", "http", "--package", "chainmark-load"]
    subprocess.run(command, cwd=REPOSITORY, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, check=True)
    return target / "release" / "examples" / "http"


@contextlib.contextmanager
def serve(folder: Path, port: int) -> Iterator[str]:
    """Run nginx on its core: HTTP/1.1 at ``port``, HTTP/2 by prior knowledge at the next one."""
    (folder / "files").mkdir()
    for name, size in REPLIES.items():
        (folder / "files" / name).write_text(json.dumps({"a": "x" * (size - 9)}), encoding="utf-8")
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.format(folder=folder, port=port, port_2=port + 1), encoding="utf-8")
    folder.chmod(0o755)
    command = ["taskset", "-c", SERVER_CORE, "nginx", "-p", str(folder), "-c", str(configuration)]
    process = subprocess.Popen(command)
    try:
        wait_for(folder / "pid")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for(path: Path) -> None:
    """Wait until nginx has written its process id."""
    for _ in range(200):
        if path.exists() and path.read_text(encoding="utf-8").strip():
            return
        time.sleep(0.05)
    raise SystemExit("nginx does not start")


def worker_of(folder: Path) -> int:
    """The process id of nginx's only worker."""
    master = (folder / "pid").read_text(encoding="utf-8").strip()
    return int(Path(f"/proc/{master}/task/{master}/children").read_text(encoding="utf-8").split()[0])


def order(url: str, mode: dict[str, Any], duration_s: float, **more: object) -> str:
    """An order for our generator."""
    base, _, path = url.rpartition("/")
    headers = [["Content-Type", "application/json"]]
    request = {"method": "POST", "path": f"/{path}", "headers": headers, "body": BODY}
    whole: dict[str, object] = {"url": base, "requests": [request], "mode": mode, "duration_s": duration_s}
    return json.dumps(whole | {"threads": 1} | more)


def ours(program: Path, checks: bool = False, **more: object) -> Generator:
    """Our generator, which reads each body to its end; or also checks that it is JSON."""

    def measure(url: str, seconds: int, _: Path) -> Figures:
        text = order(url, {"closed": {"clients": 64}}, seconds, **more)
        if checks:
            whole = json.loads(text)
            whole["requests"][0]["expect"] = {"json": True, "checks": [{"pointer": "/a", "type": "string"}]}
            text = json.dumps(whole)
        ran = run([str(program)], text)
        books = json.loads(ran.output)["books"]
        if books["failed"]:
            raise SystemExit(f"{books['failed']} requests failed")
        return figures(books["ok"], seconds, ran)

    return measure


def figures(requests: int, seconds: float, ran: Ran) -> Figures:
    """Per second and per request."""
    return Figures(requests, requests / seconds, ran.cpu_s / requests * 1e6)


def found(pattern: str, text: str) -> float:
    """The number that a tool printed."""
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"{pattern} is not in what the tool printed:\n{text}")
    return float(match.group(1))


def wrk(url: str, seconds: int, folder: Path) -> Figures:
    """The generator wrk with one thread."""
    script = folder / "post.lua"
    lines = ['wrk.method = "POST"', f"wrk.body = [[{BODY}]]", 'wrk.headers["Content-Type"] = "application/json"']
    script.write_text("\n".join(lines), encoding="utf-8")
    ran = run(["wrk", "-t1", "-c64", f"-d{seconds}", "-s", str(script), url])
    return figures(int(found(r"(\d+) requests in", ran.output)), seconds, ran)


def h2load(url: str, seconds: int, folder: Path) -> Figures:
    """The generator h2load over HTTP/1.1."""
    command = ["h2load", "--h1", "-t1", "-c64", f"-D{seconds}", "-d", str(folder / "request"), url]
    ran = run([*command, "-H", "content-type: application/json"])
    return figures(int(found(r"(\d+) succeeded", ran.output)), seconds, ran)


def h2load_2(streams: int) -> Generator:
    """The generator h2load over HTTP/2, with so many streams on a connection and 64 in all."""

    def measure(url: str, seconds: int, folder: Path) -> Figures:
        command = ["h2load", "-t1", f"-c{64 // streams}", f"-m{streams}", f"-D{seconds}"]
        ran = run([*command, "-d", str(folder / "request"), "-H", "content-type: application/json", url])
        return figures(int(found(r"(\d+) succeeded", ran.output)), seconds, ran)

    return measure


def ab(url: str, seconds: int, folder: Path) -> Figures:
    """The generator ab with -k; without -n behind -t it would stop at 50,000 requests."""
    command = ["ab", "-q", "-k", "-t", str(seconds), "-n", "100000000", "-c", "64", "-T", "application/json"]
    ran = run([*command, "-p", str(folder / "request"), url])
    return figures(int(found(r"Complete requests:\s+(\d+)", ran.output)), seconds, ran)


def oha(url: str, seconds: int, folder: Path) -> Figures:
    """The generator oha with one core."""
    command = ["oha", "--no-tui", "-c", "64", "-z", f"{seconds}s", "-m", "POST", "-T", "application/json"]
    ran = run([*command, "-D", str(folder / "request"), "--output-format", "json", url])
    codes = json.loads(ran.output)["statusCodeDistribution"]
    return figures(sum(codes.values()), seconds, ran)


def print_row(values: list[str]) -> None:
    """Print one row at once, as each takes seconds."""
    print("| " + " | ".join(values) + " |", flush=True)


def compare(generators: dict[str, Generator], url: str, folder: Path, arguments: argparse.Namespace, over: str) -> None:
    """Print one table per reply size; the generators take turns."""
    for name, size in REPLIES.items():
        runs: dict[str, list[Figures]] = {generator: [] for generator in generators}
        for _ in range(arguments.repeats):
            for generator, measure in generators.items():
                runs[generator].append(measure(f"{url}/{name}", arguments.seconds, folder))
        print(f"\n64 clients over {over}, POST {len(BODY)} B, reply {size} B, load average {os.getloadavg()[0]:.1f}\n")
        print_row(["generator", "requests/s, median (range)", "CPU µs per request, median (range)"])
        print_row(["---", "---:", "---:"])
        for generator, values in runs.items():
            rates = [value.per_s for value in values]
            costs = [value.cpu_us for value in values]
            rate = f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
            print_row([generator, rate, f"{statistics.median(costs):.2f} ({min(costs):.2f} to {max(costs):.2f})"])


def stall(program: Path, url: str, folder: Path) -> None:
    """Stop the server for a second and print what the open loop says of it."""
    worker = worker_of(folder)

    def stop() -> None:
        os.kill(worker, signal.SIGSTOP)
        time.sleep(STALL_STOP_S)
        os.kill(worker, signal.SIGCONT)

    timer = threading.Timer(STALL_AT_S, stop)
    timer.start()
    mode = {"open": {"rate_per_s": STALL_RATE, "schedule": "even", "connections": 16}}
    result = json.loads(run([str(program)], order(f"{url}/small", mode, STALL_S)).output)
    timer.join()
    late = STALL_STOP_S * STALL_RATE
    ideal_s = STALL_STOP_S - 0.01 * STALL_S * STALL_RATE / late * STALL_STOP_S
    latency, service, lag = result["latency"], result["service"], result["lag"]
    print(f"\nOpen loop, {STALL_RATE}/s for {STALL_S} s, the server stopped for {STALL_STOP_S} s: {result['books']}\n")
    print_row(["", "p50 ms", "p99 ms", "max ms"])
    print_row(["---", "---:", "---:", "---:"])
    print_row(["what the schedule gives", "", f"{ideal_s * 1e3:.0f}", f"{STALL_STOP_S * 1e3:.0f}"])
    for name, times in (("latency", latency), ("service time", service), ("lag of the generator", lag)):
        print_row([name, *(f"{times[key] * 1e3:.3f}" for key in ("p50_s", "p99_s", "max_s"))])


def memory(program: Path, url: str, seconds: int) -> None:
    """Print the peak memory with a thousand connections."""
    ran = run([str(program)], order(f"{url}/small", {"closed": {"clients": 1000}}, seconds))
    books = json.loads(ran.output)["books"]
    print(f"\n1000 connections, {books['ok']:,} requests right, {books['failed']} failed: peak {ran.peak_mib:.1f} MiB")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="of one run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-seconds", type=int, default=120, help="enough for 10 million requests")
    parser.add_argument("--port", type=int, default=18_099)
    return parser.parse_args()


def choose(program: Path) -> dict[str, Generator]:
    """Our generator and those peers that are here."""
    generators: dict[str, Generator] = {
        "chainmark": ours(program, checks=False),
        "chainmark, answers checked": ours(program, checks=True),
    }
    peers: dict[str, Generator] = {"wrk": wrk, "h2load": h2load, "ab": ab, "oha": oha}
    for name, measure in peers.items():
        if shutil.which(name):
            generators[name] = measure
        else:
            hint = f"apt-get install {PACKAGES[name]}" if name in PACKAGES else f"cargo install {name} --locked"
            print(f"{name} is not here and is left out: {hint}")
    return generators


def choose_2(program: Path) -> dict[str, Generator]:
    """Those that speak HTTP/2: a connection for each client, and eight clients on each."""
    generators: dict[str, Generator] = {}
    for streams in (1, 8):
        shared = f", {streams} streams on a connection" if streams > 1 else ""
        generators[f"chainmark{shared}"] = ours(program, protocol="2", streams=streams)
        if shutil.which("h2load"):
            generators[f"h2load{shared}"] = h2load_2(streams)
    return generators


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments()
    for tool in ("nginx", "taskset", "cargo"):
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is missing: {PACKAGES.get(tool, tool)}")
    program = build()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "request").write_text(BODY, encoding="utf-8")
        with serve(folder, arguments.port) as url:
            compare(choose(program), url, folder, arguments, "HTTP/1.1")
            url_2 = f"http://127.0.0.1:{arguments.port + 1}"
            compare(choose_2(program), url_2, folder, arguments, "HTTP/2")
            stall(program, url, folder)
            memory(program, url, arguments.memory_seconds)


if __name__ == "__main__":
    main()
