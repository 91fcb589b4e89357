"""The two sides of a comparison: their ordered runs, and which of them may be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.core.comparison import RunEntry, Side
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Manifest, Status

BASELINE, CANDIDATE = "baseline", "candidate"


def exclusion(manifest: Manifest) -> str | None:
    """Why a run's figures are not judged: its profiles, or the gates that it did not meet; None if they are judged.

    Args:
        manifest: of the run.
    """
    if manifest.profiles:
        return f"profiles were taken of its nodes ({', '.join(manifest.profiles)}), which slows it down"
    if gates := manifest.deciding_gates or manifest.failed_gates:
        return "; ".join(f"{gate.label}: {gate.measured}, required {gate.limit}" for gate in gates)
    return None if manifest.status is Status.VALID else f"the run is marked {manifest.status.value}"


@dataclass(frozen=True)
class SelectedRuns:
    """One side's runs, all of them, in order of execution.

    Attributes:
        name: "baseline" or "candidate".
        runs: all runs of the side.
        excluded: per run id, the reason why its figures are not judged: its subject or the measurement failed.
    """

    name: str
    runs: list[LoadedRun]
    excluded: dict[str, str]

    @property
    def included(self) -> list[LoadedRun]:
        """The judged runs."""
        return [run for run in self.runs if run.run_id not in self.excluded]

    @property
    def failed(self) -> list[LoadedRun]:
        """The runs that the subject failed: evidence against the side, whatever their figures are."""
        return [run for run in self.runs if run.manifest.status is Status.FAILED]

    @property
    def telling(self) -> int:
        """Runs that are evidence about the subject: it passed or failed."""
        return len(self.included) + len(self.failed)

    @property
    def first(self) -> Manifest:
        """Its manifest: of the first included run, or of the first run if none is."""
        return self.speaker.manifest

    @property
    def speaker(self) -> LoadedRun:
        """The run that represents the side."""
        return (self.included or self.runs)[0]

    @property
    def version(self) -> str:
        """The subject's version."""
        return self.first.subject.version


def _order(run: LoadedRun) -> tuple[str, int, str]:
    place = run.manifest.experiment
    return (run.manifest.started_at, place.position if place else 0, run.run_id)


def select(name: str, runs: Sequence[RunData]) -> SelectedRuns:
    """Order a side's runs and exclude those that failed or are invalid; those with profiles serve only as explanations.

    Args:
        name: "baseline" or "candidate".
        runs: in any order.

    Raises:
        UsageError: there are no runs, one is given twice, or they are of different versions.
    """
    if not runs:
        raise UsageError(f"the {name} has no runs", "`chainmark runs list` shows what can be compared")
    plain = [run for run in runs if not run.manifest.profiles]
    loaded = sorted((LoadedRun(run) for run in plain or runs), key=_order)
    places = [place for run in loaded if (place := run.manifest.experiment)]
    if len(places) == len(loaded) and len({place.id for place in places}) == 1:
        positions = {run.run_id: place.position for run, place in zip(loaded, places, strict=True)}
        loaded.sort(key=lambda run: positions[run.run_id])
    identifiers = [run.run_id for run in loaded]
    twice = sorted({identifier for identifier in identifiers if identifiers.count(identifier) > 1})
    if twice:
        raise UsageError(f"the {name} contains the run `{twice[0]}` twice", "give each run once")
    versions = sorted({run.manifest.subject.version for run in loaded})
    if len(versions) > 1:
        raise UsageError(
            f"the {name} mixes the versions {' and '.join(versions)}", "give runs of only one version per side"
        )
    excluded = {run.run_id: reason for run in loaded if (reason := exclusion(run.manifest)) is not None}
    return SelectedRuns(name, loaded, excluded)


def check_pair(baseline: SelectedRuns, candidate: SelectedRuns) -> None:
    """Reject sides that cannot be compared.

    Raises:
        UsageError: the sides are of different systems, or share a run.
    """
    systems = sorted({run.manifest.subject.system for run in [*baseline.runs, *candidate.runs]})
    if len(systems) > 1:
        raise UsageError(
            f"runs of different systems cannot be compared: {' and '.join(systems)}",
            "`chainmark runs list` shows the system of every run",
        )
    shared = sorted({run.run_id for run in baseline.runs} & {run.run_id for run in candidate.runs})
    if shared:
        raise UsageError(
            f"the run `{shared[0]}` is on both sides",
            "a run cannot be compared with itself; give two different sets of runs",
        )


def experiments_of(*sides: SelectedRuns) -> list[str]:
    """The experiments that made the runs of the sides; empty if a run was not made by any."""
    places = [run.manifest.experiment for side in sides for run in side.runs]
    ids = [place.id for place in places if place is not None]
    return list(dict.fromkeys(ids)) if len(ids) == len(places) else []


def are_interleaved(baseline: SelectedRuns, candidate: SelectedRuns) -> bool:
    """Whether one experiment made both sides, and neither was finished before the other began."""
    if len(experiments_of(baseline, candidate)) != 1:
        return False
    left, right = (
        [place.position for run in side.runs if (place := run.manifest.experiment)] for side in (baseline, candidate)
    )
    return max(left) > min(right) and max(right) > min(left)


def labels(baseline: SelectedRuns, candidate: SelectedRuns) -> tuple[str, str]:
    """The names of the sides: their versions, with their roles if the versions are equal."""
    if baseline.version != candidate.version:
        return baseline.version, candidate.version
    return f"{baseline.version} ({BASELINE})", f"{candidate.version} ({CANDIDATE})"


def joined_conditions(selected: SelectedRuns) -> dict[str, str]:
    """Per condition id, the values found in the side's judged runs; several are joined by commas."""
    results: dict[str, list[str]] = {}
    for run in selected.included or selected.runs:
        for key, value in run.manifest.conditions.items():
            results.setdefault(key, []).append(value)
    return {key: ", ".join(dict.fromkeys(values)) for key, values in sorted(results.items())}


def _entry(run: LoadedRun, reason: str | None) -> RunEntry:
    manifest = run.manifest
    place = manifest.experiment
    return RunEntry(
        run_id=run.run_id,
        started_at=manifest.started_at,
        repetition=place.repetition if place else None,
        position=place.position if place else None,
        gates=manifest.gates,
        counts=manifest.counts,
        incidents=manifest.incidents,
        warnings=manifest.warnings,
        status=manifest.status,
        excluded_because=reason,
    )


def describe(selected: SelectedRuns, label: str) -> Side:
    """The side in the report's form: every run, with the reason if it is not judged."""
    return Side(
        label=label,
        subject=selected.first.subject,
        runs=[_entry(run, selected.excluded.get(run.run_id)) for run in selected.runs],
        host=selected.first.host,
        conditions=joined_conditions(selected),
    )
