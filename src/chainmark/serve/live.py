"""A run in progress: its load, the signs of problems, and how close its experiment is to a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel

from chainmark.compare.decide import decide
from chainmark.core import units
from chainmark.core.errors import ChainmarkError
from chainmark.lab.experimenting import is_evidence, read_record
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, row_of, words
from chainmark.report.phrases import Emphasis
from chainmark.serve.reading import ReadStore
from chainmark.stats.sequential import FIRST_LOOK
from chainmark.stats.trend import Trend, trend_of
from chainmark.store.experiments import experiment_folder
from chainmark.store.live import LivePoint, LiveSearch, LiveState, LiveStep, LiveStretch
from chainmark.store.runs import SealedRun

_LAG_S, _BACKLOG_S, _APART, _SILENT_S, _FAILED = 1.0, 10.0, 3, 15.0, 0.001
_RECENT = 10  # number of points for a rate
_LIKELY = 0.5


class Sign(BaseModel):
    """A sign in a running load that predicts a gate: amber while there is time to stop."""

    label: str
    now: str
    limit: str
    is_amber: bool


class Standing(BaseModel):
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


def standing(experiment: str, store: ReadStore) -> Standing | None:
    """How close an experiment of two sides is to a decision; None for anything else."""
    try:
        record = read_record(experiment_folder(store, experiment))
        runs = [run for run in store.members([experiment]) if is_evidence(run.manifest)]
        sides = [[run for run in runs if _side(run) == side] for side in record.arms]
        rounds, most = min(map(len, sides)), record.length.most + record.more
        reported = Standing(experiment=experiment, rounds=rounds, most=most, verdict="", undecided=[], chances={})
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


def live_section(run_id: str, state: LiveState | None, signs: Sequence[Sign], decision: Standing | None) -> Section:
    """One running run."""
    blocks: list[Block] = []
    if state is not None:
        last = state.points[-1] if state.points else LivePoint(at_s=0.0)
        facts = {
            "stage": f"{state.stage} {units.plain_percent(state.fraction, decimals=0)} {state.detail}".strip(),
            "offered": _count(last.offered), "accepted": _count(last.accepted), "committed": _count(last.committed),
            "duration of the load": units.duration(last.at_s) if state.points else "",
        }  # fmt: skip
        rows = [row_of(label, text) for label, text in facts.items() if text]
        blocks.append(Table(f"state-{run_id}", "", words("", ""), rows))
    if state is not None and (drift := _drift(run_id, state.stretches)) is not None:
        blocks.append(drift)
    if signs:
        lines = [row_of(sign.label, sign.now, sign.limit, _status(sign)) for sign in signs]
        blocks.append(Table(f"signs-{run_id}", "Signs", words("sign", "now", "limit", ""), lines))
    if decision is not None:
        blocks.append(
            Remarks(f"decision-{run_id}", f"Decision of {decision.experiment}", list(_decision_sentences(decision)))
        )
    return Section(f"live-{run_id}", run_id, blocks)


def _drift(run_id: str, stretches: Sequence[LiveStretch]) -> Table | None:
    """The change of latency and memory since the load's begin; None if it began too recently."""
    figures = (("latency, p50", "p50_s", "s"), ("latency, p99", "p99_s", "s"), ("memory", "memory_bytes", "B"))
    rows = []
    for label, name, unit in figures:
        values = [getattr(stretch, name) for stretch in stretches]
        known = [value for value in values if value is not None]
        trend = trend_of(known) if len(known) == len(values) else None
        if trend is not None:
            rows.append(_drift_row(label, known, trend, unit))
    if not rows:
        return None
    columns = [*words("metric"), Column("at the start"), Column("now"), Column("change so far"),
               Column("95 % interval", kind="intervals"), *words("trend")]  # fmt: skip
    length = units.duration(stretches[-1].at_s - stretches[0].at_s)
    note = (
        f"Slope of a line through {len(stretches)} stretches of {length} (Theil and Sen). The run's report judges it."
    )
    return Table(f"drift-{run_id}", "Drift", columns, rows, [note])


def _drift_row(label: str, values: Sequence[float], trend: Trend, unit: str) -> TableRow:
    low, high = trend.rise_interval
    if trend.begin > 0.0:
        change = units.percent(trend.rise / trend.begin)
        interval = units.percent_interval(low / trend.begin, high / trend.begin)
    else:
        change, interval = units.tidy_quantity(trend.rise, unit, is_change=True), ""
    look: Emphasis = "caution" if low > 0.0 else "better" if high < 0.0 else "quiet"
    word = "rises" if low > 0.0 else "falls" if high < 0.0 else "no clear trend"
    return row_of(
        label, TableCell(units.quantity(trend.begin, unit)), TableCell(units.quantity(values[-1], unit)),
        TableCell(change), TableCell(interval), TableCell(word, emphasis=look),
    )  # fmt: skip


def search_section(search: LiveSearch) -> Section:
    """A search among revisions: the current one, the remaining ones, and the result of each step."""
    facts = {
        "between": f"{search.good} and {search.bad}",
        "followed": search.followed or "not yet known: the difference between the ends is being measured",
        "now": search.trying,
        "revisions left": f"{units.count(search.left)} of {units.count(search.revisions - 1)}",
        "runs": f"{units.count(search.runs)} of at most {units.count(search.most_runs)}",
        "last update": units.utc(search.updated_at) if search.updated_at else "",
    }
    rows = [row_of(label, text) for label, text in facts.items() if text]
    blocks: list[Block] = [Table(f"search-{search.experiment}", "", words("", ""), rows)]
    if search.steps:
        columns = [*words("step", "revision"), Column("runs"), *words("verdict"), Column("probability of the change"),
                   Column("revisions left")]  # fmt: skip
        steps = [_search_row(number, step) for number, step in enumerate(search.steps, start=1)]
        blocks.append(Table(f"path-{search.experiment}", "Search path", columns, steps))
    return Section(f"search-{search.experiment}-section", f"Search {search.experiment}", blocks)


_OUTCOME_LOOKS: dict[str, Emphasis] = {"good": "better", "bad": "worse"}


def _search_row(number: int, step: LiveStep) -> TableRow:
    return row_of(
        units.count(number), step.revision, TableCell(units.count(step.pairs)),
        TableCell(step.outcome, emphasis=_OUTCOME_LOOKS.get(step.outcome, "caution")),
        TableCell(units.chance(step.chance)), TableCell(units.count(step.left)),
    )  # fmt: skip


def _count(value: int | None) -> str:
    return "" if value is None else units.count(value)


def _status(sign: Sign) -> TableCell:
    return TableCell("amber", emphasis="caution") if sign.is_amber else TableCell("fine", emphasis="quiet")


def _decision_sentences(decision: Standing) -> Iterator[str]:
    yield f"{units.plural(decision.rounds, 'run')} per side of at most {decision.most}."
    if decision.verdict:
        yield f"So far: {decision.verdict}." + (
            f" Undecided: {', '.join(decision.undecided)}." if decision.undecided else ""
        )
    if decision.chances:
        shares = ", ".join(f"{count}: {units.plain_percent(share)}" for count, share in decision.chances.items())
        yield f"Probability of a decision, by runs per side: {shares}."
    if decision.expected_at:
        yield f"Expected at {units.utc(decision.expected_at)}, if every run takes as long as the previous ones."
