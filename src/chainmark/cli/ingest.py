"""`chainmark ingest`: existing logs of a cluster, or its published report, as sealed runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import On, Output, passes_options, shows_result
from chainmark.cli.following import FollowedRows, progress
from chainmark.core.errors import UsageError


@command(60)
@shows_result
@passes_options("ingest")
def ingest(
    system: Annotated[str, typer.Argument(help="The system whose logs these are.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL",
            help="A folder of logs or reports, one file, a folder in an object store, or a Prometheus server.",
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="V", help="Version label for this run.", show_default="as stated in the logs and documents"
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="NAME|EXPR",
            help="Filter for the analysis: a named set or a condition. May be repeated.",
            show_default="as stated in the documents",
        ),
    ] = None,
    no_filters: Annotated[bool, typer.Option("--no-filters", help="Analyse everything, without a filter.")] = False,
    published_rules: Annotated[
        bool,
        typer.Option(
            "--published-rules",
            help="Apply the rules of the published reports, including their quirks. Every run stores the figures "
            "by these rules, with or without this option.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a value that is missing from the documents.",
        ),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="HOST", help="Host to exclude. May be repeated.")] = None,
    threads: Annotated[
        int, typer.Option(min=0, help="Number of threads; 0 means all cores. The run does not depend on it.")
    ] = 0,
    keep_events: Annotated[bool, typer.Option("--keep-events", help="Store every decoded event as Parquet.")] = False,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Prometheus only: start time, e.g. `2026-01-01T10:00:00Z`."),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Prometheus only: end time.")] = None,
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Prometheus only: duration, e.g. `90s`, instead of `--from` or `--to`."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Follow a log that is still being written; Ctrl-C seals the run.")
    ] = False,
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="With `--follow`: how long to follow the log, e.g. `12h`."),
    ] = None,
    on: On = None,
    *,
    options: dict[str, Any],
    output: Output,
) -> None:
    """Import cluster logs, metrics of a Prometheus server, or published reports as sealed runs.

    Each column of a published report (a file or a folder of them) becomes one run, even if several reports show it.

    Every log line is read once and counted in exactly one class. Missing data (a host that ended early, a gap, a
    message that a host never emits) is reported, and the rest is measured. The same logs always give the same run, byte
    for byte.

    The report of a run is that of `chainmark runs show`; several runs have one report each. Exit code 0: every run is
    valid; 1: the subject failed a run; 4: a run is invalid.
    """
    if filters and no_filters:
        raise UsageError("`--filter` and `--no-filters` contradict each other", "give only one of them")
    if follow:
        others = [filters, exclude, begin, end, duration, no_filters, published_rules]
        if any(others):
            raise UsageError(
                "`--follow` does not accept other import options", "import the log afterwards with those options"
            )
        shown = FollowedRows(output.as_json)
        followed = cm.follow(
            system,
            source,
            lasts=lasts,
            show=shown.show,
            version=version,
            settings=settings,
            keep_events=keep_events,
            **options,
        )
        _finish(followed, output)
    if lasts is not None:
        raise UsageError("`--for` requires `--follow`", "add `--follow`")
    if threads:
        # Polars reads them when it is loaded, which no import above does: its workers, and those that read files.
        os.environ["POLARS_MAX_THREADS"] = os.environ["POLARS_ASYNC_THREAD_COUNT"] = str(threads)
    with progress() as listener:
        imports = cm.ingest(
            system,
            source,
            version=version,
            settings=settings,
            filters=[] if no_filters else filters or None,
            exclude=exclude or [],
            threads=threads,
            keep_events=keep_events,
            published_rules=published_rules,
            begin=begin,
            end=end,
            duration=duration,
            on=on,
            progress=listener,
            **options,
        )
    _finish(imports, output)


def _finish(made: Sequence[cm.Run], output: Output) -> NoReturn:
    entries = [{"is_new": run.is_new, **run.manifest.model_dump(mode="json")} for run in made]
    remedy = "Add the data that a failed gate requires, or analyse another part of the run."
    output.finish_runs(made, entries[0] if len(entries) == 1 else entries, remedy)
