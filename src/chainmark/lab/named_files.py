"""Profiles and plans: those that come with the systems, by their names, and users' own TOML files, by their paths."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from chainmark.core.errors import UsageError
from chainmark.lab.registry import shipped

Model = TypeVar("Model", bound=BaseModel)
Kind = Literal["profile", "plan"]


def named_content(kind: Kind, reference: str) -> dict[str, Any]:
    """The content of a shipped one or of a file; without a name of its own, it is named as it was referred to.

    Raises:
        UsageError: there is none, or it is not TOML.
    """
    known, path = shipped(f"{kind}s"), Path(reference)
    if reference in known:
        return {"name": reference, **toml_of(kind, known[reference])}
    if path.is_file():
        return {"name": path.stem, **toml_of(kind, path)}
    close = difflib.get_close_matches(reference, known, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"shipped {kind}s: {', '.join(known) or 'none'}"
    raise UsageError(f"there is no {kind} `{reference}`", hint)


def toml_of(kind: Kind, source: Path) -> dict[str, Any]:
    """The content of a file.

    Raises:
        UsageError: it is not TOML.
    """
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the {kind} {source} is not valid TOML: {error}") from error


def checked_plan(model: type[Model], reference: str, content: Mapping[str, object]) -> Model:
    """A plan of its kind.

    Raises:
        UsageError: it cannot be used; the message names the first error.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reported = str(first["ctx"]["error"]) if first["type"] == "value_error" else f"`{where}`: {first['msg']}"
        raise UsageError(f"the plan `{reference}` cannot be used: {reported}") from error
