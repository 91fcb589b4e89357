"""The cost of one block to a host: the runtime's figures split by forging, by adopting a block, and by the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from chainmark.stats.centiles import FloatArray
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition, slot_test
from chainmark.systems.cardano.slots import HostSlots

# A block's work is in the sample of its own slot or in one of the next: a sample covers the preceding second.
LAGS = 3
# Fewer blocks give no usable mean; with fewer samples than this share of the slots, no sample belongs to one slot.
LEAST_BLOCKS = 5
LEAST_SAMPLED = 0.8
PERCENT = 100.0
EVENTS = ("forging", "adopted_block")
# Metric by event, the column of the slot records, and the factor from a slot's value to the metric's unit for 1 s
# slots.
FIGURES = {
    "allocated_per_{}_mib": ("alloc_mib", 1.0),
    "gc_cpu_per_{}_s": ("gc_percent", 1.0 / PERCENT),
    "mutator_cpu_per_{}_s": ("mutator_percent", 1.0 / PERCENT),
}
METRICS = tuple(name.format(event) for event in EVENTS for name in FIGURES)


def block_work(
    hosts: Sequence[HostSlots], conditions: Sequence[FilterCondition], data_frame: pl.DataFrame, genesis: Genesis
) -> pl.DataFrame:
    """The cost of forging a block and of adopting another host's to each host, in excess of an idle slot.

    Args:
        hosts: those with slot records.
        conditions: of the analysis; slots that they exclude are excluded here.
        data_frame: every block on every host, with `role`, `adoption_ns` and the slot.

    Returns:
        One row per host of ``hosts``: `host` and ``METRICS``, f64, null if there are too few blocks or samples.
    """
    adopted = (
        data_frame.lazy()
        .filter(pl.col("role") == "observer", pl.col("adoption_ns").is_not_null())
        .group_by(
            pl.col("host").cast(pl.String),
            slot=(pl.col("adoption_ns") - genesis.system_start_ns) // genesis.slot_length_ns,
        )
        .agg(adopted=pl.len().cast(pl.Int64))
        .collect()
        .partition_by("host", as_dict=True, include_key=False)
    )
    rows = []
    for host in hosts:
        slots = _slots(host, conditions, adopted.get((host.name,)))
        rows.append({"host": host.name, **_work_of(slots, genesis.slot_length_s)})
    return pl.DataFrame(rows, schema={"host": pl.String, **dict.fromkeys(METRICS, pl.Float64)})


def work_per_event(values: FloatArray, events: FloatArray) -> FloatArray | None:
    """The amount that one event of each kind adds to the values, over its own slot and the ``LAGS - 1`` after it.

    Args:
        values: shape (n,), one per slot; NaN if unknown.
        events: shape (n, kinds), number of events that began in each slot; the slots are consecutive.

    Returns:
        Shape (kinds,), in the values' unit; None if the kinds cannot be separated from each other or from the rest.

    Source: ordinary least squares of the values on the events of the slot and of the preceding ones.
    """
    count, kinds = events.shape
    lagged = [np.vstack([np.zeros((lag, kinds)), events[: count - lag]]) for lag in range(LAGS)]
    design = np.hstack([np.ones((count, 1)), *lagged])
    known = np.isfinite(values)
    design, values = design[known], values[known]
    if len(values) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    effects: FloatArray = coefficients[1:].reshape(LAGS, kinds).sum(axis=0)
    return effects


@dataclass(frozen=True)
class _Slots:
    """Every slot from a host's first to its last.

    Attributes:
        events: shape (slots, kinds), number of ``EVENTS`` that began in each.
        values: by column of ``FIGURES``, shape (slots,); NaN if no sample is the slot's own.
    """

    events: FloatArray
    values: Mapping[str, FloatArray]


def _slots(host: HostSlots, conditions: Sequence[FilterCondition], adopted: pl.DataFrame | None) -> _Slots:
    """The events in the slots of a host; of several records of a slot the last one counts.

    Args:
        adopted: number of other hosts' blocks that it `adopted` per `slot`; None if there is none.
    """
    own = slot_test(conditions) & pl.col("sampled")
    figures = [column for column, _ in FIGURES.values()]
    records = (
        pl.scan_parquet(host.path)
        .select("slot", pl.col("forges").fill_null(0), *(pl.when(own).then(name).alias(name) for name in figures))
        .collect()
    )
    slot = records.get_column("slot").to_numpy()
    first = int(slot.min()) if len(slot) else 0
    place = slot - first
    count = int(place.max(initial=-1)) + 1
    events = np.zeros((count, len(EVENTS)))
    events[place, 0] = records.get_column("forges").to_numpy()
    if adopted is not None:
        at = adopted.get_column("slot").to_numpy() - first
        within = (at >= 0) & (at < count)
        events[at[within], 1] = adopted.get_column("adopted").to_numpy()[within]
    values = {name: np.full(count, np.nan) for name in figures}
    for name, column in values.items():
        column[place] = records.get_column(name).cast(pl.Float64).to_numpy()
    return _Slots(events, values)


def _work_of(slots: _Slots, slot_length_s: float) -> Mapping[str, float | None]:
    results: dict[str, float | None] = dict.fromkeys(METRICS)
    messages = [kind for kind in range(len(EVENTS)) if slots.events[:, kind].sum() >= LEAST_BLOCKS]
    if not messages:
        return results
    for name, (column, factor) in FIGURES.items():
        values = slots.values[column]
        if np.isfinite(values).mean() < LEAST_SAMPLED:
            continue
        work = work_per_event(values, slots.events[:, messages])
        if work is not None:
            for kind, amount in zip(messages, work * factor * slot_length_s, strict=True):
                results[name.format(EVENTS[kind])] = float(amount)
    return results
