"""`chainmark load`: how much load an API sustains, and whether that is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command, refuse
from chainmark.cli.options import Connection, Expose, Http2, NoWait, On, Seed, Settings, SourceOptions
from chainmark.cli.output import Output
from chainmark.core.errors import UsageError


class LoadOptions(TypedDict, total=False):
    """Of a test and of a plan of tests."""

    version: Annotated[str, Option("--as", metavar="V", show_default="as reported by the server")]
    endpoints: Annotated[list[str], Option("--endpoint", metavar="ID|PATH")]
    corpus: Annotated[Path, Option(metavar="FILE")]
    like: Annotated[str, Option(metavar="RUN")]


class OneTest(TypedDict, total=False):
    """Of one test only."""

    against: Annotated[str, Option(metavar="RUN")]
    require: Annotated[Path, Option(metavar="FILE")]
    repeat: Annotated[int, Option(1, min=1, max=100)]


@command
def load(
    profile: str | None = None,
    *,
    targets: Annotated[list[str] | None, Option("--target", metavar="[NAME=]URL")] = None,
    plan: Annotated[str | None, Option(metavar="NAME|FILE")] = None,
    resume: Annotated[str | None, Option(metavar="EXPERIMENT")] = None,
    options: LoadOptions,
    one: OneTest,
    write_require: Annotated[Path | None, Option(metavar="FILE")] = None,
    http2: Http2 = False,
    generators: Annotated[
        int | None, Option(min=1, max=64, metavar="N", show_default="1, or one on every machine of the cluster")
    ] = None,
    on: On = None,
    settings: Settings = None,
    seed: Seed = 1,
    no_wait: NoWait = False,
    expose: Expose = None,
    connection: Connection,
    sources: SourceOptions,
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

    Args:
        profile: A shipped profile (`chainmark profiles`) or a TOML file. Omit with `--plan`.
        targets: Server to test. May be repeated to test several servers side by side.
        plan: A shipped plan or a TOML file: every scenario on every server, one run for each combination.
        resume: Continue an interrupted plan.
        version: Version label for this run.
        endpoints: Test only this endpoint. May be repeated.
        corpus: Corpus written by `chainmark corpus`, or CSV files of other load tests.
        like: Reuse the corpus and load levels of RUN, a run or the experiment of a plan.
        against: Test like RUN (`--like`) and compare the result with it.
        require: Required capacities, as written by `--write-require`.
        repeat: Number of times to repeat the whole test.
        write_require: Write the capacities that later tests must reach. Written only if this test passes.
        generators: Number of processes that generate the load together.
    """
    changes = ['steps.http_version="2"'] if http2 else []
    changes += [f"steps.generators={generators}"] if generators is not None else []
    how = {**connection.arguments(), "settings": [*changes, *(settings or [])] or None, "seed": seed}
    how |= {"on": on, "no_wait": no_wait, "expose": expose}
    if plan or resume:
        of_one = {"PROFILE": profile, **one, "write-require": write_require}
        of_one["scrape`, `--postgres` or `--server-…"] = sources
        refuse(of_one, "applies to a single load test, not to a plan")
        with progress() as listener:
            made = cm.load_plan(plan, targets or [], resume=resume, **options, **how, progress=listener)
        output.finish_experiment(made)
    if not profile or not targets:
        missing = "PROFILE" if not profile else "--target"
        raise UsageError(f"`{missing}` is missing", "as in `chainmark load PROFILE --target http://127.0.0.1:8082`")
    with progress() as listener:
        watched = cm.ServerSources(**sources)
        result = cm.load(profile, targets, **options, **one, **how, sources=watched, progress=listener)
    output.finish_load(result, write_require)
