"""From a function to a command: its arguments and options, with their help, and groups of options.

Positional parameters are arguments, and keyword-only ones are options. Their help is in the docstring, under ``Args``,
unless their annotation has it. A parameter whose type is a group stands for all options of that group:

- a `TypedDict`, whose keys are arguments of the library: the command passes the given ones on as they are, so that the
  library alone has the rules and the defaults;
- a class derived from `Group`, whose constructor accepts the options.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from chainmark.core.errors import UsageError

_SECTION = re.compile(r"\n\n(?:Args|Attributes):\n((?: .*\n?|\n(?= ))+)")
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


class Group:
    """Options that the constructor accepts."""

    @classmethod
    def options(cls) -> list[Parameter]:
        """The options, as parameters of a command."""
        texts = {name: text for base in reversed(cls.__mro__) for name, text in _described(base)[1].items()}
        parameters = inspect.signature(cls, eval_str=True).parameters.values()
        own = [parameter for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD]
        return [_declared(parameter.replace(kind=Parameter.KEYWORD_ONLY), texts) for parameter in own]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function."""
    text, texts = _described(function)
    parameters: list[Parameter] = []
    groups: dict[str, tuple[Any, list[Parameter]]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        group = parameter.annotation
        if (options := _options_of(group, texts)) is None:
            parameters.append(_declared(parameter, texts))
        else:
            groups[parameter.name] = group, options
            parameters += options
    if unknown := texts.keys() - {parameter.name for parameter in parameters}:
        raise TypeError(f"the help of {function.__name__} describes {unknown}, which it does not accept")

    @functools.wraps(function)
    def with_groups(**given: Any) -> None:
        for name, (group, options) in groups.items():
            values = {option.name: given.pop(option.name) for option in options}
            given[name] = _changed(values, options) if typing.is_typeddict(group) else group(**values)
        function(**given)

    with_groups.__doc__ = text
    return declared(with_groups, parameters)


def declared(function: Callable[..., None], parameters: Iterable[Parameter]) -> Callable[..., None]:
    """Make typer read these parameters of a function instead of its own."""
    ordered = sorted(parameters, key=lambda parameter: parameter.kind)
    function.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
    return function


def refuse(given: Mapping[str, object], why: str, hint: str = "omit it") -> None:
    """Reject options that do not apply.

    Args:
        given: by name; only those with a value were given.
        why: a phrase after the name of the first one.
        hint: of the error.

    Raises:
        UsageError: one was given.
    """
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise UsageError(f"`{wrong if wrong.isupper() else _flag(wrong)}` {why}", hint)


def _described(documented: Any) -> tuple[str, dict[str, str]]:
    """A docstring without the section about the parameters, and the text of each."""
    text = inspect.cleandoc(documented.__doc__ or "")
    section = _SECTION.search(text)
    entries = _ENTRY.findall(section[1]) if section else []
    return _SECTION.sub("", text), {name: " ".join(entry.split()) for name, entry in entries}


def _options_of(group: Any, texts: Mapping[str, str]) -> list[Parameter] | None:
    """The options of a group, which may have none; None if it is not one."""
    if typing.is_typeddict(group):
        hints = typing.get_type_hints(group, include_extras=True)
        return [_of_key(name, hint, {**_described(group)[1], **texts}) for name, hint in hints.items()]
    return group.options() if isinstance(group, type) and issubclass(group, Group) else None


def _of_key(name: str, hint: Any, texts: Mapping[str, str]) -> Parameter:
    """A key of a `TypedDict`: ``Option(NAMES…)``, or ``Option(DEFAULT, NAMES…)`` if the help shows the default."""
    kind, option = _split(hint)
    option, default = copy.copy(option or typer.Option()), None
    if not (option.default is ... or str(option.default).startswith("--")):
        default, option.default = option.default, ...
    elif kind is bool:
        default = False
    annotation: Any = kind if default is not None else kind | None
    parameter = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option])
    return _declared(parameter, texts)


def _declared(parameter: Parameter, texts: Mapping[str, str]) -> Parameter:
    """The parameter with its help; typer's context stays as it is."""
    if parameter.annotation is typer.Context:
        return parameter
    kind, given = _split(parameter.annotation)
    is_option = parameter.kind is Parameter.KEYWORD_ONLY
    info = copy.copy(given or (typer.Option() if is_option else typer.Argument()))
    info.help = info.help or texts.get(parameter.name)
    if kind is bool and info.default is ...:
        info.default = _flag(parameter.name)  # otherwise typer adds its opposite, `--no-…`
    return parameter.replace(annotation=Annotated[kind, info])


def _split(annotation: Any) -> tuple[Any, OptionInfo | ArgumentInfo | None]:
    if typing.get_origin(annotation) is not Annotated:
        return annotation, None
    kind, info = typing.get_args(annotation)
    return kind, info


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _changed(values: Mapping[str, Any], options: Iterable[Parameter]) -> dict[str, Any]:
    """The values that differ from the defaults, by the arguments of the library."""
    unset = {option.name: option.default for option in options}
    return {name: value for name, value in values.items() if value not in (unset[name], None, [], ())}
