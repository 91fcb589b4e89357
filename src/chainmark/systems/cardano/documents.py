"""What lies beside a cluster's logs: the genesis, the benchmark run's description, the topology."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Genesis:
    """The constants of the chain that the logs are about.

    Attributes:
        system_start_ns: when slot 0 began, ns since 1970-01-01 UTC.
        active_slots_coefficient: the share of slots that have a leader.
        security_parameter: blocks behind the tip that can no longer change.
    """

    system_start_ns: int
    slot_length_s: float
    epoch_slots: int
    security_parameter: int
    active_slots_coefficient: float
    max_block_body_bytes: int
    network_magic: int | None
