"""The description of CometBFT before any run: its metrics, its profiles, and what two runs must share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from chainmark._native import check_transaction_size
from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Scalar
from chainmark.lab.profiles import check_profile
from chainmark.network.zones import load_zone_table
from chainmark.systems.cometbft.applications.loading import check_transactions
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.trails.trail import with_trails


class Described:
    """CometBFT, independent of who runs its nodes."""

    name = "cometbft"
    title = "CometBFT"

    @cache  # noqa: B019 - there is one object of this class, and it exists as long as the program
    def catalogue(self) -> Catalogue:
        """The metrics of ``catalogue.toml``."""
        return with_trails(load_catalogue(Path(__file__).with_name("catalogue.toml")))

    def profile(self, content: Mapping[str, object]) -> CometBFTProfile:
        """Check a profile's content, down to whether its transaction size can be encoded."""
        profile = check_profile(CometBFTProfile, content)
        load = profile.load
        adapter = profile.application.adapter
        if adapter is not None:
            check_transactions(adapter, load)
        try:
            if adapter is None or adapter.transaction.kind == "payload":
                check_transaction_size(load.total_connections, load.rate, load.size_bytes)
        except ValueError as error:
            reason = UsageError.from_native(error)
            raise UsageError(f"`load.size_bytes` cannot be used: {reason.message}", reason.hint) from error
        if profile.network.zones:
            load_zone_table(profile.network.zones)
        return profile

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The load and the network."""
        return cast(CometBFTProfile, profile).workload()
