"""`chainmark load`: how much an API takes, and whether that is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import (
    Connection,
    Expose,
    NoWait,
    Output,
    Seed,
    Settings,
    connects,
    shows_result,
    watches_server,
)
from chainmark.cli.console import say
from chainmark.cli.following import progress
from chainmark.core.errors import ExitCode, UsageError


@shows_result
@connects
@watches_server
def load(
    profile: Annotated[
        str | None,
        typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file; none with `--plan`."),
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="[NAME=]URL", help="A server; more of them are tested side by side."),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Scenarios × servers, each cell a run: a shipped plan, or a TOML file."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="EXPERIMENT", help="Go on with a plan that was interrupted.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--as", metavar="V", help="What is measured.", show_default="as the server says"),
    ] = None,
    endpoints: Annotated[
        list[str] | None,
        typer.Option("--endpoint", metavar="ID|PATH", help="Only this endpoint; may be repeated."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Requests pinned before (`chainmark corpus`), or CSV files of other tests."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Ask what a former run, or a plan's experiment, asked, at its levels, to be compared with it.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="`--like` that run, and compare with it at the end."),
    ] = None,
    require: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Capacities that must be reached, as `--write-require` writes.")
    ] = None,
    write_require: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what later tests must reach; only where this one passes."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="How many times the whole test is made.")] = 1,
    http2: Annotated[
        bool, typer.Option("--http2", help="Speak HTTP/2: as agreed with TLS, otherwise known beforehand.")
    ] = False,
    settings: Settings = None,
    seed: Seed = 1,
    no_wait: NoWait = False,
    expose: Expose = None,
    *,
    connection: Connection,
    sources: cm.ServerSources,
    output: Output,
) -> None:
    """Find how much each endpoint of an API takes before its answers are too slow or wrong.

    Example: `chainmark load mesh/quick --target http://127.0.0.1:8082 --html load.html`

    Example: `chainmark load --plan mesh/matrix --target mid=http://10.0.0.1:8082 --target big=http://10.0.0.2:8082`

    Every endpoint is searched for the most clients and the highest rate that keep to the agreement (`--set
    sla.p99_s=0.5`), and then measured at fixed levels. What the server uses meanwhile is watched where it runs on this
    machine, and where `--scrape` and `--postgres` say; the report names what was exhausted first. A target may be
    `unix:/path/of/a/socket`.

    Exit codes: 0 the agreement is met, 1 it is missed or the server is worse than the one it is compared with, 3
    undecided, 4 the machine had no time for the generator, 5 a server went away. A plan ends with the worst of its
    cells; interrupted, it goes on with `--resume`.
    """
    if http2:
        settings = ['steps.http_version="2"', *(settings or [])]
    if plan or resume:
        of_profile = {
            "PROFILE": profile,
            "--against": against,
            "--repeat": repeat > 1,
            "--require": require,
            "--write-require": write_require,
            "--scrape`, `--postgres`, `--server-pid` or `--server-cgroup": sources.is_given,
        }
        wrong = next((name for name, value in of_profile.items() if value), None)
        if wrong:
            raise UsageError(f"`{wrong}` is for a single load test, not for a plan", "leave it out")
        with progress(expose, no_wait=no_wait) as listener:
            whole = cm.load_plan(
                plan,
                targets or [],
                resume=resume,
                version=version,
                endpoints=endpoints or [],
                corpus=corpus,
                like=like,
                **connection.arguments(),
                settings=settings,
                seed=seed,
                progress=listener,
            )
        output.finish_experiment(whole)
    if not profile or not targets:
        missing = "PROFILE" if not profile else "--target"
        raise UsageError(f"`{missing}` is missing", "as in `chainmark load PROFILE --target http://127.0.0.1:8082`")
    with progress(expose, no_wait=no_wait) as listener:
        made = cm.load(
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
            settings=settings,
            seed=seed,
            progress=listener,
        )
    output.present_all(made.documents, made.comparisons)
    for run in made.runs:
        say(f"run     {run.id}")
        for warning in run.manifest.warnings:
            say(f"warning {warning}")
    if write_require is not None:
        _write_requirements(made, write_require)
    if made.gone:
        say(f"error: {made.gone}")
        say("hint: the run is kept as a partial one, which is never compared; what does the server's log say?")
        raise typer.Exit(ExitCode.ENVIRONMENT)
    if made.is_interrupted:
        say("interrupted: what was measured is kept as a partial run, which is never compared")
        raise typer.Exit(ExitCode.INCONCLUSIVE)
    raise typer.Exit(made.verdict.exit_code)


def _write_requirements(made: cm.LoadResult, path: Path) -> None:
    """A test that did not pass writes none, and says so: its exit code is of what it found."""
    try:
        made.write_requirements(path)
        say(f"require {path}")
    except UsageError as error:
        say(f"warning {path} was not written: {error.message}")
