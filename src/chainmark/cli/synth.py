"""`chainmark synth`: logs of a cluster that never ran, with the truth beside them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import AsJson
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
        help="Something that goes wrong: `crash:node-3@4000`, `clock-offset:node-7=+250ms`, `dropped:node-5=1%`, "
        "`gap:node-2@500-560`; may be repeated. Times are seconds since the start; what is left out is drawn from the "
        "seed. `--fault list` shows all kinds.",
    ),
]


def synth(
    system: Annotated[str, typer.Argument(help="The system whose logs are made, e.g. `cardano`.")],
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The folder to make; it must not exist yet.")
    ] = None,
    slots: Annotated[int, typer.Option(min=1, metavar="N", help="How long the network lives.")] = 2000,
    hosts: Annotated[int | None, typer.Option(min=2, metavar="N", show_default="the profile's")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything drawn at random.")] = 1,
    profile: Annotated[
        str | None, typer.Option(metavar="PROFILE", help="A profile, shipped or a .toml file.", show_default="value")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the profile.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option(metavar="RULE|FILE", help="Who is connected: `torus-dense`, `random:4+1`, or a file.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT[:HOSTS]",
            help="Log format: `10.5` (the default), `10.7`, `10.4`, `legacy`; of some hosts `legacy:node-3,node-5`.",
        ),
    ] = None,
    compress: Annotated[str, typer.Option(metavar="none|gzip|zstd", help="Compression of the logs.")] = "none",
    rotate: Annotated[
        str | None,
        typer.Option(metavar="LINES|BYTES", help="Begin a new file after so many lines (`500000`) or bytes (`100MB`)."),
    ] = None,
    faults: FaultOption = None,
    system_start: Annotated[
        datetime | None, typer.Option(help="When the network starts (UTC).", show_default="a constant")
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="0 means all cores. The bytes do not depend on it.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace logs that were made before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the logs of a cluster that never ran, and the truth about it, as a benchmark run's folder.

    Example: `chainmark synth cardano --hosts 52 --slots 4000 --fault crash:node-3@3000 --out cluster-logs`

    The network is simulated from the profile; its hosts write what real nodes of that version would. `truth.parquet`
    holds every block, slot and fault with true times and times as printed, so that any analysis can be checked. The
    same options give the same bytes. A whole run of 64000 slots on 52 hosts takes 53 GB, 4 GB with `--compress zstd`.
    """
    if LIST in (faults or []):
        kinds = cm.fault_kinds(system)
        if as_json:
            print_json([kind._asdict() for kind in kinds])
        else:
            print_fault_kinds(kinds)
        return
    if folder is None:
        raise UsageError("`--out` is missing: nothing says where the logs go", "for example `--out cluster-logs`")
    with progress() as listener:
        made = cm.synth(
            system,
            folder,
            slots=slots,
            hosts=hosts,
            seed=seed,
            profile=profile,
            settings=settings,
            topology=topology,
            formats=formats or [],
            compression=compress,
            rotation=rotate,
            faults=faults or [],
            system_start=system_start,
            threads=threads,
            replace=force,
            progress=listener,
        )
    if as_json:
        print_json(made)
    else:
        print_made(made)
