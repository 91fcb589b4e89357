"""Gates, outcomes and the verdict: from sealed runs to a comparison."""

from chainmark.compare.assemble import compare
from chainmark.compare.inputs import RunData

__all__ = ["RunData", "compare"]
