"""Plans of load tests: scenarios × servers, each cell a run, one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from chainmark.api.clusters import generators_at
from chainmark.api.context import Cancellation, Settings, as_settings, measuring, refuse_with_resume, store_at
from chainmark.api.loading import targets_of
from chainmark.api.noting import noted
from chainmark.api.qualifying import Experiment
from chainmark.capacity.access import NOBODY, Access, hidden_in_errors
from chainmark.capacity.model import Tls
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.lab.loading import Tester
from chainmark.lab.matrix import MatrixRequest, MatrixTester, read_plan, with_targets
from chainmark.report.layouts import document_of
from chainmark.store.experiments import find_experiment
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import load_testable

__all__ = ["load_plan"]


def load_plan(
    plan: str | Path | None = None,
    targets: str | Sequence[str] | Mapping[str, str] = (),
    *,
    resume: str | None = None,
    version: str | None = None,
    endpoints: Sequence[str] = (),
    corpus: Path | None = None,
    like: str | None = None,
    ca_file: Path | None = None,
    insecure: bool = False,
    access: Access = NOBODY,
    on: str | None = None,
    settings: Settings | None = None,
    seed: int = 1,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Experiment:
    """Run the load tests of a plan: every scenario on every server, each cell a run.

    Args:
        plan: a shipped plan's name, or the path of a TOML file; not needed to resume.
        targets: the servers, ``NAME=URL`` or URLs by their names, which must be those of the plan if it defines some. A
            resumed plan uses them only for the passwords in their URLs.
        resume: an interrupted plan to continue, or to show again: finished cells are kept.
        version: of all servers that do not report theirs.
        endpoints: only these of every cell, by id or path.
        corpus: a file of fixed requests for all cells; None: within a scenario, all servers receive the same requests.
        like: the experiment of an earlier plan: cells in both use its requests and levels, so that `compare`
            can compare the releases cell by cell.
        ca_file, insecure: whose certificate is trusted.
        access: credentials of the requests, as in `load`. The plan stores it without secrets: ``${TOKEN}`` and
            ``@FILE``, certificates and a proxy are stored; the rest must be given again when resuming.
        on: as in `load`; must be given again when resuming.
        settings: changes of every cell's profile.
        seed, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: the plan or a profile of it cannot be used, or a target is not one of its servers.

    Example:
        >>> made = cm.load_plan(plan, {"server": url})
        >>> made.document.kind, [(suite.name, len(suite.cases)) for suite in made.document.suites]
        ('load-plan', [('quick on server', 1), ('slow on server', 1)])
    """
    run_store, order = store_at(store), None
    with measuring(progress, cancel, expose, no_wait) as listener:
        if resume is not None:
            given = {"--plan": plan, "--set": settings, "--endpoint": endpoints, "--corpus": corpus, "--like": like}
            refuse_with_resume(resume, {**given, "--as": version})
            system = str(find_experiment(run_store, resume).read().get("system", ""))
            servers = targets_of(targets, Tls(), access)
        elif plan is None:
            raise UsageError("no plan was given", "give a shipped plan or a TOML file with `--plan`")
        else:
            read, tls = read_plan(str(plan)), Tls(ca_file=str(ca_file) if ca_file else None, verify=not insecure)
            system, servers = read.system, targets_of(targets, tls, access)
            order = MatrixRequest(
                with_targets(read, {target.name: target.url for target in servers}),
                tuple(as_settings(settings)),
                tuple(endpoints),
                corpus,
                like or "",
                tls,
                version,
                seed,
            )
        accesses = {target.name: target.access for target in servers}
        with hidden_in_errors([access, *accesses.values()]), generators_at(on, listener) as generators:
            tester = Tester(run_store, load_testable(load_system(system)), generators=generators)
            matrix = MatrixTester(tester, access, accesses)
            if order is None:
                made = matrix.resume(resume or "", listener, {target.name: target.url for target in servers})
            else:
                made = matrix.make(order, listener)
        document = noted(document_of(made.report), made.runs, run_store)
        return Experiment(made.experiment, document, made.report.interrupted)
