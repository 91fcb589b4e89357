"""`chainmark predict`: what a model says of a network, as it is and as it might be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

import chainmark as cm
from chainmark.cli.common import Blocks, Column, ModelSeed, Output, Threads, shows_result
from chainmark.cli.following import progress
from chainmark.cli.quick import Quick

_WRITTEN = "chainmark.written"
_PANEL = "What-ifs (each value is one more scenario, in the order written)"


class WrittenOrder(Quick):
    """A command that remembers in which order its options were written, across all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever, and note the names of the options, one for every time that each was given."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_WRITTEN] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def _what_if(metavar: str, help_text: str) -> Any:
    return typer.Option(metavar=metavar, help=help_text, rich_help_panel=_PANEL)


Rtt = Annotated[
    list[str] | None,
    _what_if("[LINK=]AMOUNT", "Round trips: `+20%`, `-10%`, `x1.2`; of one link `EU-AP=+20ms`, `EU-AP=250ms`."),
]
Fetch = Annotated[
    list[str] | None,
    _what_if("[LINK=]AMOUNT", "Request to body: `+20%`, `x0.8`, `-30ms`, `300ms`; between two regions `EU-AP=+20ms`."),
]
BlockSize = Annotated[
    list[str] | None,
    _what_if("AMOUNT", "Size of blocks: `2x`, `120kB`, `+50%`; `2x:scale-cpu` scales the processors' stages as well."),
]
BlockSizeSpread = Annotated[
    list[str] | None, _what_if("SHARE", "How much sizes vary, standard deviation over mean: `30%`, `none`.")
]
Nodes = Annotated[list[str] | None, _what_if("N", "Number of hosts: `198`.")]
Topology = Annotated[
    list[str] | None, _what_if("RULE|FILE", "Who is connected: `torus-dense`, `random:4+1`, or a topology file.")
]
LoseRegion = Annotated[list[str] | None, _what_if("REGION", "A region that is gone: `AP`.")]
InitialWindow = Annotated[list[str] | None, _what_if("SEGMENTS", "TCP's initial window: `40`.")]
WindowMemory = Annotated[
    list[str] | None, _what_if("TIME", "How long a connection keeps its window: `10s`, `none`, `forever`.")
]
FetchConcurrency = Annotated[list[str] | None, _what_if("PEERS", "Peers that a body is fetched from at a time: `1`.")]
NoPipelining = Annotated[
    bool,
    typer.Option("--no-pipelining", help="Announce a block only once it is adopted.", rich_help_panel=_PANEL),
]
Stage = Annotated[
    list[str] | None, _what_if("NAME=AMOUNT", "One stage: `fetched-to-adopted=+10ms`, `ticking=2x`, `forging=5ms`.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the profile, where the source is one."),
]
Together = Annotated[
    bool,
    typer.Option("--together", help="Only all changes at once, not each of them alone.", rich_help_panel=_PANEL),
]


@shows_result
def predict(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="A published report's path, a profile (shipped or a .toml file), or a run (id or version)."
        ),
    ],
    rtt: Rtt = None,
    fetch: Fetch = None,
    block_size: BlockSize = None,
    block_size_spread: BlockSizeSpread = None,
    nodes: Nodes = None,
    topology: Topology = None,
    lose_region: LoseRegion = None,
    initial_window: InitialWindow = None,
    window_memory: WindowMemory = None,
    fetch_concurrency: FetchConcurrency = None,
    no_pipelining: NoPipelining = False,
    stage: Stage = None,
    together: Together = False,
    version: Column = None,
    settings: Settings = None,
    blocks: Blocks = None,
    seed: ModelSeed = 1,
    threads: Threads = 0,
    *,
    output: Output,
) -> None:
    """Predict a network's figures by a model fitted to a report, a run or a profile, and what changes would do to them.

    Example: `chainmark predict cardano/value --rtt +20% --block-size 2x --html prediction.html`

    Every change is simulated alone and then all of them at once, with the same random draws as the network as it is.
    Several values of one option, or of one link of it, are a sweep: each stands alone, and with every other change.
    A difference within two standard errors is never printed as a figure. An amount may begin with a minus sign:
    `--rtt -10%`.
    """
    given: dict[str, Sequence[str]] = {
        "rtt": rtt or [],
        "fetch": fetch or [],
        "block_size": block_size or [],
        "block_size_spread": block_size_spread or [],
        "nodes": nodes or [],
        "topology": topology or [],
        "lose_region": lose_region or [],
        "initial_window": initial_window or [],
        "window_memory": window_memory or [],
        "fetch_concurrency": fetch_concurrency or [],
        "no_pipelining": [""] * no_pipelining,
        "stage": stage or [],
    }
    changes = in_written_order(ctx.meta.get(_WRITTEN, []), given)
    with progress() as listener:
        document = cm.predict(
            source,
            changes,
            together=together,
            version=version,
            settings=settings,
            blocks=blocks,
            seed=seed,
            threads=threads,
            progress=listener,
        )
    output.finish(document)


predict.command_class = WrittenOrder  # type: ignore[attr-defined]


def in_written_order(written: Sequence[str], given: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The changes as they stood on the command line: each a key and an amount.

    Args:
        written: the names of the options, one for every time that each was given.
        given: each option's values, in their order.
    """
    waiting = {name: list(values) for name, values in given.items()}
    return [(name.replace("_", "-"), waiting[name].pop(0)) for name in written if waiting.get(name)]
