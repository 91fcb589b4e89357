"""`chainmark synth`: logs of a simulated cluster, with the ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from typer import Option

import chainmark as cm
from chainmark.cli.console import print_json
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.made_logs import print_fault_kinds, print_made
from chainmark.cli.offered import SynthOffered
from chainmark.cli.options import AsJson, ModelSeed, Threads
from chainmark.core.errors import UsageError

LIST = "list"


class SynthOptions(TypedDict, total=False):
    """What to simulate, and how to write it."""

    hosts: Annotated[int, Option(min=2, metavar="N", show_default="the profile's")]
    profile: Annotated[str, Option(metavar="PROFILE", show_default="the system's own")]
    settings: Annotated[list[str], Option("--set", metavar="KEY=VALUE")]
    compression: Annotated[str, Option("none", "--compress", metavar="none|gzip|zstd")]
    rotation: Annotated[str, Option("--rotate", metavar="LINES|BYTES")]
    faults: Annotated[list[str], Option("--fault", metavar="KIND[:HOST][@FROM[-UNTIL]][=VALUE]")]
    replace: Annotated[bool, Option("--force")]


@command
def synth(
    system: str,
    *,
    folder: Annotated[Path | None, Option("--out", metavar="DIR")] = None,
    options: SynthOptions,
    seed: ModelSeed = 1,
    threads: Threads = 0,
    offered: SynthOffered,
    as_json: AsJson = False,
) -> None:
    """Generate the logs of a simulated cluster, with the ground truth, as the folder of a benchmark run.

    The network is simulated from the profile; its hosts write the same logs as real nodes of that version.
    `truth.parquet` holds what happened, with true and logged times, to check any analysis against. The same options
    give the same bytes.

    Args:
        system: The system whose logs to generate.
        folder: Folder to create; it must not exist yet.
        hosts: Number of hosts.
        profile: A shipped profile or a `.toml` file.
        settings: Override a profile key.
        compression: Compression of the logs.
        rotation: Rotate log files after this many lines (`500000`) or bytes (`100MB`).
        faults: Fault to inject: `crash:node-3@4000`, `clock-offset:node-7=+250ms`, `dropped:node-5=1%`,
            `gap:node-2@500-560`. May be repeated. Times are seconds since the start; omitted parts are drawn at random.
            `--fault list` shows all kinds.
        replace: Replace existing generated logs.
    """
    if LIST in options.get("faults", []):
        kinds = cm.fault_kinds(system)
        if as_json:
            print_json([kind._asdict() for kind in kinds])
        else:
            print_fault_kinds(kinds)
        return
    if folder is None:
        raise UsageError("`--out` is missing", "for example `--out cluster-logs`")
    with progress() as listener:
        made = cm.synth(system, folder, **options, seed=seed, threads=threads, progress=listener, **offered.values)
    if as_json:
        print_json(made)
    else:
        print_made(made)
