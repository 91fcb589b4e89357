"""What a comparison is asked, and what the candidate is held against; a command line needs no more of them."""

from __future__ import annotations

from enum import StrEnum


class BaselineKind(StrEnum):
    """What a candidate is held against."""

    HISTORY = "history"  # the level of the releases up to the baseline
    RUN = "run"  # the baseline's own run


class Question(StrEnum):
    """What a comparison is asked."""

    WORSE = "worse"  # is the candidate worse than is allowed? Judged
    COST = "cost"  # what does a deliberate change cost? Measured, and not judged
