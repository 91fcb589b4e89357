"""The dashboard's own pages as documents: an overview of the store, live runs, and the meaning of the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from markupsafe import Markup
from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.errors import ChainmarkError
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict, shown
from chainmark.report.blocks import Block, Remark, Remarks, Section, Table, phrased, row_of, words
from chainmark.report.document import Document
from chainmark.report.metric_tables import dictionary
from chainmark.report.phrases import Phrase
from chainmark.serve.listing import RunList
from chainmark.serve.live import live_section, search_section
from chainmark.serve.reading import Moment, ReadStore
from chainmark.serve.running import DecisionProgress, LiveDrift, Sign, drifts_of, signs_of
from chainmark.serve.workloads import Card
from chainmark.store.experiments import experiment_folder
from chainmark.store.listing import UNFINISHED
from chainmark.store.live import LiveSearch, LiveState, read_live
from chainmark.store.unfinished import UnfinishedRun


@dataclass(frozen=True)
class Page:
    """A document with the parts that only a server's page has.

    Attributes:
        here: which of the navigation's pages it is.
        above: forms before the document's sections; ``instead`` replaces the sections.
        refresh_s: interval after which the page is reloaded; 0: never.
        live: state of the page's rows; a page that polls with it gets a response only after a change. "": does not
            poll.
        status: HTTP status of the response.
        shown: the visible part of the document; None: all of it.
        elsewhere: the address of the complete page, the target of links to hidden parts.
        drawn: by their ids, the charts that are parts of the page instead of pictures.
    """

    document: Document
    here: str = ""
    above: Markup = field(default_factory=Markup)
    instead: Markup | None = None
    refresh_s: int = 0
    live: str = ""
    status: int = 200
    shown: Document | None = None
    elsewhere: str = ""
    drawn: Mapping[str, Markup] = field(default_factory=dict)


class HomePage(BaseModel):
    """``home.json``: every workload with its newest verdict.

    Attributes:
        pending: number of workloads that are still being read.
        now: the current measurement.
    """

    schema_version: int = 1
    tool_version: str
    runs: int
    pending: int
    now: list[LiveRun]
    cards: list[Card]
    caveats: CaveatsField = Caveats()


class LiveRun(BaseModel):
    """A folder without a seal: a run in progress, or an aborted one.

    Attributes:
        is_alive: its process is alive.
        done: the sealed runs of its experiment.
        state: the state that it publishes; ``signs`` are what that predicts.
        drifts: the changes since the load's begin.
        decision: how close its experiment is to a decision.
    """

    run_id: str
    version: str = ""
    profile: str = ""
    experiment: str = ""
    started_at: str = ""
    pid: int = 0
    is_alive: bool = False
    done: str = ""
    state: LiveState | None = None
    signs: list[Sign] = []
    drifts: list[LiveDrift] = []
    decision: DecisionProgress | None = None


class Live(BaseModel):
    """``live.json``: the current measurements."""

    schema_version: int = 1
    tool_version: str
    runs: list[LiveRun]
    searches: list[LiveSearch] = []


HomePage.model_rebuild()
Live.model_rebuild()


def caveats_of_moment(moment: Moment) -> Caveats:
    """The unreadable parts of the store."""
    caveats = []
    if moment.damaged:
        some = ", ".join(moment.damaged[:3]) + (" …" if len(moment.damaged) > 3 else "")
        caveats.append(
            f"{units.plural(len(moment.damaged), 'damaged run')} excluded from all pages except *Runs*: {some}"
        )
    if moment.trouble:
        caveats.append(f"the notes cannot be read: {moment.trouble}")
    return Caveats(sentences=tuple(caveats))


def live_runs(moment: Moment, store: ReadStore) -> list[LiveRun]:
    """The folders without a seal, those of living processes first."""
    runs = [_live(UnfinishedRun(store.root / "runs" / name), moment, store) for name in moment.unfinished]
    return sorted(runs, key=lambda live_run: (not live_run.is_alive, live_run.started_at, live_run.run_id))


def _live(run: UnfinishedRun, moment: Moment, store: ReadStore) -> LiveRun:
    state = {key: value for key, value in run.state().items() if isinstance(value, str | int)}
    pid, shown = state.get("pid", 0), read_live(run.path)
    experiment = str(state.get("experiment", ""))
    done = sum(entry.experiment == experiment for entry in moment.whole) if experiment else 0
    return LiveRun(
        run_id=run.run_id,
        version=str(state.get("version", "")),
        profile=str(state.get("profile", "")),
        experiment=experiment,
        started_at=str(state.get("started_at", "")),
        pid=pid if isinstance(pid, int) else 0,
        is_alive=isinstance(pid, int) and pid > 0 and Path(f"/proc/{pid}").exists(),
        done=f"{units.plural(done, 'run')} sealed{_of_most(experiment, store)}" if experiment else "",
        state=shown,
        signs=signs_of(shown, datetime.now(UTC)) if shown else [],
        drifts=drifts_of(shown.stretches) if shown else [],
    )


def _of_most(experiment: str, store: ReadStore) -> str:
    """The maximum number of runs of an experiment, if its plan limits it."""
    try:
        plan = experiment_folder(store, experiment).read()
        rounds = plan["length"]["most"] + plan.get("more", 0)
        return f" of at most {units.count(rounds * len(plan['arms']))}"
    except (ChainmarkError, KeyError, TypeError):
        return ""


def home_document(home: HomePage) -> Document:
    """The workloads as a table."""
    rows = [
        row_of(
            phrased(Phrase(card.title, address=card.address or f"/runs/{quote(card.newest_run)}")),
            card.newest,
            card.word or units.UNSET,
            card.sentence or card.trouble,
            card.size,
        )
        for card in home.cards
    ]
    table = Table("workloads", "", words("workload", "newest", "verdict", "sentence", "measured"), rows)
    blocks: list[Block] = [table] if rows else [
        Remarks("empty", "", ["There are no runs yet: start one with `chainmark run PROFILE --version V`."])
    ]  # fmt: skip
    return own_document(
        "home", "Workloads", f"{units.plural(home.runs, 'run')} · {units.plural(len(home.cards), 'workload')}",
        [Section("workloads", "Workloads", blocks)], home,
    )  # fmt: skip


def live_document(live: Live) -> Document:
    """The current measurements, and the aborted ones."""
    alive = sum(run.is_alive for run in live.runs)
    rows = [
        row_of(
            run.run_id,
            "running" if run.is_alive else "aborted",
            run.version,
            run.profile,
            units.utc(run.started_at) if run.started_at else "",
            run.experiment,
            run.done,
        )
        for run in live.runs
    ]
    headings = words("run", "", "version", "profile", "started", "experiment", "progress")
    blocks: list[Block] = [Table("live", "", headings, rows)] if rows else []
    blocks.append(Remarks("how", "", [
        Remark(f"{units.plural(alive, 'run')} in progress. Aborted runs are never compared; "
               "`chainmark runs remove RUN` deletes them."),
    ]))  # fmt: skip
    sections = [search_section(search) for search in live.searches]
    sections += [
        live_section(run.run_id, run.state, run.signs, run.drifts, run.decision) for run in live.runs if run.is_alive
    ]
    sections = [section for section in sections if section.blocks]
    sections.append(Section("live", "Unfinished runs", blocks))
    return own_document("live", "Live", "runs and searches in progress", sections, live)


def runs_document(run_list: RunList) -> Document:
    """The list of runs."""
    rows = [
        row_of(
            phrased(Phrase(run.run_id, address=run_address(run.run_id, run.status))),
            run.version, run.profile, run.machine, run.status, run.verdict, run.source,
            run.started_at[:16].replace("T", " "),
        )
        for run in run_list.runs
    ]  # fmt: skip
    headings = words("run", "version", "profile", "machine", "status", "verdict", "made by", "started")
    return own_document(
        "runs", "Runs", f"{units.count(run_list.matching)} of {units.plural(run_list.total, 'run')}",
        [Section("runs", "Runs", [Table("runs", "", headings, rows, sortable=True)])], run_list,
    )  # fmt: skip


def run_address(run_id: str, status: str) -> str:
    """The page of a run; of an unfinished one, its progress."""
    return "/live" if status == UNFINISHED else f"/runs/{quote(run_id)}"


def dictionary_document(catalogue: Catalogue) -> Document:
    """Every metric of a system: its meaning, how it is judged, its source."""
    section = Section("dictionary", "Metrics", [dictionary(catalogue)])
    amount = units.plural(len(catalogue.metrics), "metric")
    return own_document("metrics", catalogue.title, f"data dictionary · {amount}", [section], catalogue)


class LinkedPage(BaseModel):
    """A page that links to others."""

    schema_version: int = 1
    tool_version: str
    links: list[tuple[str, str]]


def links_document(
    title: str, subtitle: str, links: Sequence[tuple[str, str, str]], otherwise: str, heading: str = ""
) -> Document:
    """Links with a remark each; a name without an address has the reason as its remark.

    ``otherwise`` is shown if there is none. The heading above them is the title unless another is given.
    """
    rows = [row_of(phrased(Phrase(name, address=address)), text) for name, address, text in links]
    blocks: list[Block] = [Table("links", "", words("", ""), rows)] if rows else [Remarks("none", "", [otherwise])]
    result = LinkedPage(tool_version=tool_version(), links=[(name, address) for name, address, _ in links if address])
    return own_document("links", title, subtitle, [Section("links", heading or title, blocks)], result)


def own_document(kind: str, title: str, subtitle: str, sections: list[Section], result: BaseModel) -> Document:
    """A document of the dashboard's own, without a verdict."""
    return Document(
        kind=kind,
        title=title,
        subtitle=subtitle,
        verdict=Verdict.INFORMATIONAL,
        sentence="",
        suites=[shown(title)],
        sections=sections,
        notes=[],
        has_band=False,
        result=result,
        tool_version=tool_version(),
    )


def addressed(path: str, query: Mapping[str, Sequence[str]]) -> str:
    """An address with its query."""
    pairs = [(key, value) for key, values in query.items() for value in values]
    return f"{path}?{urlencode(pairs)}" if pairs else path
