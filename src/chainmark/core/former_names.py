"""The names that fields had in files of earlier releases."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field


def renamed(name: str, *former: str) -> Any:
    """For the annotation of a field that has another name in older files, which stay readable.

    Args:
        name: the field's name.
        former: its earlier names.
    """
    return Field(validation_alias=AliasChoices(name, *former))
