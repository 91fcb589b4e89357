"""What a candidate is held against where single runs are compared."""

from __future__ import annotations

from enum import StrEnum


class BaselineKind(StrEnum):
    """The baseline of a candidate."""

    HISTORY = "history"  # the level of the releases up to the baseline
    RUN = "run"  # the baseline's own run
