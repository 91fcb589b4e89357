"""`chainmark ingest`: the logs of a cluster that somebody ran, as a sealed run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from chainmark.cli.common import AsJson, open_store
from chainmark.cli.console import err, out, print_json, progress
from chainmark.core.errors import ExitCode, UsageError
from chainmark.core.manifest import GateStatus, Manifest, Status
from chainmark.core.times import nanoseconds_of_duration, nanoseconds_of_time
from chainmark.lab.importing import ImportedRun, Importer
from chainmark.lab.protocols import ImportOrder, importable
from chainmark.systems.base import load_system

NOTES_SHOWN = 12
CLASSES_SHOWN = 10
LINES = "lines"
_RANGE_HINT = "for example `--from 2026-01-01T10:00:00Z --duration 90s`"


def ingest(
    system: Annotated[str, typer.Argument(help="The system whose logs these are, e.g. `cardano`.")],
    source: Annotated[
        str, typer.Argument(metavar="DIR|URL", help="The folder of the logs, one file, or a Prometheus server.")
    ],
    version: Annotated[
        str | None,
        typer.Option("--as", metavar="V", help="What was measured.", show_default="as the logs and documents say"),
    ] = None,
    genesis: Annotated[Path | None, typer.Option(metavar="FILE", help="The network's genesis file.")] = None,
    meta: Annotated[Path | None, typer.Option(metavar="FILE", help="The benchmark run's description.")] = None,
    topology: Annotated[Path | None, typer.Option(metavar="FILE", help="Who is connected, and where.")] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="NAME|EXPR",
            help="What is analysed: a set (`value`) or a condition (`EpochGEq=2`); may be repeated.",
            show_default="as the description says",
        ),
    ] = None,
    no_filters: Annotated[bool, typer.Option("--no-filters", help="Analyse everything.")] = False,
    published_rules: Annotated[
        bool, typer.Option("--published-rules", help="Analyse as the published reports do, quirks included.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="State what no document says, e.g. `genesis.system_start=2026-02-05T18:52:16Z`.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host to leave out; may be repeated.")
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="0 means all cores. The run does not depend on it.")] = 0,
    keep_events: Annotated[bool, typer.Option("--keep-events", help="Keep every decoded event as Parquet.")] = False,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Of a server: from when, e.g. `2026-01-01T10:00:00Z`.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Of a server: until when.")] = None,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Of a server: how long, e.g. `90s`, instead of one of the two.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the logs of a cluster, or what a Prometheus server keeps of it, into a sealed run.

    Example: `chainmark ingest cardano cluster-logs --as 10.6.2 --filter value`

    Example: `chainmark ingest cometbft http://localhost:9090 --from 2026-01-01T10:00:00Z --duration 90s --as v1.0.1`

    Every line is read once and counted in one class. What is missing (a host that ended early, a gap, a message that a
    host never emits) is named, and the rest is measured. The same logs give the same run, to the byte.
    """
    if filters and no_filters:
        raise UsageError("`--filter` and `--no-filters` contradict each other", "give one of them")
    begin_ns, end_ns = time_range(begin, end, duration)
    if begin_ns is not None and not is_url(source):
        raise UsageError(
            f"`{source}` is no server, so `--from`, `--to` and `--duration` say nothing of it", _RANGE_HINT
        )
    order = ImportOrder(
        source=source if is_url(source) else Path(source),
        version=version,
        settings=tuple(settings or ()),
        filters=() if no_filters else tuple(filters) if filters else None,
        exclude=tuple(exclude or ()),
        genesis=genesis,
        meta=meta,
        topology=topology,
        threads=threads,
        keep_events=keep_events,
        published_rules=published_rules,
        begin_ns=begin_ns,
        end_ns=end_ns,
    )
    importer = Importer(open_store(), importable(load_system(system)))
    with progress() as listener:
        made = importer.make_all(order, listener)
    if as_json:
        entries = [{"is_new": one.is_new, **one.run.manifest.model_dump(mode="json")} for one in made]
        print_json(entries[0] if len(entries) == 1 else entries)
    elif len(made) == 1:
        print_summary(made[0])
    else:
        print_list(made)
    invalid = [one for one in made if one.run.manifest.status is Status.INVALID]
    for one in invalid:
        for gate in one.run.manifest.failed_gates:
            told = f": {gate.detail}" if gate.detail else ""
            err.print(
                f"the run is invalid: {gate.label}: {gate.measured}, but {gate.limit} is required{told}", markup=False
            )
    if invalid:
        err.print("hint: an invalid run is never compared; other filters may leave something to analyse")
        raise typer.Exit(ExitCode.INVALID)


