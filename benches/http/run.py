#!/usr/bin/env python3
"""Print what chainmark's HTTP load costs per request and what it sees of a stopped server, next to other generators.

All send to the same nginx (one worker on one core, the generator on another), in turn. Nothing is asserted: read the
tables. CPU per request hardly depends on what else the machine does; requests per second do.

Needs cargo, openssl and nginx. Of wrk, h2load, ab, oha and k6, it names and leaves out what is not installed.
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
PEERS = {
    "wrk": "apt-get install wrk",
    "h2load": "apt-get install nghttp2-client",
    "ab": "apt-get install apache2-utils",
    "oha": "cargo install oha --locked",
    "k6": "go install go.k6.io/k6@latest",
}
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
    listen 127.0.0.1:{port_http2} http2 backlog=4096;
    listen 127.0.0.1:{port_tls} ssl http2 backlog=4096;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    root {folder}/files;
    error_page 405 =200 $uri;
  }}
}}
"""


@dataclass(frozen=True)
class Ran:
    """The result of a generator: its output, its CPU time and peak memory."""

    output: str
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Figures:
    """One run of one generator."""

    requests: int
    per_s: float
    cpu_us: float


@dataclass(frozen=True)
class Transport:
    """The protocol between generator and server, and the port as an offset from the first one.

    Attributes:
        streams: with HTTP/2, the number of clients that share a connection.
    """

    label: str
    port: int
    scheme: str = "http"
    http2: bool = False
    streams: int = 1
    keeps_connections: bool = True


TRANSPORTS = (
    Transport("HTTP/1.1", 0),
    Transport("HTTP/1.1, a connection per request", 0, keeps_connections=False),
    Transport("HTTP/1.1 in TLS", 2, "https"),
    Transport("HTTP/2", 1, http2=True),
    Transport("HTTP/2, 8 streams on a connection", 1, http2=True, streams=8),
    Transport("HTTP/2 in TLS", 2, "https", http2=True),
)
Generator = Callable[[Transport, str, int, Path], Figures]
# The limitations of each tool.
SPEAKS_ONLY_HTTP1, KEEPS_CONNECTIONS, NEEDS_TLS_FOR_HTTP2 = {"wrk", "ab"}, {"h2load"}, {"k6"}
CLIENTS = 64


def run(command: list[str], text: str = "") -> Ran:
    """Run a generator on its core to its end; the kernel's accounting covers its whole process."""
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
        log_text = output.read()
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed with {process.returncode}:\n{log_text}")
    return Ran(log_text, usage.ru_utime + usage.ru_stime, peak_mib)


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
def serve(folder: Path, port: int) -> Iterator[None]:
    """Run nginx on its core: HTTP/1.1 at ``port``, HTTP/2 by prior knowledge at the next one, TLS at the third."""
    (folder / "files").mkdir()
    for name, size in REPLIES.items():
        (folder / "files" / name).write_text(json.dumps({"a": "x" * (size - 9)}), encoding="utf-8")
    configuration = folder / "nginx.conf"
    ports = {"port": port, "port_http2": port + 1, "port_tls": port + 2}
    configuration.write_text(NGINX.format(folder=folder, **ports), encoding="utf-8")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", "req", "-x509", *key, *files], check=True, capture_output=True)
    folder.chmod(0o755)
    command = ["taskset", "-c", SERVER_CORE, "nginx", "-p", str(folder), "-c", str(configuration)]
    process = subprocess.Popen(command)
    try:
        wait_for(folder / "pid")
        yield
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
    """A request for our generator."""
    base, _, path = url.rpartition("/")
    headers = [["Content-Type", "application/json"]]
    request = {"method": "POST", "path": f"/{path}", "headers": headers, "body": BODY}
    whole: dict[str, object] = {"url": base, "requests": [request], "mode": mode, "duration_s": duration_s}
    return json.dumps(whole | {"threads": 1} | more)


def ours(program: Path, checks: bool = False) -> Generator:
    """Our generator. It reads each body to its end, or also checks that the body is JSON."""

    def measure(way: Transport, url: str, seconds: int, _: Path) -> Figures:
        more = {
            "protocol": "2" if way.http2 else "1.1",
            "streams": way.streams,
            "requests_per_connection": 0 if way.keeps_connections else 1,
            "tls": {"verify": False},
        }
        text = order(url, {"closed": {"clients": CLIENTS}}, seconds, **more)
        if checks:
            whole = json.loads(text)
            whole["requests"][0]["expect"] = {"json": True, "checks": [{"pointer": "/a", "type": "string"}]}
            text = json.dumps(whole)
        ran = run([str(program)], text)
        counts = json.loads(ran.output)["counts"]
        if counts["failed"]:
            raise SystemExit(f"{counts['failed']} requests failed")
        return figures(counts["ok"], seconds, ran)

    return measure


