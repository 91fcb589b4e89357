"""Texts in parts: some lead somewhere, some are loud, some are keys to the letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Emphasis = Literal["worse", "better", "caution", "plain", "quiet"]


@dataclass(frozen=True)
class Phrase:
    """A part of a text. ``target`` is an anchor of the document that it leads to, ``literal`` a key or a command."""

    text: str
    target: str = ""
    emphasis: Emphasis = "plain"
    literal: bool = False


Phrases = tuple[Phrase, ...]


def unphrased(phrases: Phrases) -> str:
    """The phrases as one text."""
    return "".join(phrase.text for phrase in phrases)
