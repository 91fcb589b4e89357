"""A short summary of every workload of a store: the newest release against the previous one, and gating figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

from pydantic import BaseModel

from chainmark.api.comparing import How, pair_comparison
from chainmark.compare.history import LEAST_RELEASES, history_report
from chainmark.core import units
from chainmark.core.comparison import Comparison
from chainmark.core.errors import ChainmarkError
from chainmark.core.history_report import HistoryReport
from chainmark.core.labels import cell_of
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict
from chainmark.report.judged_rows import RowMaker
from chainmark.report.layouts import document_of
from chainmark.report.phrases import Emphasis, computed_address
from chainmark.serve.reading import Moment, ReadStore
from chainmark.store.index import Entry
from chainmark.store.sealed import SealedRun

_MOST_RUNS = 10  # that the page on a figure's computation lists individually


class GatingFigure(BaseModel):
    """A gating figure of the newest release.

    Attributes:
        id: of the metric and its statistic.
        label: its name, with its statistic.
        how: the address of the page on its computation.
        value, change, outcome, emphasis: as in the comparison's document.
        values: over the releases, oldest first; ``changes`` are the indices at which its level changed, and ``changed``
            describes them in words.
    """

    id: str
    label: str
    how: str
    value: str
    change: str
    outcome: str
    emphasis: Emphasis
    values: list[float | None] = []
    changes: list[int] = []
    changed: str = ""


class Card(BaseModel):
    """One workload on one kind of machine.

    Attributes:
        address: of the newest release's comparison or, if it is the only one, of its run.
        history: the summary of its releases' history.
        noise: the source of the noise between runs; ``alarms`` the rate at which re-runs of one build were called
            moved.
        trouble: why some part could not be computed.
    """

    title: str
    system: str
    profile: str
    cell: str
    newest: str
    newest_run: str
    started_at: str
    size: str
    tone: str = "neutral"
    word: str = ""
    sentence: str = ""
    address: str = ""
    figures: list[GatingFigure] = []
    history: str = ""
    noise: str = ""
    alarms: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Workload:
    """The runs of one profile's workload on one kind of machine, oldest first; ``key`` identifies it."""

    key: tuple[str, str, str, str]
    entries: list[Entry]

    @property
    def newest(self) -> Entry:
        """The last run of its newest release."""
        return self.releases()[-1][-1]

    @property
    def has_history(self) -> bool:
        """Whether it has enough releases to find changes."""
        return len({entry.version for entry in self.entries}) >= LEAST_RELEASES

    def releases(self) -> list[list[Entry]]:
        """Its latest runs per version, the newest release last: the runs of one experiment's side, or single ones.

        An experiment's baseline is older than its candidate, whichever ran last.
        """
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault(entry.version, []).append(entry)
        made = []
        for group in groups.values():
            last = group[-1]
            own = [item for item in group if (item.experiment, item.side) == (last.experiment, last.side)]
            made.append(list({item.sources: item for item in own}.values()))
        ends = {entry.experiment: entry.started_at for entry in self.entries if entry.experiment}

        def age(group: Sequence[Entry]) -> tuple[str, bool, str]:
            last = group[-1]
            return ends.get(last.experiment, last.started_at), last.side != "baseline", last.started_at

        return sorted(made, key=age)

    def brief(self) -> Card:
        """The facts that are known without opening a run."""
        newest, versions = self.newest, len({entry.version for entry in self.entries})
        return Card(
            title=f"{newest.subject} · {newest.profile}",
            system=newest.system,
            profile=newest.profile,
            cell=" · ".join(cell_of(newest.known_labels).values()),
            newest=newest.version,
            newest_run=newest.run_id,
            started_at=newest.started_at,
            size=f"{units.plural(versions, 'version')}, {units.plural(len(self.entries), 'run')}",
        )