def is_url(source: str) -> bool:
    """Whether a source is a server's address rather than a path."""
    return source.startswith(("http://", "https://"))


def time_range(begin: str | None, end: str | None, duration: str | None) -> tuple[int | None, int | None]:
    """The two ends of a range in ns since 1970-01-01 UTC, from two of its three measures; two None if none is given.

    Raises:
        UsageError: one or all three are given, one is no time, or the range is empty.
    """
    given = [begin, end, duration]
    if not any(given):
        return None, None
    if given.count(None) != 1:
        raise UsageError("a range of time needs two of `--from`, `--to` and `--duration`", _RANGE_HINT)
    length_ns = nanoseconds_of_duration(duration) if duration else 0
    first_ns = nanoseconds_of_time(begin) if begin else nanoseconds_of_time(end or "") - length_ns
    last_ns = nanoseconds_of_time(end) if end else first_ns + length_ns
    if last_ns <= first_ns:
        raise UsageError("the range of time is empty: `--to` is not after `--from`", _RANGE_HINT)
    return first_ns, last_ns


def print_list(made: Sequence[ImportedRun]) -> None:
    """What was imported where the source held several runs, for people."""
    table = Table("run", "version", "what", box=None, padding=(0, 2, 0, 0))
    for one in made:
        facts = [fact.value for fact in one.run.manifest.facts]
        table.add_row(one.run.run_id, one.run.manifest.subject.version, "; ".join(facts))
    out.print(table)
    fresh = sum(one.is_new for one in made)
    out.print(f"\n{len(made)} runs, {fresh} of them new", markup=False)


def print_summary(made: ImportedRun) -> None:
    """What was imported, for people."""
    manifest = made.run.manifest
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row("run", made.run.run_id + ("" if made.is_new else "  (imported before: nothing changed)"))
    table.add_row("version", f"{manifest.subject.name} {manifest.subject.version}")
    table.add_row("time", f"{manifest.started_at} to {manifest.ended_at}")
    table.add_row("sources", f"{len(manifest.sources)}, {_size(manifest)}")
    for account, classes in manifest.counts.items():
        if len(classes) <= CLASSES_SHOWN and not account.startswith(f"{LINES} of "):
            told = ", ".join(f"{label} {count:,}" for label, count in classes.items() if count)
            table.add_row(account, f"{sum(classes.values()):,}: {told}")
    out.print(table)
    _print_gates(manifest)
    _print_notes(manifest)
    if manifest.status is Status.VALID:
        out.print(f"\nnext  chainmark runs show {made.run.run_id}", markup=False)
        out.print(f"      chainmark compare BASELINE {made.run.run_id} --html report.html", markup=False)


def _size(manifest: Manifest) -> str:
    size = sum(source.size_bytes for source in manifest.sources)
    return f"{size / 1e9:.2f} GB" if size >= 10**8 else f"{size / 1e6:.2f} MB"


def _print_gates(manifest: Manifest) -> None:
    table = Table("gate", "status", "measured", Column("detail", overflow="fold"), box=None)
    for gate in manifest.gates:
        style = {GateStatus.PASS: "green", GateStatus.WARN: "yellow", GateStatus.FAIL: "red"}[gate.status]
        table.add_row(gate.label, f"[{style}]{gate.status.value}[/]", gate.measured, gate.detail)
    out.print()
    out.print(table)


def _print_notes(manifest: Manifest) -> None:
    notes = [*manifest.warnings, *(incident.what for incident in manifest.incidents)]
    if notes:
        out.print()
    for note in notes[:NOTES_SHOWN]:
        out.print(f"note  {note}", markup=False)
    if len(notes) > NOTES_SHOWN:
        out.print(f"note  {len(notes) - NOTES_SHOWN} more in `chainmark runs show`", markup=False)
