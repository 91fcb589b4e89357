"""Commands that start fast: pydantic, with which typer validates values, is loaded only if a value is given."""

from __future__ import annotations

import inspect
import re
from itertools import groupby
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from chainmark.core.errors import ExitCode

# A line never ends at a hyphen, as in `--most-runs`: hyphens are replaced until the lines are made.
_HYPHEN = "\x1f"
# Examples are printed on one line and without quotes, so that they can be copied.
_EXAMPLE = re.compile(r"^(Example:) `(.+?)`$", re.MULTILINE | re.DOTALL)


class _Page:
    """The layout of a help page. Rich's would take longer than everything else.

    Attributes:
        words: the command as it is typed after `chainmark`; "" of `chainmark` itself.
    """

    words = ""
    epilog: str | None
    get_params: Any

    def _full_help(self) -> str | None:
        """The description, with the additions of the systems, whose files are read only for it."""
        if not (self.words and self._own_help):
            return self._own_help
        from chainmark.systems.offered import full_help

        return full_help(self.words, self._own_help)

    def _set_help(self, text: str | None) -> None:
        self._own_help = text

    help = property(_full_help, _set_help)

    def get_help(self, ctx: Any) -> str:
        """The whole page."""
        text: str = super().get_help(ctx)  # type: ignore[misc]
        return text.replace(_HYPHEN, "-")

    def format_help_text(self, _ctx: Any, formatter: Any) -> None:
        """The description, with examples."""
        _write(formatter, self.help)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options, by their headings."""
        parameters = [parameter for parameter in self.get_params(ctx) if not parameter.hidden]
        order = list(dict.fromkeys(["Arguments", "Options", *map(_heading, parameters)]))
        parameters.sort(key=lambda parameter: order.index(_heading(parameter)))
        for heading, group in groupby(parameters, _heading):
            with formatter.section(heading):
                _write_list(formatter, [_record(parameter, ctx) for parameter in group])

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """The example of a command whose description has none."""
        _write(formatter, self.epilog)


class Quick(_Page, TyperCommand):
    """A command that only examines the words when they are completed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual, or without validation for completion."""
        if not ctx.resilient_parsing:
            _validate_only_given(self, ctx, args)
            return super().parse_args(ctx, args)
        ctx.args = _words(self, ctx, args)
        rest: list[str] = ctx.args
        return rest


class QuickGroup(_Page, TyperGroup):
    """The same for a group, which prints its help if no command is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual, or without validation for completion and for the help of a command."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(ExitCode.USAGE)
        if not (ctx.resilient_parsing or _asks_for_help(self, ctx, args)):
            _validate_only_given(self, ctx, args)
            return super().parse_args(ctx, args)
        rest = _words(self, ctx, args)
        ctx._protected_args, ctx.args = rest[:1], rest[1:]
        return rest[1:]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, then the commands with the first sentences of their help."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            _write_list(formatter, [(name, _summary(command)) for name, command in self.commands.items()])


def _asks_for_help(group: Any, ctx: Any, args: list[str]) -> bool:
    """Whether the words after the group's own options request the help of a command."""
    _, rest, _ = group.make_parser(ctx).parse_args(args=list(args))
    return bool(rest) and rest[-1] == "--help"


class _NotGiven:
    """Does for a parameter without a value what typer's validation does."""

    @staticmethod
    def coerce(_value: None, param: Any, ctx: Any) -> tuple[()] | None:
        """The value that a command gets."""
        return () if param.multiple or param.nargs == -1 else None


def _validate_only_given(command: Any, ctx: Any, args: list[str]) -> None:
    """Parameters that are not given need no validation. A typer that looks elsewhere for it validates all as before."""
    given, _, _ = command.make_parser(ctx).parse_args(args=list(args))
    for parameter in command.get_params(ctx):
        if given.get(parameter.name) is None and parameter.default is None:
            parameter._runtime_param = _NotGiven


def _words(command: Any, ctx: Any, args: list[str]) -> list[str]:
    """The words after the options; the options' own go to the context by their names."""
    parser = command.make_parser(ctx)
    given, rest, _ = parser.parse_args(args=list(args))
    ctx._opt_prefixes.update(parser._opt_prefixes)
    passed_on = [parameter.name for parameter in command.params if parameter.expose_value]
    ctx.params.update({name: given.get(name) for name in passed_on})
    words: list[str] = rest
    return words


def _summary(command: Any) -> str:
    return " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())


def _heading(parameter: Any) -> str:
    heading: str | None = parameter.rich_help_panel
    return heading or ("Arguments" if parameter.param_type_name == "argument" else "Options")


def _record(parameter: Any, ctx: Any) -> tuple[str, str]:
    """The name and the help; the type of an argument says less than its name."""
    name, text = parameter.get_help_record(ctx)
    return (name if parameter.param_type_name == "option" else name.partition(" <")[0]), text


def _write_list(formatter: Any, rows: list[tuple[str, str]]) -> None:
    formatter.write_dl([(name, text.replace("-", _HYPHEN)) for name, text in rows])


def _write(formatter: Any, text: str | None) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_EXAMPLE.sub(_unwrapped, inspect.cleandoc(text)).replace("-", _HYPHEN))


def _unwrapped(example: re.Match[str]) -> str:
    return f"\b\n{example[1]} {' '.join(example[2].split())}"