def workloads_of(moment: Moment) -> list[Workload]:
    """All workloads, the one with the newest run first; runs with profiles are excluded."""
    result: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in moment.whole:
        if not entry.profiles:
            key = (entry.system, entry.profile, entry.workload, entry.machine)
            result.setdefault(key, []).append(entry)
    workloads = [Workload(key, entries) for key, entries in result.items()]
    return sorted(workloads, key=lambda workload: (workload.entries[-1].started_at, workload.key), reverse=True)


def card_of(workload: Workload, store: ReadStore) -> Card:
    """The summary of a workload; a failure is reported as well, and affects no other."""
    card = workload.brief()
    try:
        return _with_history(_with_verdict(card, workload, store), workload, store)
    except ChainmarkError as error:
        return card.model_copy(update={"trouble": error.message})
    except Exception as error:
        return card.model_copy(update={"trouble": f"this workload could not be read ({type(error).__name__})"})


def _with_verdict(card: Card, workload: Workload, store: ReadStore) -> Card:
    readable = (group for release in reversed(workload.releases()) if (group := _opened(release, store)))
    releases = list(islice(readable, 2))
    if len(releases) < 2:
        return card.model_copy(update={
            "word": Verdict.INFORMATIONAL.capitals,
            "sentence": "Only one release was measured. A verdict requires a second one.",
            "address": f"/runs/{card.newest_run}",
        })  # fmt: skip
    candidate, baseline = releases
    comparison = pair_comparison(baseline, candidate, store, How())
    document = document_of(comparison)
    sides = [("side", " ".join(run.run_id for run in side)) for side in (baseline, candidate)]
    return card.model_copy(update={
        "tone": document.tone,
        "word": document.word,
        "sentence": document.sentence,
        "address": f"/compare?{urlencode(sides)}",
        "figures": _figures(comparison, [run.run_id for run in candidate]),
        "noise": ", ".join(
            dict.fromkeys(item.noise for item in comparison.judgements if item.gating and item.noise)
        ),
        "alarms": comparison.false_alarms.rate_sentence if comparison.false_alarms else "",
    })  # fmt: skip


def _figures(comparison: Comparison, run_ids: Sequence[str]) -> list[GatingFigure]:
    """The gating figures as in the comparison's document."""
    rows = zip(comparison.judgements, RowMaker(comparison).rows(), strict=True)
    return [
        GatingFigure(
            id=f"{judgement.metric_id}.{judgement.statistic}",
            label=row.label,
            how=computed_address(
                comparison.catalogue.system, judgement.metric_id, judgement.statistic, run_ids[:_MOST_RUNS]
            ),
            value=f"{row.candidate} {row.unit}".rstrip(),
            change=row.change_with_unit,
            outcome=row.outcome,
            emphasis=row.emphasis,
        )
        for judgement, row in rows
        if row.gating
    ]


def _opened(entries: Sequence[Entry], store: ReadStore) -> list[SealedRun]:
    return store.readable(store.run(entry.run_id) for entry in entries)


def history_of(run_id: str, store: ReadStore) -> HistoryReport:
    """The history that a run belongs to, without unreadable runs.

    Raises:
        UsageError: there are fewer than four releases.
        InvalidRunError: the run itself cannot be read.
    """
    newest = store.run(run_id)
    return history_report(newest, store.series([newest]), store.now().notes.epochs, tool_version())


def _with_history(card: Card, workload: Workload, store: ReadStore) -> Card:
    if not workload.has_history:
        return card
    report = history_of(card.newest_run, store)
    gating = {f"{item.metric_id}.{item.statistic}": item for item in report.series if item.gating}
    figures = []
    for figure in card.figures:
        series = gating.get(figure.id)
        update = {} if series is None else {
            "values": series.values,
            "changes": [change.release for change in series.changes],
            "changed": ", ".join(f"changed with {change.label}" for change in series.changes),
        }  # fmt: skip
        figures.append(figure.model_copy(update=update))
    return card.model_copy(update={"figures": figures, "history": report.sentence})
