"""Caveats about the data: badges and sentences, first in every rendering."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core import units
from chainmark.core.manifest import Manifest
from chainmark.core.verdict import PRINTED, SYNTHETIC

A_A = "A/A"
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Caveats(BaseModel):
    """Badges, such as "SYNTHETIC", and sentences; both are empty without caveats."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    badges: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """The caveats of several results, each once."""
        result = list(parts)
        badges = dict.fromkeys(badge for item in result for badge in item.badges)
        sentences = dict.fromkeys(sentence for item in result for sentence in item.sentences)
        return cls(badges=tuple(badges), sentences=tuple(sentences))


def is_empty(caveats: Caveats) -> bool:
    """Whether there are none, so that the JSON of a result can omit them."""
    return not caveats.badges and not caveats.sentences


CaveatsField = Annotated[Caveats, Field(exclude_if=is_empty)]


def caveats_of(manifests: Iterable[Manifest]) -> Caveats:
    """The caveats in the runs behind a result.

    Args:
        manifests: of all of them.
    """
    runs = list(manifests)
    reported = {
        SYNTHETIC: _counted_sentence(
            runs, "synthetic", "synthetic data: {}the logs were written by a simulation, not by nodes"
        ),
        PRINTED: _counted_sentence(runs, "printed", "printed figures: {}read from a published report, without samples"),
    }
    badges = tuple(badge for badge, sentence in reported.items() if sentence)
    contradictions = dict.fromkeys(text for run in runs for text in run.contradictions)
    return Caveats(badges=badges, sentences=(*filter(None, reported.values()), *contradictions))


def _counted_sentence(runs: Sequence[Manifest], property_: str, sentence: str) -> str:
    """The sentence with the number of runs that have a property; "" if none has it."""
    having = sum(bool(getattr(run, property_)) for run in runs)
    if not having:
        return ""
    return sentence.format("" if having == len(runs) else f"{having} of {units.plural(len(runs), 'run')}: ")


def contradicts(label: str, reported: str) -> bool:
    """Whether a label names another version than the measured one.

    A label without a version contradicts nothing, and "10.5" is short for 10.5.4.

    Args:
        label: the user's name: "10.6.2", "v1.0.1-rc1", "my-branch".
        reported: the version in the logs, or reported by a server or a binary.
    """
    named, match = _VERSION.search(label), _VERSION.search(reported)
    if named is None or match is None:
        return False
    left, right = named[0].split("."), match[0].split(".")
    least = min(len(left), len(right))
    return left[:least] != right[:least]
