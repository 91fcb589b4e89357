"""The pages by address: every page is a document made from the store, computed once for all clients."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from chainmark.api.comparing import How, compared
from chainmark.api.following import block
from chainmark.api.history import history
from chainmark.api.runs import Run
from chainmark.api.systems import catalogue
from chainmark.compare.history import LEAST_RELEASES
from chainmark.core import units
from chainmark.core.caveats import Caveats
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.core.tool import tool_version
from chainmark.lab.profiles import shipped_profiles
from chainmark.lab.stages import has_stages
from chainmark.report.chart import Chart
from chainmark.report.document import Document
from chainmark.report.metric_tables import definition_anchor
from chainmark.report.phrases import computed_address
from chainmark.serve import listing, pages
from chainmark.serve.capacity import capacity_document
from chainmark.serve.charts import Painter
from chainmark.serve.computed import computed_document
from chainmark.serve.matrix import WHOLE, MatrixRow, comparisons_in, labels_of, matrix, tab_of, tabs_of
from chainmark.serve.memory import Memory
from chainmark.serve.one_metric import STRIPS, metric_document, view_of
from chainmark.serve.pages import Page
from chainmark.serve.reading import Moment, ReadStore
from chainmark.serve.rendering import load_templates, part
from chainmark.serve.replay import REPLAY, SLOWNESS, replayable
from chainmark.serve.running import decision_progress
from chainmark.serve.series import series_document
from chainmark.serve.small_charts import trend
from chainmark.serve.what_if import changes_of, knobs, predicted, sources
from chainmark.serve.workloads import Card, GatingFigure, Workload, card_of, workloads_of
from chainmark.store.listing import ListedRun
from chainmark.store.live import live_searches
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import FollowableSystem

QueryValues = Mapping[str, Sequence[str]]
_CARDS = 24  # on the first page: the workloads that were measured most recently
_REFRESH_S = 2
_OVERVIEW_REFRESH_S = 30  # a run that begins appears on the first page
_MOST_DOCUMENTS = 12
_MOST_SIDES = 8
_MOST_RUNS = 40  # of a comparison whose figures are listed individually


class Site:
    """The pages of one store.

    Args:
        root: the store's folder.
        form_token: token in the forms that write; "" if nothing may be written.
        logs: the folders that runs were imported from: lines of a trace are shown, and nothing else of them.
    """

    def __init__(self, root: Path, form_token: str = "", logs: Sequence[Path] = ()) -> None:
        self.form_token = form_token
        self._logs = logs
        self._began = time.time_ns()  # the same name on another server is another page
        self.store = ReadStore(root)
        self.painter = Painter()
        self._cards = Memory(4 * _CARDS)
        self._trends = Memory(4 * _CARDS)
        self._documents = Memory(_MOST_DOCUMENTS)
        self._views = Memory(_MOST_DOCUMENTS)
        self._lists = Memory(2)

    def prepare(self) -> None:
        """Load what the first page of each kind needs: the templates, and the systems of the store's runs."""
        load_templates()
        for name in sorted({entry.system for entry in self.store.now().whole}):
            with suppress(ChainmarkError):
                load_system(name)

    def close(self) -> None:
        """Compute nothing further."""
        for memory in (self._cards, self._trends, self._documents, self._views, self._lists):
            memory.close()
        self.painter.close()

    def _document(self, key: tuple[object, ...], make: Callable[[], Document]) -> Document:
        document: Document = self._documents.get((self.store.now().number, *key), make)
        return document

    # ---- overview ---------------------------------------------------------------------------------------------------
    def cards(self, *, wait: bool = False) -> tuple[list[Card], int]:
        """The workloads, and the number of those still being read, which are shown in brief."""
        moment = self.store.now()
        cards_made, pending = [], 0
        for workload in workloads_of(moment)[:_CARDS]:
            future = self._cards.later((_state(workload, moment), workload.key), _card_maker(workload, self.store))
            if wait or future.done():
                cards_made.append(future.result())
            else:
                pending += 1
                cards_made.append(workload.brief())
        return cards_made, pending

    def home(self, query: QueryValues) -> Page:
        """Every workload with its newest verdict, and the current measurements."""
        del query
        moment = self.store.now()
        cards, pending = self.cards()
        now = [live_run for live_run in pages.live_runs(moment, self.store) if live_run.is_alive]
        home = pages.HomePage(
            tool_version=tool_version(), runs=len(moment.whole), pending=pending, now=now, cards=cards,
            caveats=pages.caveats_of_moment(moment),
        )  # fmt: skip
        trends = [self._trends_of(card) for card in cards]
        refresh = _REFRESH_S if pending or None in trends else _OVERVIEW_REFRESH_S
        shown = part("cards", home, [drawn or {} for drawn in trends])
        return Page(pages.home_document(home), "Home", instead=shown, refresh_s=refresh)

    def _trends_of(self, card: Card) -> Mapping[str, Markup] | None:
        """The figures of a card over the releases, drawn; None if that is not done yet, empty if it failed."""
        charts = {figure.id: chart for figure in card.figures if (chart := _trend(figure))}
        key = tuple((figure.id, *figure.values, *figure.changes) for figure in card.figures)
        future = self._trends.later(key, lambda: self.painter.inline(list(charts.values())))
        if not future.done():
            return None
        return {} if future.exception() else dict(zip(charts, future.result(), strict=True))

    def live(self, query: QueryValues) -> Page:
        """The current measurements."""
        del query
        runs = [self._with_decision(run) for run in pages.live_runs(self.store.now(), self.store)]
        searches = live_searches(self.store.root / "experiments")
        live = pages.Live(tool_version=tool_version(), runs=runs, searches=searches)
        return Page(pages.live_document(live), "Live", refresh_s=_REFRESH_S)

    def _with_decision(self, run: pages.LiveRun) -> pages.LiveRun:
        """An unfinished run, with its experiment's progress as soon as that is computed."""
        if not run.is_alive or not run.experiment:
            return run
        sealed = tuple(entry.run_id for entry in self.store.now().whole if entry.experiment == run.experiment)
        future = self._views.later((run.experiment, sealed), lambda: decision_progress(run.experiment, self.store))
        if not future.done() or future.exception() is not None:
            return run
        return run.model_copy(update={"decision": future.result()})

    # ---- runs -------------------------------------------------------------------------------------------------------
    def runs(self, query: QueryValues) -> Page:
        """The runs that match the facets."""
        moment = self.store.now()
        key = (moment.number, tuple(moment.unfinished))
        everything: list[ListedRun] = self._lists.get(key, lambda: listing.all_runs(moment))
        run_list = listing.run_list(everything, query)
        begin = _whole_number(query, "from")

        def turned(name: str, value: str, wanted: bool) -> str:
            others = [item for item in run_list.filters.get(name, []) if item != value]
            return pages.addressed("/runs", {**run_list.filters, name: [*others, value] if wanted else others})

        def at(place: int) -> str:
            return pages.addressed("/runs", {**run_list.filters, "from": [str(place)]})

        end = begin + listing.PAGE
        before = at(max(0, begin - listing.PAGE)) if begin else ""
        after = at(end) if end < run_list.matching else ""
        shown = part(
            "runs", run_list, listing.facets(everything, query), run_list.runs[begin:end], before, after, turned
        )
        return Page(pages.runs_document(run_list), "Runs", instead=shown, live=self.state())

    def state(self) -> str:
        """A summary of the store's state: it changes when a run begins, ends, is annotated or removed."""
        moment = self.store.now()
        names = zlib.crc32("\n".join(moment.unfinished).encode("utf-8", "surrogateescape"))
        return f"{self._began:x}-{moment.number:x}-{names:x}"

    def run(self, query: QueryValues, run_id: str) -> Page:
        """One run's document.

        Raises:
            UsageError: there is none of that name.
        """
        sealed = self.sealed(run_id)
        document = self._document(("run", run_id), lambda: Run(sealed).document())
        manifest = sealed.manifest
        own = (
            workload
            for workload in workloads_of(self.store.now())
            if any(entry.run_id == run_id for entry in workload.entries)
        )
        has_history = any(workload.has_history for workload in own)
        links = [
            *([("History of this workload", f"/history?run={quote(run_id)}")] if has_history else []),
            ("Compare with …", f"/compare?side={quote(run_id)}"),
            ("All runs of this version", pages.addressed("/runs", {"version": [manifest.subject.version]})),
        ]
        del query
        form = part("note_form", run_id, manifest.subject.version, self.form_token) if self.form_token else ""
        return Page(document, "Runs", part("chosen", links) + self._trails(run_id) + form)

    def sealed(self, run_id: str) -> SealedRun:
        """A run by its full name: a name of the store's own list, and never a path."""
        moment = self.store.now()
        if run_id in moment.damaged or any(entry.run_id == run_id for entry in moment.whole):
            return self.store.run(run_id)
        if run_id in moment.unfinished:
            raise UsageError(f"run `{run_id}` is not finished", "the page *Live* shows its progress")
        raise UsageError(f"there is no run `{run_id}`", "the page *Runs* lists all runs")

    # ---- comparisons ------------------------------------------------------------------------------------------------
    def compare(self, query: QueryValues) -> Page:
        """Compare two sides or more; with fewer: the choices."""
        sides = [text for side in query.get("side", ()) if (text := " ".join(side.split()))]
        sides += self._repetitions(query.get("run", ()))
        why = "why" in query
        form = part("compare_form", [*sides, *[""] * max(1, 2 - len(sides))], self._known_sides(), why)
        if len(sides) < 2:
            words = "Select at least two sides: versions, runs, or sides of an experiment."
            return Page(pages.links_document("Compare", "two or more sides", self._pairs(), words), "Compare", form)
        if len(sides) > _MOST_SIDES:
            raise UsageError(f"{len(sides)} sides are too many for a page", f"select at most {_MOST_SIDES}")
        document = self._document(("compare", *sides, why), lambda: self._compared(sides, why=why))
        return self._compare_page(document, {**query, "side": sides}, form)

    def _compare_page(self, document: Document, query: QueryValues, form: Markup) -> Page:
        """One metric of a comparison, or a tab of it; an export contains all of it."""
        retained = {name: query[name] for name in ("side", "why") if name in query}

        def at(**more: str) -> str:
            return pages.addressed("/compare", retained | {name: [value] for name, value in more.items() if value})

        lines: list[MatrixRow] = self._views.get((document.digest, "matrix"), lambda: matrix(comparisons_in(document)))
        if metric := next(iter(query.get("metric", ())), ""):
            shown = metric_document(document, metric, lambda id_: at(metric=id_))
            links = [("All metrics of this comparison", at()), ("How was this computed?", self._how(document, metric))]
            return Page(shown, "Compare", part("chosen", links), drawn=self._strips_of(shown))
        tab = next(iter(query.get("tab", ())), "")
        tabs = [(title, at(tab=name), name == tab) for name, title in tabs_of(document)]
        above = form + part("tabs", tabs)
        if not tab and lines:
            relevance = _figure(query, "relevance")
            left = [line for line in lines if line.gating or line.relevance >= relevance]
            above += part("matrix", left, labels_of(document), relevance, retained, lambda id_: at(metric=id_))
            above += self._trails(comparisons_in(document)[-1].candidate.runs[-1].run_id)
        return Page(document, "Compare", above, shown=tab_of(document, tab), elsewhere=at(tab=WHOLE))

    def _strips_of(self, document: Document) -> Mapping[str, Markup]:
        """The charts of the single runs, drawn as parts of the page; empty if that failed: they are pictures then."""
        charts = [block for section in document.sections if section.id == STRIPS for block in section.blocks]
        strips = [block for block in charts if isinstance(block, Chart)]
        with suppress(EnvironmentFailure):
            drawn: list[Markup] = self._views.get((document.digest, STRIPS), lambda: self.painter.inline(strips))
            return {chart.id: markup for chart, markup in zip(strips, drawn, strict=True)}
        return {}

    @staticmethod
    def _how(document: Document, metric: str) -> str:
        """The page about the computation of a comparison's metric."""
        view = view_of(document, metric)
        runs = [run for side in view.sides for run in side.runs]
        system = comparisons_in(document)[0].catalogue.system
        return computed_address(system, view.metric, view.statistic, runs[:_MOST_RUNS])

    def _compared(self, sides: Sequence[str], *, why: bool) -> Document:
        chosen = [[run for word in side.split() for run in self.store.select(word)] for side in sides]
        return compared(chosen, self.store, How(why=why))

    def _repetitions(self, run_ids: Sequence[str]) -> list[str]:
        """Individually selected runs: those of one version and one profile are one side."""
        entries = {entry.run_id: entry for entry in self.store.now().whole}
        groups: dict[tuple[str, str, str], list[str]] = {}
        for entry in sorted(
            (entries[identifier] for identifier in run_ids if identifier in entries), key=lambda item: item.started_at
        ):
            groups.setdefault((entry.system, entry.version, entry.profile), []).append(entry.run_id)
        return [" ".join(group) for group in groups.values()]

    def _known_sides(self) -> list[str]:
        """Versions and sides of experiments, the newest first."""
        results: dict[str, None] = {}
        for entry in reversed(self.store.now().whole):
            results[entry.version] = None
            if entry.experiment and entry.side:
                results[f"{entry.experiment}/{entry.side}"] = None
        return list(results)[:200]

    def _pairs(self) -> list[tuple[str, str, str]]:
        """The newest and the previous release of every workload."""
        pairs = []
        for workload in workloads_of(self.store.now())[:_CARDS]:
            releases = workload.releases()
            if len(releases) > 1:
                sides = [" ".join(entry.run_id for entry in group) for group in releases[-2:]]
                names = f"{releases[-1][-1].version} against {releases[-2][-1].version}"
                pairs.append((names, pages.addressed("/compare", {"side": sides}), workload.brief().title))
        return pairs

    # ---- history ----------------------------------------------------------------------------------------------------
    def history(self, query: QueryValues) -> Page:
        """Every figure of a workload over its releases; without a workload: the list of them."""
        run_id = next(iter(query.get("run", ())), "")
        if not run_id:
            workloads = [workload for workload in workloads_of(self.store.now()) if workload.has_history]
            links = [
                (workload.brief().title, f"/history?run={quote(workload.newest.run_id)}", workload.brief().size)
                for workload in workloads
            ]
            otherwise = f"No workload has runs of at least {LEAST_RELEASES} releases yet."
            return Page(pages.links_document("History", "a workload over its releases", links, otherwise), "History")
        self.sealed(run_id)
        document = self._document(("history", run_id), lambda: history(run_id, store=self.store)[0])
        return Page(document, "History", part("chosen", [("The newest run", f"/runs/{quote(run_id)}")]))

    def capacity(self, query: QueryValues) -> Page:
        """Latency against load of a workload's releases; without a workload: the list of them."""
        run_id = next(iter(query.get("run", ())), "")
        workloads = workloads_of(self.store.now())
        if not run_id:
            tested = [workload for workload in workloads if has_stages(self.store.run(workload.newest.run_id))]
            links = [
                (workload.brief().title, f"/capacity?run={quote(workload.newest.run_id)}", workload.brief().size)
                for workload in tested
            ]
            title, otherwise = "latency against load", "There are no load tests yet: run one with `chainmark load`."
            return Page(pages.links_document("Capacity", title, links, otherwise), "Capacity")
        self.sealed(run_id)
        own = next(
            (workload for workload in workloads if any(entry.run_id == run_id for entry in workload.entries)), None
        )
        if own is None:
            raise UsageError(f"run `{run_id}` does not belong to a workload", "it is damaged, or has profiles")
        runs = self.store.readable(self.store.run(group[-1].run_id) for group in own.releases())
        title = own.brief().title
        document = self._document(("capacity", *own.key), lambda: capacity_document(title, runs))
        return Page(document, "Capacity", part("chosen", [("History", f"/history?run={quote(run_id)}")]))

    def series(self, query: QueryValues) -> Page:
        """A metric of a run over time, or over a part of it."""
        run_id, metric = (next(iter(query.get(name, ())), "") for name in ("run", "metric"))
        run = self.sealed(run_id)
        span = tuple(_figure(query, name) if name in query else None for name in ("from", "to"))
        document = self._document(("series", run_id, metric, *span), lambda: series_document(run, metric, *span))
        how = computed_address(run.catalogue.system, metric, "", [run_id])
        links = [("The run", f"/runs/{quote(run_id)}"), ("How was this computed?", how)]
        links += [(f"Slowest {name}s", _slowest_address(run_id, name)) for name in self._followable(run)]
        form = part("series_form", run_id, metric, document.result, span != (None, None))
        return Page(document, "Runs", part("chosen", links) + form)

    # ---- predictions ------------------------------------------------------------------------------------------------
    def what_if(self, query: QueryValues) -> Page:
        """The model of a run's network, or of a profile's, under changes."""
        source = next(iter(query.get("source", ())), "")
        known = sources(self.store, shipped_profiles())
        if source not in {item.name for item in known}:
            links = [
                (
                    item.name,
                    "" if item.hindrance else pages.addressed("/what-if", {"source": [item.name]}),
                    item.hindrance,
                )
                for item in known
            ]
            otherwise = "No installed system has both a model and a run or profile for it."
            return Page(pages.links_document("What if", "a model fitted to a run or a profile", links, otherwise),
                        "What if")  # fmt: skip
        entry = next((item for item in self.store.now().whole if item.run_id == source), None)
        settings = knobs(entry.system if entry else source.partition("/")[0], query)
        key = ("what-if", source, *changes_of(settings))
        document = self._document(key, lambda: predicted(source, settings, self.store))
        return Page(document, "What if", part("what_if_form", source, settings))

    # ---- traces -----------------------------------------------------------------------------------------------------
    def follow(self, query: QueryValues) -> Page:
        """The trace of one block or other item of a run; without a key, the slowest."""
        run_id, key, trail = (next(iter(query.get(name, ())), "") for name in ("run", "key", "trail"))
        trail = trail or next(iter(self._followable(self.sealed(run_id))), "block")
        document = self._document(("follow", run_id, trail, key), lambda: self._followed(run_id, key or None, trail))
        links = [("The run", f"/runs/{quote(run_id)}")]
        above = self._trails(run_id) + part("chosen", links)
        if key and (played := replayable(document.charts())):
            chart, first, last = played
            drawing = pages.addressed("/follow", {**query, "chart": [chart], "look": [REPLAY]})
            above += part("replay", drawing, first, last, SLOWNESS)
        return Page(document, "Runs", above)

    def _followed(self, run_id: str, key: str | None, trail: str) -> Document:
        """With the log lines, from the first folder that has them."""
        for folder in self._logs if key else ():
            with suppress(ChainmarkError):
                return block(run_id, key, trail=trail, lines=folder, store=self.store)
        return block(run_id, key, trail=trail, store=self.store)

    def _trails(self, run_id: str) -> Markup:
        """The form to select an item of a run, and the link to the slowest."""
        trails = self._followable(self.store.run(run_id))
        slowest = [(f"Slowest {name}s", _slowest_address(run_id, name)) for name in trails]
        return part("trail_form", run_id, trails, slowest) if trails else Markup()

    @staticmethod
    def _followable(run: SealedRun) -> Sequence[str]:
        """The traceable items of a run; empty if its system is not installed, or no longer reads its catalogue."""
        with suppress(ChainmarkError, ValueError):
            system = load_system(run.manifest.subject.system)
            return system.followed(run) if isinstance(system, FollowableSystem) else []
        return []

    # ---- metrics ----------------------------------------------------------------------------------------------------
    def metrics(self, query: QueryValues) -> Page:
        """The systems with a data dictionary."""
        del query
        links = [(catalogue(name).title, f"/metrics/{quote(name)}", name) for name in system_names()]
        return Page(pages.links_document("Metrics", "definitions", links, "No system is installed."), "Metrics")

    def dictionary(self, query: QueryValues, system: str) -> Page:
        """The data dictionary of a system."""
        del query
        known = catalogue(system)
        links = [(metric.label, f"/metrics/{quote(system)}/{metric.id}") for metric in known.ordered()]
        return Page(
            pages.dictionary_document(known), "Metrics", part("folded_links", "How each metric is computed", links)
        )

    def computed(self, query: QueryValues, system: str, metric: str) -> Page:
        """How a figure is computed: for some runs, by the catalogue that they contain, or in general."""
        runs = [self.sealed(run_id) for run_id in query.get("run", ())[:_MOST_RUNS]]
        known = runs[0].catalogue if runs else catalogue(system)
        statistic = next(iter(query.get("statistic", ())), "")
        links = _dictionary_links(system, metric)
        if runs:
            links.append(("Over time", pages.addressed("/series", {"run": [runs[0].run_id], "metric": [metric]})))
        return Page(computed_document(known, metric, statistic, runs), "Metrics", part("chosen", links))

    def with_caveats(self, document: Document) -> Document:
        """A document with the unreadable parts of the store, if its result has a field for them."""
        caveats = pages.caveats_of_moment(self.store.now())
        if not caveats.sentences or not isinstance(getattr(document.result, "caveats", None), Caveats):
            return document
        joined = Caveats.joined([document.caveats, caveats])
        return replace(document, result=document.result.model_copy(update={"caveats": joined}))


