"""Cardano as a system under test."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.systems.cardano.profile import Profile
from chainmark.systems.profiles import check_profile


class Cardano:
    """The system `cardano`, found by entry point. Its nodes are run by others; here their figures are understood."""

    name = "cardano"
    title = "Cardano"

    @cache  # noqa: B019 - there is one object of this class, and it lives as long as the program
    def catalogue(self) -> Catalogue:
        """The metrics of ``catalogue.toml``."""
        return load_catalogue(Path(__file__).with_name("catalogue.toml"))

    def profile(self, content: Mapping[str, object]) -> Profile:
        """Check a profile's content, down to its topology file."""
        return check_profile(Profile, content)


SYSTEM = Cardano()
