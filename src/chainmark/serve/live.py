"""A run or a search in progress as a section of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chainmark.core import units
from chainmark.report.bisect_document import SIDE_LOOKS
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, row_of, words
from chainmark.report.phrases import Emphasis
from chainmark.serve.running import DecisionProgress, LiveDrift, Sign
from chainmark.store.live import LivePoint, LiveSearch, LiveState, LiveStep, LiveStretch


def live_section(
    run_id: str,
    state: LiveState | None,
    signs: Sequence[Sign],
    drifts: Sequence[LiveDrift],
    decision: DecisionProgress | None,
) -> Section:
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
    if state is not None and drifts:
        blocks.append(_drift_table(run_id, state.stretches, drifts))
    if signs:
        lines = [row_of(sign.label, sign.now, sign.limit, _status(sign)) for sign in signs]
        blocks.append(Table(f"signs-{run_id}", "Signs", words("sign", "now", "limit", ""), lines))
    if decision is not None:
        blocks.append(
            Remarks(f"decision-{run_id}", f"Decision of {decision.experiment}", list(_decision_sentences(decision)))
        )
    return Section(f"live-{run_id}", run_id, blocks)


def _drift_table(run_id: str, stretches: Sequence[LiveStretch], drifts: Sequence[LiveDrift]) -> Table:
    """The change of latency and memory since the load's begin."""
    columns = [*words("metric"), Column("at the start"), Column("now"), Column("change so far"),
               Column("95 % interval", kind="intervals"), *words("trend")]  # fmt: skip
    length = units.duration(stretches[-1].at_s - stretches[0].at_s)
    note = (
        f"Slope of a line through {len(stretches)} stretches of {length} (Theil and Sen). The run's report judges it."
    )
    return Table(f"drift-{run_id}", "Drift", columns, [_drift_row(drift) for drift in drifts], [note])


def _drift_row(drift: LiveDrift) -> TableRow:
    begin, low, high = drift.begin, drift.low, drift.high
    if begin > 0.0:
        change, interval = units.change_and_interval(drift.rise / begin, low / begin, high / begin, None)
    else:
        change, interval = units.change_and_interval(drift.rise, low, high, drift.unit)
    look: Emphasis = "caution" if low > 0.0 else "better" if high < 0.0 else "quiet"
    word = "rises" if low > 0.0 else "falls" if high < 0.0 else "no clear trend"
    return row_of(
        drift.label, TableCell(units.quantity(begin, drift.unit)), TableCell(units.quantity(drift.now, drift.unit)),
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


def _search_row(number: int, step: LiveStep) -> TableRow:
    return row_of(
        units.count(number), step.revision, TableCell(units.count(step.pairs)),
        TableCell(step.outcome, emphasis=SIDE_LOOKS.get(step.outcome, "caution")),
        TableCell(units.chance(step.chance)), TableCell(units.count(step.left)),
    )  # fmt: skip


def _count(value: int | None) -> str:
    return "" if value is None else units.count(value)


def _status(sign: Sign) -> TableCell:
    return TableCell("amber", emphasis="caution") if sign.is_amber else TableCell("fine", emphasis="quiet")


def _decision_sentences(decision: DecisionProgress) -> Iterator[str]:
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
