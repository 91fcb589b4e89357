"""Commands that are completed at once: checking values, for which typer loads pydantic, takes longer than all else."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Quick(TyperCommand):
    """A command that only looks at the words where it is to be completed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever; what is to be completed without checking it."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.args = _words(self, ctx, args)
        rest: list[str] = ctx.args
        return rest


class QuickGroup(TyperGroup):
    """The same for a group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever; what is to be completed without checking it."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        rest = _words(self, ctx, args)
        ctx._protected_args, ctx.args = rest[:1], rest[1:]
        return rest[1:]


def _words(command: Any, ctx: Any, args: list[str]) -> list[str]:
    """The words behind the options; the options' own go to the context by their names."""
    parser = command.make_parser(ctx)
    given, rest, _ = parser.parse_args(args=list(args))
    ctx._opt_prefixes.update(parser._opt_prefixes)
    ctx.params.update({parameter.name: given.get(parameter.name) for parameter in command.params})
    words: list[str] = rest
    return words
