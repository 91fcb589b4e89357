"""A plan of load tests, cell by cell: read, run as one experiment, and resumed after an interruption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from chainmark.capacity.access import NOBODY, Access, hidden_in_errors
from chainmark.capacity.model import Target, Tls
from chainmark.capacity.stored_access import StoredAccess, restored, stored_access
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.load_report import LoadReport, TargetEntry
from chainmark.core.manifest import ExperimentPlace
from chainmark.core.matrix_plan import MatrixPlan, MatrixScenario, MatrixServer
from chainmark.core.matrix_report import CellEntry, MatrixReport
from chainmark.core.progress import Progress
from chainmark.core.times import utc_now
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict
from chainmark.lab.corpora import OtherNetworkError
from chainmark.lab.hardware import machine_facts
from chainmark.lab.loading import STANDARD, LoadTest, Tester, at_levels_of, load_report_of, recorded_corpus
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.named_files import checked_plan, named_content
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import ServiceRequest
from chainmark.lab.session import finished_runs, new_experiment_id
from chainmark.network.host import host_facts
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.sealed import SealedRun

NO_TARGETS: Mapping[str, str] = {}
_NOT_GIVEN = "no `--target {}=URL` was given"


class _Record(BaseModel):
    """``experiment.json`` of a plan's tests.

    Attributes:
        access: authentication of the requests, by server, without secrets.
        missing: why cells could not be measured, by their index in the plan; ended: the outcome that counts as.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = 1
    kind: str = "load plan"
    system: str
    plan: dict[str, Any]
    seed: int
    settings: list[str]
    endpoints: list[str]
    corpus: str
    like: str = ""
    ca_file: str | None
    verify: bool
    access: dict[str, StoredAccess] = {}
    version: str | None
    started_at: str
    missing: dict[int, str] = {}
    ended: dict[int, Verdict] = {}


@dataclass(frozen=True)
class MatrixRequest:
    """A plan to be run.

    Attributes:
        plan: with the URLs of its servers, as far as known.
        settings: of all profiles, applied after those of the plan.
        endpoints: only these of every cell; none: those of the plan.
        corpus: requests of all cells; None: those of a scenario are chosen at its first server, and sent to all of
            its network.
        like: an earlier experiment of a plan: cells that it also has get the same requests at its levels.
        version: of all servers that report none, and for which the plan states none.
    """

    plan: MatrixPlan
    settings: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    corpus: Path | None = None
    like: str = ""
    tls: Tls = field(default_factory=Tls)
    version: str | None = None
    seed: int = 1


@dataclass(frozen=True)
class MatrixMade:
    """The result of a plan: the document, and the run of every measured cell."""

    experiment: str
    report: MatrixReport
    runs: list[SealedRun]


def read_plan(reference: str) -> MatrixPlan:
    """A shipped plan, "NAME/matrix", or one from a TOML file.

    Raises:
        UsageError: there is none, or it cannot be used; the message names the error.
    """
    content = named_content("plan", reference)
    return checked_plan(MatrixPlan, reference, {"title": content["name"], **content})


def with_targets(plan: MatrixPlan, targets: Mapping[str, str]) -> MatrixPlan:
    """The plan with the URLs of its servers; a plan without servers gets the given ones.

    Raises:
        UsageError: a target is not one of the plan's servers, or there is none at all.
    """
    if not plan.servers:
        if not targets:
            raise UsageError("there is no server to test", "`--target NAME=URL`, once for every server")
        servers = [MatrixServer(id=name, url=url) for name, url in targets.items()]
        # References to servers in scenarios and cells are checked against those of the command.
        return _checked(plan, servers)
    known = {server.id for server in plan.servers}
    unknown = next((name for name in targets if name not in known), None)
    if unknown is not None:
        raise UsageError(f"`{unknown}` is not one of the plan's servers", f"its servers are {', '.join(sorted(known))}")
    servers = [server.model_copy(update={"url": targets.get(server.id, server.url)}) for server in plan.servers]
    if not any(server.url for server in servers):
        raise UsageError("no server of the plan has an address", f"`--target {servers[0].id}=http://…`")
    return _checked(plan, servers)


