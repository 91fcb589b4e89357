"""Load tests of any system's servers: prepared, measured, summarised and sealed, one run per server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl
from pydantic import BaseModel

from chainmark.capacity.drift_metrics import drift_samples, with_drifts
from chainmark.capacity.gates import load_gates
from chainmark.capacity.generators import Generators
from chainmark.capacity.loadtest import (
    EndpointResult,
    FixedPlan,
    LoadPlan,
    LoadTestResult,
    ServerResult,
    TargetServer,
    Watch,
    run_load_test,
)
from chainmark.capacity.measured import NO_REQUESTS, RequestCounts
from chainmark.capacity.metrics import load_catalogue_of
from chainmark.capacity.mix import MIX, learnt, loosest, mixed
from chainmark.capacity.model import HTTP_1, Endpoint, LevelKind, Phase
from chainmark.capacity.profile import LoadProfile
from chainmark.capacity.protocol import described, speaking
from chainmark.capacity.report import endpoint_entry, notes_of
from chainmark.capacity.step import StepRunner
from chainmark.capacity.summaries import summarised
from chainmark.capacity.tables import (
    ERROR_SCHEMA,
    SECOND_SCHEMA,
    SLOWEST_SCHEMA,
    STEP_SCHEMA,
    errors_frame,
    samples_of,
    seconds_frame,
    slowest_frame,
    steps_frame,
)
from chainmark.capacity.verdict import gone_text, verdict
from chainmark.capacity.watched import WATCH_SCHEMA, drifts_in, source_entries, watch_frame, with_watched
from chainmark.capacity.witness import MachineWitness, Watching
from chainmark.core import units
from chainmark.core.caveats import Caveats
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.labels import ENDPOINT, SLA, sla_label
from chainmark.core.load_report import Departure, EndpointEntry, LoadReport, TargetEntry
from chainmark.core.manifest import Configuration, ExperimentPlace, Fact
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.core.times import utc_now, utc_text
from chainmark.core.tool import tool_version
from chainmark.lab.hardware import hardware_words, machine_facts, server_hardware
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.protocols import UNVERSIONED, Findings, ServedSystem, Service, ServiceRequest
from chainmark.lab.recording import RunRecorder
from chainmark.lab.session import RunContent, Session, new_experiment_id
from chainmark.lab.stages import has_stages, no_load_test
from chainmark.network.host import host_facts
from chainmark.network.server_series import Watched
from chainmark.network.server_watch import BY_ADDRESS, ServerSources, ServerWatch
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

REPORT = "load.json"
_UNSUMMARISED = 3
CORPUS = "corpus.json"
STANDARD = "standard"  # the default scenario
PAGES = "metrics"  # of the server, as received
_NO_VERSION = (
    "the server does not report its version, so all runs at one address count as repetitions of one build; name the "
    "version with `--as`"
)


@dataclass(frozen=True)
class LoadTest:
    """The result of a load test: the document, and the run of every server."""

    report: LoadReport
    runs: list[SealedRun]
    interrupted: bool

    @property
    def gone(self) -> str:
        """A sentence about a server that became unreachable; "" if none did."""
        return next((gone_text(target) for target in self.report.targets if target.gone), "")


@dataclass(frozen=True)
class Tester:
    """Makes load tests of one system and stores them.

    Attributes:
        watching: detects whether the generator and the server waited for a CPU; None: not detected.
        sources: other data to read about the server, which must then be the only one.
        generators: number of load generators; None: chosen automatically.
    """

    store: Store
    system: ServedSystem
    watching: Callable[[str, Generators], Watching] | None = MachineWitness
    sources: ServerSources = BY_ADDRESS
    generators: Callable[[int | None], Generators] = Generators.here

    def make(
        self,
        profile: BaseModel,
        orders: Sequence[ServiceRequest],
        seed: int,
        progress: Progress,
        *,
        repetition: int = 1,
        place: ExperimentPlace | None = None,
    ) -> LoadTest:
        """Test the servers side by side. Ctrl-C ends it early; what was measured is sealed as partial.

        Args:
            profile: of the system; orders: one per server.
            seed: of everything drawn at random.
            progress: receives progress messages.
            repetition: of the same test, from 1 on.
            place: the index of a single server's run in a larger experiment; None: the test is an experiment of its
                own.

        Raises:
            UsageError: a server is of another system, or there is nothing to request.
            EnvironmentFailure: a server or one of its sources cannot be reached, or the store cannot be written.
        """
        load = self.system.load_profile(profile)
        pinned = next((path for order in orders for path in (order.pinned, order.corpus) if path), None)
        services = [self._prepared(profile, _speaking(load, order), progress) for order in orders]
        load, services = _as_mixes(load, services)
        with machine_to_itself(progress), ExitStack() as stack:
            generators = stack.enter_context(self.generators(load.steps.generators))
            services = [_made_by(generators, service) for service in services]
            watches = [stack.enter_context(ServerWatch(self.sources, item.target.url)) for item in services]
            started_at = utc_now()
            sessions = [stack.enter_context(self._session(load, service, started_at, place)) for service in services]
            servers = [TargetServer(service.target, service.endpoints) for service in services]
            with _shown(progress, sessions, watches) as listener:
                make_runner = partial(StepRunner, make_engine=generators.make)
                result = run_load_test(servers, _plan(load, seed), listener, make_runner, self._watch(generators))
            progress.stage("summarising")
            for watch, session, server in zip(watches, sessions, result.servers, strict=True):
                server.watched = watch.finish(session.run.path / "raw" / PAGES)
            report = self._report(load, started_at, services, sessions, result)
            for session in sessions:
                _keep_corpus(pinned, session.run)
            test = _Test(profile, load, seed, report, _broken_off(result))
            experiment_id = new_experiment_id(self.system.name, load.name)
            runs = []
            for position, (service, session, server) in enumerate(zip(services, sessions, result.servers, strict=True)):
                side = service.target.name
                own = ExperimentPlace(id=experiment_id, side=side, repetition=repetition, position=position)
                runs.append(self._sealed(session, test, service, server, place or own))
        return LoadTest(report, runs, result.interrupted)

    def _watch(self, generators: Generators) -> Watch | None:
        watching = self.watching
        return None if watching is None else lambda url: watching(url, generators)

    def _prepared(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> Service:
        progress.stage(f"connecting to {order.target.url}")
        service = self.system.prepare(profile, order, progress)
        if not service.endpoints:
            reasons = "; ".join(f"{name}: {why}" for name, why in service.skipped.items())
            raise UsageError(
                f"no endpoint of {order.target.url} can be measured ({reasons or 'no endpoint was chosen'})"
            )
        if service.subject.version == UNVERSIONED:
            service = replace(service, warnings=(*service.warnings, _NO_VERSION))
        return service

    def _session(self, load: LoadProfile, service: Service, started_at: str, place: ExperimentPlace | None) -> Session:
        known = {"started_at": started_at, **({"experiment": place.id} if place else {})}
        return Session.create(self.store, self.system.name, load.name, service.subject.version, **known)

    def _report(
        self,
        load: LoadProfile,
        started_at: str,
        services: Sequence[Service],
        sessions: Sequence[Session],
        result: LoadTestResult,
    ) -> LoadReport:
        targets = [
            _target_entry(load, service, session.run.run_id, server, result)
            for service, session, server in zip(services, sessions, result.servers, strict=True)
        ]
        names = " and ".join(dict.fromkeys(f"{service.subject.name} {service.subject.version}" for service in services))
        report = LoadReport(
            title=f"Load test of {names}",
            system=self.system.name,
            profile_name=load.name,
            scenario=load.scenario,
            started_at=started_at,
            tool_version=tool_version(),
            machine=machine_facts(host_facts()),
            corpus_hash=services[0].corpus_hash,
            required=load.required(),
            targets=targets,
            caveats=Caveats(sentences=tuple(text for service in services for text in service.contradictions)),
        )
        return summarised(report)

    def _sealed(
        self, session: Session, test: _Test, service: Service, result: ServerResult, place: ExperimentPlace
    ) -> SealedRun:
        run, endpoints = session.run, result.endpoint_results
        run.write_events("steps", steps_frame(endpoints), STEP_SCHEMA)
        run.write_events("seconds", seconds_frame(endpoints), SECOND_SCHEMA)
        run.write_events("errors", errors_frame(endpoints), ERROR_SCHEMA)
        run.write_events("slowest", slowest_frame(endpoints, service.target.access.hide_in), SLOWEST_SCHEMA)
        if result.watched.sources:
            run.write_events("server", watch_frame(result.watched, endpoints), WATCH_SCHEMA)
        write_bytes(run.raw / REPORT, json_bytes(test.report))
        # Its own conditions as well: what else a comparison must know about its servers.
        drifts = {endpoint.endpoint.id: drifts_in(endpoint, result.watched) for endpoint in endpoints}
        catalogue = with_drifts(load_catalogue_of(self.system.name, self.system.title, endpoints), endpoints, drifts)
        catalogue = catalogue.model_copy(update={"conditions": self.system.catalogue().conditions})
        content = RunContent(
            profile_name=test.load.name,
            profile=test.profile.model_dump(mode="json", by_alias=True),
            workload={
                **test.load.workload(service.target.http_version),
                "corpus": service.corpus_hash,
                **_through(service),
            },
            seed=test.seed,
            findings=_findings(test, service, result, run.run_id),
            catalogue=catalogue,
            samples={**samples_of(endpoints), **drift_samples(endpoints, drifts)},
            place=place,
        )
        return session.seal(content)


@contextmanager
def _shown(progress: Progress, sessions: Sequence[Session], watches: Sequence[ServerWatch]) -> Iterator[Progress]:
    """Publish the progress in its run's folder; with servers side by side, no figure belongs to one run alone."""
    if len(sessions) > 1:
        yield progress
        return
    with RunRecorder(progress, sessions[0].run.path, memory=watches[0].memory_bytes) as shown:
        yield shown


