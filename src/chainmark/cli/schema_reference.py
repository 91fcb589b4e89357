"""The reference of profiles and of the files of a run, generated from the models that read them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Manifest
from chainmark.lab.profiles import read_profile, shipped_profiles
from chainmark.systems.base import load_system, system_names

_LIMITS = (("minimum", "≥ "), ("exclusiveMinimum", "> "), ("maximum", "≤ "), ("exclusiveMaximum", "< "))


class _Metrics(BaseModel):
    """``metrics.json``."""

    metrics: list[MetricSummary]


def profile_models() -> dict[str, type[BaseModel]]:
    """By system, the model that validates its profiles; for systems that ship a profile."""
    shipped = shipped_profiles()
    result = {}
    for system in system_names():
        first = next((name for name in shipped if name.startswith(f"{system}/")), None)
        if first is not None:
            result[system] = type(load_system(system).profile(read_profile(first)))
    return result


def profiles_page() -> str:
    """Every key of the profiles of every system, as Markdown."""
    lines = [
        "# Every key of a profile",
        "",
        "Generated from the models that check profiles by `make docs`. A key of a list of sections has `[]`:",
        "`request[].path` is the `path` of a `[[request]]`.",
        "`--set key=value` changes any of them for one command.",
        "",
    ]
    for system, model in profile_models().items():
        lines += [f"## {load_system(system).title}", "", "| key | value | default | meaning |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(cells)} |" for cells in _rows(model, _schema(model))]
        lines += [""]
    return "\n".join(lines)


def schemas() -> dict[str, str]:
    """JSON Schemas of the JSON and TOML files, by file name."""
    models: dict[str, type[BaseModel]] = {"manifest": Manifest, "catalogue": Catalogue, "metrics": _Metrics}
    models |= {f"profile-{system}": model for system, model in profile_models().items()}
    return {
        f"schemas/{name}.json": json.dumps(_schema(model), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        for name, model in models.items()
    }


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True, mode="validation")


def _rows(
    model: type[BaseModel], schema: Mapping[str, Any], prefix: str = "", around: tuple[type[BaseModel], ...] = ()
) -> Iterator[tuple[str, str, str, str]]:
    """Key, value, default and meaning of every field; a recursive section is listed once."""
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        shape = schema.get("$defs", {}).get(model.__name__, schema)["properties"][field.alias or name]
        section = _section(field.annotation)
        meaning = _cell(meanings.get(name, field.description or ""))
        if section is None or section in {model, *around}:
            yield f"`{key}`", _cell(_shown(shape, schema)), _default(field), meaning
            continue
        many = "[]" if "array" in json.dumps(shape) else ""
        if meaning:
            yield f"`{key}{many}`", "section", "", meaning
        yield from _rows(section, schema, f"{key}{many}.", (*around, model))


def _section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((result for argument in get_args(annotation) if (result := _section(argument)) is not None), None)


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The descriptions of each attribute in the docstrings of a model and of its bases."""
    results: dict[str, str] = {}
    for each in reversed(model.__mro__):
        _, _, attributes = (inspect.cleandoc(each.__doc__ or "")).partition("Attributes:\n")
        for names, text in re.findall(r"^ {4}(\w[\w, ]*): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE):
            results |= dict.fromkeys(re.split(r",\s*", names), " ".join(text.split()))
    return results


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    text = "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return f"`{_cell(text)}`" if text else "–"


def _shown(shape: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in shape:
        return _shown(schema["$defs"][str(shape["$ref"]).rpartition("/")[2]], schema)
    choices = shape.get("anyOf") or shape.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_shown(choice, schema) for choice in choices if choice.get("type") != "null"))
    values = shape.get("enum") or ([shape["const"]] if "const" in shape else [])
    if values:
        return ", ".join(f"`{value}`" for value in values)
    kind = str(shape.get("type", "any"))
    inner = shape.get({"array": "items", "object": "additionalProperties"}.get(kind, ""))
    if isinstance(inner, dict):
        return f"{'list' if kind == 'array' else 'table'} of {_shown(inner, schema)}"
    limits = [f"{sign}{units.tidy(shape[name])}" for name, sign in _LIMITS if name in shape]
    words = {"object": "table", "array": "list", "string": "text", "boolean": "true or false"}.get(kind, kind)
    return ", ".join([words, *limits])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