def _checked(plan: MatrixPlan, servers: Sequence[MatrixServer]) -> MatrixPlan:
    content = plan.model_dump(mode="json", by_alias=True)
    content["server"] = [server.model_dump(mode="json") for server in servers]
    return checked_plan(MatrixPlan, plan.name, content)


@dataclass(frozen=True)
class _Cell:
    """One cell, ready to be measured; ``place`` is its index among all cells of the plan, from 0."""

    place: int
    scenario: MatrixScenario
    server: MatrixServer
    profile: BaseModel
    skip: str


@dataclass(frozen=True)
class MatrixTester:
    """Makes the load tests of a plan, one cell after the other.

    Attributes:
        access: authentication of the requests; accesses: the same for single servers, by their names. Secrets are not
            stored.
    """

    tester: Tester
    access: Access = NOBODY
    accesses: Mapping[str, Access] = field(default_factory=dict)

    def make(self, order: MatrixRequest, progress: Progress) -> MatrixMade:
        """Begin a plan and run it to its end, or until it is interrupted.

        Raises:
            UsageError: a profile or setting of some cell cannot be used; detected before any request.
        """
        experiment = new_experiment_id(self.tester.system.name, order.plan.name, "load")
        record = _Record(
            system=self.tester.system.name,
            plan=order.plan.model_dump(mode="json", by_alias=True),
            seed=order.seed,
            settings=list(order.settings),
            endpoints=list(order.endpoints),
            corpus=str(order.corpus.resolve()) if order.corpus else "",
            like=self._former(order.like) if order.like else "",
            ca_file=str(Path(order.tls.ca_file).resolve()) if order.tls.ca_file else None,
            verify=order.tls.verify,
            access={server.id: stored_access(self._access(server.id)) for server in order.plan.servers if server.url},
            version=order.version,
            started_at=utc_now(),
        )
        return self._execute(experiment_folder(self.tester.store, experiment), record, progress)

    def resume(self, reference: str, progress: Progress, targets: Mapping[str, str] = NO_TARGETS) -> MatrixMade:
        """Resume a plan: finished cells are kept; interrupted, invalid or unreachable ones are measured again.

        Args:
            reference: the experiment.
            progress: receives progress messages.
            targets: URLs of servers that were given again, with the authentication for them.

        Raises:
            UsageError: there is no such experiment, another process works on it, a target is not one of its servers, or
                a required authentication is neither stored nor given.
        """
        folder = find_experiment(self.tester.store, reference)
        system = self.tester.system.name
        record = folder.record(_Record, f"a load-test plan of `{system}`", system)
        urls = {server.id: server.url.rstrip("/") for server in MatrixPlan.model_validate(record.plan).servers}
        unknown = next((name for name, url in targets.items() if urls.get(name) != url), None)
        if unknown is not None:
            known = ", ".join(f"{name}={url}" for name, url in urls.items() if url)
            raise UsageError(f"`{unknown}` with this URL is not one of the plan's servers", f"its servers are {known}")
        return self._execute(folder, record, progress)

    def _execute(self, folder: ExperimentFolder, record: _Record, progress: Progress) -> MatrixMade:
        plan = MatrixPlan.model_validate(record.plan)
        cells = [self._cell(plan, record, place, *at) for place, at in enumerate(plan.places())]
        with machine_to_itself(progress), folder.locked():
            runs = self._finished(folder.experiment_id)
            open_ = [cell for cell in cells if cell.place not in runs and not cell.skip and cell.server.url]
            let_in = replace(self, accesses=self._restored(record, open_, folder))
            record = record.model_copy(update={"missing": {}, "ended": {}})
            folder.write(record)
            with hidden_in_errors(let_in.accesses.values()):
                interrupted = let_in._made_until_interrupted(open_, runs, folder, record, progress)
        report = _report(folder.experiment_id, plan, record, cells, runs, interrupted=interrupted)
        return MatrixMade(folder.experiment_id, report, [runs[place] for place in sorted(runs)])

    def _made_until_interrupted(
        self,
        cells: Sequence[_Cell],
        runs: dict[int, SealedRun],
        folder: ExperimentFolder,
        record: _Record,
        progress: Progress,
    ) -> bool:
        """Measure the cells, each into `runs`; return whether that was interrupted."""
        try:
            for number, cell in enumerate(cells, start=1):
                progress.stage(f"cell {number} of {len(cells)}: {cell.server.id}, {cell.scenario.name}")
                measured = self._measured(cell, folder, record, progress)
                if measured is not None:
                    runs[cell.place] = measured.runs[0]
                if measured is not None and measured.interrupted and not measured.gone:
                    return True
        except KeyboardInterrupt:
            return True
        return False

    def _access(self, server: str) -> Access:
        return self.accesses.get(server, self.access)

    def _restored(self, record: _Record, cells: Sequence[_Cell], folder: ExperimentFolder) -> dict[str, Access]:
        """The authentication of the requests of these cells, by server."""
        servers = dict.fromkeys(cell.server.id for cell in cells)
        return {
            server: restored(record.access.get(server, StoredAccess()), self._access(server), folder.experiment_id)
            for server in servers
        }

    def _measured(self, cell: _Cell, folder: ExperimentFolder, record: _Record, progress: Progress) -> LoadTest | None:
        """The load test of a cell; None if the record says why there is none."""
        failure: UsageError | EnvironmentFailure | None = None
        for order in self._orders(cell, folder, record):
            try:
                seed, place = record.seed + cell.place, _place(folder, cell)
                return self.tester.make(cell.profile, [order], seed, progress, place=place)
            except OtherNetworkError as error:
                failure = error  # the next order has requests of another network
            except (UsageError, EnvironmentFailure) as error:
                failure = error
                break
        if failure is not None:
            record.missing[cell.place] = failure.message
            unreached = isinstance(failure, EnvironmentFailure)
            record.ended[cell.place] = Verdict.GONE if unreached else Verdict.NOT_RUN
            folder.write(record)
        return None

    def _former(self, reference: str) -> str:
        """The experiment of an earlier plan.

        Raises:
            UsageError: there is none, or nothing was measured.
        """
        experiment_id = find_experiment(self.tester.store, reference).experiment_id
        if not self.tester.store.members([experiment_id]):
            raise UsageError(f"`{experiment_id}` has no run whose requests can be reused")
        return experiment_id

    def _finished(self, experiment: str) -> dict[int, SealedRun]:
        """The runs of cells that need not be measured again, by index."""
        result = finished_runs(self.tester.store, experiment)
        return {place: run for place, run in result.items() if run.manifest.is_evidence}

    def _cell(
        self, plan: MatrixPlan, record: _Record, place: int, scenario: MatrixScenario, server: MatrixServer
    ) -> _Cell:
        own = plan.own_of(scenario, server)
        settings = [*plan.settings, *scenario.settings, *server.settings, *own.settings, *record.settings]
        content = read_profile(scenario.profile or plan.profile, settings)
        if content["system"] != self.tester.system.name:
            raise UsageError(
                f"the scenario `{scenario.id}` has a profile for `{content['system']}`, the plan is for `{plan.system}`"
            )
        reported = {
            "hardware_profile": server.hardware_profile,
            "hardware": server.hardware,
            "deployment": server.deployment,
            "scenario": "" if scenario.name == STANDARD else scenario.name,
        }
        content |= {key: value for key, value in reported.items() if value}
        if required := {**scenario.require, **own.require}:
            content["require"] = required
        profile = self.tester.system.profile(content)
        if former := self._former_run(record, scenario, server):
            profile = at_levels_of(self.tester.system, profile, former)
        return _Cell(place, scenario, server, profile, own.skip)

    def _former_run(self, record: _Record, scenario: MatrixScenario, server: MatrixServer) -> SealedRun | None:
        """The run of the same cell in the earlier experiment, if there is one."""
        runs = self.tester.store.members([record.like]) if record.like else []
        side = _side(scenario, server)
        return next((run for run in runs if run.manifest.experiment and run.manifest.experiment.side == side), None)

    def _orders(self, cell: _Cell, folder: ExperimentFolder, record: _Record) -> Iterator[ServiceRequest]:
        """The requests to try in turn: within a scenario, all servers of a network receive the same ones."""
        former = self._former_run(record, cell.scenario, cell.server)
        given = Path(record.corpus) if record.corpus else recorded_corpus(former) if former else None
        if given is not None:
            yield self._order(cell, record, given, None)
            return
        for number in count(1):
            pinned = folder.path / f"requests-{cell.scenario.id}{f'.{number}' if number > 1 else ''}.json"
            if not pinned.is_file():
                yield self._order(cell, record, None, pinned)
                return
            yield self._order(cell, record, pinned, None)

    def _order(self, cell: _Cell, record: _Record, given: Path | None, pinned: Path | None) -> ServiceRequest:
        return ServiceRequest(
            target=Target(
                cell.server.id,
                cell.server.url.rstrip("/"),
                Tls(ca_file=record.ca_file, verify=record.verify),
                self._access(cell.server.id),
            ),
            version=cell.server.version or record.version,
            endpoints=tuple(record.endpoints or cell.scenario.endpoints),
            corpus=given,
            pinned=pinned,
            seed=record.seed,
        )


