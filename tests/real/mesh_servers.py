"""Real Mesh servers from other projects: a live Cosmos chain with its Rosetta server, and Coinbase's SDK example.

Both are built once from the Go modules in `servers/`, into the cache, and listen on separate loopback addresses.
`python -m tests.real.mesh_servers simd` (or `rosetta-example`) starts one, prints its URL and stops it on Ctrl-C.
`python -m tests.real.mesh_servers build` builds both in advance, so that no test waits for the build.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import blake3
import httpx
import pytest

from chainmark.network.processes import NodeProcess, ProcessGroup
from chainmark.store.paths import cache_directory

from tests.machine import server_address
from tests.support import COMMAND_TIMEOUT_S, wait_until

MODULES = Path(__file__).resolve().parent / "servers"
BUILD_TIMEOUT_S = 1_800
SIMD_PACKAGE = "github.com/cosmos/cosmos-sdk/simapp/simd"
OBJECT_STORE_PACKAGE = "github.com/johannesboyne/gofakes3/cmd/gofakes3"
CHAIN_ID = "testing"
NETWORK = {"blockchain": "app", "network": CHAIN_ID}
KEYS = ("k0", "k1", "k2")
STAKE = 1_000_000_000_000
# CometBFT's default ports, on an otherwise unused address.
RPC_PORT, P2P_PORT, GRPC_PORT, GRPC_WEB_PORT, MESH_PORT = 26657, 26656, 9090, 9091, 8080


def build(module: str, package: str = ".") -> Path:
    """The program of a module in `servers/`. It is rebuilt if the module or the Go version changed."""
    folder = MODULES / module
    version = subprocess.run(
        ["go", "version"], capture_output=True, text=True, check=True, timeout=COMMAND_TIMEOUT_S
    ).stdout
    sources = sorted(path for path in folder.iterdir() if path.suffix in {".go", ".mod", ".sum"})
    hasher = blake3.blake3(version.encode())
    for path in sources:
        hasher.update(path.name.encode() + b"\0" + path.read_bytes())
    program = cache_directory() / "peers" / f"{module}-{hasher.hexdigest()[:16]}" / module
    program.parent.mkdir(parents=True, exist_ok=True)
    # Concurrent test sessions build it only once.
    with program.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.is_file():
            _build(folder, package, program)
    return program


def _build(folder: Path, package: str, program: Path) -> None:
    part = program.with_name("building")
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(part), package]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=BUILD_TIMEOUT_S)
    part.rename(program)


@dataclass
class MeshServer:
    """A running server: ``accounts`` whose keys the test has, and the last block with transactions."""

    url: str
    group: ProcessGroup
    process: NodeProcess
    accounts: dict[str, str] = field(default_factory=dict)
    transacted: int = 0

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """Send a request with a plain HTTP client, without code of this project."""
        return httpx.post(self.url + path, json=body, timeout=30, trust_env=False)


@dataclass
class Chain:
    """A chain with one validator, controlled by its own command."""

    program: Path
    home: Path
    address: str

    def command(self, *arguments: str, feed: str | None = None) -> str:
        """The output of one `simd` command."""
        outcome = subprocess.run(
            [str(self.program), *arguments, "--home", str(self.home)],
            capture_output=True,
            text=True,
            input=feed,
            check=False,
            timeout=COMMAND_TIMEOUT_S,
        )
        assert outcome.returncode == 0, f"{' '.join(arguments)}: {outcome.stderr[-2000:]}"
        return outcome.stdout

    def make(self) -> dict[str, str]:
        """Create keys, genesis and configuration; return the keys' accounts."""
        keyring = ("--keyring-backend", "test")
        self.command("init", "t", "--chain-id", CHAIN_ID)
        accounts = {}
        for key in KEYS:
            self.command("keys", "add", key, *keyring)
            accounts[key] = self.command("keys", "show", key, "-a", *keyring).strip()
            self.command("add-genesis-account", accounts[key], f"{STAKE}stake")
        self.command("gentx", KEYS[0], "100000000stake", "--chain-id", CHAIN_ID, *keyring)
        self.command("collect-gentxs")
        self._configure()
        return accounts

    def _configure(self) -> None:
        config, app = self.home / "config" / "config.toml", self.home / "config" / "app.toml"
        _set(
            config,
            {
                "rpc.laddr": f"tcp://{self.address}:{RPC_PORT}",
                "p2p.laddr": f"tcp://{self.address}:{P2P_PORT}",
                "rpc.pprof_laddr": "",
                "consensus.timeout_commit": "500ms",
            },
        )
        _set(
            app,
            {"grpc.address": f"{self.address}:{GRPC_PORT}", "grpc-web.address": f"{self.address}:{GRPC_WEB_PORT}"},
        )

    def start(self, group: ProcessGroup) -> None:
        """Start the node and wait for its first blocks."""
        command = [str(self.program), "start", "--home", str(self.home), "--minimum-gas-prices", "0stake"]
        node = group.start("simd", command, self.home / "node.log")
        wait_until(lambda: _alive(node) and self.height() >= 2, "the chain's second block")

    def height(self) -> int:
        """The newest block's height; 0 if the node does not respond."""
        try:
            status = httpx.get(f"http://{self.address}:{RPC_PORT}/status", timeout=5, trust_env=False).json()
        except httpx.HTTPError:
            return 0
        return int(status["result"]["sync_info"]["latest_block_height"])

    def send(self, *arguments: str, sender: str, note: str = "") -> None:
        """Send one transaction with `simd tx bank …` and wait until it is in a block."""
        node = ("--node", f"tcp://{self.address}:{RPC_PORT}", "--chain-id", CHAIN_ID)
        options = ("--from", sender, "--keyring-backend", "test", "--note", note, "-b", "block", "-y", "-o", "json")
        output = self.command("tx", "bank", *arguments, *node, *options)
        assert '"code":0' in output, output[-2000:]


