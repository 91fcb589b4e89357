"""The simulator against a second implementation of the same description."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from chainmark._native import simulate_batches

from tests.oracle.diffusion import CENTILES, Oracle

STAGES = {
    "started_s": 0.0014, "block_context_s": 6.6e-5, "ledger_state_s": 1.2e-4, "ledger_view_s": 2.9e-5,
    "leadership_s": 4.1e-4, "ticked_s": 0.0214, "snapshot_s": 0.0469, "forged_s": 7.7e-4, "announced_s": 7.2e-4,
    "self_adopted_s": 0.0682, "request_s": 0.0014, "fetched_to_announced_s": 0.001, "adopted_s": 0.0719,
}  # fmt: skip
PARAMETERS = {
    "header_service_s": 0.0025, "body_service_s": 0.0115, "server_share": 0.25, "segment_bytes": 1448.0,
    "segment_bytes_in_region": 8949.0, "initial_window_segments": 10.0, "window_limit_segments": 400.0,
    "window_memory_s": 2.0, "bandwidth_bytes_per_s": 280e6, "fetch_concurrency": 4, "decision_interval_s": 0.01,
    "pipelining": True, "fast_block_probability": 0.2, "fast_block_share": 0.75, "slow_block_probability": 0.01,
    "slow_forging_s": 0.5, "slow_adoption_s": 1.0, "straggler_probability": 0.003, "straggler_s": 0.15,
    "forging_variation": 0.12, "header_variation": 0.6, "body_variation": 0.7, "request_variation": 0.6,
    "announcement_variation": 0.5, "adoption_variation": 0.1, "fetch_factor": 1.0,
}  # fmt: skip


def scenario(block_bytes: float, hosts: int = 52, **parameters: float) -> dict[str, object]:
    return {
        "seed": 1,
        "cluster": {
            "hosts": hosts,
            "topology": {"kind": "torus-dense"},
            "regions": [{"name": "EU"}, {"name": "US"}, {"name": "AP"}],
            "rtt_s": [[0.0002, 0.0902, 0.252], [0.0902, 0.00025, 0.2], [0.252, 0.2, 0.00015]],
        },
        "stages": STAGES,
        "parameters": PARAMETERS | parameters,
        "block_bytes": block_bytes,
        "block_interval_s": 20.0,
    }


@pytest.mark.parametrize(
    ("what", "order"),
    [
        ("small blocks", scenario(3000.0)),
        ("full blocks", scenario(89000.0)),
        ("one fetch at a time", scenario(89000.0, fetch_concurrency=1)),
        ("slower fetches", scenario(89000.0, fetch_factor=1.15)),
        ("another size of network", scenario(30000.0, hosts=31)),
    ],
)
def test_a_second_implementation_gives_the_same_adoption_curve(what: str, order: dict[str, object]) -> None:
    """The two implementations share only the description, so an error in either would show."""
    hosts = order["cluster"]["hosts"]  # type: ignore[index]
    # The oracle draws slow blocks at random. Without them, 400 blocks are enough to detect 1 %.
    quiet = order | {"parameters": order["parameters"] | {"slow_block_probability": 0.0}}  # type: ignore[operator]
    adopted = np.sort(np.array(list(Oracle(quiet, seed=5).blocks(hosts * 8))), axis=1)
    done = simulate_batches(json.dumps(quiet), hosts, 0, 16, 0)
    for fraction in CENTILES:
        rank = min(hosts - 1, math.floor(hosts * fraction))
        theirs = adopted[:, rank]
        column = done.figures.index(f"adoption_p{round(fraction * 100)}_s")
        ours = np.array([row[column] for row in done.normal])
        error = math.hypot(theirs.std(ddof=1) / math.sqrt(len(theirs)), ours.std(ddof=1) / math.sqrt(len(ours)))
        difference = abs(theirs.mean() - ours.mean())
        assert difference < 3.5 * error + 0.001, f"{what}, {fraction}: {theirs.mean():.4f} against {ours.mean():.4f} s"
