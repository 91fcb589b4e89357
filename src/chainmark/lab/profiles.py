"""Profiles: found by name or path, changed by ``--set``, checked by their system."""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from chainmark.core.errors import UsageError
from chainmark.lab.named_files import Model, named_content
from chainmark.lab.registry import registered, shipped

CLUSTER, SCHEDULER = "cluster", "scheduler"


def shipped_profiles() -> list[str]:
    """The names of the profiles that come with the systems: "NAME/demo"."""
    return list(shipped("profiles"))


def read_profile(reference: str, settings: Iterable[str] = ()) -> dict[str, Any]:
    """A profile's content, with ``settings`` ("load.rate=400") applied; checked later by its system.

    Where it runs is no part of it, so that runs on other machines remain comparable: see `profile_cluster`.

    Raises:
        UsageError: there is no such profile, it is not TOML or has no ``system`` key, or a setting is not
            ``key=value``.
    """
    content = _content(reference, settings)
    content.pop(CLUSTER, None)
    return content


def profile_cluster(reference: str, settings: Iterable[str] = ()) -> str | None:
    """The scheduler that a profile names in its section ``[cluster]``; None if it has none.

    Raises:
        UsageError: as `read_profile`, or the section is invalid.
    """
    section = _content(reference, settings).get(CLUSTER)
    if section is None:
        return None
    if not isinstance(section, dict) or set(section) != {SCHEDULER} or not isinstance(section[SCHEDULER], str):
        raise UsageError(
            f"the section `[{CLUSTER}]` of the profile `{reference}` is invalid",
            f'it has one key, for example `{SCHEDULER} = "tcp://10.0.0.1:8786"`',
        )
    return str(section[SCHEDULER])


def _content(reference: str, settings: Iterable[str]) -> dict[str, Any]:
    content = named_content("profile", reference)
    if not isinstance(content.get("system"), str):
        raise UsageError(
            f"the profile {reference} does not name its system",
            f'the first line names it, `system = "NAME"`: {", ".join(registered()) or "none is installed"}',
        )
    for setting in settings:
        content = apply_setting(content, setting)
    return content


def apply_setting(content: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """A copy of ``content`` with one ``dotted.key=value`` set; the value is TOML, otherwise text.

    Raises:
        UsageError: the setting has no ``=``, or a part of its key is a value and not a section.
    """
    key, separator, text = setting.partition("=")
    if not separator or not key.strip():
        raise UsageError(f"`--set {setting}` is not `key=value`", "for example `--set load.rate=400`")
    changed: dict[str, Any] = copy.deepcopy(dict(content))
    section = changed
    *parents, last = key.strip().split(".")
    for parent in parents:
        section = section.setdefault(parent, {})
        if not isinstance(section, dict):
            raise UsageError(f"`{parent}` in `--set {setting}` is a value, not a section")
    section[last] = _toml_value(text.strip())
    return changed


def differing_keys(made: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted keys by which two profiles differ, sorted."""
    keys = []
    for key in sorted({*made, *wanted}):
        left, right = made.get(key), wanted.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            keys += differing_keys(left, right, f"{prefix}{key}.")
        elif left != right:
            keys.append(f"{prefix}{key}")
    return keys


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def check_profile(model: type[Model], content: Mapping[str, Any]) -> Model:
    """Check ``content`` against a system's profile model.

    Raises:
        UsageError: the first error, as a sentence with a hint.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _profile_error(model, error) from error


def _profile_error(model: type[BaseModel], error: ValidationError) -> UsageError:
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    key = ".".join(location)
    if first["type"] == "extra_forbidden":
        known = _keys(model)
        # All entries of a list have the same keys.
        plain = ".".join(part for part in location if not part.isdigit())
        close = difflib.get_close_matches(plain, known, n=1, cutoff=0.5)
        siblings = [name for name in known if name.rpartition(".")[0] == plain.rpartition(".")[0]]
        hint = f"did you mean `{close[0]}`?" if close else f"known keys here: {', '.join(siblings)}"
        return UsageError(f"`{key}` is not a key of a profile", hint)
    if first["type"] == "value_error":
        return UsageError(str(first["ctx"]["error"]))
    field = _field(model, location)
    default = field.default if field is not None and not field.is_required() else None
    hint_text = f"`--set {key}={default}` is the default" if default is not None else None
    unit = f" {field.description}" if field is not None and field.description else ""
    return UsageError(f"`{key}` is {first['input']!r}, but {_requirement(first['msg'])}{unit}", hint_text)


def _requirement(message: str) -> str:
    """Pydantic's "Input should be greater than or equal to 1" as "must be at least 1"."""
    text = message.removeprefix("Input should be ").replace("greater than or equal to", "at least")
    return "must be " + text.replace("less than or equal to", "at most").replace("greater than", "more than")


def _section(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *get_args(annotation)]
    return next(
        (candidate for candidate in candidates if isinstance(candidate, type) and issubclass(candidate, BaseModel)),
        None,
    )


def _keys(model: type[BaseModel], prefix: str = "", around: tuple[type[BaseModel], ...] = ()) -> list[str]:
    """All dotted keys of a profile model; a recursive section is listed once."""
    keys = []
    for name, field in model.model_fields.items():
        section = _section(field.annotation)
        inner = section is not None and section not in {*around, model}
        keys += _keys(section, f"{prefix}{name}.", (*around, model)) if section and inner else [f"{prefix}{name}"]
    return keys


def _field(model: type[BaseModel], location: list[str]) -> FieldInfo | None:
    """The field at a dotted path of a profile model, or None if there is no single one."""
    for index, name in enumerate(location):
        field = model.model_fields.get(name)
        if field is None:
            return None
        section = _section(field.annotation)
        if section is None:
            return field if index == len(location) - 1 else None
        model = section
    return None