def _speaking(load: LoadProfile, order: ServiceRequest) -> ServiceRequest:
    return replace(order, target=speaking(order.target, load.steps.http_version, load.timeout_s()))


def _as_mixes(load: LoadProfile, services: list[Service]) -> tuple[LoadProfile, list[Service]]:
    """If the profile defines a mix, it is every server's only endpoint; the same mix for all servers."""
    text = ""
    if load.mix_from:
        result = learnt(Path(load.mix_from), services[0].endpoints)
        load, text = load.model_copy(update={"mix": result.weights}), result.in_words()
    if not load.mix:
        return load, services
    made = []
    for service in services:
        mix = mixed(service.endpoints, load.mix, load.endpoint_sla)
        warnings = (*service.warnings, *([f"of {load.mix_from}, {text}"] if text else []))
        facts = (*service.facts, _mix_fact(mix))
        made.append(replace(service, endpoints=(mix,), warnings=warnings, facts=facts))
    if MIX not in load.sla_of and made[0].endpoints[0].parts:
        whole = loosest(made[0].endpoints[0].parts)
        load = load.model_copy(update={"sla_of": {**load.sla_of, MIX: whole}})
    return load, made


def _mix_fact(mix: Endpoint) -> Fact:
    total = sum(part.weight for part in mix.parts)
    shares = [f"{part.label} {units.plain_percent(part.weight / total)}" for part in mix.parts]
    return Fact(label="Mix", value=", ".join(shares) or mix.label)