def _slowest_address(run_id: str, trail: str) -> str:
    return pages.addressed("/follow", {"run": [run_id], "trail": [trail]})


def _dictionary_links(system: str, metric: str) -> list[tuple[str, str]]:
    """The entry of a metric; the whole dictionary if it has none: a run may contain a metric that no longer exists."""
    if system not in system_names():
        return []
    address = f"/metrics/{quote(system)}"
    if any(item.id == metric for item in catalogue(system).metrics):
        return [("In the data dictionary", f"{address}#{definition_anchor(metric)}")]
    return [("All metrics", address)]


def _state(workload: Workload, moment: Moment) -> tuple[Any, ...]:
    """The input of a card: its runs and the notes."""
    return (*(entry.run_id for entry in workload.entries), moment.notes.model_dump_json())


def _card_maker(workload: Workload, store: ReadStore) -> Callable[[], Card]:
    return lambda: card_of(workload, store)


def _trend(figure: GatingFigure) -> Chart | None:
    label = f"{figure.label} over {units.plural(len(figure.values), 'release')}"
    return trend(figure.values, figure.changes, f"{label}; {figure.changed}" if figure.changed else label)


def _figure(query: QueryValues, name: str) -> float:
    try:
        return min(max(float(next(iter(query.get(name, ())), "0")), 0.0), 1e12)
    except ValueError:
        return 0.0


def _whole_number(query: QueryValues, name: str) -> int:
    text = next(iter(query.get(name, ())), "0")
    return int(text) if text.isdecimal() and len(text) < 9 else 0
