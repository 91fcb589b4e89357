"""Gates, outcomes and the verdict: from sealed runs to a comparison."""

from chainmark.compare.assemble import compare

__all__ = ["compare"]
