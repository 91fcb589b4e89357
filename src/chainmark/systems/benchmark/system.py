"""The system `benchmark`: a command is executed repeatedly, and each execution is measured."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.build import DOCUMENT as BUILD_DOCUMENT
from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Gate, GateKind, GateStatus, Scalar, Subject
from chainmark.core.progress import Progress
from chainmark.lab.profiles import check_profile
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.store.files import write_bytes
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.benchmark.builds import BuildRecord, Builds
from chainmark.systems.benchmark.executions import Executed, Invocation, execute_all
from chainmark.systems.benchmark.profile import BenchmarkProfile, Command

PYTHON, FOLDER = "{python}", "{folder}"


class Benchmark:
    """The system `benchmark`, found by its entry point."""

    name = "benchmark"
    title = "Command"

    @cache  # noqa: B019 - there is one object of this class, and it exists as long as the program
    def catalogue(self) -> Catalogue:
        """The metrics of ``catalogue.toml``."""
        return load_catalogue(Path(__file__).with_name("catalogue.toml"))

    def profile(self, content: Mapping[str, object]) -> BenchmarkProfile:
        """Check a profile's content."""
        return check_profile(BenchmarkProfile, content)

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The command and its number of executions."""
        return cast(BenchmarkProfile, profile).shared()

    def install(self, version: str) -> Subject:
        """Copy a program's file into the cache; a checkout needs a profile."""
        return Builds.cached().make(version, None).subject(self.name, "")

    def install_for(self, version: str, profile: BaseModel) -> Subject:
        """Copy a program's file, or build a checkout as the profile defines."""
        benchmark = cast(BenchmarkProfile, profile)
        builds = Builds.cached()
        record = builds.make(version, benchmark.command)
        _program(builds, record, benchmark.command)  # an unusable command is an error before the first run
        return record.subject(self.name, _title(benchmark))

    def installed(self) -> list[tuple[Subject, Path]]:
        """The cached versions."""
        builds = Builds.cached()
        return [(record.subject(self.name, ""), builds.folder(record) / record.file) for record in builds.all()]

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Execute the command as often as the profile states."""
        benchmark = cast(BenchmarkProfile, profile)
        builds, command = Builds.cached(), benchmark.command
        record = builds.find(order.version, command)
        run.write_document(BUILD_DOCUMENT, record.build)
        if (changes := builds.changes(record, command)) is not None:
            write_bytes(run.raw / "build" / changes.name, changes.read_bytes())
        order.quiet()
        executed = execute_all(_invocation(builds, record, command), benchmark.workload, run.raw, progress)
        return _result(record.subject(self.name, _title(benchmark)), executed, benchmark)


def _title(profile: BenchmarkProfile) -> str:
    return profile.title or Path(profile.command.program).name.strip("{}")


def _invocation(builds: Builds, record: BuildRecord, command: Command) -> Invocation:
    folder = builds.folder(record)

    def filled(text: str) -> str:
        return text.replace(FOLDER, str(folder)).replace(PYTHON, sys.executable)

    return Invocation(
        words=[_program(builds, record, command), *map(filled, command.arguments)],
        environment={**os.environ, **{name: filled(value) for name, value in command.environment.items()}},
        folder=Path(filled(command.folder)) if command.folder else None,
        exit_codes=frozenset(command.exit_codes),
    )


def _program(builds: Builds, record: BuildRecord, command: Command) -> str:
    """The path of the executed program.

    Raises:
        UsageError: it does not exist, or cannot be executed.
    """
    if record.file:
        if command.program == PYTHON:
            raise UsageError(
                f"`{record.version}` is a file, but this profile executes the sources of a checkout with Python",
                "give a checkout: `git:PATH` or `git:PATH@REF`",
            )
        return str(builds.folder(record) / record.file)
    if command.program == PYTHON:
        return sys.executable
    path = builds.folder(record) / command.program
    if shutil.which(path) is None:
        what = "is not executable" if path.is_file() else "does not exist after the build"
        raise UsageError(
            f"`{command.program}` of {record.version} {what}",
            "set `command.build` to the commands that build it, and `command.program` to the path of the result",
        )
    return str(path)


def _result(subject: Subject, executed: Executed, profile: BenchmarkProfile) -> Execution:
    executions = executed.executions
    missing = profile.workload.executions - len(executions)
    return Execution(
        subject=subject,
        samples={"execution": executed.samples()} if executions else {},
        configuration=Configuration(),
        conditions={},
        counts={"executions": {"measured": len(executions), "failed or not made": missing}},
        gates=_gates(executed, profile),
        warnings=[] if executed.has_memory or not executions else [_NO_MEMORY],
    )


_NO_MEMORY = (
    "peak memory has no data: the command never used more memory than the launcher itself, whose memory the "
    "kernel includes"
)


def _gates(executed: Executed, profile: BenchmarkProfile) -> list[Gate]:
    left = sum(execution.left for execution in executed.executions)
    most = profile.gates.other_work_max
    return [
        Gate(
            id="ended_well",
            label="every execution succeeded",
            status=GateStatus.FAIL if executed.failure else GateStatus.PASS,
            measured=executed.failure or "all",
            limit="all",
            detail="see its output in raw/stdout.txt and raw/stderr.txt" if executed.failure else "",
            kind=GateKind.SUBJECT,
            conclusive=True,
        ),
        Gate(
            id="nothing_left",
            label="the command leaves no processes running",
            status=GateStatus.WARN if left else GateStatus.PASS,
            measured=f"{units.plural(left, 'process', 'processes')} left running" if left else "none left running",
            limit="none left running",
            detail="the remaining processes were stopped, and their work is counted" if left else "",
            kind=GateKind.SUBJECT,
        ),
        Gate(
            id="other_work",
            label="other programs did not use the command's processors",
            status=GateStatus.FAIL if executed.other_share > most else GateStatus.PASS,
            measured=f"{units.share_beside(most, executed.other_share)} used by others",
            limit=f"≤ {units.plain_percent(most)}",
        ),
    ]


SYSTEM = Benchmark()
