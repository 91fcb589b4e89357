"""The content of the page, collected from runs: one table per cell, measured ones and those of imported pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict

from chainmark.core.caveats import CaveatsField, caveats_of
from chainmark.core.errors import UsageError
from chainmark.core.load_report import CapacityEntry, EndpointEntry, LoadReport, ServiceLevel, StepEntry, TargetEntry
from chainmark.core.manifest import Fact, Manifest, Status
from chainmark.core.result import Result
from chainmark.lab.loading import load_report_of
from chainmark.store.sealed import SealedRun
from chainmark.systems.mesh.published import EndpointTable
from chainmark.systems.mesh.published_import import NOT_STATED, PUBLISHED

TITLE = "Performance measurements"
_NUMBERS = re.compile(r"\d+")
Kind = Literal["clients", "rate"]
_KINDS: tuple[Kind, ...] = ("clients", "rate")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PageAnswer(_Part):
    """One capacity of an endpoint; ``step`` is its step, or, if none passed, the one that failed.

    Attributes:
        others: the results of further runs of the same cell, newest first.
    """

    capacity: CapacityEntry
    step: StepEntry | None
    others: list[CapacityEntry] = []


class PageRow(_Part):
    """One endpoint measured with chainmark, by the newest run of its cell that has it."""

    label: str
    run_id: str
    sla: ServiceLevel
    answers: dict[Kind, PageAnswer]


class PageRun(_Part):
    """How one run was made.

    Attributes:
        stages: the file of all its steps, relative to the page; "" if none was written.
        settings: sections `steps` and `search` of its profile.
    """

    run_id: str
    profile: str
    tested_at: str
    tool_version: str
    generator: str
    corpus: str
    settings: dict[str, dict[str, object]]
    stages: str
    facts: list[Fact]
    warnings: list[str]


class PageTable(_Part):
    """One cell: either measured (rows and runs) or printed.

    Attributes:
        cell: scenario, hardware, deployment and pruning, as far as stated.
        machine: the machine with that hardware name.
    """

    cell: dict[str, str]
    machine: str
    rows: list[PageRow] = []
    runs: list[PageRun] = []
    printed: EndpointTable | None = None


class PageRelease(_Part):
    """A release: the day of its first figures, measured or printed, and its tables."""

    version: str
    subject: str
    day: date
    tables: list[PageTable]


class LoadPage(Result):
    """``load-page.json``, newest release first.

    Attributes:
        introduction: of the page from which tables were imported.
        left_out: runs without usable results, with the reason, one sentence each.
    """

    introduction: list[str]
    releases: list[PageRelease]
    left_out: list[str]
    caveats: CaveatsField


def page_of(runs: Sequence[SealedRun], stages: Mapping[str, str], tool_version: str) -> LoadPage:
    """Build the page.

    Args:
        runs: of load tests, and of imported pages.
        stages: by run, the file of its steps, relative to the page.
        tool_version: recorded in the result.

    Raises:
        UsageError: none of the runs has anything for the page, or one was imported before pages were stored completely.
    """
    shown = [run for run in runs if _why_not(run.manifest) is None]
    if not shown:
        reason = next((f" ({run.run_id} {_why_not(run.manifest)})" for run in runs), "")
        raise UsageError(f"there is no finished load test to publish{reason}", "`chainmark runs list` shows all runs")
    printed = [(run, _printed(run)) for run in shown if run.manifest.printed]
    measured = [run for run in shown if not run.manifest.printed]
    tables = [*_measured(measured, stages), *((run, _printed_table(run, table)) for run, table in printed)]
    releases = _releases(tables)
    pages = [table for _, table in sorted(printed, key=lambda item: item[1].date, reverse=True)]
    names = " and ".join(dict.fromkeys(run.manifest.subject.name for run in shown))
    return LoadPage(
        tool_version=tool_version,
        title=f"{TITLE}: {names}",
        subtitle=f"{', '.join(release.version for release in releases)}",
        date=max(run.manifest.ended_at for run in shown),
        introduction=list(pages[0].introduction) if pages else [],
        releases=releases,
        left_out=[f"{run.run_id}: {why}" for run in runs if (why := _why_not(run.manifest)) is not None],
        caveats=caveats_of([run.manifest for run in shown]),
    )


def _why_not(manifest: Manifest) -> str | None:
    """Why a run has nothing for the page; None if it has."""
    if manifest.status is Status.INVALID:
        return "; ".join(f"{gate.label}: {gate.measured}" for gate in manifest.deciding_gates) or "the run is invalid"
    return None


def _printed(run: SealedRun) -> EndpointTable:
    retained = run.document(PUBLISHED)
    if retained is None:
        raise UsageError(
            f"run `{run.run_id}` was imported by an earlier version, which stored no rows",
            f"`chainmark runs remove {run.run_id}`, then import the page again: `chainmark ingest mesh PAGE`",
        )
    return EndpointTable.model_validate(retained)


def _printed_table(run: SealedRun, table: EndpointTable) -> PageTable:
    return PageTable(cell=_cell(run.manifest), machine=table.scenario.machine or NOT_STATED, printed=table)


def _cell(manifest: Manifest) -> dict[str, str]:
    """The run's cell; for a run older than labels, by its conditions."""
    known: dict[str, str] = {
        key: manifest.conditions[key] for key in ("scenario", "hardware") if key in manifest.conditions
    }
    return manifest.cell or known