def _place(folder: ExperimentFolder, cell: _Cell) -> ExperimentPlace:
    side = _side(cell.scenario, cell.server)
    return ExperimentPlace(id=folder.experiment_id, side=side, repetition=1, position=cell.place)


def _side(scenario: MatrixScenario, server: MatrixServer) -> str:
    return f"{server.id}-{scenario.id}"


def _report(
    experiment: str,
    plan: MatrixPlan,
    record: _Record,
    cells: Sequence[_Cell],
    runs: Mapping[int, SealedRun],
    *,
    interrupted: bool,
) -> MatrixReport:
    entries = [_entry(cell, runs.get(cell.place), record, interrupted=interrupted) for cell in cells]
    sentences = [text for entry in entries if entry.report for text in entry.report.caveats.sentences]
    report = MatrixReport(
        tool_version=tool_version(),
        title=plan.title,
        subtitle=plan.description,
        date=max((run.manifest.ended_at for run in runs.values()), default=record.started_at),
        system=plan.system,
        plan=plan.name,
        description=plan.description,
        experiment=experiment,
        machine=machine_facts(host_facts()),
        interrupted=interrupted,
        cells=entries,
    )
    caveats = report.caveats.model_copy(update={"sentences": tuple(dict.fromkeys(sentences))})
    return report.model_copy(update={"caveats": caveats})