def _made_by(generators: Generators, service: Service) -> Service:
    reported = generators.described()
    return (
        replace(service, facts=(*service.facts, Fact(label="Load generators", value=reported))) if reported else service
    )


@dataclass(frozen=True)
class _Test:
    """The common part of the runs of one load test."""

    profile: BaseModel
    load: LoadProfile
    seed: int
    report: LoadReport
    broken_off: str


def _findings(test: _Test, service: Service, result: ServerResult, run_id: str) -> Findings:
    load = test.load
    own = [target for target in test.report.targets if target.run_id == run_id]
    outcome, _ = verdict(test.report.model_copy(update={"targets": own}))
    return Findings(
        subject=service.subject,
        # Two servers of one version are not one build: their difference is not noise.
        configuration=Configuration(effective={"target": {"url": service.target.url}}),
        conditions={
            "scenario": load.scenario or STANDARD,
            "hardware": server_hardware(load, service.target).value,
            **service.conditions,
        },
        labels={**_labels(load, service, result), SLA: [sla_label(outcome)]},
        counts=_counts(result),
        facts=_server_facts(load, service),
        gates=load_gates(result, broken_off=test.broken_off),
        contradictions=[*service.contradictions],
        warnings=[
            *service.contradictions,
            *service.warnings,
            *(f"{name} is not measured: {why}" for name, why in service.skipped.items()),
            *(
                f"{endpoint.endpoint.label}: {note}"
                for endpoint in result.endpoint_results
                for note in notes_of(endpoint)
            ),
        ],
    )


