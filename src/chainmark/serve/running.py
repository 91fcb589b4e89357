"""What is known of a run in progress: signs of problems, drifts, and how close its experiment is to a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel

from chainmark.compare.decide import decide
from chainmark.core import units
from chainmark.core.errors import ChainmarkError
from chainmark.lab.experimenting import read_record
from chainmark.serve.reading import ReadStore
from chainmark.stats.sequential import FIRST_LOOK
from chainmark.stats.trend import trend_of
from chainmark.store.experiments import experiment_folder
from chainmark.store.live import LivePoint, LiveState, LiveStretch
from chainmark.store.sealed import SealedRun

_LAG_S, _BACKLOG_S, _APART, _SILENT_S, _FAILED = 1.0, 10.0, 3, 15.0, 0.001
_RECENT = 10  # number of points for a rate
_LIKELY = 0.5


class Sign(BaseModel):
    """A sign in a running load that predicts a gate: amber while there is time to stop."""

    label: str
    now: str
    limit: str
    is_amber: bool


class DecisionProgress(BaseModel):
    """How close an experiment is to a decision.

    Attributes:
        rounds: runs per side that count; ``most`` are planned.
        undecided: the gating metrics that keep the verdict open.
        chances: by runs per side, the probability that it is decided by then.
        expected_at: when that probability reaches one half, or the last planned run ends; "" if unknown.
    """

    experiment: str
    rounds: int
    most: int
    verdict: str
    undecided: list[str]
    chances: dict[int, float]
    expected_at: str = ""


class LiveDrift(BaseModel):
    """The change of a figure since the load's begin: a line through the stretches of the load.

    Attributes:
        begin: the line's value at the first stretch; now: the value of the last one.
        rise: of the line; low, high: its 95 % interval.
    """

    label: str
    unit: str
    begin: float
    now: float
    rise: float
    low: float
    high: float


def drifts_of(stretches: Sequence[LiveStretch]) -> list[LiveDrift]:
    """The drifts of latency and memory; none if the load began too recently."""
    figures = (("latency, p50", "p50_s", "s"), ("latency, p99", "p99_s", "s"), ("memory", "memory_bytes", "B"))
    drifts = []
    for label, name, unit in figures:
        known = [value for stretch in stretches if (value := getattr(stretch, name)) is not None]
        trend = trend_of(known) if len(known) == len(stretches) else None
        if trend is not None:
            low, high = trend.rise_interval
            now = known[-1]
            drifts.append(
                LiveDrift(label=label, unit=unit, begin=trend.begin, now=now, rise=trend.rise, low=low, high=high)
            )
    return drifts


def signs_of(state: LiveState, now: datetime) -> list[Sign]:
    """The known facts about the load, with the limits beyond which a run is likely to be lost."""
    return [sign for sign in _signs(state, now) if sign is not None]


def _signs(state: LiveState, now: datetime) -> Iterator[Sign | None]:
    silent = _age_s(state.updated_at, now)
    yield Sign(label="last update", now=f"{units.duration(silent)} ago", limit=f"at most {units.duration(_SILENT_S)}",
               is_amber=silent > _SILENT_S)  # fmt: skip
    if state.schedule_lag_s is not None:
        yield Sign(label="schedule lag", now=f"{units.tidy(state.schedule_lag_s, 2)} s behind",
                   limit=f"at most {units.duration(_LAG_S)}", is_amber=state.schedule_lag_s > _LAG_S)  # fmt: skip
    if state.sent and state.failed is not None:
        share = state.failed / state.sent
        yield Sign(label="refused or failed", now=f"{units.count(state.failed)} ({units.plain_percent(share)})",
                   limit=f"at most {units.plain_percent(_FAILED, decimals=1)}", is_amber=share > _FAILED)  # fmt: skip
    yield _backlog(state.points)
    if len(state.heights) > 1:
        apart = max(state.heights.values()) - min(state.heights.values())
        yield Sign(label="height difference of the nodes", now=f"{apart} blocks", limit=f"at most {_APART} blocks",
                   is_amber=apart > _APART)  # fmt: skip


def _backlog(points: Sequence[LivePoint]) -> Sign | None:
    """The uncommitted transactions, in seconds of the commit rate: the mean latency by Little's law."""
    known = [point for point in points[-_RECENT:] if point.accepted is not None and point.committed is not None]
    if len(known) < 2:
        return None
    first, last = known[0], known[-1]
    rate = ((last.committed or 0) - (first.committed or 0)) / max(last.at_s - first.at_s, 1e-9)
    waiting = max((last.accepted or 0) - (last.committed or 0), 0)
    seconds = waiting / rate if rate > 0.0 else (float("inf") if waiting else 0.0)
    text = f"{units.count(waiting)} waiting, {units.tidy(rate, 3)} per s" if rate > 0.0 else f"{waiting} waiting, none"
    return Sign(label="committed (waiting ÷ rate = latency)",
                now=f"{text}: {units.tidy(seconds, 2)} s" if seconds != float("inf") else f"{text} committed",
                limit=f"at most {units.duration(_BACKLOG_S)}", is_amber=seconds > _BACKLOG_S)  # fmt: skip


def _age_s(text: str, now: datetime) -> float:
    try:
        return max((now - datetime.fromisoformat(text)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return float("inf")


def decision_progress(experiment: str, store: ReadStore) -> DecisionProgress | None:
    """How close an experiment of two sides is to a decision; None for anything else."""
    try:
        record = read_record(experiment_folder(store, experiment))
        runs = [run for run in store.members([experiment]) if run.manifest.is_evidence]
        sides = [[run for run in runs if _side(run) == side] for side in record.arms]
        rounds, most = min(map(len, sides)), record.most_rounds
        reported = DecisionProgress(
            experiment=experiment, rounds=rounds, most=most, verdict="", undecided=[], chances={}
        )
        if rounds < FIRST_LOOK:
            return reported
        decided = decide(sides[0], sides[1], store.alike(runs), margins=record.margins)
        chances = decided.chances()
    except ChainmarkError:
        return None
    enough = next((count for count, chance in chances.items() if chance >= _LIKELY), most)
    return reported.model_copy(update={
        "verdict": decided.finding.verdict.value, "undecided": decided.undecided, "chances": chances,
        "expected_at": _expected(runs, (enough - rounds) * len(sides)),
    })  # fmt: skip


def _side(run: SealedRun) -> str:
    return run.manifest.experiment.side if run.manifest.experiment else ""


def _expected(runs: Sequence[SealedRun], further: int) -> str:
    """When this number of further runs will have ended, if they take as long as the previous ones."""
    begun = sorted(datetime.fromisoformat(run.manifest.started_at) for run in runs)
    if len(begun) < 2 or further <= 0:
        return ""
    each = (begun[-1] - begun[0]) / (len(begun) - 1)
    return (begun[-1] + each * (further + 1)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