def _set(path: Path, values: dict[str, str]) -> None:
    """Set values of a TOML file by section and key; everything else is unchanged."""
    section, lines, left = "", [], dict(values)
    for line in path.read_text(encoding="utf-8").splitlines():
        if header := re.match(r"\[([\w.-]+)\]", line):
            section = header[1]
        key = line.partition("=")[0].strip()
        value = left.pop(f"{section}.{key}", None)
        lines.append(line if value is None else f'{key} = "{value}"')
    assert not left, f"{path} has no {', '.join(left)}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _alive(process: NodeProcess) -> bool:
    assert process.death() is None, f"{process.death()}\n{process.last_log_lines(20)}"
    return True


def _answers(process: NodeProcess, url: str) -> bool:
    _alive(process)
    try:
        return httpx.post(url + "/network/list", json={"metadata": {}}, timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def running_simd(folder: Path, *, transfers: bool = True) -> Iterator[MeshServer]:
    """Run a live chain with its Rosetta server and a few transactions; everything is stopped at the end."""
    program = build("simd", SIMD_PACKAGE)
    address = server_address()
    chain = Chain(program, folder / "home", address)
    accounts = chain.make()
    with ProcessGroup() as group:
        chain.start(group)
        if transfers:
            _transact(chain, accounts)
        transacted = chain.height()
        url = f"http://{address}:{MESH_PORT}"
        command = [str(program), "rosetta", "--blockchain", NETWORK["blockchain"], "--network", CHAIN_ID]
        command += ["--tendermint", f"{address}:{RPC_PORT}", "--grpc", f"{address}:{GRPC_PORT}"]
        command += ["--addr", f"{address}:{MESH_PORT}", "--home", str(chain.home), "--prices-to-suggest", "1stake"]
        rosetta = group.start("rosetta", command, folder / "rosetta.log")
        wait_until(lambda: _answers(rosetta, url), "the Rosetta server")
        yield MeshServer(url, group, rosetta, accounts, transacted)


def _transact(chain: Chain, accounts: dict[str, str]) -> None:
    """Send small and large transactions in separate blocks: blocks and accounts must differ."""
    k0, k1, k2 = (accounts[key] for key in KEYS)
    chain.send("send", k0, k1, "1000stake", sender="k0")
    chain.send("send", k1, k2, "2000stake", sender="k1", note="n" * 200)
    chain.send("multi-send", k0, k1, k2, "300stake", sender="k0")
    chain.send("send", k2, k0, "4000stake", sender="k2")


@contextmanager
def running_rosetta_example(folder: Path) -> Iterator[MeshServer]:
    """Run Coinbase's example: fixed responses from the SDK's own server."""
    program = build("rosetta-example")
    address = server_address()
    with ProcessGroup() as group:
        url = f"http://{address}:{MESH_PORT}"
        process = group.start("rosetta-example", [str(program), "-addr", f"{address}:{MESH_PORT}"], folder / "log")
        wait_until(lambda: _answers(process, url), "the example server")
        yield MeshServer(url, group, process)


# conftest.py imports these: all tests share one server of each kind.
@pytest.fixture(scope="session")
def simd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshServer]:
    """One live chain for all tests of a session."""
    with running_simd(tmp_path_factory.mktemp("simd")) as server:
        yield server


@pytest.fixture(scope="session")
def rosetta_example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshServer]:
    """One example server for all tests of a session."""
    with running_rosetta_example(tmp_path_factory.mktemp("rosetta-example")) as server:
        yield server


def main() -> None:
    """Build the servers, or run one until Ctrl-C or SIGTERM."""
    servers = {"simd": running_simd, "rosetta-example": running_rosetta_example}
    wanted = sys.argv[1] if len(sys.argv) == 2 else ""
    if wanted == "build":
        build("rosetta-example")
        build("faulty-app")
        build("simd", SIMD_PACKAGE)
        build("object-store", OBJECT_STORE_PACKAGE)
        return
    if wanted not in servers:
        sys.exit(f"usage: python -m tests.real.mesh_servers build|{'|'.join(servers)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mesh-server-") as folder, servers[wanted](Path(folder)) as server:
        print(server.url, flush=True)  # noqa: T201 - this is a command
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopping", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