def _entry(cell: _Cell, run: SealedRun | None, record: _Record, *, interrupted: bool) -> CellEntry:
    named = {"scenario": cell.scenario.name, "server": cell.server.id}
    if run is not None:
        return CellEntry(
            **named, words=run.manifest.cell, run_id=run.run_id, report=_without_drawings(load_report_of(run))
        )
    if cell.skip:
        return CellEntry(**named, missing=cell.skip, ended=Verdict.NOT_RUN, gates=False)
    if not cell.server.url:
        return CellEntry(**named, missing=_NOT_GIVEN.format(cell.server.id), ended=Verdict.NOT_RUN)
    ended = record.ended.get(cell.place)
    if ended is None and interrupted:
        return CellEntry(**named, missing="the plan was interrupted before this test", ended=Verdict.PARTIAL)
    gates = not (cell.scenario.optional and ended is Verdict.NOT_RUN)
    return CellEntry(**named, missing=record.missing.get(cell.place, ""), ended=ended or Verdict.NOT_RUN, gates=gates)


def _without_drawings(report: LoadReport) -> LoadReport:
    """The part that a table needs; the run stores the rest."""
    return report.model_copy(update={"targets": [_plain(target) for target in report.targets]})


def _plain(target: TargetEntry) -> TargetEntry:
    endpoints = [
        endpoint.model_copy(
            update={
                "seconds": [],
                "joined": [],
                "steps": [step.model_copy(update={"curve": []}) for step in endpoint.steps],
                "courses": [
                    course.model_copy(
                        update={"seconds": [], "joined": [], "step": course.step.model_copy(update={"curve": []})}
                    )
                    for course in endpoint.courses
                ],
            }
        )
        for endpoint in target.endpoints
    ]
    return target.model_copy(update={"endpoints": endpoints})
