"""Texts in parts: some lead somewhere, some are loud, some are keys to the letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Emphasis = Literal["worse", "better", "caution", "plain", "quiet"]


@dataclass(frozen=True)
class Phrase:
    """A part of a text.

    Attributes:
        target: an anchor of the document that it leads to.
        literal: it is a key or a command.
        address: another page of the dashboard that it leads to; nothing else shows it as a link.
    """

    text: str
    target: str = ""
    emphasis: Emphasis = "plain"
    literal: bool = False
    address: str = ""


Phrases = tuple[Phrase, ...]


def unphrased(phrases: Phrases) -> str:
    """The phrases as one text."""
    return "".join(phrase.text for phrase in phrases)