def _through(service: Service) -> dict[str, str]:
    """The proxy, which adds to every latency."""
    proxy = service.target.access.way
    return {"proxy": proxy.url} if proxy else {}


def _labels(load: LoadProfile, service: Service, result: ServerResult) -> dict[str, list[str]]:
    """The search labels of the run: its cell, and the measured endpoints."""
    reported = {
        "scenario": [load.scenario or STANDARD],
        "hardware": hardware_words(load, service.target),
        "deployment": [load.deployment],
        **service.labels,
        ENDPOINT: [
            name for measured in result.endpoint_results if measured.steps() for name in _names(measured.endpoint)
        ],
    }
    return {key: words for key, words in reported.items() if any(words)}


def _names(endpoint: Endpoint) -> tuple[str, ...]:
    """What users may call an endpoint: its label and its ID."""
    return tuple(dict.fromkeys((endpoint.label, endpoint.id)))


def _broken_off(result: LoadTestResult) -> str:
    if result.gone:
        return f"{result.gone.generator or result.gone.server} was gone ({result.gone.why})"
    return "interrupted" if result.interrupted else ""


def _plan(load: LoadProfile, seed: int) -> LoadPlan:
    fixed = FixedPlan(tuple(load.fixed.shares), load.fixed_levels(), load.fixed.times, load.fixed.duration_s)
    settings = load.step_settings(seed)
    return LoadPlan(load.endpoint_sla, load.search.plans(), settings, fixed, load.courses(), load.required())


def _server_facts(load: LoadProfile, service: Service) -> list[Fact]:
    carried, hardware = service.target.access.described(), server_hardware(load, service.target)
    sent = [Fact(label="Sent with every request", value=carried)] if carried else []
    spoken = Fact(label="Protocol", value=described(service.target.http_version, load.steps.streams))
    proxy = service.target.access.way
    through = [Fact(label="Proxy", value=proxy.url)] if proxy else []
    return [*service.facts, *through, *([spoken] if load.steps.http_version != HTTP_1 else []), *sent, hardware]


def _target_entry(
    load: LoadProfile, service: Service, run_id: str, result: ServerResult, whole: LoadTestResult
) -> TargetEntry:
    gone = whole.gone if whole.gone and whole.gone.server == service.target.name else None
    measured = [endpoint for endpoint in result.endpoint_results if endpoint.steps() or not whole.interrupted]
    return TargetEntry(
        name=service.target.name,
        url=service.target.url,
        subject=service.subject,
        run_id=run_id,
        facts=[*_server_facts(load, service), *_health_probe_fact(result)],
        endpoints=[_endpoint_entry(service, endpoint, result.watched) for endpoint in measured],
        skipped={**service.skipped, **_not_reached(load, service, result, whole)},
        interrupted=whole.interrupted,
        gone=Departure(at=utc_text(gone.at_ns), why=gone.why, generator=gone.generator) if gone else None,
        sources=source_entries(result.watched),
        warnings=list(service.warnings),
    )


def _endpoint_entry(service: Service, endpoint_result: EndpointResult, watched: Watched) -> EndpointEntry:
    id_ = endpoint_result.endpoint.id
    entry = endpoint_entry(endpoint_result, service.strata.get(id_, {}), notes_of(endpoint_result))
    sized = entry.model_copy(update={"sizes": dict(service.sizes.get(id_, {}))})
    return with_watched(sized, endpoint_result, watched)


