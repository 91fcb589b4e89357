"""From decoded hosts to the published analysis's figures, independent of the rules of the run itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.stats.threads import worker_threads
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cardano import facts
from chainmark.systems.cardano.accounting import LineCounts
from chainmark.systems.cardano.analyse import Blocks, HostTrace, RecordedChain
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition, slot_test
from chainmark.systems.cardano.published.figures import (
    FACTS,
    FACTS_SCHEMA,
    FIGURES,
    FIGURES_SCHEMA,
    Cdf,
    Figure,
    OverHosts,
    PublishedFigures,
    cdf_of,
)
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import HostSlots, metrics_of, survey
from chainmark.systems.cardano.spans import span_samples

PUBLISHED = Rules(published=True)
# Figures of the published analysis that no report shows: its name by our metric's, and by the decoder's column.
_UNSHOWN = {"block_io_percent": "CentiBlkIO", "utxo_entries": "cdfUtxo"}
_COLUMNS = {"leads": "cdfLeads", "threads": "Threads"}


def keep_published(
    run: UnfinishedRun, hosts: Sequence[HostTrace], recorded: RecordedChain, known: facts.Subjects, catalogue: Catalogue
) -> None:
    """Write the figures by the published rules into the run.

    Args:
        run: of the hosts.
        hosts: as decoded by the published rules.
        recorded: the chain as their lines record it.
        known: the blocks by the run's own rules.
        catalogue: the published analysis's names of the metrics.
    """
    published_figures = measured_figures(hosts, recorded, known, catalogue)
    run.write_figures(FIGURES, published_figures.frame(), FIGURES_SCHEMA)
    run.write_figures(FACTS, published_figures.facts_frame(), FACTS_SCHEMA)


def measured_figures(
    hosts: Sequence[HostTrace], recorded: RecordedChain, known: facts.Subjects, catalogue: Catalogue
) -> PublishedFigures:
    """The same, without writing to a run."""
    genesis, conditions = known.genesis, known.conditions
    ordered = sorted(hosts, key=lambda host: host.name)
    blocks = Blocks(ordered, genesis, conditions, PUBLISHED, {}, recorded=recorded)
    slots = [survey(host.name, host.slots, conditions) for host in ordered if host.slots is not None]
    host_slots = [host for host in slots if host.selected]
    names = {metric.id: metric.published_id or _UNSHOWN.get(metric.id, "") for metric in catalogue.metrics}
    figures: dict[str, Figure] = {}
    for frame in blocks.samples_of_blocks().values():
        figures |= {names[column]: _cdf(frame[column]) for column in frame.columns if names.get(column)}
    if host_slots:
        figures |= _over_hosts(host_slots, conditions, genesis, names)
    chain = _Domain(
        blocks.table, host_slots, [counts for counts in known.line_counts if counts.first_ns is not None], genesis
    )
    figures |= _log_figures(known.line_counts)
    figures |= {name: cdf_of([value]) for name, value in chain.scalars().items()}
    figures |= {f"sumDomainSlots.{name}": _cdf(values) for name, values in chain.slots_of_hosts().items()}
    analysis = replace(
        known.analysis,
        accepted=chain.accepted,
        rejected=blocks.table.height - chain.accepted,
        slots_analysed=chain.slots_analysed,
        analysed_duration_s=chain.duration_s,
    )
    rows = facts.facts(replace(known, analysis=analysis, rules=PUBLISHED))
    return PublishedFigures(figures, [(row.label, row.value) for row in rows])


def _cdf(samples: pl.Series) -> Cdf:
    known = samples.drop_nulls() if samples.null_count() else samples
    return cdf_of(known.cast(pl.Float64).to_numpy())


def _over_hosts(
    hosts: Sequence[HostSlots], conditions: Sequence[FilterCondition], genesis: Genesis, names: Mapping[str, str]
) -> dict[str, Figure]:
    """Every figure of slots, and of the spans among them."""
    spans = span_samples(hosts, conditions, genesis, PUBLISHED).partition_by("host", as_dict=True, include_key=False)

    def of_host(host: HostSlots) -> dict[str, Cdf]:
        wanted = {names[metric]: value for metric, value in metrics_of(host, PUBLISHED).items() if names.get(metric)}
        wanted |= {name: pl.col(column) for column, name in _COLUMNS.items()}
        frame = pl.scan_parquet(host.path).filter(slot_test(conditions)).select(**wanted).collect()
        own = spans[(host.name,)]  # a host without a span has a row, too
        result = {name: _cdf(frame[name]) for name in wanted}
        result["cdfHostSlots"] = cdf_of([(host.last or 0) - (host.first or 0)])
        return result | {names[metric]: _cdf(own[metric]) for metric in own.columns if names.get(metric)}

    with worker_threads(max(host.selected for host in hosts)) as pool:
        reported = dict(zip([host.name for host in hosts], pool.map(of_host, hosts), strict=True))
    first = next(iter(reported.values()))
    return {name: OverHosts({host: figures[name] for host, figures in reported.items()}) for name in first}


def _log_figures(line_countses: Sequence[LineCounts]) -> dict[str, Figure]:
    """The content of the logs: one sample per host."""
    spans = [(counts.last_ns or 0) - (counts.first_ns or 0) for counts in line_countses]
    analysed = [facts.analysed_messages(counts, PUBLISHED) for counts in line_countses]
    rates = [
        counts.raw_lines / (span // 10**9) for counts, span in zip(line_countses, spans, strict=True) if span >= 10**9
    ]
    return {
        "sumHosts": cdf_of([len(line_countses)]),
        "sumLogObjectsTotal": cdf_of([sum(analysed)]),
        "cdfLogLinesEmitted": cdf_of([counts.raw_lines for counts in line_countses]),
        "cdfLogObjectsEmitted": cdf_of([counts.objects for counts in line_countses]),
        "cdfLogObjects": cdf_of(analysed),
        "cdfRuntime": cdf_of([span / 1e9 for span in spans]),
        "cdfLogLineRate": cdf_of(rates),
    }


@dataclass(frozen=True)
class _Domain:
    """The extent of the run before and after the filters: in blocks, in slots, in time.

    Attributes:
        table: the blocks of the main chain.
        hosts: those with selected slots.
        line_counts: the accounting of hosts whose logs hold a message.
    """

    table: pl.DataFrame
    hosts: Sequence[HostSlots]
    line_counts: Sequence[LineCounts]
    genesis: Genesis

    @property
    def accepted(self) -> int:
        """The blocks that the filters accept."""
        return int(self.table["accepted"].sum())

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Every host's first and last selected slot."""
        return [(host.first or 0, host.last or 0) for host in self.hosts]

    @property
    def slots_analysed(self) -> int | None:
        """Floor of the mean over hosts of the last selected slot minus the first."""
        return sum(last - first for first, last in self.ends) // len(self.hosts) if self.hosts else None

    @property
    def duration_s(self) -> int | None:
        """From the first to the last selected slot of any host."""
        if not self.hosts:
            return None
        slots = max(last for _, last in self.ends) - min(first for first, _ in self.ends)
        return round(slots * self.genesis.slot_length_s)

    def slots_of_hosts(self) -> dict[str, pl.Series]:
        """The selected slots' ends and lengths, one sample per host."""
        firsts, lasts = (pl.Series([end[place] for end in self.ends], dtype=pl.Int64) for place in (0, 1))
        return {"ddFiltered.low": firsts, "ddFiltered.high": lasts, "ddFilteredCount": lasts - firsts}

    def scalars(self) -> dict[str, float]:
        """The published analysis's scalars of the run, by their places in its files."""
        result = {"sumBlocksRejected": float(self.table.height - self.accepted)}
        for part, rows in (("Raw", self.table), ("Filtered", self.table.filter("accepted"))):
            if rows.height:
                numbers = rows["block_no"]
                for name in ("bpDomainBlocks", "bpDomainCDFBlocks", "sumDomainBlocks"):
                    result |= _interval(name, part, numbers[0], numbers[-1], rows.height)
            # If a block is known by a hash alone, no log has its slot.
            slots = rows["slot"].drop_nulls()
            if len(slots):
                for name in ("bpDomainSlots", "bpDomainCDFSlots"):
                    result |= _interval(name, part, slots[0], slots[-1], slots[-1] - slots[0])
        starts, stops = ([getattr(counts, end) for counts in self.line_counts] for end in ("first_ns", "last_ns"))
        result |= self._times("Raw", starts, stops)
        if self.hosts:
            at = self.genesis.slot_start_ns
            result |= self._times(
                "Filtered", [at(first) for first, _ in self.ends], [at(last) for _, last in self.ends]
            )
        return result

    def _times(self, part: str, starts_ns: Sequence[int], stops_ns: Sequence[int]) -> dict[str, float]:
        ends = {
            "sumDomainTime": (min(starts_ns), max(stops_ns)),
            "sumStartSpread": (min(starts_ns), max(starts_ns)),
            "sumStopSpread": (min(stops_ns), max(stops_ns)),
        }
        results: dict[str, float] = {}
        for name, (low, high) in ends.items():
            results |= _interval(name, part, low / 1e9, high / 1e9, round(Fraction(high - low, 10**9)))
        return results


def _interval(name: str, part: str, low: float, high: float, count: float) -> dict[str, float]:
    return {f"{name}.dd{part}.low": low, f"{name}.dd{part}.high": high, f"{name}.dd{part}Count": float(count)}
