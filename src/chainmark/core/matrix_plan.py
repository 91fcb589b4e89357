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
    """The profile of a scenario, with changes.

    Attributes:
        title: name of the scenario in runs and reports; "": its id.
        profile: a shipped profile, or a TOML file; "": that of the plan.
        settings: of the profile, in the form of `--set`.
        endpoints: only these, by id or path; none: all of the profile.
        servers: ids of its servers; none: all.
        require: capacities that every server must reach, by endpoint.
        optional: a server without data for it does not affect the verdict.
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
        """Its title."""
        return self.title or self.id


class MatrixServer(_Part):
    """A server under test, and properties that it does not report itself.

    Attributes:
        id: the name of its `--target NAME=URL`.
        url: its URL; "": it is given on the command line.
        version: its version, if it does not report it.
        hardware_profile: name of its machine ("mid"); hardware: the machine.
        settings: of all profiles on it, in the form of `--set`: pruning, network.
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
    """The specific settings of one cell.

    Attributes:
        require: capacities that must be reached there, with precedence over those of its scenario.
        skip: why it is not run; "": it is.
    """

    scenario: Identifier
    server: Identifier
    settings: list[str] = []
    require: Required = {}
    skip: str = ""


class MatrixPlan(_Part):
    """The whole plan, in order of execution: scenario by scenario, server by server.

    Attributes:
        profile: for scenarios without one; settings: for all.
        servers: none: every target of the command, without further properties.
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
        for kind, ids in (
            ("scenarios", [scenario.id for scenario in self.scenarios]),
            ("servers", [server.id for server in self.servers]),
        ):
            twice = next((identifier for identifier in ids if ids.count(identifier) > 1), None)
            if twice:
                raise ValueError(f"two {kind} are called `{twice}`")
        bare = next((scenario.id for scenario in self.scenarios if not (scenario.profile or self.profile)), None)
        if bare:
            raise ValueError(f"the scenario `{bare}` has no profile, and the plan has no default profile")
        if self.servers:
            self._require_known([name for scenario in self.scenarios for name in scenario.servers])
            self._require_known([cell.server for cell in self.cells])
        unknown = next((cell.scenario for cell in self.cells if not self._has(cell.scenario)), None)
        if unknown:
            raise ValueError(f"a cell refers to the unknown scenario `{unknown}`")
        places = [(cell.scenario, cell.server) for cell in self.cells]
        double = next((place for place in places if places.count(place) > 1), None)
        if double:
            raise ValueError(f"the cell of `{double[0]}` on `{double[1]}` is defined twice")
        return self

    def _has(self, scenario: str) -> bool:
        return any(item.id == scenario for item in self.scenarios)

    def _require_known(self, names: Iterable[str]) -> None:
        server_ids = {server.id for server in self.servers}
        unknown = next((name for name in names if name not in server_ids), None)
        if unknown:
            raise ValueError(f"`{unknown}` is not one of the plan's servers: {', '.join(sorted(server_ids))}")

    def own_of(self, scenario: MatrixScenario, server: MatrixServer) -> MatrixCell:
        """The cell's specific settings; empty ones if the plan has none."""
        place = (scenario.id, server.id)
        matrix_cell = next((cell for cell in self.cells if (cell.scenario, cell.server) == place), None)
        return matrix_cell or MatrixCell(scenario=scenario.id, server=server.id)

    def places(self) -> list[tuple[MatrixScenario, MatrixServer]]:
        """The cells in order of execution."""
        return [
            (scenario, server)
            for scenario in self.scenarios
            for server in self.servers
            if not scenario.servers or server.id in scenario.servers
        ]
