"""The plan of a matrix of load tests: scenarios × servers, each cell a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.core.errors import UsageError

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Required = dict[str, dict[Literal["clients", "rate"], Annotated[float, Field(gt=0)]]]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MatrixScenario(_Part):
    """What is asked: a profile, changed.

    Attributes:
        title: what the scenario is called in runs and reports; "": its id.
        profile: a shipped profile, or a TOML file; "": that of the plan.
        settings: of the profile, as `--set` takes them.
        endpoints: only these, by id or path; none: all that the profile measures.
        servers: ids of the servers that it is run on; none: all.
        require: capacities that every server must reach, by endpoint.
        optional: where a server has nothing of it that could be asked, that decides nothing.
    """

    id: Identifier
    title: str = ""
    profile: str = ""
    settings: list[str] = []
    endpoints: list[str] = []
    servers: list[Identifier] = []
    require: Required = {}
    optional: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return self.title or self.id


class MatrixServer(_Part):
    """A server that is asked, and what no server tells of itself.

    Attributes:
        id: the name of its `--target NAME=URL`.
        url: where it is; "": the command says it.
        version: what it runs, where it does not say.
        hardware_profile: what its machine is called ("mid"); hardware: the machine.
        settings: of all profiles on it, as `--set` takes them: what is kept of the chain, its network.
    """

    id: Identifier
    url: str = ""
    version: str = ""
    hardware_profile: str = ""
    hardware: str = ""
    deployment: str = ""
    settings: list[str] = []

    @model_validator(mode="after")
    def _url_holds_no_password(self) -> Self:
        if "@" in self.url.partition("://")[2].partition("/")[0]:
            raise UsageError(
                f"the plan contains credentials for the server `{self.id}`, which would be stored with every "
                f"experiment",
                "give them on the command line: `--user 'name:${PASSWORD}'`",
            )
        return self


class MatrixCell(_Part):
    """What one cell has of its own.

    Attributes:
        require: capacities that must be reached there, before those of its scenario.
        skip: why it is not run; "": it is.
    """

    scenario: Identifier
    server: Identifier
    settings: list[str] = []
    require: Required = {}
    skip: str = ""


class MatrixPlan(_Part):
    """The whole plan, in the order in which it is run: scenario by scenario, server by server.

    Attributes:
        profile: of scenarios that name none; settings: of all.
        servers: none: every target of the command, of which nothing is stated.
    """

    system: str
    name: str
    title: str
    description: str = ""
    profile: str = ""
    settings: list[str] = []
    scenarios: Annotated[list[MatrixScenario], Field(min_length=1, alias="scenario")]
    servers: Annotated[list[MatrixServer], Field(alias="server")] = []
    cells: Annotated[list[MatrixCell], Field(alias="cell")] = []

    @model_validator(mode="after")
    def _names_fit(self) -> MatrixPlan:
        for what, ids in (
            ("scenarios", [scenario.id for scenario in self.scenarios]),
            ("servers", [server.id for server in self.servers]),
        ):
            twice = next((identifier for identifier in ids if ids.count(identifier) > 1), None)
            if twice:
                raise ValueError(f"two {what} are called `{twice}`")
        bare = next((scenario.id for scenario in self.scenarios if not (scenario.profile or self.profile)), None)
        if bare:
            raise ValueError(f"the scenario `{bare}` names no profile, and the plan has none for all")
        if self.servers:
            self._require_known([name for scenario in self.scenarios for name in scenario.servers])
            self._require_known([cell.server for cell in self.cells])
        stranger = next((cell.scenario for cell in self.cells if not self._has(cell.scenario)), None)
        if stranger:
            raise ValueError(f"a cell is of the scenario `{stranger}`, which the plan does not have")
        places = [(cell.scenario, cell.server) for cell in self.cells]
        double = next((place for place in places if places.count(place) > 1), None)
        if double:
            raise ValueError(f"the cell of `{double[0]}` on `{double[1]}` is defined twice")
        return self

    def _has(self, scenario: str) -> bool:
        return any(item.id == scenario for item in self.scenarios)

    def _require_known(self, names: Iterable[str]) -> None:
        known = {server.id for server in self.servers}
        stranger = next((name for name in names if name not in known), None)
        if stranger:
            raise ValueError(f"`{stranger}` is not one of the plan's servers: {', '.join(sorted(known))}")

    def own_of(self, scenario: MatrixScenario, server: MatrixServer) -> MatrixCell:
        """What the cell has of its own; nothing, where the plan says nothing of it."""
        place = (scenario.id, server.id)
        matrix_cell = next((cell for cell in self.cells if (cell.scenario, cell.server) == place), None)
        return matrix_cell or MatrixCell(scenario=scenario.id, server=server.id)

    def places(self) -> list[tuple[MatrixScenario, MatrixServer]]:
        """The cells in the order in which they are run."""
        return [
            (scenario, server)
            for scenario in self.scenarios
            for server in self.servers
            if not scenario.servers or server.id in scenario.servers
        ]
