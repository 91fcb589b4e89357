"""Texts in parts: some are links, some are emphasised, some are literal keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

Emphasis = Literal["worse", "better", "caution", "plain", "quiet"]


@dataclass(frozen=True)
class Phrase:
    """A part of a text.

    Attributes:
        target: an anchor of the document that it links to.
        literal: it is a key or a command.
        address: another page of the dashboard that it links to; a link only there.
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


def in_spans(text: str) -> list[str]:
    """A text in parts, which are alternately plain and code: code is between two backticks."""
    parts = text.split("`")
    return parts if len(parts) % 2 else [text]


def computed_address(system: str, metric_id: str, statistic: str, run_ids: Sequence[str]) -> str:
    """The dashboard's page that explains how a figure of these runs was computed, at its definition."""
    query = urlencode([("statistic", statistic), *(("run", run_id) for run_id in run_ids)])
    return f"/metrics/{quote(system, safe='')}/{quote(metric_id, safe='')}?{query}#definition"
