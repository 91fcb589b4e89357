"""`chainmark load`: how much load an API sustains, and whether that is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import (
    Connection,
    Expose,
    NoWait,
    On,
    Output,
    Seed,
    Settings,
    connects,
    shows_result,
    watches_server,
)
from chainmark.cli.console import say
from chainmark.cli.following import progress
from chainmark.core.errors import UsageError


@command(70)
@shows_result
@connects
@watches_server
def load(
    profile: Annotated[
        str | None,
        typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file. Omit with `--plan`."),
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="[NAME=]URL",
            help="Server to test. May be repeated to test several servers side by side.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A shipped plan or a TOML file: every scenario on every server, one run for each combination.",
        ),
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="EXPERIMENT", help="Continue an interrupted plan.")] = None,
    version: Annotated[
        str | None,
        typer.Option("--as", metavar="V", help="Version label for this run.", show_default="as reported by the server"),
    ] = None,
    endpoints: Annotated[
        list[str] | None,
        typer.Option("--endpoint", metavar="ID|PATH", help="Test only this endpoint. May be repeated."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Corpus written by `chainmark corpus`, or CSV files of other load tests."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Reuse the corpus and load levels of RUN, a run or the experiment of a plan.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Test like RUN (`--like`) and compare the result with it."),
    ] = None,
    require: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Required capacities, as written by `--write-require`.")
    ] = None,
    write_require: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the capacities that later tests must reach. Written only if this test passes."
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Number of times to repeat the whole test.")] = 1,
    http2: Annotated[
        bool, typer.Option("--http2", help="Use HTTP/2: negotiated with TLS, otherwise by prior knowledge.")
    ] = False,
    generators: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            metavar="N",
            help="Number of processes that generate the load together.",
            show_default="1, or one on every machine of the cluster",
        ),
    ] = None,
    on: On = None,
    settings: Settings = None,
    seed: Seed = 1,
    no_wait: NoWait = False,
    expose: Expose = None,
    *,
    connection: Connection,
    sources: cm.ServerSources,
    output: Output,
) -> None:
    """Find the highest load that each endpoint of an API sustains within its SLA.

    For every endpoint, it searches for the highest number of clients and the highest request rate that meet the SLA
    (`--set sla.p99_s=0.5`), and then measures at fixed levels. It monitors the resource use of the server if that runs
    on this machine, or through `--scrape` and `--postgres`; the report names the resource that was exhausted first. A
    target may be `unix:/path/of/a/socket`.

    Exit codes: 0 the SLA is met; 1 the SLA is missed, or the server is worse than the one it is compared with; 3
    undecided or interrupted; 4 this machine was too busy for the load generator; 5 a server went away. The exit code of
    a plan is that of its worst run. Continue an interrupted plan with `--resume`.
    """
    settings = _as_settings(settings, http2=http2, generators=generators)
    if plan or resume:
        of_profile = {
            "PROFILE": profile,
            "--against": against,
            "--repeat": repeat > 1,
            "--require": require,
            "--write-require": write_require,
            "--scrape`, `--postgres` or `--server-…": sources.is_given,
        }
        wrong = next((name for name, value in of_profile.items() if value), None)
        if wrong:
            raise UsageError(f"`{wrong}` applies to a single load test, not to a plan", "omit it")
        with progress(expose, no_wait=no_wait) as listener:
            planned = cm.load_plan(
                plan,
                targets or [],
                resume=resume,
                version=version,
                endpoints=endpoints or [],
                corpus=corpus,
                like=like,
                **connection.arguments(),
                on=on,
                settings=settings,
                seed=seed,
                progress=listener,
            )
        output.finish_experiment(planned)
    if not profile or not targets:
        missing = "PROFILE" if not profile else "--target"
        raise UsageError(f"`{missing}` is missing", "as in `chainmark load PROFILE --target http://127.0.0.1:8082`")
    with progress(expose, no_wait=no_wait) as listener:
        result = cm.load(
            profile,
            targets,
            version=version,
            endpoints=endpoints or [],
            corpus=corpus,
            like=like,
            against=against,
            require=require,
            repeat=repeat,
            **connection.arguments(),
            sources=sources,
            on=on,
            settings=settings,
            seed=seed,
            progress=listener,
        )
    output.present_all([*result.documents, *result.comparisons])
    for run in result.runs:
        say(f"run     {run.id}")
        for warning in run.manifest.warnings:
            say(f"warning {warning}")
    if write_require is not None:
        _write_requirements(result, write_require)
    if result.gone:
        say(f"error: {result.gone}")
        say("hint: the run is stored as a partial run and is never compared; check the server's log")
    elif result.is_interrupted:
        say("interrupted: the measurements are stored as a partial run, which is never compared")
    raise typer.Exit(result.verdict.exit_code)


def _as_settings(settings: list[str] | None, *, http2: bool, generators: int | None) -> list[str] | None:
    """The settings of a profile, including those with options of their own."""
    option_settings = ['steps.http_version="2"'] if http2 else []
    option_settings += [f"steps.generators={generators}"] if generators is not None else []
    return [*option_settings, *(settings or [])] or None


def _write_requirements(made: cm.LoadResult, path: Path) -> None:
    """A test that did not pass writes none, and reports it: its exit code is that of the result."""
    try:
        made.write_requirements(path)
        say(f"require {path}")
    except UsageError as error:
        say(f"warning {path} was not written: {error.message}")
