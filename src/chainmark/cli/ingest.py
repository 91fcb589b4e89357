"""`chainmark ingest`: existing logs of a cluster, or its published report, as sealed runs."""

from __future__ import annotations

import os
from typing import Annotated, TypedDict

from typer import Argument, Option

import chainmark as cm
from chainmark.cli.following import FollowedRows, progress
from chainmark.cli.groups import command
from chainmark.cli.offered import IngestOffered
from chainmark.cli.options import On
from chainmark.cli.output import Output
from chainmark.core.errors import UsageError


class IngestOptions(TypedDict, total=False):
    """Of every import."""

    version: Annotated[str, Option("--as", metavar="V", show_default="as stated in the logs and documents")]
    settings: Annotated[list[str], Option("--set", metavar="KEY=VALUE")]
    keep_events: bool


class Ended(TypedDict, total=False):
    """Of an import of data to which nothing is added any more."""

    filters: Annotated[list[str], Option("--filter", metavar="NAME|EXPR", show_default="as stated in the documents")]
    published_rules: bool
    exclude: Annotated[list[str], Option(metavar="HOST")]
    begin: Annotated[str, Option("--from", metavar="TIME")]
    end: Annotated[str, Option("--to", metavar="TIME")]
    duration: Annotated[str, Option(metavar="TIME")]


@command
def ingest(
    system: str,
    source: Annotated[str, Argument(metavar="DIR|URL")],
    *,
    options: IngestOptions,
    ended: Ended,
    offered: IngestOffered,
    no_filters: bool = False,
    follow: bool = False,
    lasts: Annotated[str | None, Option("--for", metavar="TIME")] = None,
    threads: Annotated[int, Option(min=0)] = 0,
    on: On = None,
    output: Output,
) -> None:
    """Import cluster logs, metrics of a Prometheus server, or published reports as sealed runs.

    Each column of a published report (a file or a folder of them) becomes one run, even if several reports show it.

    Every log line is read once and counted in exactly one class. Missing data (a host that ended early, a gap, a
    message that a host never emits) is reported, and the rest is measured. The same logs always give the same run, byte
    for byte.

    The report of a run is that of `chainmark runs show`; several runs have one report each. Exit code 0: every run is
    valid; 1: the subject failed a run; 4: a run is invalid.

    Args:
        system: The system whose logs these are.
        source: A folder of logs or reports, one file, a folder in an object store, or a Prometheus server.
        version: Version label for this run.
        settings: Set a value that is missing from the documents.
        keep_events: Store every decoded event as Parquet.
        filters: Filter for the analysis: a named set or a condition. May be repeated.
        no_filters: Analyse everything, without a filter.
        published_rules: Apply the rules of the published reports, including their quirks. Every run stores the figures
            by these rules, with or without this option.
        exclude: Host to exclude. May be repeated.
        begin: Prometheus only: start time, e.g. `2026-01-01T10:00:00Z`.
        end: Prometheus only: end time.
        duration: Prometheus only: duration, e.g. `90s`, instead of `--from` or `--to`.
        follow: Follow a log that is still being written; Ctrl-C seals the run.
        lasts: With `--follow`: how long to follow the log, e.g. `12h`.
        threads: Number of threads; 0 means all cores. The run does not depend on it.
    """
    if no_filters and "filters" in ended:
        raise UsageError("`--filter` and `--no-filters` contradict each other", "give only one of them")
    if no_filters:
        ended["filters"] = []
    if follow and ended:
        hint = "import the log afterwards with those options"
        raise UsageError("`--follow` does not accept other import options", hint)
    if lasts is not None and not follow:
        raise UsageError("`--for` requires `--follow`", "add `--follow`")
    if follow:
        rows = FollowedRows(output.as_json)
        runs = cm.follow(system, source, lasts=lasts, show=rows.show, **options, **offered.values)
    else:
        if threads:
            # Polars reads them when it is loaded, which no import above does: its workers, and those that read files.
            os.environ["POLARS_MAX_THREADS"] = os.environ["POLARS_ASYNC_THREAD_COUNT"] = str(threads)
        with progress() as listener:
            runs = cm.ingest(
                system, source, **options, **ended, **offered.values, threads=threads, on=on, progress=listener
            )
    entries = [{"is_new": run.is_new, **run.manifest.model_dump(mode="json")} for run in runs]
    remedy = "Add the data that a failed gate requires, or analyse another part of the run."
    output.finish_runs(runs, entries[0] if len(entries) == 1 else entries, remedy)