def figures(requests: int, seconds: float, ran: Ran) -> Figures:
    """The figures per second and per request."""
    return Figures(requests, requests / seconds, ran.cpu_s / requests * 1e6)


def number_in(pattern: str, text: str) -> float:
    """The number that a tool printed."""
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"{pattern} is not in what the tool printed:\n{text}")
    return float(match.group(1))


def wrk(way: Transport, url: str, seconds: int, folder: Path) -> Figures:
    """The generator wrk with one thread; it speaks HTTP/1.1."""
    script = folder / "post.lua"
    lines = ['wrk.method = "POST"', f"wrk.body = [[{BODY}]]", 'wrk.headers["Content-Type"] = "application/json"']
    if not way.keeps_connections:
        lines.append('wrk.headers["Connection"] = "close"')
    script.write_text("\n".join(lines), encoding="utf-8")
    ran = run(["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}", "-s", str(script), url])
    return figures(int(number_in(r"(\d+) requests in", ran.output)), seconds, ran)


def h2load(way: Transport, url: str, seconds: int, folder: Path) -> Figures:
    """The generator h2load, which keeps its connections."""
    version = [f"-m{way.streams}"] if way.http2 else ["--h1"]
    command = ["h2load", *version, "-t1", f"-c{CLIENTS // way.streams}", f"-D{seconds}", "-d", str(folder / "request")]
    ran = run([*command, "-H", "content-type: application/json", url])
    return figures(int(number_in(r"(\d+) succeeded", ran.output)), seconds, ran)


def ab(way: Transport, url: str, seconds: int, folder: Path) -> Figures:
    """The generator ab; without -n after -t it would stop at 50,000 requests."""
    keeps = ["-k"] if way.keeps_connections else []
    command = ["ab", "-q", *keeps, "-t", str(seconds), "-n", "100000000", "-c", str(CLIENTS), "-T", "application/json"]
    ran = run([*command, "-p", str(folder / "request"), url])
    return figures(int(number_in(r"Complete requests:\s+(\d+)", ran.output)), seconds, ran)