def _not_reached(load: LoadProfile, service: Service, result: ServerResult, whole: LoadTestResult) -> dict[str, str]:
    """What the end of the test left unmeasured: whole endpoints, or one kind of load, with the reason."""
    if not whole.interrupted:
        return {}
    why = "the test was interrupted"
    if whole.gone:
        why = f"{whole.gone.generator or whole.gone.server} was gone at {units.utc_clock(utc_text(whole.gone.at_ns))}"
    searched = {reached.endpoint.id: reached.answers for reached in result.endpoint_results if reached.steps()}
    missing = {}
    for endpoint in service.endpoints:
        if endpoint.id not in searched:
            missing[endpoint.id] = why
            continue
        kinds = [plan.kind for plan in load.search.plans() if plan.kind not in searched[endpoint.id]]
        missing |= {f"{endpoint.id} ({kind})": why for kind in kinds}
    return missing


def _health_probe_fact(result: ServerResult) -> list[Fact]:
    """The number of requests between the steps."""
    counts = sum((endpoint.looks.counts for endpoint in result.endpoint_results), start=NO_REQUESTS)
    if not counts.due:
        return []
    value = f"{units.plural(counts.due, 'request')} from one client, {units.count(counts.failed)} failed; not counted"
    return [Fact(label="Between the steps", value=value)]


def _keep_corpus(pinned: Path | None, run: UnfinishedRun) -> None:
    """Store the requests with the run: a run to compare with it sends the same ones."""
    if pinned is not None and pinned.is_file() and pinned.suffix == ".json":
        target = run.raw / CORPUS
        with storage_errors(target):
            shutil.copyfile(pinned, target)


def _counts(result: ServerResult) -> dict[str, dict[str, int]]:
    """The accounting of every endpoint, summed over its steps, and of the requests between them."""
    counts = {}
    for endpoint in result.endpoint_results:
        steps = sum((step.result.counts for step in endpoint.steps()), start=NO_REQUESTS)
        counts[f"requests to {endpoint.endpoint.label}"] = _classes(steps)
        if endpoint.looks.counts.due:
            counts[f"requests to {endpoint.endpoint.label} between the steps"] = _classes(endpoint.looks.counts)
    return counts


def _classes(request_counts: RequestCounts) -> dict[str, int]:
    return {"ok": request_counts.ok, "failed": request_counts.failed, "unsent": request_counts.unsent}


def recorded_corpus(run: SealedRun) -> Path | None:
    """The requests that a run stored, if its system stores them."""
    path = run.path / "raw" / CORPUS
    return path if path.is_file() else None


def fixed_levels_of(run: SealedRun) -> dict[str, dict[str, list[float]]]:
    """The levels at which a run measured its endpoints, in the form of the section `fixed` of a profile.

    Returns:
        `rates` and `clients`, each by the endpoint's ID.

    Raises:
        UsageError: it is not a run of a load test.
    """
    if not has_stages(run):
        raise no_load_test(run)
    steps = run.events("steps").filter(pl.col("phase") == Phase.FIXED.value)
    results: dict[str, dict[str, list[float]]] = {"rates": {}, "clients": {}}
    for endpoint, kind, level in steps.select("endpoint", "kind", "level").unique().sort(pl.all()).iter_rows():
        results["rates" if kind == LevelKind.RATE.value else "clients"].setdefault(endpoint, []).append(level)
    return results


def at_levels_of(system: ServedSystem, profile: BaseModel, run: SealedRun) -> BaseModel:
    """The same profile with the fixed levels of an earlier run."""
    content = profile.model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["fixed"] = {**content.get("fixed", {}), **fixed_levels_of(run)}
    return system.profile(content)


def load_report_of(run: SealedRun) -> LoadReport:
    """The document of a run's load test.

    Raises:
        UsageError: it is not a run of a load test.
        InvalidRunError: its stored data cannot be read.
    """
    path = run.path / "raw" / REPORT
    if not path.is_file():
        raise no_load_test(run)
    try:
        report = LoadReport.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidRunError(
            f"the load test of run `{run.run_id}` cannot be read: {path.name} ({type(error).__name__})",
            f"`chainmark runs verify {run.run_id}` shows what changed",
        ) from error
    # Up to schema 3 the summaries were not stored.
    return report if report.schema_version > _UNSUMMARISED else summarised(report)
