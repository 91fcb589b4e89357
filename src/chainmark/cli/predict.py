"""`chainmark predict`: a model's prediction for a network, with and without changes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Blocks, Column, ModelSeed, On, Output, Threads, declared, shows_result
from chainmark.cli.following import progress
from chainmark.cli.quick import Quick
from chainmark.systems.offered import ChangeOption, offers

_WRITTEN = "chainmark.written"
_PANEL = "What-ifs (each value adds a scenario, in the given order)"


class OptionsInOrder(Quick):
    """A command that records the order of its options, across all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual, and record the names of the options, one per occurrence."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_WRITTEN] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def takes_changes(command: Callable[..., None]) -> Callable[..., None]:
    """Add the what-ifs of all systems to a command as options after its first two parameters.

    It receives them as its keyword `changes`: each a key and an amount, in the order of the command line.
    """
    parameters = list(inspect.signature(command, eval_str=True).parameters.values())
    names = {change.name.replace("-", "_"): change for offer in offers() for change in offer.of("predict").changes}

    @functools.wraps(command)
    def with_changes(ctx: typer.Context, **given: Any) -> None:
        values = {name: given.pop(name) for name in names}
        written = {name: [""] * value if isinstance(value, bool) else value or [] for name, value in values.items()}
        command(ctx=ctx, changes=in_written_order(ctx.meta.get(_WRITTEN, []), written), **given)

    options = [_option(name, change) for name, change in names.items()]
    rest = (parameter for parameter in parameters[2:] if parameter.name != "changes")
    return declared(with_changes, [*parameters[:2], *options, *rest])


def _option(name: str, change: ChangeOption) -> inspect.Parameter:
    kind: Any = bool if change.amount is None else list[str] | None
    declared = [f"--{change.name}"] if change.amount is None else []
    option = typer.Option(*declared, metavar=change.amount, help=change.help, rich_help_panel=_PANEL)
    default = False if change.amount is None else None
    kind_of = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind_of, default=default, annotation=Annotated[kind, option])


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a profile key, if the source is a profile."),
]
Together = Annotated[
    bool,
    typer.Option("--together", help="Simulate only the combination of all changes.", rich_help_panel=_PANEL),
]


@command(160)
@shows_result
@takes_changes
def predict(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="Path of a published report, a profile (shipped or a `.toml` file), or a run (ID or version)."
        ),
    ],
    together: Together = False,
    version: Column = None,
    settings: Settings = None,
    blocks: Blocks = None,
    seed: ModelSeed = 1,
    threads: Threads = 0,
    on: On = None,
    *,
    changes: Sequence[tuple[str, str]],
    output: Output,
) -> None:
    """Predict metrics of a network, and the effect of changes, with a model fitted to a report, run or profile.

    Each change is simulated separately, then all changes combined, with the same random draws as the base network.
    Several values of one option, or of one link, form a sweep: each value is simulated separately and combined with
    every other change. A difference within two standard errors is not printed as a figure. An amount may begin with a
    minus sign: `--rtt -10%`.
    """
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
            on=on,
            progress=listener,
        )
    output.finish(document)


predict.command_class = OptionsInOrder  # type: ignore[attr-defined]


def in_written_order(written: Sequence[str], given: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The changes in the order of the command line: each a key and an amount.

    Args:
        written: the names of the options, one per occurrence.
        given: each option's values, in order.
    """
    waiting = {name: list(values) for name, values in given.items()}
    return [(name.replace("_", "-"), waiting[name].pop(0)) for name in written if waiting.get(name)]
