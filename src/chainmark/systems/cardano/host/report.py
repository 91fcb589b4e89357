"""From a sealed run of one host to the report for its operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from chainmark.core.caveats import caveats_of
from chainmark.core.errors import UsageError
from chainmark.stats.centiles import FloatArray, estimable_centile
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.host.beside import set_beside
from chainmark.systems.cardano.host.results import ArrivalCurves, HostReport, ObservedChain, PeerRow, SeenBlock
from chainmark.systems.cardano.host.sample_files import BlockSample, read_samples
from chainmark.systems.cardano.received import RECEIVED, SAMPLE, block_class
from chainmark.systems.cardano.tables import timelines_name

_NS_PER_MS = 10**6
_SLOWEST = 3
_POINTS = 200
CLASSES = "blocks that the host knew"


def host_report(run: SealedRun, against: Path | None) -> HostReport:
    """The data of one host's run, with another tool's samples for comparison.

    Raises:
        UsageError: the run is of several hosts, or was imported before single hosts were supported; the file holds no
            samples.
    """
    if not is_of_one_host(run):
        raise UsageError(
            f"run `{run.run_id}` is not of a single host", "import one host's log: `chainmark ingest cardano relay.log`"
        )
    block_timelines = run.events(timelines_name(run.catalogue))
    blocks = seen_blocks(run, block_timelines)
    comparison = None
    if against is not None:
        classed = block_timelines.with_columns(block_class().alias("class"))
        comparison = set_beside([block.sample for block in blocks], read_samples(against), classed, against.name)
    host = block_timelines["host"].first()
    return HostReport(
        host="the host" if host is None else str(host),
        manifest=run.manifest,
        metrics=dict(run.summaries()),
        catalogue=run.catalogue,
        chain=_chain(run, block_timelines),
        peers=_peers(run),
        curves=arrival_curves(blocks) if blocks else None,
        blocks=blocks,
        slowest=sorted(blocks, key=lambda block: (-block.adopted_s, block.sample.block_number))[:_SLOWEST],
        beside=comparison,
        caveats=caveats_of([run.manifest]),
    )


def arrival_curves(blocks: Sequence[SeenBlock]) -> ArrivalCurves:
    """The curves of a host's blocks, at least one, without the slowest of many: one of them would take all the room."""
    headers = np.sort([block.sample.header_delta / 1e3 for block in blocks])
    adopted = np.sort([block.adopted_s for block in blocks])
    p99_s = estimable_centile(adopted, 0.99)
    edge_s = float(adopted[-1]) if p99_s is None else p99_s
    beyond = int(np.count_nonzero(adopted > edge_s))
    return ArrivalCurves(headers=_curve(headers, edge_s), adopted=_curve(adopted, edge_s), edge_s=edge_s, beyond=beyond)


def _curve(ordered: FloatArray, edge_s: float) -> list[tuple[float, float]]:
    """At most this number of points of the distribution, up to the edge."""
    known = int(np.count_nonzero(ordered <= edge_s))
    places = np.unique(np.linspace(0, known - 1, min(_POINTS, known)).astype(int))
    return [(max(0.0, float(ordered[place])), float(place + 1) / len(ordered)) for place in places]


def is_of_one_host(run: SealedRun) -> bool:
    """Whether one host's log alone made the run."""
    return any(population.id == RECEIVED for population in run.catalogue.populations)


def seen_blocks(run: SealedRun, data_frame: pl.DataFrame) -> list[SeenBlock]:
    """The run's samples in the other tools' format, the oldest first."""
    frame = run.samples(RECEIVED).select("block", "received_adopted_s", "received_switches")
    joined = frame.join(data_frame, on="block", how="inner", maintain_order="left")
    spans = {
        "header_delta": pl.col("noticed_ns") - pl.col("slot_start_ns"),
        "block_request_delta": pl.col("answered_request_ns") - pl.col("noticed_ns"),
        "block_response_delta": pl.col("fetched_ns") - pl.col("answered_request_ns"),
        "block_adopt_delta": pl.min_horizontal("adopted_ns", "switched_ns") - pl.col("fetched_ns"),
    }
    cut = {name: (span.abs() // _NS_PER_MS) * span.sign() for name, span in spans.items()}
    return [_seen(row) for row in joined.with_columns(**cut).iter_rows(named=True)]


def _seen(row: dict[str, object]) -> SeenBlock:
    header, fetched = _address(row["noticed_from"]), _address(row["fetched_from"])
    sample = BlockSample.model_validate(
        {
            **{name: row[name] for name in BlockSample.model_fields if name in row},
            "block_hash": row["block"],
            "block_number": row["block_no"],
            "block_size": row["fetched_bytes"],
            "header_remote_addr": header[0],
            "header_remote_port": header[1],
            "block_remote_addr": fetched[0],
            "block_remote_port": fetched[1],
        }
    )
    return SeenBlock.model_validate(
        {
            "sample": sample,
            "time_ns": row["slot_start_ns"],
            "adopted_s": row["received_adopted_s"],
            "switched": bool(row["received_switches"]),
        }
    )


def _address(peer: object) -> tuple[str, str]:
    address, _, port = str(peer or "").rpartition(":")
    return address.strip("[]"), port


def _chain(run: SealedRun, data_frame: pl.DataFrame) -> ObservedChain:
    sound = data_frame.filter(pl.col("role") != "error")
    heights = sound.drop_nulls("block_no").group_by("block_no").len()
    forged = sound.filter(pl.col("role") == "forger")
    top = sound["block_no"].max()
    # The outcome of the highest block is not known yet.
    lost = forged.filter(~pl.col("on_chain") & (pl.col("block_no") != top))
    loop, missed = _forge_loop(run)
    return ObservedChain(
        classes=run.manifest.counts.get(CLASSES, {}),
        battles=heights.filter(pl.col("len") > 1).height,
        switches=sound.filter(pl.col("switched_ns").is_not_null()).height,
        forged=forged.height,
        forged_lost=lost.height,
        loop_slots=loop,
        missed_slots=missed,
    )


def _forge_loop(run: SealedRun) -> tuple[int | None, int | None]:
    """Slots between the first and the last round of the forge loop, and those of them without a round."""
    slots = run.samples("slot_host", ["slot", "forge_loop_starts"]).drop_nulls("forge_loop_starts")
    begun = slots.filter(pl.col("forge_loop_starts") > 0)["slot"]
    if begun.is_empty():
        return None, None
    within = slots.filter(pl.col("slot").is_between(begun.min(), begun.max()))
    return within.height, within.filter(pl.col("forge_loop_starts") == 0).height


def _peers(run: SealedRun) -> list[PeerRow]:
    """Every peer that sent a first header or a block, the one that sent most blocks first."""
    frame = run.samples(RECEIVED)
    headers = frame.group_by(peer="header_from").agg(headers=pl.len())
    blocks = frame.group_by(peer="fetched_from").agg(blocks=pl.len(), fetch_p50_s=pl.col("fetch_delay_s").median())
    joined = headers.join(blocks, on="peer", how="full", coalesce=True)
    joined = joined.with_columns(pl.col("headers", "blocks").fill_null(0))
    ordered = joined.sort("blocks", "headers", "peer", descending=[True, True, False])
    return [PeerRow.model_validate(row) for row in ordered.iter_rows(named=True)]


def sampled(classes: dict[str, int]) -> tuple[int, int]:
    """Blocks that are samples, and all that other hosts forged."""
    return classes.get(SAMPLE, 0), sum(classes.values()) - classes.get("forged here", 0)
