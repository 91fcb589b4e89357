"""The profile of a load test of a Mesh (Rosetta) server."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.capacity.profile import LoadProfile
from chainmark.core.errors import UsageError
from chainmark.systems.mesh.bodies import READS_BY_ID
from chainmark.systems.mesh.corpus import CorpusOrder


class Mesh(BaseModel):
    """What is asked of the server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # "network" or "blockchain/network", where the server has several.
    network: str = ""
    # Ids of the endpoints; empty: all that the server offers.
    endpoints: list[str] = []
    # Only items of these strata of the corpus; empty: all.
    strata: list[str] = []
    # Search the capacity of every stratum by itself, as if each were an endpoint.
    by_stratum: bool = False
    # Whether spent outputs are removed, and how long they are kept ("enabled, 7 days"): stated, as no server tells it.
    pruning: str = ""
    # What `/construction/metadata` is asked with, where the server wants something of its own.
    metadata_options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _endpoints_are_known(self) -> Mesh:
        stranger = next((name for name in self.endpoints if name not in READS_BY_ID), None)
        if stranger is not None:
            raise UsageError(f"`mesh.endpoints` names `{stranger}`", f"endpoints: {', '.join(READS_BY_ID)}")
        return self


class MeshProfile(LoadProfile):
    """The whole profile."""

    mesh: Mesh = Mesh()
    corpus: Annotated[CorpusOrder, Field()] = CorpusOrder()
