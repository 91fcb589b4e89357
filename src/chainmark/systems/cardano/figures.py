"""The figures of one measured run that the model is calibrated to and checked against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from chainmark.core import units
from chainmark.core.caveats import Caveats
from chainmark.core.errors import UsageError
from chainmark.systems.cardano.scenario import Region, Stages

CENTILES = ("p50", "p80", "p90", "p92", "p94", "p96", "p98", "p100")
FRACTIONS = (0.50, 0.80, 0.90, 0.92, 0.94, 0.96, 0.98, 1.00)
ADOPTION = tuple(f"adoption_{centile}_s" for centile in CENTILES)
BLOCK_SIZE = "block_size_bytes"
# The metric of each stage of the model.
STAGE_METRICS: Mapping[str, str] = {
    "started_s": "forge_started_s",
    "block_context_s": "forge_block_context_s",
    "ledger_state_s": "forge_ledger_state_s",
    "ledger_view_s": "forge_ledger_view_s",
    "leadership_s": "forge_leadership_s",
    "ticked_s": "forge_ticked_s",
    "snapshot_s": "forge_snapshot_s",
    "forged_s": "forge_forged_s",
    "announced_s": "forge_announced_s",
    "self_adopted_s": "forge_self_adopted_s",
    "request_s": "peer_request_s",
    "fetched_to_announced_s": "peer_announced_s",
    "adopted_s": "peer_adopted_s",
}
# What calibration needs in addition to the stages.
ANNOUNCED, FIRST_NOTICE, FIRST_FETCH, FETCH = (
    "slot_to_announced_s",
    "peer_notice_first_s",
    "peer_fetch_first_s",
    "peer_fetch_s",
)
SENDING = "forge_sending_s"
CHECKED = ("peer_sending_s",)
USED = (*STAGE_METRICS.values(), ANNOUNCED, FIRST_NOTICE, FIRST_FETCH, FETCH, BLOCK_SIZE)
KNOWN = frozenset({*USED, SENDING, *CHECKED, *ADOPTION})
ADOPTED = "peer_adopted_s"
# Without these nothing can be modelled; any other stage may be absent from a node or its logs.
NEEDED = (ANNOUNCED, ADOPTED, BLOCK_SIZE)
# The forger's stages up to its announcement: their sum is ``ANNOUNCED``.
FORGING_STAGES = tuple(
    stage
    for stage in STAGE_METRICS
    if stage not in {"self_adopted_s", "request_s", "fetched_to_announced_s", "adopted_s"}
)
# Without the last of them, the forger's total time is unknown.
FORGED = STAGE_METRICS["forged_s"]
# Two threads report the two moments, so a mean below zero is possible.
SIGNED = ("forge_announced_s", "forge_sending_s", "peer_announced_s", "peer_sending_s")
LONGEST_S = 600.0
LARGEST_BYTES = 1e9


def with_announced(values: Mapping[str, float]) -> dict[str, float]:
    """Figures with the time from slot start to announcement: if no node logs it, the sum of the forger's stages.

    The time between the forged block and its announcement is then part of the headers' path.
    """
    if ANNOUNCED in values or FORGED not in values:
        return dict(values)
    forging = (values.get(STAGE_METRICS[stage], 0.0) for stage in FORGING_STAGES)
    return {**values, ANNOUNCED: sum(max(0.0, stage_s) for stage_s in forging)}


@dataclass(frozen=True)
class Mean:
    """A measured mean, its standard error, and the number of its blocks."""

    value: float
    standard_error: float
    blocks: int


@dataclass(frozen=True)
class Lateness:
    """How often blocks are slow everywhere and single hosts late, and by how much on average.

    Attributes:
        slow_share: of the blocks. slow_s: by how much; None if too few were slow to estimate it.
        late_share: of (block, host), without slow blocks. late_s: as above.
    """

    slow_share: float
    slow_s: float | None
    late_share: float
    late_s: float | None


@dataclass(frozen=True)
class Figures:
    """A run's figures of this model's metrics by id, each a mean in the metric's unit.

    Attributes:
        label: name of the run: "10.6.2, value-only".
        standard_errors: the known uncertainty of the figures (sampling, or digits that were not printed).
        sampling_known: whether they contain the sampling error of a limited number of blocks.
        blocks: number of blocks of the means, if known.
        hosts: how many hosts the cluster had.
        started: when the cluster started, as "2025-01-29 09:04:31"; empty when unknown. Two reports that show the
            same run agree in it.
        caveats: of the run, if it is one of ours.
        fetches: the mean fetch duration between two regions, either way, by their names, if known, s.
        block_bytes_shape: sizes over their mean at evenly spaced shares of the blocks, if known.
        lateness: of blocks and hosts, if every host's own stages are known.

    Raises:
        UsageError: a figure is invalid.
    """

    label: str
    version: str
    workload: str
    values: Mapping[str, float]
    standard_errors: Mapping[str, float] = field(default_factory=dict)
    sampling_known: bool = False
    blocks: int | None = None
    hosts: int = 52
    started: str = ""
    caveats: Caveats = field(default_factory=Caveats)
    fetches: Mapping[tuple[str, str], Mean] = field(default_factory=dict)
    block_bytes_shape: tuple[float, ...] = ()
    lateness: Lateness | None = None

    def __post_init__(self) -> None:
        for metric, value in self.values.items():
            if metric == BLOCK_SIZE:
                low, high, unit = 1.0, LARGEST_BYTES, "bytes"
            else:
                low, high, unit = -LONGEST_S if metric in SIGNED else 0.0, LONGEST_S, "s"
            if not low <= value <= high or (metric in ADOPTION and value == 0.0):
                raise UsageError(
                    f"{self.label} has a `{metric}` of {units.tidy(value)} {unit}, which is not plausible",
                    f"durations must be more than 0 and at most {units.duration(LONGEST_S)}, sizes at most "
                    f"{units.tidy(LARGEST_BYTES)} bytes",
                )

    @property
    def block_bytes(self) -> float:
        """Mean size of a block."""
        return self.values[BLOCK_SIZE]

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers at the start of the version: (10, 6, 2); empty if it starts with none."""
        match = re.match(r"v?(\d+(?:\.\d+)*)", self.version)
        return tuple(int(part) for part in match[1].split(".")) if match else ()

    def stages(self) -> Stages:
        """The stages' durations. A mean below zero counts as zero.

        The time of a forger's unreported stages is in its first stage; a forger without an adoption time adopts its
        block as long after the forging as the others do; any other unreported stage takes no time.
        """
        reported = {
            stage: max(0.0, self.values[metric]) for stage, metric in STAGE_METRICS.items() if metric in self.values
        }
        forging = sum(reported.get(stage, 0.0) for stage in FORGING_STAGES)
        missing = {stage: 0.0 for stage in STAGE_METRICS if stage not in reported}
        first = next((stage for stage in FORGING_STAGES if stage in missing), None)
        if first is not None:
            missing[first] = max(0.0, self.values[ANNOUNCED] - forging)
        if "self_adopted_s" in missing:
            missing["self_adopted_s"] = reported["adopted_s"]
        return Stages(**reported, **missing)

    @property
    def unreported(self) -> list[str]:
        """The metrics of this model that the run does not report and that are optional."""
        return [metric for metric in USED if metric not in self.values]

    def fetch_between(self, item: Region, other: Region) -> Mean | None:
        """The mean fetch duration between two regions, or within one; None if unknown."""
        names = [{region.name, *region.aliases} for region in (item, other)]
        for (a, b), mean in self.fetches.items():
            if (a in names[0] and b in names[1]) or (b in names[0] and a in names[1]):
                return mean
        return None

    def adoption(self) -> dict[str, float]:
        """The adoption centiles that the run reports, in order.

        Raises:
            UsageError: it reports none.
        """
        reported = {metric: self.values[metric] for metric in ADOPTION if metric in self.values}
        if not reported:
            raise UsageError(
                f"{self.label} has no adoption centile to explain",
                'it needs rows such as "0.50 adoption"',
            )
        return reported
