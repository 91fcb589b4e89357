"""The sources of the model's inputs: a published report, a run, or a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import ValidationError

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.wording import enumerated
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import ModelSource
from chainmark.systems.cardano.figures import Figures
from chainmark.systems.cardano.network import own_cluster, with_own_samples
from chainmark.systems.cardano.profile import CardanoProfile
from chainmark.systems.cardano.published.reader import ReportFigures, run_figures
from chainmark.systems.cardano.scenario import EXPECTED_S, PINGS_S, ClusterRequest, Scenario

BENCHMARK_NOTE = (
    "the network is assumed to be the benchmark cluster: {} hosts in three regions, dense torus, round trips as pinged"
)

WITHOUT_TOPOLOGY = (
    "no topology was imported with the logs; the connections, regions and distances of hosts are assumed to be those "
    "of the benchmark cluster: import the logs with `--topology FILE` to use the cluster's own"
)


@dataclass(frozen=True)
class Input:
    """A source's input for the model.

    Attributes:
        figures: the run's own figures; None for a profile, which is used as is.
        start: the initial network.
        pings_s: round trips between its regions as pinged.
        doubt_s: standard deviations of the initial network's round trips; None: unknown.
        pinged: whether these are of the cluster itself, and not of the reference.
        title: its subject: "10.6.2, value-only".
    """

    title: str
    figures: Figures | None
    start: Scenario
    pings_s: Sequence[Sequence[float]]
    notes: tuple[str, ...] = ()
    pinged: bool = False
    doubt_s: Sequence[Sequence[float]] | None = None


def read_source(source: ModelSource, seed: int, catalogue: Catalogue) -> Input:
    """Read a source.

    Raises:
        UsageError: it cannot be used; the message names the file, run or row.
    """
    if source.profile is not None:
        if source.version is not None:
            raise UsageError(f"a profile has no version `{source.version}`", "omit the version")
        profile = cast(CardanoProfile, source.profile)
        scenario = profile.scenario(seed)
        return Input(profile.name, None, scenario, scenario.cluster.rtt_s)
    if source.document is not None:
        figures = ReportFigures(source.document, catalogue).figures(source.version)
        return _benchmark(figures, seed, catalogue)
    if source.run is None:
        raise UsageError(f"{source.label} is not something that a model can be fitted to")
    figures = run_figures(source.run)
    if source.version not in (None, figures.version):
        raise UsageError(
            f"run `{source.run.run_id}` is of version {figures.version}, not `{source.version}`",
            "omit the version",
        )
    profile_of_run = _profile(source.run.manifest.profile)
    if profile_of_run is None:
        return _imported(source.run, figures, seed, catalogue)
    scenario = with_figures(profile_of_run.scenario(seed), figures)
    return Input(figures.label, figures, scenario, scenario.cluster.rtt_s, _unknown_metrics(figures, catalogue))


def _imported(run: SealedRun, figures: Figures, seed: int, catalogue: Catalogue) -> Input:
    """A run from imported logs: on its own cluster, as far as that is known."""
    figures = with_own_samples(figures, run)
    own = own_cluster(run, figures)
    missing = _unknown_metrics(figures, catalogue)
    if own is None:
        assumed = _benchmark(figures, seed, catalogue)
        return replace(assumed, start=_at_chain(assumed.start, run), notes=(*assumed.notes, WITHOUT_TOPOLOGY))
    scenario = Scenario(
        seed=seed,
        cluster=own.order,
        stages=figures.stages(),
        block_bytes=figures.block_bytes,
        block_bytes_shape=list(figures.block_bytes_shape),
    )
    return Input(
        title=figures.label,
        figures=figures,
        start=_at_chain(scenario, run),
        pings_s=own.pings_s,
        notes=(*own.notes, *missing),
        pinged=own.pinged,
        doubt_s=own.doubt_s,
    )


def _at_chain(scenario: Scenario, run: SealedRun) -> Scenario:
    """The scenario with the run's own time between blocks, if its chain is known."""
    section = run.manifest.profile.get("chain")
    length = section.get("slot_length_s") if isinstance(section, dict) else None
    share = section.get("active_slots_coefficient") if isinstance(section, dict) else None
    if not isinstance(length, float | int) or not isinstance(share, float | int) or share <= 0:
        return scenario
    return scenario.model_copy(update={"block_interval_s": length / share})


def _unknown_metrics(figures: Figures, catalogue: Catalogue) -> tuple[str, ...]:
    """The missing data of the run, in a sentence."""
    labels = [f"`{catalogue.metric(metric).label}`" for metric in figures.unreported]
    return (f"missing in the run, so the model has no separate duration for: {enumerated(labels)}",) if labels else ()


def _benchmark(figures: Figures, seed: int, catalogue: Catalogue) -> Input:
    """A run with known figures only."""
    notes = (BENCHMARK_NOTE.format(figures.hosts), *_unknown_metrics(figures, catalogue))
    return Input(figures.label, figures, benchmark_scenario(figures, seed), PINGS_S, notes)


def benchmark_scenario(figures: Figures, seed: int) -> Scenario:
    """The benchmark cluster with as many hosts as the run had."""
    return Scenario(
        seed=seed,
        cluster=ClusterRequest(hosts=figures.hosts, rtt_s=EXPECTED_S),
        stages=figures.stages(),
        block_bytes=figures.block_bytes,
        block_bytes_shape=list(figures.block_bytes_shape),
    )


def with_figures(scenario: Scenario, figures: Figures) -> Scenario:
    """An unchanged network, under a run's measured load."""
    return scenario.model_copy(update={"stages": figures.stages(), "block_bytes": figures.block_bytes})


def _profile(content: Mapping[str, object]) -> CardanoProfile | None:
    """A run's profile, if it describes a network; an imported cluster's may not."""
    try:
        return CardanoProfile.model_validate(content) if "network" in content else None
    except (ValidationError, UsageError):
        return None
