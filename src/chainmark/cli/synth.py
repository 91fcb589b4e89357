"""`chainmark synth`: logs of a simulated cluster, with the ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import AsJson, passes_options
from chainmark.cli.console import print_json
from chainmark.cli.following import progress
from chainmark.cli.made_logs import print_fault_kinds, print_made
from chainmark.core.errors import UsageError

LIST = "list"
FaultOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="KIND[:HOST][@FROM[-UNTIL]][=VALUE]",
        help="Fault to inject: `crash:node-3@4000`, `clock-offset:node-7=+250ms`, `dropped:node-5=1%`, "
        "`gap:node-2@500-560`. May be repeated. Times are seconds since the start; omitted parts are drawn at "
        "random. `--fault list` shows all kinds.",
    ),
]


@command(190)
@passes_options("synth")
def synth(
    system: Annotated[str, typer.Argument(help="The system whose logs to generate.")],
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to create; it must not exist yet.")
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Number of hosts.", show_default="the profile's")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    profile: Annotated[
        str | None,
        typer.Option(metavar="PROFILE", help="A shipped profile or a `.toml` file.", show_default="the system's own"),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a profile key.")
    ] = None,
    compress: Annotated[str, typer.Option(metavar="none|gzip|zstd", help="Compression of the logs.")] = "none",
    rotate: Annotated[
        str | None,
        typer.Option(
            metavar="LINES|BYTES", help="Rotate log files after this many lines (`500000`) or bytes (`100MB`)."
        ),
    ] = None,
    faults: FaultOption = None,
    threads: Annotated[
        int, typer.Option(min=0, help="Number of threads; 0 means all cores. The output does not depend on it.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace existing generated logs.")] = False,
    as_json: AsJson = False,
    *,
    options: dict[str, Any],
) -> None:
    """Generate the logs of a simulated cluster, with the ground truth, as the folder of a benchmark run.

    The network is simulated from the profile; its hosts write the same logs as real nodes of that version.
    `truth.parquet` holds what happened, with true and logged times, to check any analysis against. The same options
    give the same bytes.
    """
    if LIST in (faults or []):
        kinds = cm.fault_kinds(system)
        if as_json:
            print_json([kind._asdict() for kind in kinds])
        else:
            print_fault_kinds(kinds)
        return
    if folder is None:
        raise UsageError("`--out` is missing", "for example `--out cluster-logs`")
    with progress() as listener:
        result = cm.synth(
            system,
            folder,
            hosts=hosts,
            seed=seed,
            profile=profile,
            settings=settings,
            compression=compress,
            rotation=rotate,
            faults=faults or [],
            threads=threads,
            replace=force,
            progress=listener,
            **options,
        )
    if as_json:
        print_json(result)
    else:
        print_made(result)
