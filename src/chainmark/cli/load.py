"""`chainmark load`: how much an API takes, and whether that is enough."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

import chainmark
from chainmark.capacity.model import Target, Tls
from chainmark.cli.common import (
    Output,
    Seed,
    Settings,
    open_store,
    resolve_profile,
    shows_result,
)
from chainmark.cli.console import Expose, err, progress
from chainmark.core.comparison import Comparison
from chainmark.core.errors import ExitCode, UsageError
from chainmark.core.load_verdict import verdict
from chainmark.core.progress import Progress
from chainmark.core.tool import tool_version
from chainmark.core.verdict import worst
from chainmark.lab.loading import LoadTest, Tester, fixed_levels_of, kept_corpus
from chainmark.lab.protocols import ServedSystem, ServiceOrder, served
from chainmark.store.runs import SealedRun

INTERRUPTED = ExitCode.INCONCLUSIVE


@shows_result
def load(
    profile: Annotated[str, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.")],
    targets: Annotated[
        list[str],
        typer.Option("--target", metavar="[NAME=]URL", help="A server; more of them are tested side by side."),
    ],
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
        typer.Option(metavar="RUN", help="Ask what a former run asked, at its levels, to be compared with it."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="`--like` that run, and compare with it at the end."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="How many times the whole test is made.")] = 1,
    ca_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate to trust.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Trust any certificate.")] = False,
    settings: Settings = None,
    seed: Seed = 1,
    expose: Expose = None,
    *,
    output: Output,
) -> None:
    """Find how much each endpoint of an API takes before its answers are too slow or wrong.

    Example: `chainmark load mesh/quick --target http://127.0.0.1:8082 --html load.html`

    Every endpoint is searched for the most clients and the highest rate that keep to the agreement (`--set
    sla.p99_s=0.5`), and then measured at fixed levels. Exit codes: 0 the agreement is met, 1 it is missed or the
    server is worse than the one it is compared with, 3 undecided, or limited by the generator.
    """
    system, resolved = resolve_profile(profile, settings or [])
    tester = Tester(open_store(), served(system))
    tls = Tls(ca_file=str(ca_file) if ca_file else None, verify=not insecure)
    chosen = [parse_target(text, index, tls) for index, text in enumerate(targets)]
    _check_names(chosen)
    former = _former(like or against)
    if former:
        resolved = at_levels_of(tester.system, resolved, former[0])
    with tempfile.TemporaryDirectory(prefix="chainmark-load-") as folder:
        pinned = Path(folder) / "corpus.json"
        requests = corpus or (kept_corpus(former[0]) if former else None)
        orders = [
            ServiceOrder(
                target=target,
                version=version,
                endpoints=tuple(endpoints or ()),
                corpus=requests if requests or not index else pinned,
                pinned=pinned if not index else None,
                seed=seed,
            )
            for index, target in enumerate(chosen)
        ]
        with progress(expose) as listener:
            made = _repeated(tester, resolved, orders, _Times(repeat, seed, listener))
    _finish(made, output, former if against else [])


def parse_target(text: str, index: int, tls: Tls) -> Target:
    """`NAME=URL`, or a URL, which is then called by its place."""
    name, separator, url = text.partition("=")
    if not separator or "/" in name:
        name, url = ("server" if index == 0 else f"server-{index + 1}"), text
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"`--target {text}` is no address of a server", "for example `http://127.0.0.1:8082`")
    return Target(name.strip(), url.rstrip("/"), tls)


def _check_names(targets: Sequence[Target]) -> None:
    names = [target.name for target in targets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two targets are called `{twice}`", "`--target old=http://… --target new=http://…`")


def _former(reference: str | None) -> list[SealedRun]:
    return open_store().select(reference) if reference else []


def at_levels_of(system: ServedSystem, profile: BaseModel, run: SealedRun) -> BaseModel:
    """The same profile with the fixed levels of a former run."""
    content = profile.model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["fixed"] = {**content.get("fixed", {}), **fixed_levels_of(run)}
    return system.profile(content)


@dataclass(frozen=True)
class _Times:
    """How often the test is made, from which seed on, and who follows it."""

    repeat: int
    seed: int
    listener: Progress


def _repeated(tester: Tester, profile: BaseModel, orders: Sequence[ServiceOrder], times: _Times) -> list[LoadTest]:
    made: list[LoadTest] = []
    for repetition in range(times.repeat):
        asked = list(orders)
        if made:
            # Every repetition asks the same, at the same levels.
            first = made[0].runs[0]
            profile = at_levels_of(tester.system, profile, first)
            kept = kept_corpus(first)
            asked = [replace(order, corpus=kept or order.corpus, pinned=None) for order in orders]
        made.append(tester.make(profile, asked, times.seed + repetition, times.listener, repetition + 1))
        if made[-1].interrupted:
            break
    return made


def _finish(made: Sequence[LoadTest], output: Output, former: Sequence[SealedRun]) -> None:
    """Show what was found, and exit by what is worst."""
    interrupted = any(test.interrupted for test in made)
    comparisons = [] if interrupted else _comparisons(made, former)
    output.present_all([test.report for test in made], comparisons)
    for test in made:
        for run in test.runs:
            err.print(f"run     {run.run_id}", markup=False)
            for warning in run.manifest.warnings:
                err.print(f"warning {warning}", markup=False)
    if interrupted:
        err.print("interrupted: what was measured is kept as a partial run, which is never compared")
        raise typer.Exit(INTERRUPTED)
    found = [verdict(test.report)[0] for test in made]
    raise typer.Exit(worst([*found, *(comparison.verdict for comparison in comparisons)]).exit_code)


def _comparisons(made: Sequence[LoadTest], former: Sequence[SealedRun]) -> list[Comparison]:
    """With a former run, or of every further server with the first."""
    if former:
        pairs = [(list(former), [test.runs[0] for test in made])]
    else:
        sides = [list(side) for side in zip(*(test.runs for test in made), strict=True)]
        pairs = [(sides[0], side) for side in sides[1:]]
    history = open_store().alike(run for pair in pairs for side in pair for run in side)
    return [chainmark.compare_runs(*pair, history=history, tool_version=tool_version()) for pair in pairs]
