"""`chainmark synth`: logs of a cluster that never ran, with the truth beside them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from chainmark.cli.common import AsJson
from chainmark.cli.console import out, print_json, progress
from chainmark.core.errors import UsageError
from chainmark.lab.synthetic import FaultKind, SyntheticLogs, SyntheticOrder, synthetic
from chainmark.systems.base import load_system

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
    loaded = synthetic(load_system(system))
    if LIST in (faults or []):
        print_fault_kinds(loaded.fault_kinds(), as_json)
        return
    if folder is None:
        raise UsageError("`--out` is missing: nothing says where the logs go", "for example `--out cluster-logs`")
    order = SyntheticOrder(
        folder=folder,
        slots=slots,
        seed=seed,
        profile=profile,
        settings=tuple(settings or ()),
        hosts=hosts,
        topology=topology,
        formats=tuple(formats or ()),
        compression=compress,
        rotation=rotate,
        faults=tuple(faults or ()),
        system_start=system_start,
        threads=threads,
        replace=force,
    )
    with progress() as listener:
        made = loaded.synthesise(order, listener)
    if as_json:
        print_json(made)
    else:
        print_summary(made)


def print_fault_kinds(kinds: list[FaultKind], as_json: bool) -> None:
    """What can go wrong on request, each with an example."""
    if as_json:
        print_json([kind._asdict() for kind in kinds])
        return
    table = Table("kind", Column("meaning", overflow="fold"), Column("example", overflow="fold"), box=None)
    for kind in kinds:
        table.add_row(kind.name, kind.meaning, kind.example)
    out.print(table)


def print_summary(made: SyntheticLogs) -> None:
    """What was made, for people."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(justify="left")
    table.add_column(justify="right")
    forks = f"{made.blocks_forked} lost a battle" if made.blocks_forked else "none lost a battle"
    for label, value in (
        ("hosts", f"{made.hosts}"),
        ("slots", f"{made.slots}"),
        ("blocks", f"{made.blocks}, {forks}"),
        ("transactions", f"{made.transactions}"),
        ("lines", f"{made.lines}, {made.lines_per_host_s:.1f} a second and host"),
        ("text", f"{made.text_bytes / 1e6:.0f} MB"),
        ("stored", f"{made.stored_bytes / 1e6:.0f} MB"),
    ):
        table.add_row(label, value)
    out.print(table)
    if made.faults:
        faults = Table("fault", "host", Column("from s", justify="right"), Column("until s", justify="right"), box=None)
        faults.add_column("value", justify="right")
        faults.add_column("lines", justify="right")
        for fault in made.faults:
            times = ["" if time is None else f"{time:.0f}" for time in (fault.from_s, fault.until_s)]
            value = fault.name or (f"{fault.value:.6g} {fault.unit}".strip() if fault.value else "")
            faults.add_row(fault.fault, fault.host, *times, value, f"{fault.lines}")
        out.print("")
        out.print(faults)
    out.print(f"\nlogs and truth  {made.folder}", markup=False)