def _machine(manifest: Manifest) -> str:
    return (manifest.labels.get("hardware") or [manifest.conditions.get("hardware", NOT_STATED)])[-1]


def _measured(runs: Iterable[SealedRun], stages: Mapping[str, str]) -> Iterator[tuple[SealedRun, PageTable]]:
    """A table for the runs of one release, cell and SLA, with the properties of the newest run."""
    cells: dict[str, list[SealedRun]] = {}
    for run in sorted(runs, key=lambda item: (item.manifest.started_at, item.run_id), reverse=True):
        manifest = run.manifest
        workload = {key: value for key, value in manifest.workload.items() if key != "corpus"}
        key = json.dumps([manifest.subject.version, _cell(manifest), _machine(manifest), workload], sort_keys=True)
        cells.setdefault(key, []).append(run)
    for group in reversed(cells.values()):
        results = [(run, target) for run in group if (target := _target(run)) is not None]
        if results:
            yield (
                group[0],
                PageTable(
                    cell=_cell(group[0].manifest),
                    machine=_machine(group[0].manifest),
                    rows=_rows(results),
                    runs=[_run(run, stages.get(run.run_id, "")) for run, _ in results],
                ),
            )


def _target(run: SealedRun) -> TargetEntry | None:
    """The load test's facts about the run's server."""
    report: LoadReport = load_report_of(run)
    return next((target for target in report.targets if target.run_id == run.run_id), None)


def _rows(target_entries: Sequence[tuple[SealedRun, TargetEntry]]) -> list[PageRow]:
    """Every endpoint once, in the order of the newest run; results of further runs are attached to it."""
    endpoints: dict[str, list[tuple[str, EndpointEntry]]] = {}
    for run, target in target_entries:
        for endpoint in target.endpoints:
            if endpoint.capacities:
                endpoints.setdefault(endpoint.label, []).append((run.run_id, endpoint))
    return [
        PageRow(
            label=label,
            run_id=entries[0][0],
            sla=entries[0][1].sla,
            answers={
                kind: page_answer for kind in _KINDS if (page_answer := _answer([entry for _, entry in entries], kind))
            },
        )
        for label, entries in endpoints.items()
    ]


def _answer(entries: Sequence[EndpointEntry], kind: Kind) -> PageAnswer | None:
    results = [(entry, capacity) for entry in entries for capacity in entry.capacities if capacity.kind == kind]
    if not results:
        return None
    entry, newest = results[0]
    number = newest.fail_step if newest.best_step is None else newest.best_step
    step = next((item for item in entry.steps if item.kind == kind and item.number == number), None)
    drawn = step and step.model_copy(update={"curve": []})
    return PageAnswer(capacity=newest, step=drawn, others=[capacity for _, capacity in results[1:]])


def _run(run: SealedRun, stages: str) -> PageRun:
    manifest = run.manifest
    sections = {name: manifest.profile.get(name) for name in ("steps", "search")}
    return PageRun(
        run_id=run.run_id,
        profile=manifest.profile_name,
        tested_at=manifest.started_at,
        tool_version=manifest.tool_version,
        generator=manifest.host.hardware_class,
        corpus=str(manifest.workload.get("corpus") or ""),
        settings={name: section for name, section in sections.items() if isinstance(section, dict)},
        stages=stages,
        facts=manifest.facts,
        warnings=manifest.warnings,
    )


def _releases(tables: Iterable[tuple[SealedRun, PageTable]]) -> list[PageRelease]:
    """By version, newest first; in each, measured tables in order, and then printed ones."""
    page_tables: dict[str, list[tuple[Manifest, PageTable]]] = {}
    for run, table in tables:
        page_tables.setdefault(run.manifest.subject.version, []).append((run.manifest, table))
    releases = [
        PageRelease(
            version=version,
            subject=entries[0][0].subject.name,
            day=min(_day(manifest, table) for manifest, table in entries),
            tables=[table for _, table in sorted(entries, key=_order)],
        )
        for version, entries in page_tables.items()
    ]
    return sorted(
        releases,
        key=lambda page_release: (_numbers(page_release.version), page_release.day, page_release.version),
        reverse=True,
    )


def _order(of: tuple[Manifest, PageTable]) -> tuple[int, int, str]:
    manifest, table = of
    return (0, 0, manifest.started_at) if table.printed is None else (1, table.printed.place, "")


def _day(manifest: Manifest, table: PageTable) -> date:
    return table.printed.date if table.printed else date.fromisoformat(manifest.started_at[:10])


def _numbers(version: str) -> list[int]:
    return [int(number) for number in _NUMBERS.findall(version.partition("-")[0])]
