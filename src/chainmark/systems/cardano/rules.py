"""The rules by which a cluster's logs are analysed: the correct ones, or those of the published reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The differences between the two.

    Attributes:
        published: reproduce the published reports, including their quirks.
        count_switches: a block that a host adopts by switching to another fork counts as adopted. The published
            reports do not see such adoptions.
    """

    published: bool = False
    count_switches: bool = True

    @property
    def switches_count(self) -> bool:
        """Whether a switch to a fork is an adoption under these rules."""
        return self.count_switches and not self.published
