"""Logs of a simulated Cardano cluster, as a benchmark run's folder, with the ground truth next to them.

The folder holds `node-N/stdout…` for every host, `genesis/genesis.shelley.json`, `topology.json`, `meta.json` and
`truth.parquet`. The truth is one table; its column `record` states the kind of a row. All times are nanoseconds since
1970-01-01 UTC: `<stage>_ns` by a perfect clock, `<stage>_printed_ns` as a perfect reader of the actual lines would find
it (null: no such line), `<stage>_written` whether the line of `<stage>_ns` was written.

`record` = "block", one row for every block and every host that received news of it:

- `host`, `slot`, `block` (hash), `parent`, `block_no` (the first block has 0), `forger`, `role` ("forger" or
  "observer"), `on_chain` (an ancestor of the best tip at the end, or that tip itself), `block_bytes`;
- `adoption`: "extended", "switched" or "stored"; `fetch_length`: blocks of the first request that ends in this block;
- the first time of each stage: `started`, `block_context`, `ledger_state`, `ledger_view`, `leadership`, `ticked`,
  `snapshot`, `forged` (forgers), `noticed`, `requested`, `fetched` (observers), `announced`, `sent`, `adopted` (the
  change of the selected chain), `self_adopted` (the forge loop's own message).

`record` = "slot", one row for every slot and every host that ran in it:

- `started` to `leadership` as above, but of the last pass of the forge loop; `loop_starts`: number of its lines;
- `is_leader`; `density` and `utxo_entries` as written for the slot; `mempool_transactions` in the last line with it;
- `resources_printed_ns` and the sample's counters and gauges: `cpu_centiseconds`, `gc_centiseconds`,
  `mutator_centiseconds`, `major_collections`, `minor_collections`, `allocated_bytes`, `live_bytes`, `heap_bytes`,
  `rss_bytes`, `file_written_bytes`, `threads`.

`record` = "fault", one row for every fault and host: `fault`, `host`, `fault_from_ns` and `fault_until_ns` (null: from
the beginning, to the end), `fault_value`, `fault_name`, `fault_lines` (lines that it removed, added or
damaged individually; 0 if it changes the host, its clock, or how all its lines read).
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from chainmark._native import ClusterLogs
from chainmark._native import fault_kinds as native_fault_kinds
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.lab.profiles import check_profile, read_profile
from chainmark.lab.synthetic import FaultKind, SyntheticLogs, SyntheticRequest
from chainmark.systems.cardano.documents import SYNTHETIC_STATUS
from chainmark.systems.cardano.profile import CardanoProfile

DEFAULT_PROFILE = "cardano/value"
# A constant, so that the same request gives the same bytes on any day.
SYSTEM_START = datetime(2026, 2, 5, 18, 52, 16, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPRESSIONS = ("none", "gzip", "zstd")
FORMATS = {
    "10.5": ("10.5.4", "9.6.5"),
    "10.7": ("10.7.1", "9.6.7"),
    "10.4": ("10.4.1", "9.6.5"),
    "legacy": ("8.1.2", "8.10.7"),
}
PACKAGES = (
    "cardano-crypto",
    "cardano-ledger-core",
    "cardano-prelude",
    "ouroboros-consensus",
    "ouroboros-network",
    "plutus-core",
)
PROGRESS_PERIOD_S = 0.1

# Blocks of this size and more are full of simple payments of 370 bytes each; smaller ones hold few transactions, whose
# scripts use up the block's budget: four in the benchmarks.
FULL_BLOCK_BYTES = 20_000
PAYMENT_BYTES = 368
SCRIPT_TRANSACTIONS = 4
BLOCK_BYTES_BESIDES = 900
# A host's figures in the published reports of 10.6.2: mutator in percent of a core, allocation in MiB/s, heap and live
# data in MiB.
PAYMENTS_USAGE = {"mutator_percent": 5.16, "allocation_mib_per_s": 21.4, "heap_mib": 6540.0, "live_mib": 2850.0}
SCRIPTS_USAGE = {"mutator_percent": 3.74, "allocation_mib_per_s": 10.5, "heap_mib": 6397.0, "live_mib": 2340.0}
UTXO_ENTRIES = 4_000_000
DELEGATORS = 1_000_000
DREPS = 10_000
# The generator's first transactions follow the network's start after this.
LOAD_START_S = 10.0
# Epochs that the benchmarks cut off as warm-up.
WARM_UP_EPOCHS = 2

_BYTE_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class ClusterOptions:
    """The options that `commands.toml` declares for `chainmark synth`.

    Attributes:
        slots: duration of the network.
        topology: a rule's name or a file; None uses the profile's.
        formats: `FORMAT` for all hosts, or `FORMAT:HOST,HOST`; the last one that names a host counts.
        system_start: when the network starts; None uses a constant.
    """

    slots: int
    topology: str | None = None
    formats: Sequence[str] = ()
    system_start: datetime | None = None


class ClusterContent(SyntheticLogs):
    """The result.

    Attributes:
        blocks_forked: blocks that lost their battle.
        lines_after_truth: lines about blocks after the ground truth about them was closed; expected to be none.
    """

    slots: int
    blocks: int
    blocks_on_chain: int
    blocks_forked: int
    transactions: int
    lines_after_truth: int

    def contents(self) -> dict[str, str]:
        """What the simulated network made."""
        forks = f"{self.blocks_forked} orphaned" if self.blocks_forked else "none orphaned"
        return {
            "slots": f"{self.slots}",
            "blocks": f"{self.blocks}, {forks}",
            "transactions": f"{self.transactions}",
        }


def fault_kinds() -> list[FaultKind]:
    """Faults on request."""
    return [FaultKind(*kind) for kind in native_fault_kinds()]


def synthesise(order: SyntheticRequest, progress: Progress) -> ClusterContent:
    """Write the requested logs.

    Raises:
        UsageError: the request is invalid, or the folder exists.
        EnvironmentFailure: the folder cannot be written.
    """
    profile = resolve(order)
    content = json.dumps(log_order(profile, order))
    try:
        logs = ClusterLogs(content, str(order.folder), order.threads, order.replace)
        with storage_errors(order.folder):
            summary = _run(logs, progress)
    except ValueError as error:
        message, _, hint = str(error).partition("\nhint: ")
        raise UsageError(message, hint or None) from error
    return ClusterContent(folder=order.folder, profile=profile.name, seed=order.seed, **json.loads(summary))


def _run(logs: ClusterLogs, progress: Progress) -> str:
    """Run the work in another thread, so that this one can report progress and receive Ctrl-C."""
    done: list[str | None] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(logs.run())
        except BaseException as error:
            failed.append(error)

    worker = threading.Thread(target=work, name="cluster-logs")
    progress.stage("writing logs")
    worker.start()
    try:
        while worker.is_alive():
            worker.join(PROGRESS_PERIOD_S)
            fraction, lines, text_bytes = logs.progress()
            progress.update(fraction, f"{units.number(lines / 1e6, 1)} million lines, {units.byte_size(text_bytes)}")
    except BaseException:
        logs.cancel()
        worker.join()
        raise
    if failed:
        raise failed[0]
    if not done or done[0] is None:
        raise KeyboardInterrupt
    return done[0]


def resolve(order: SyntheticRequest) -> CardanoProfile:
    """The profile with the changes of the request.

    Raises:
        UsageError: there is no such profile, or a value is invalid.
    """
    settings = [*order.settings]
    topology = ClusterOptions(**order.options).topology
    if topology is not None:
        settings.append(f"network.topology={json.dumps(topology)}")
    if order.hosts is not None:
        settings.append(f"network.hosts={order.hosts}")
    return check_profile(CardanoProfile, read_profile(order.profile or DEFAULT_PROFILE, settings))


def log_order(profile: CardanoProfile, order: SyntheticRequest) -> dict[str, Any]:
    """The writer's input, as crates/chainmark-sim/src/logs/order.rs describes it.

    Raises:
        UsageError: a format, a compression or a rotation is unknown.
    """
    if order.compression not in COMPRESSIONS:
        raise UsageError(
            f"`{order.compression}` is not a known compression",
            f"choose from {', '.join(f'`{item}`' for item in COMPRESSIONS)}",
        )
    options = ClusterOptions(**order.options)
    start = options.system_start or SYSTEM_START
    if start.tzinfo is None:
        start = start.replace(tzinfo=UTC)
    formats = [_format(text) for text in options.formats]
    main = next((format_name["format"] for format_name in reversed(formats) if not format_name["hosts"]), "10.5")
    since = start - EPOCH
    return {
        "scenario": profile.scenario(order.seed).model_dump(mode="json", exclude_none=True),
        "slots": options.slots,
        "chain": {
            "slot_length_s": profile.chain.slot_length_s,
            "active_slots_coefficient": profile.chain.active_slots_coefficient,
            "epoch_slots": profile.chain.epoch_slots,
            "security_parameter": profile.chain.security_parameter,
        },
        "workload": _workload(profile),
        "system_start_ns": (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000,
        "formats": formats,
        "compression": order.compression,
        "rotation": None if order.rotation is None else _rotation(order.rotation),
        "faults": [*order.faults],
        "meta": _meta(profile, order.seed, options.slots, main),
    }


def _format(text: str) -> dict[str, Any]:
    name, _, hosts = text.partition(":")
    if name not in FORMATS:
        known = ", ".join(f"`{item}`" for item in FORMATS)
        raise UsageError(
            f"`{name}` is not a known log format", f"choose from {known}; `legacy:node-3,node-5` applies to two hosts"
        )
    return {"format": name, "hosts": [host.strip() for host in hosts.split(",") if host.strip()]}


def _rotation(text: str) -> dict[str, int]:
    match = re.fullmatch(r"(\d{1,15})(kB|MB|GB)?", text.strip())
    if match is None or int(match[1]) == 0:
        raise UsageError(
            f"`{text}` is not a valid size for log rotation",
            "give a number of lines, or of bytes with a unit: 100MB",
        )
    number = int(match[1])
    return {"bytes": number * _BYTE_UNITS[match[2]]} if match[2] else {"lines": number}


def _full_blocks(profile: CardanoProfile) -> bool:
    return profile.workload.block_bytes >= FULL_BLOCK_BYTES


def _workload(profile: CardanoProfile) -> dict[str, float]:
    body_bytes = max(1.0, profile.workload.block_bytes - BLOCK_BYTES_BESIDES)
    full = _full_blocks(profile)
    transactions = max(1, int(body_bytes / PAYMENT_BYTES)) if full else SCRIPT_TRANSACTIONS
    return {
        "tps": profile.workload.tps,
        "start_s": LOAD_START_S,
        "transaction_bytes": max(1, int(body_bytes / transactions)),
        "block_transactions": transactions,
        "utxo_entries": UTXO_ENTRIES,
        "delegators": DELEGATORS,
        **(PAYMENTS_USAGE if full else SCRIPTS_USAGE),
    }


def _meta(profile: CardanoProfile, seed: int, slots: int, main_format: str) -> dict[str, Any]:
    """The description of a benchmark run. Every package but the node itself is unknown: none was built."""
    version, compiler = FORMATS[main_format]
    full = _full_blocks(profile)
    filters = ["size-full"] if full else ["size-small"]
    if slots > WARM_UP_EPOCHS * profile.chain.epoch_slots:
        filters.append("epoch3+")
    inputs = 2 if full else 1
    node = {"name": "cardano-node", "version": version, "commit": "unknown", "branch": None, "status": SYNTHETIC_STATUS}
    others = [{**node, "name": name, "version": "unknown"} for name in PACKAGES]
    return {
        "tag": f"synthetic-{version}-{profile.workload.name}-{seed}",
        "batch": "synthetic",
        "profile": profile.name,
        "era": "babbage" if main_format == "legacy" else "conway",
        "ident": version,
        "node_ghc_version": compiler,
        "manifest": {str(package["name"]): package for package in [node, *others]},
        "profile_content": {
            "genesis": {"delegators": DELEGATORS, "utxo": UTXO_ENTRIES, "dreps": DREPS},
            "generator": {
                "add_tx_size": 100,
                "inputs_per_tx": inputs,
                "outputs_per_tx": inputs,
                "tps": profile.workload.tps,
                "tx_count": math.ceil(profile.workload.tps * slots * profile.chain.slot_length_s),
                "era": "conway",
                "plutus": {"type": None, "script": None} if full else {"type": "LimitSaturationLoop", "script": "Loop"},
            },
            "analysis": {"filters": filters},
        },
    }
