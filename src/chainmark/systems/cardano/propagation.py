"""Samples of the blocks: per block, per host and block, per region, per forger, and of the whole chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import polars as pl

from chainmark.systems.cardano.chain import FORGE_TIMINGS, PEER_TIMINGS, centiles, seconds
from chainmark.systems.cardano.figures import ADOPTION

REGION_ADOPTION = ("region_adoption_p50_s", "region_adoption_p100_s")
REGION_FRACTIONS = (0.50, 1.00)


def peer_hosts(local_addresses: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """The owners of addresses: every "ip:port" and every bare IP that only one host reports as its own.

    Args:
        local_addresses: per host the addresses at which it reports to have received blocks, with their frequency.
    """
    owners: dict[str, set[str]] = {}
    for host, addresses in local_addresses.items():
        for address in addresses:
            for name in (address, address.rpartition(":")[0]):
                owners.setdefault(name, set()).add(host)
    return {name: next(iter(hosts)) for name, hosts in owners.items() if len(hosts) == 1 and name}


def host_of(address: str, owners: Mapping[str, str]) -> str | None:
    """The owner of an address; None if unknown. For a port without an owner the IP decides."""
    return owners.get(address) or owners.get(address.rpartition(":")[0])


def with_fetched_host(data_frame: pl.DataFrame, owners: Mapping[str, str]) -> pl.DataFrame:
    """Add `fetched_host`: the owner of the address `fetched_from`."""
    addresses = [address for address in data_frame["fetched_from"].unique().to_list() if address is not None]
    known = {address: host for address in addresses if (host := host_of(address, owners)) is not None}
    column = data_frame["fetched_from"].replace_strict(known, default=None, return_dtype=pl.String)
    return data_frame.with_columns(fetched_host=column)


def with_links(observed: pl.DataFrame, regions: Mapping[str, str], owners: Mapping[str, str]) -> pl.LazyFrame:
    """Add `route` and `link`, both "FROM→TO" by regions.

    A route is from the block's forger to the host, over any number of others; a link from the peer that the host
    fetched the block from, null if that peer is unknown.

    Args:
        observed: with `region` of the host, `forger_region` and `fetched_from`.
    """
    addresses = sorted(address for address in observed["fetched_from"].unique().to_list() if address is not None)
    hosts = [host_of(address, owners) or "" for address in addresses]
    peers = pl.LazyFrame(
        {"fetched_from": addresses, "peer_region": [regions.get(host) for host in hosts]},
        schema={"fetched_from": pl.String, "peer_region": pl.String},
    )
    return (
        observed.lazy()
        .join(peers, on="fetched_from", how="left")
        .with_columns(
            route=pl.col("forger_region") + "→" + pl.col("region"),
            link=pl.col("peer_region") + "→" + pl.col("region"),
        )
    )


def block_samples(blocks: pl.LazyFrame) -> pl.LazyFrame:
    """One row per accepted block."""
    names = [*ADOPTION, "peer_notice_first_s", "peer_fetch_first_s", *FORGE_TIMINGS]
    return (
        blocks.filter("accepted")
        .select(
            "block",
            forger=pl.col("host").cast(pl.String),
            forger_region=pl.col("region"),
            time_s="time_s",
            **{name: pl.col(name) for name in names},
            block_battles=pl.col("block_battles").cast(pl.Float64),
            block_size_bytes=pl.col("size_bytes").cast(pl.Float64),
        )
        .sort("time_s", "block")
    )


def block_peer_samples(observed: pl.LazyFrame) -> pl.LazyFrame:
    """One row per accepted block and host with a valid observation of it."""
    return (
        observed.filter(pl.col("accepted") & pl.col("valid"))
        .select(
            "block",
            pl.col("host").cast(pl.String),
            "region",
            "route",
            "link",
            "time_s",
            *PEER_TIMINGS,
            "slot_to_adopted_s",
        )
        .sort("time_s", "block", "host")
    )


def block_region_samples(adoptions: pl.DataFrame) -> pl.DataFrame:
    """One row per accepted block and region in which a host adopted it.

    Args:
        adoptions: of accepted blocks: `block`, `region`, `time_s`, `slot_to_adopted_s`, by time and in this order.
    """
    groups = adoptions.group_by("block", "region", "time_s", maintain_order=True).agg(adopters=pl.len())
    counts = groups.drop_in_place("adopters").to_numpy().astype(np.int64)
    columns = centiles(adoptions["slot_to_adopted_s"].to_numpy(), counts, REGION_FRACTIONS)
    named = [pl.Series(name, columns[:, number]) for number, name in enumerate(REGION_ADOPTION)]
    return groups.hstack(named)


def chained_samples(blocks: pl.LazyFrame) -> pl.LazyFrame:
    """One row per block of the main chain with a known slot, accepted or not.

    Intervals are from one forging to the next, by the forgers' clocks.

    Args:
        blocks: in the chain's order.
    """
    follows = pl.col("block_no") == pl.col("block_no").shift(1) + 1
    samples = blocks.select(
        "block",
        "time_s",
        chained_interval_s=pl.when(follows).then(seconds("forged_ns", pl.col("forged_ns").shift(1))),
        chained_size_bytes=pl.col("size_bytes").cast(pl.Float64),
        chained_battles=pl.col("block_battles").cast(pl.Float64),
    )
    return samples.drop_nulls("time_s").sort("time_s", "block")


def host_samples(hosts: list[str], forged: Counter[str], chained: Counter[str], accepted: Counter[str]) -> pl.DataFrame:
    """One row per host: the blocks that it forged over the whole log, and their outcomes."""
    return pl.DataFrame(
        {
            "host": hosts,
            "blocks_forged": [float(forged[host]) for host in hosts],
            "blocks_filtered_ratio": [accepted[host] / chained[host] if chained[host] else None for host in hosts],
            "blocks_chained_ratio": [chained[host] / forged[host] if forged[host] else None for host in hosts],
        },
        schema_overrides={"blocks_filtered_ratio": pl.Float64, "blocks_chained_ratio": pl.Float64},
    ).sort("host")
