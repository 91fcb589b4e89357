"""Commands with fast completion: validating values, for which typer loads pydantic, takes longer than all else."""

from __future__ import annotations

import os
from typing import Any

from typer.core import TyperCommand, TyperGroup


class Quick(TyperCommand):
    """A command that only examines the words when they are completed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual, or without validation for completion."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.args = _words(self, ctx, args)
        rest: list[str] = ctx.args
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with ``NO_COLOR`` as plain text."""
        _respect_no_color()
        super().format_help(ctx, formatter)


class QuickGroup(TyperGroup):
    """The same for a group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual, or without validation for completion."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        rest = _words(self, ctx, args)
        ctx._protected_args, ctx.args = rest[:1], rest[1:]
        return rest[1:]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with ``NO_COLOR`` as plain text."""
        _respect_no_color()
        super().format_help(ctx, formatter)


def _respect_no_color() -> None:
    """Rich alone would leave out the colours and still print bold text."""
    if os.environ.get("NO_COLOR"):
        from typer import rich_utils

        rich_utils.COLOR_SYSTEM = None


def _words(command: Any, ctx: Any, args: list[str]) -> list[str]:
    """The words after the options; the options' own go to the context by their names."""
    parser = command.make_parser(ctx)
    given, rest, _ = parser.parse_args(args=list(args))
    ctx._opt_prefixes.update(parser._opt_prefixes)
    ctx.params.update({parameter.name: given.get(parameter.name) for parameter in command.params})
    words: list[str] = rest
    return words