def oha(way: Transport, url: str, seconds: int, folder: Path) -> Figures:
    """The generator oha with one core."""
    version = ["--http2", "-p", str(way.streams)] if way.http2 else []
    keeps = [] if way.keeps_connections else ["--disable-keepalive"]
    command = ["oha", "--no-tui", "--insecure", *version, *keeps, "-c", str(CLIENTS // way.streams)]
    command += ["-z", f"{seconds}s", "-m", "POST", "-T", "application/json", "-D", str(folder / "request")]
    ran = run([*command, "--output-format", "json", url])
    codes = json.loads(ran.output)["statusCodeDistribution"]
    return figures(sum(codes.values()), seconds, ran)


def k6(way: Transport, url: str, seconds: int, folder: Path) -> Figures:
    """The generator k6, which discards the bodies."""
    script, summary = folder / "post.js", folder / "k6.json"
    options = {
        "vus": CLIENTS,
        "duration": f"{seconds}s",
        "noConnectionReuse": not way.keeps_connections,
        "insecureSkipTLSVerify": True,
        "discardResponseBodies": True,
    }
    post = ", ".join(json.dumps(part) for part in (url, BODY, {"headers": {"Content-Type": "application/json"}}))
    script.write_text(
        "import http from 'k6/http';\n"
        f"export const options = {json.dumps(options)};\n"
        f"export default function () {{ http.post({post}); }}\n"
        "export function handleSummary(data) {\n"
        f"  return {{ {json.dumps(str(summary))}: JSON.stringify(data.metrics.http_reqs.values) }};\n"
        "}\n",
        encoding="utf-8",
    )
    ran = run(["k6", "run", "--quiet", "--no-usage-report", str(script)])
    return figures(json.loads(summary.read_text(encoding="utf-8"))["count"], seconds, ran)


def print_row(values: list[str]) -> None:
    """Print one row at once, as each takes seconds."""
    print("| " + " | ".join(values) + " |", flush=True)


def server_cpu_s(worker: int) -> float:
    """Processor time that nginx's worker has used so far."""
    fields = Path(f"/proc/{worker}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compare(program: Path, way: Transport, folder: Path, arguments: argparse.Namespace) -> None:
    """Print one table per reply size; the generators take turns."""
    generators, worker = choose(program, way), worker_of(folder)
    for name, size in REPLIES.items():
        url = f"{way.scheme}://127.0.0.1:{arguments.port + way.port}/{name}"
        runs: dict[str, list[Figures]] = {generator: [] for generator in generators}
        server_us: dict[str, list[float]] = {generator: [] for generator in generators}
        for _ in range(arguments.repeats):
            for generator, measure in generators.items():
                before_s = server_cpu_s(worker)
                runs[generator].append(measure(way, url, arguments.seconds, folder))
                used_s = server_cpu_s(worker) - before_s
                server_us[generator].append(used_s / runs[generator][-1].requests * 1e6)
        load = os.getloadavg()[0]
        print(f"\n{CLIENTS} clients over {way.label}, POST {len(BODY)} B, reply {size} B, load average {load:.1f}\n")
        print_row(["generator", "requests/s", "CPU µs per request", "of the server, µs per request"])
        print_row(["---", "---:", "---:", "---:"])
        for generator, values in runs.items():
            columns = [
                spread([value.per_s for value in values], 0),
                spread([value.cpu_us for value in values], 2),
                spread(server_us[generator], 2),
            ]
            print_row([generator, *columns])


def spread(values: list[float], decimals: int) -> str:
    """Median and range."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):,.{decimals}f} ({low:,.{decimals}f} to {high:,.{decimals}f})"


def stall(program: Path, url: str, folder: Path) -> None:
    """Stop the server for a second and print the latencies that the open loop reports."""
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
    print(f"\nOpen loop, {STALL_RATE}/s for {STALL_S} s, the server stopped for {STALL_STOP_S} s: {result['counts']}\n")
    print_row(["", "p50 ms", "p99 ms", "max ms"])
    print_row(["---", "---:", "---:", "---:"])
    print_row(["what the schedule gives", "", f"{ideal_s * 1e3:.0f}", f"{STALL_STOP_S * 1e3:.0f}"])
    for name, times in (("latency", latency), ("service time", service), ("lag of the generator", lag)):
        print_row([name, *(f"{times[key] * 1e3:.3f}" for key in ("p50_s", "p99_s", "max_s"))])


def memory(program: Path, url: str, seconds: int) -> None:
    """Print the peak memory with a thousand connections."""
    ran = run([str(program)], order(f"{url}/small", {"closed": {"clients": 1000}}, seconds))
    counts = json.loads(ran.output)["counts"]
    print(
        f"\n1000 connections, {counts['ok']:,} requests right, {counts['failed']} failed: peak {ran.peak_mib:.1f} MiB"
    )


def choose(program: Path, way: Transport) -> dict[str, Generator]:
    """Our generator, and the installed peers that support this transport."""
    generators: dict[str, Generator] = {
        "chainmark": ours(program),
        "chainmark, answers checked": ours(program, checks=True),
    }
    peers: dict[str, Generator] = {"wrk": wrk, "h2load": h2load, "ab": ab, "oha": oha, "k6": k6}
    unable: set[str] = set()
    if way.http2:
        unable |= SPEAKS_ONLY_HTTP1 | (NEEDS_TLS_FOR_HTTP2 if way.scheme == "http" else set())
    if not way.keeps_connections:
        unable |= KEEPS_CONNECTIONS
    return generators | {name: measure for name, measure in peers.items() if name not in unable and shutil.which(name)}


def name_missing() -> None:
    """Name the missing peers, and how to install them."""
    for name, install in PEERS.items():
        if not shutil.which(name):
            print(f"{name} is not installed and is left out: {install}")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="of one run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--memory-seconds", type=int, default=120, help="enough for 10 million requests; 0: no such run"
    )
    parser.add_argument("--port", type=int, default=18_099, help="the first of three")
    return parser.parse_args()


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments()
    for tool in ("nginx", "taskset", "cargo", "openssl"):
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is missing")
    program = build()
    name_missing()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "request").write_text(BODY, encoding="utf-8")
        with serve(folder, arguments.port):
            for way in TRANSPORTS:
                compare(program, way, folder, arguments)
            url = f"http://127.0.0.1:{arguments.port}"
            stall(program, url, folder)
            if arguments.memory_seconds:
                memory(program, url, arguments.memory_seconds)


if __name__ == "__main__":
    main()
