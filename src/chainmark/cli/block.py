"""`chainmark block`, `transaction`, `request` and `trail`: from a sample to its timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from typer import Argument, Option

import chainmark as cm
from chainmark.cli.groups import command
from chainmark.cli.options import OneRun
from chainmark.cli.output import Output

Slowest = Annotated[int, Option(min=1, max=1000, metavar="N", help="Number of the slowest ones to list.")]


class BlockOptions(TypedDict, total=False):
    """What to show of an object that hosts log.

    Attributes:
        hosts: Show only this host. May be repeated.
        lines: Print the log lines, read from the folder that the run was imported from.
    """

    hosts: Annotated[list[str], Option("--host", metavar="HOST")]
    lines: Annotated[Path, Option(metavar="DIR")]


@command
def block(
    run: OneRun,
    key: Annotated[str | None, Argument(metavar="HASH|HEIGHT")] = None,
    *,
    options: BlockOptions,
    slowest: Slowest = 10,
    output: Output,
) -> None:
    """Show the timeline of one block: when each host processed it, with the log lines.

    Args:
        key: Block hash, a prefix of it, or the height. Default: list the slowest.
    """
    output.finish(cm.block(run, key, **options, slowest=slowest))


@command
def transaction(
    run: OneRun,
    key: Annotated[str | None, Argument(metavar="KEY|HASH")] = None,
    *,
    slowest: Slowest = 10,
    output: Output,
) -> None:
    """Show the timeline of one transaction (due, sent, answered, in a block), or list the slowest ones.

    Args:
        key: Key of the transaction, or a prefix of its hash. Default: list the slowest.
    """
    output.finish(cm.transaction(run, key, slowest=slowest))


@command
def request(
    run: OneRun,
    key: Annotated[str | None, Argument(metavar="STEP-RANK")] = None,
    *,
    slowest: Slowest = 10,
    output: Output,
) -> None:
    """Show the timeline of a slow request of a load test (due, sent, first byte, finished), or list them.

    Args:
        key: Number of the step and rank within it, e.g. `3-1`. Default: list the slowest.
    """
    output.finish(cm.request(run, key, slowest=slowest))


@command
def trail(
    run: OneRun,
    trail_id: Annotated[str, Argument(metavar="TRAIL")],
    key: Annotated[str | None, Argument(metavar="KEY|NUMBER")] = None,
    *,
    options: BlockOptions,
    slowest: Slowest = 10,
    output: Output,
) -> None:
    """Show the timeline of any object that the run's catalogue can trace, as `chainmark block` does for blocks.

    Args:
        trail_id: Type of object to trace, as named in the run's catalogue.
        key: Key of the object, a prefix of it, or its number. Default: list the slowest.
    """
    output.finish(cm.block(run, key, trail=trail_id, **options, slowest=slowest))
