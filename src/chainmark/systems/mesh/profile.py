"""The profile of a load test of a Mesh (Rosetta) server."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.capacity.profile import LoadProfile
from chainmark.core.errors import UsageError
from chainmark.systems.mesh.bodies import READS_BY_ID
from chainmark.systems.mesh.corpus import CorpusRequest


class Mesh(BaseModel):
    """The requests to the server.

    Attributes:
        network: "network" or "blockchain/network", if the server has several.
        endpoints: IDs of the endpoints to test; empty: all that the server offers.
        strata: strata of the corpus to use; empty: all.
        by_stratum: search the capacity of each stratum separately, as if it were an endpoint.
        pruning: whether spent outputs are removed, and how long they are kept ("enabled, 7 days"); stated,
            because no server reports it.
        metadata_options: options of the request to `/construction/metadata`, if the server needs special ones.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str = ""
    endpoints: list[str] = []
    strata: list[str] = []
    by_stratum: bool = False
    pruning: str = ""
    metadata_options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _endpoints_are_known(self) -> Mesh:
        unknown = next((name for name in self.endpoints if name not in READS_BY_ID), None)
        if unknown is not None:
            raise UsageError(
                f"`mesh.endpoints` contains the unknown endpoint `{unknown}`", f"endpoints: {', '.join(READS_BY_ID)}"
            )
        return self


class MeshProfile(LoadProfile):
    """The whole profile."""

    mesh: Mesh = Mesh()
    corpus: Annotated[CorpusRequest, Field()] = CorpusRequest()
