"""Where the model's inputs come from: a published report, a run, or a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.systems.capabilities import ModelSource
from chainmark.systems.cardano.figures import Figures
from chainmark.systems.cardano.profile import Profile
from chainmark.systems.cardano.published.reader import ReportFigures, run_figures
from chainmark.systems.cardano.scenario import EXPECTED_S, PINGS_S, ClusterOrder, Scenario

BENCHMARK_NOTE = (
    "the network is taken to be the benchmark cluster: {} hosts in three regions, dense torus, round trips as pinged"
)


@dataclass(frozen=True)
class Input:
    """What a source gives the model.

    Attributes:
        figures: the run's own figures; None for a profile, which is used as it is.
        start: the network to begin with.
        pings_s: round trips between its regions as they were pinged.
        title: what the source is about: "10.6.2, value-only".
    """

    title: str
    figures: Figures | None
    start: Scenario
    pings_s: Sequence[Sequence[float]]
    notes: tuple[str, ...] = ()


def read_source(source: ModelSource, seed: int, catalogue: Catalogue) -> Input:
    """Read a source.

    Raises:
        UsageError: it cannot be used; the sentence names the file, run or row.
    """
    if source.profile is not None:
        if source.version is not None:
            raise UsageError(f"a profile has no version `{source.version}`", "leave the version out")
        profile = cast(Profile, source.profile)
        scenario = profile.scenario(seed)
        return Input(profile.name, None, scenario, scenario.cluster.rtt_s)
    if source.document is not None:
        figures = ReportFigures(source.document, catalogue).figures(source.version)
        return _benchmark(figures, seed)
    if source.run is None:
        raise UsageError(f"{source.label} names nothing that a model can be fitted to")
    figures = run_figures(source.run)
    if source.version not in (None, figures.version):
        raise UsageError(
            f"run `{source.run.run_id}` is of version {figures.version}, not `{source.version}`",
            "leave the version out",
        )
    profile_of_run = _profile(source.run.manifest.profile)
    if profile_of_run is None:
        return _benchmark(figures, seed)
    scenario = with_figures(profile_of_run.scenario(seed), figures)
    return Input(figures.label, figures, scenario, scenario.cluster.rtt_s)


def _benchmark(figures: Figures, seed: int) -> Input:
    """A run of which only the figures are known."""
    notes = (BENCHMARK_NOTE.format(figures.hosts),)
    return Input(figures.label, figures, benchmark_scenario(figures, seed), PINGS_S, notes)


def benchmark_scenario(figures: Figures, seed: int) -> Scenario:
    """The benchmark cluster with as many hosts as the run had."""
    return Scenario(
        seed=seed,
        cluster=ClusterOrder(hosts=figures.hosts, rtt_s=EXPECTED_S),
        stages=figures.stages(),
        block_bytes=figures.block_bytes,
    )


def with_figures(scenario: Scenario, figures: Figures) -> Scenario:
    """A network as it is, under what a run measured."""
    return scenario.model_copy(update={"stages": figures.stages(), "block_bytes": figures.block_bytes})


def _profile(content: Mapping[str, object]) -> Profile | None:
    """A run's profile, where it describes a network; an imported cluster's may not."""
    try:
        return Profile.model_validate(content) if "network" in content else None
    except (ValidationError, UsageError):
        return None
