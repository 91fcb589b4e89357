"""Networks that chainmark did not start: the nodes are processes of the test, run with CometBFT's own commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainmark.core.manifest import GateStatus, Status
from chainmark.network.addresses import loopback_addresses
from chainmark.systems.cometbft import nodes
from chainmark.systems.cometbft.attach import height_at

from tests.machine import first_address
from tests.support import ANYHOW, FAST_BLOCKS, Lab, changed, wait_until

SMALL = changed(*ANYHOW, "load.warm_up_s=1", "load.duration_s=2", "load.rate=50")


@dataclass
class Devnet:
    """A network that chainmark does not manage.

    Attributes:
        places: RPC addresses.
        processes: its nodes.
    """

    places: list[str]
    processes: list[subprocess.Popen[bytes]]

    @property
    def pages(self) -> list[str]:
        """The addresses of the metrics pages in their shortest form."""
        return [place.replace(":26657", ":26660") for place in self.places]


def _variables(settings: tuple[str, ...]) -> dict[str, str]:
    """The variables by which a node reads settings of a profile."""
    pairs = (setting.removeprefix("node.config.").split("=") for setting in settings)
    return {f"CMT_{key.replace('.', '_').upper()}": value for key, value in pairs}


@contextmanager
def devnet(folder: Path, addresses: list[str]) -> Iterator[Devnet]:
    """Validators at these addresses, created with `cometbft testnet` and started by the test."""
    nodes.install("v1.0.1")
    binary = str(nodes.binary_path("v1.0.1"))
    arguments = ["testnet", "--v", str(len(addresses)), "--o", str(folder), "--starting-ip-address", addresses[0]]
    subprocess.run([binary, *arguments, "--home", str(folder / "tool")], check=True, capture_output=True)
    with ExitStack() as stack:
        network = Devnet([f"{address}:26657" for address in addresses], [])
        for index, address in enumerate(addresses):
            command = [
                binary, "start", "--home", str(folder / f"node{index}"), "--proxy_app", "kvstore",
                "--rpc.laddr", f"tcp://{address}:26657", "--p2p.laddr", f"tcp://{address}:26656",
            ]  # fmt: skip
            metrics = {
                "CMT_INSTRUMENTATION_PROMETHEUS": "true",
                "CMT_INSTRUMENTATION_PROMETHEUS_LISTEN_ADDR": f"{address}:26660",
                "CMT_P2P_ADDR_BOOK_STRICT": "false",
                **_variables(FAST_BLOCKS),
            }
            log = stack.enter_context((folder / f"node{index}.log").open("wb"))
            process = subprocess.Popen(command, env={**os.environ, **metrics}, stdout=log, stderr=log)
            network.processes.append(process)
            stack.callback(process.wait)
            stack.callback(process.kill)
        wait_until(lambda: all((height_at(place) or 0) >= 2 for place in network.places), "the network")
        yield network


def test_an_existing_network_is_loaded_and_observed(lab: Lab, tmp_path: Path) -> None:
    """The run has the figures of a managed network except unobservable ones. The network continues afterwards."""
    addresses = loopback_addresses(first_address(), 2)
    with devnet(tmp_path / "net", addresses) as network:
        places, pages = ",".join(network.places), ",".join(network.pages)
        run = lab.runs("cometbft/demo", "--attach", places, "--metrics", pages, *SMALL)[0]
        blind = lab.runs("cometbft/demo", "--attach", network.places[1], "--version", "mine", *SMALL)[0]
        again = lab.run("run", "cometbft/demo", "--attach", f"{places},http://{network.places[0]}", *SMALL, code=2)
        assert "are the same node" in again.stderr
        wrong = lab.run("run", "cometbft/demo", "--attach", network.pages[0], *SMALL, code=2)
        assert "is not the RPC address of a CometBFT node" in wrong.stderr
        wrong = lab.run("run", "cometbft/demo", "--attach", places, "--metrics", places, *SMALL, code=2)
        assert "is not a metrics endpoint of a CometBFT node" in wrong.stderr
        assert all(process.poll() is None for process in network.processes)
    manifest = run.manifest
    assert manifest.status is Status.VALID
    assert manifest.subject.version == "1.0.1"
    assert manifest.workload["network.validators"] == 2
    account = manifest.counts["transactions"]
    assert account["committed"] == account["offered"] == 150
    assert run.samples("transaction")["tx_latency_s"].null_count() == 0
    assert run.samples("host_second")["node_rss_bytes"].drop_nulls().to_numpy().min() > 10e6
    assert run.samples("host")["node_cpu_per_transaction_s"].null_count() == 0
    assert "cpu_time" not in manifest.conditions, "the speed of the nodes' processors is unknown"
    gates = {gate.id: gate.status for gate in manifest.gates}
    unknown = {name for name, status in gates.items() if status is GateStatus.UNKNOWN}
    assert unknown == {"nodes_pressure", "clocks", "links", "configuration"}
    assert gates["nodes_steady"] is GateStatus.PASS
    assert run.verify() == []
    # Nodes without a known metrics page are not reported on. The name alone makes this another subject.
    assert blind.manifest.subject.version == "mine"
    assert blind.manifest.facts[1].value.endswith("1.0.1")
    assert {"host", "host_second"}.isdisjoint(population.id for population in blind.catalogue.populations)
    assert {gate.id: gate.status for gate in blind.manifest.gates}["nodes_steady"] is GateStatus.UNKNOWN
    assert not any(name.startswith(("machine_cpu", "nodes_", "mempool")) for name in blind.samples("second").columns)


def test_nodes_of_two_networks_are_not_treated_as_one_network(lab: Lab, tmp_path: Path) -> None:
    address, other = loopback_addresses(first_address(), 2)
    with devnet(tmp_path / "one", [address]) as first, devnet(tmp_path / "other", [other]) as second:
        places = f"{first.places[0]},{second.places[0]}"
        error_output = lab.run("run", "cometbft/demo", "--attach", places, *SMALL, code=2).stderr
        assert "the nodes are of different networks" in error_output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attach", "127.0.0.1:1"), "127.0.0.1:1 does not respond"),
    ],
)
def test_a_missing_node_is_an_environment_failure(lab: Lab, arguments: tuple[str, ...], message: str) -> None:
    error_output = lab.run("run", "cometbft/demo", *arguments, code=5).stderr
    assert message in error_output
    assert lab.store.sealed() == []
