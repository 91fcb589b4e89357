"""The question of a comparison, its reference and its style; the command line needs only these."""

from __future__ import annotations

from enum import StrEnum


class BaselineKind(StrEnum):
    """The reference of a candidate."""

    HISTORY = "history"  # the level of the releases up to the baseline
    RUN = "run"  # the baseline's own run


class Question(StrEnum):
    """The question of a comparison."""

    WORSE = "worse"  # Is the candidate worse than allowed? Judged
    COST = "cost"  # What does a deliberate change cost? Measured, not judged


class ComparisonStyle(StrEnum):
    """How to show a comparison."""

    OWN = "own"
    PUBLISHED = "published"
