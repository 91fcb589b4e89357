"""The model's record: its errors against published runs that it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping

from chainmark.systems.cardano.figures import ADOPTION
from chainmark.systems.cardano.model.results import Modelled

# Below this size a body is one round of a cold connection.
ONE_ROUND_BYTES = 14_000
# Root mean square errors by centile, of full and of small blocks, from release 10.3 on; `chainmark explain FOLDER`
# recomputes them, and docs/concepts/simulation.md shows them.
RECORD_LARGE = dict(zip(ADOPTION, (0.011, 0.009, 0.009, 0.009, 0.009, 0.008, 0.009, 0.009), strict=True))
RECORD_SMALL = dict(zip(ADOPTION, (0.011, 0.008, 0.006, 0.006, 0.006, 0.008, 0.014, 0.050), strict=True))
# The largest errors that are attributed to the model: about twice the record.
LIMITS_LARGE = dict(zip(ADOPTION, (0.03, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02), strict=True))
LIMITS_SMALL = dict(zip(ADOPTION, (0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.03, 0.09), strict=True))


def record(block_bytes: float) -> Mapping[str, float]:
    """The relative root mean square error of every adoption centile, for blocks of about that size."""
    return RECORD_SMALL if block_bytes < ONE_ROUND_BYTES else RECORD_LARGE


def allowed(block_bytes: float) -> Mapping[str, float]:
    """The maximum relative error of every adoption centile that the record allows."""
    return LIMITS_SMALL if block_bytes < ONE_ROUND_BYTES else LIMITS_LARGE


def joined(modelled: Modelled, relative: float) -> Modelled:
    """A figure, or a difference, whose Monte Carlo error is combined with the model's own, a share of it."""
    error = math.hypot(modelled.standard_error, relative * abs(modelled.value))
    return Modelled(value=modelled.value, standard_error=error)
