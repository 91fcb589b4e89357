"""Three machines on one: a Dask worker in each of three network namespaces, which are as far apart as their zones.

``python -m tests.real.cluster_demo FOLDER`` compares two releases with eight validators on them and writes the report
into the folder: `make demo-cluster`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import chainmark as cm
from chainmark.cli.console import out
from chainmark.cli.following import progress
from chainmark.core.errors import ChainmarkError, ExitCode
from chainmark.network.emulation import EmulationPlan, emulated_links
from chainmark.network.namespaces import HOST_NUMBER
from chainmark.network.zones import load_zone_table

from tests.real.dask_cluster import LocalCluster, local_cluster, wait_for_workers, watching

ZONES = {"w1": "N_Virginia", "w2": "Canada", "w3": "London"}
DECIDED = {ExitCode.DONE, ExitCode.FAIL, ExitCode.INCONCLUSIVE}


@contextmanager
def machines_apart(environments: Mapping[str, Mapping[str, str]] | None = None) -> Iterator[LocalCluster]:
    """A scheduler on this machine, and a worker in the namespace of each zone.

    Args:
        environments: further variables of single workers, by name.

    Raises:
        EnvironmentFailure: this user may not create namespaces.
    """
    plan = EmulationPlan(tuple(ZONES), ZONES, load_zone_table("aws"))
    with tempfile.TemporaryDirectory(prefix="links-") as folder, emulated_links(plan, Path(folder)) as links:
        network, _, _ = links.addresses["w1"].rpartition(".")
        with local_cluster(host=f"{network}.{HOST_NUMBER}") as cluster, watching(cluster) as seen:
            for number, (name, address) in enumerate(links.addresses.items(), 1):
                environment = (environments or {}).get(name)
                cluster.start_worker(number, host=address, before=links.command(name, []), environment=environment)
            wait_for_workers(seen, set(ZONES))
            yield cluster


def main(folder: Path) -> ExitCode | int:
    """Compare the releases in this process, which also delays the packets: it belongs to the measurement."""
    with machines_apart() as cluster, progress() as listener:
        document = cm.experiment(
            "cometbft/demo",
            baseline="v0.38.17",
            candidate="v1.0.1",
            most_runs=4,
            settings={"network.validators": 8, "load.rate": 100},
            margins={"node_cpu_per_transaction_s": 0.25},  # as in `make demo`: v1.0.1 needs about 10 % more
            profiles="none",
            on=cluster.address,
            progress=listener,
        )
    document.write_all(
        {kind: folder / f"v1.0.1-against-v0.38.17-on-three-machines{kind}" for kind in (".html", ".pdf")}
    )
    document.print(out())
    return 0 if document.verdict.exit_code in DECIDED else document.verdict.exit_code


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except ChainmarkError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
