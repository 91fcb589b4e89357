"""The sections that the profiles of all load tests share: the agreement, the steps, the searches, the fixed levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.capacity.agreement import Sla
from chainmark.capacity.course import Course, Ramp, Spike
from chainmark.capacity.model import HTTP_1, HttpVersion, Level, LevelKind
from chainmark.capacity.plan import LINEAR_LADDER, SearchPlan
from chainmark.capacity.protocol import WantedVersion
from chainmark.capacity.step import StepSettings, timeout_of
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Scalar

_SECTION = ConfigDict(extra="forbid", frozen=True)
Seconds = Annotated[float, Field(ge=0, le=86_400, description="(seconds)")]


class Steps(BaseModel):
    """How every step of load is run."""

    model_config = _SECTION

    # The window; longer where an endpoint is too slow for its percentiles, up to `longest_s`.
    duration_s: Annotated[float, Field(ge=1, le=86_400, description="(seconds)")] = 10.0
    longest_s: Annotated[float, Field(ge=1, le=86_400, description="(seconds)")] = 120.0
    # Left out: the agreement's p99, from 1 to 10 s.
    warm_up_s: Seconds | None = None
    drain_s: Seconds = 5.0
    # Left out: twice the agreement's p99, at least 10 s.
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="(seconds)")] | None = None
    # Between steps a pause, and then until one client is answered as quickly as before the first step, but not longer
    # than this; 0: such a wait is not made.
    cool_down_s: Seconds = 0.5
    recovery_longest_s: Seconds = 30.0
    schedule: Literal["even", "poisson"] = "even"
    # Connections that a rate may open at most.
    connections: Annotated[int, Field(ge=1, le=100_000)] = 1024
    # 0: a connection is kept as long as the server keeps it; 1: a new one for every request.
    requests_per_connection: Annotated[int, Field(ge=0)] = 0
    # "2": HTTP/2, to which a server with TLS must agree; without TLS it is known beforehand. "auto": as the server
    # chooses before the load.
    http_version: WantedVersion = "1.1"
    # HTTP/2: so many clients, or requests of a rate, share a connection, each with a stream of its own.
    streams: Annotated[int, Field(ge=1, le=1000)] = 1
    # How the bodies of requests are compressed; answers are, where `--header "Accept-Encoding: gzip"` asks for that.
    request_coding: Literal["gzip", "br"] | None = None
    drawing: Literal["sequence", "random"] = "random"
    # Between an answer and the same client's next request: exponential, this long on average; rates have no clients.
    think_s: Annotated[float, Field(ge=0, le=3600, description="(seconds)")] = 0.0
    # Threads of the generator; 0 chooses by the machine.
    threads: Annotated[int, Field(ge=0, le=256)] = 0


class Search(BaseModel):
    """Which capacities are looked for, and between which ends."""

    model_config = _SECTION

    kinds: list[Literal["clients", "rate"]] = ["clients", "rate"]
    clients_first: Annotated[int, Field(ge=1, le=100_000)] = 1
    clients_last: Annotated[int, Field(ge=1, le=100_000)] = 1024
    rate_first: Annotated[float, Field(gt=0, le=1e6)] = 32.0
    rate_last: Annotated[float, Field(gt=0, le=1e6)] = 32_768.0
    rate_floor: Annotated[float, Field(gt=0, le=1e6)] = 0.5
    relative_gap: Annotated[float, Field(ge=0.001, le=1)] = 0.05
    # How often the best pass and the first fail are measured in all.
    times: Annotated[int, Field(ge=1, le=20)] = 3
    # "published": the clients of the published load tests, 1, 2, 4, 8 … 100, 125 … 500, one after the other.
    ladder: Literal["doubling", "published"] = "doubling"

    def plans(self) -> tuple[SearchPlan, ...]:
        """One plan a kind."""
        return tuple(self._plan(LevelKind(kind)) for kind in dict.fromkeys(self.kinds))

    def _plan(self, kind: LevelKind) -> SearchPlan:
        if kind is LevelKind.RATE:
            return SearchPlan.of_rates(self.rate_first, self.rate_last, self.rate_floor, self.relative_gap, self.times)
        if self.ladder == "published":
            return SearchPlan.of_ladder(kind, LINEAR_LADDER, self.times)
        return SearchPlan.of_clients(self.clients_first, self.clients_last, self.relative_gap, self.times)


class Fixed(BaseModel):
    """Levels at which all sides of a comparison are measured alike."""

    model_config = _SECTION

    # Shares of the least capacity that was found; left out where levels are given.
    shares: list[Annotated[float, Field(gt=0, le=1)]] = [0.5, 0.8]
    # Given levels, in requests per second and in clients, by the endpoint's id.
    rates: dict[str, list[Annotated[float, Field(gt=0, le=1e6)]]] = {}
    clients: dict[str, list[Annotated[int, Field(ge=1, le=100_000)]]] = {}
    times: Annotated[int, Field(ge=0, le=100)] = 3
    duration_s: Annotated[float, Field(ge=1, le=86_400, description="(seconds)")] = 10.0
    # Requests of a step that are kept one by one.
    records: Annotated[int, Field(ge=1000, le=5_000_000)] = 1_000_000


# Clients, or requests per second: before and after.
_Rates = Annotated[list[Annotated[float, Field(gt=0, le=1e6)]], Field(min_length=2, max_length=2)]
_Clients = Annotated[list[Annotated[int, Field(ge=1, le=100_000)]], Field(min_length=2, max_length=2)]
_PHASE = Field(gt=0, le=86_400, description="(seconds)")


class _Changing(BaseModel):
    """A load that goes from one level to another."""

    model_config = _SECTION

    # From and to, in requests per second and in clients, by the endpoint's id.
    rates: dict[str, _Rates] = {}
    clients: dict[str, _Clients] = {}

    @model_validator(mode="after")
    def _rises(self) -> _Changing:
        for name, (low, high) in self._levels():
            if low >= high:
                raise UsageError(f"`{name}` goes from {units.tidy(low)} to {units.tidy(high)}", "it must rise")
        return self

    def _levels(self) -> list[tuple[str, tuple[float, float]]]:
        return [
            (f"{section}.{id_}", (float(pair[0]), float(pair[1])))
            for section, named in (("rates", self.rates), ("clients", self.clients))
            for id_, pair in named.items()
        ]

    def endpoints(self) -> dict[str, list[tuple[LevelKind, float, float]]]:
        """Kind, from and to, by the endpoint's id."""
        found: dict[str, list[tuple[LevelKind, float, float]]] = {}
        for kind, named in ((LevelKind.CLIENTS, self.clients), (LevelKind.RATE, self.rates)):
            for id_, pair in named.items():
                found.setdefault(id_, []).append((kind, float(pair[0]), float(pair[1])))
        return found


class RampSection(_Changing):
    """A load that rises linearly: from which level on the agreement is missed."""

    duration_s: Annotated[float, _PHASE] = 300.0
    times: Annotated[int, Field(ge=1, le=100)] = 1


class SpikeSection(_Changing):
    """A steady load, much more for a short time, and the steady load again: how long the server takes to recover."""

    before_s: Annotated[float, _PHASE] = 30.0
    # From the first level to the second; the load falls at once.
    rise_s: Seconds = 0.0
    peak_s: Annotated[float, _PHASE] = 10.0
    after_s: Annotated[float, _PHASE] = 60.0
    # The server has recovered when its p99 is at most so much above what it was before.
    recovery_share: Annotated[float, Field(gt=0, le=10)] = 0.2
    times: Annotated[int, Field(ge=1, le=100)] = 3


class LoadProfile(BaseModel):
    """What the profile of any load test holds."""

    model_config = _SECTION

    system: str
    name: str
    description: str = ""
    # What is special about the server or the data: "huge address", "pruning on".
    scenario: str = ""
    # The servers' hardware, where they run elsewhere: of all, or by the target's name. It is stated, not measured.
    hardware: str | dict[str, str] = ""
    # What that hardware is called in tables ("mid"), and how the servers are deployed ("Docker Compose"): stated, too.
    hardware_profile: str = ""
    deployment: str = ""
    sla: Sla = Sla()
    # What an endpoint is held to instead, by its id.
    sla_of: dict[str, Sla] = {}
    # Capacities that must be reached: `block = {clients = 100, rate = 500}`.
    require: dict[str, dict[Literal["clients", "rate"], Annotated[float, Field(gt=0)]]] = {}
    # Several endpoints as one load, by their ids: how often each is asked in relation to the others.
    mix: dict[str, Annotated[float, Field(gt=0, le=1e9)]] = {}
    # The same learnt from an access log: nginx's and Apache's combined format, or JSON lines.
    mix_from: str = ""
    steps: Steps = Steps()
    search: Search = Search()
    fixed: Fixed = Fixed()
    ramp: RampSection = RampSection()
    spike: SpikeSection = SpikeSection()

    @model_validator(mode="after")
    def _searches_have_levels(self) -> LoadProfile:
        self.search.plans()
        if self.mix and self.mix_from:
            raise UsageError("the profile has both `mix` and `mix_from`", "give only one of them")
        if self.steps.streams > 1 and self.steps.http_version == "1.1":
            raise UsageError(
                "`steps.streams` needs HTTP/2, but the profile asks for HTTP/1.1", "add `--http2`, or remove it"
            )
        return self

    def agreement(self, endpoint_id: str) -> Sla:
        """What the endpoint is held to."""
        return self.sla_of.get(endpoint_id, self.sla)

    def timeout_s(self, endpoint_id: str = "") -> float:
        """How long an answer is waited for, before the load as under it."""
        return timeout_of(self.steps.timeout_s, self.agreement(endpoint_id))

    def fixed_levels(self) -> dict[str, tuple[Level, ...]]:
        """The given levels by the endpoint's id; an endpoint without any is not in it."""
        found: dict[str, set[Level]] = {}
        for endpoint, clients in self.fixed.clients.items():
            found.setdefault(endpoint, set()).update(Level(LevelKind.CLIENTS, float(one)) for one in clients)
        for endpoint, rates in self.fixed.rates.items():
            found.setdefault(endpoint, set()).update(Level(LevelKind.RATE, float(one)) for one in rates)
        return {endpoint: tuple(sorted(levels)) for endpoint, levels in found.items() if levels}

    def courses(self) -> dict[str, tuple[Course, ...]]:
        """Loads that change while they run, by the endpoint's id."""
        found: dict[str, list[Course]] = {}
        for id_, ramps in self.ramp.endpoints().items():
            found.setdefault(id_, []).extend(
                Ramp(kind, low, high, self.ramp.duration_s, self.ramp.times) for kind, low, high in ramps
            )
        shape = self.spike.model_dump(exclude={"rates", "clients"})
        for id_, spikes in self.spike.endpoints().items():
            found.setdefault(id_, []).extend(Spike(kind, low, high, **shape) for kind, low, high in spikes)
        return {id_: tuple(courses) for id_, courses in found.items()}

    def step_settings(self, seed: int) -> StepSettings:
        """What all steps have in common."""
        return StepSettings(**self.steps.model_dump(exclude={"http_version"}), records=self.fixed.records, seed=seed)

    def required(self) -> dict[str, float]:
        """The capacities that must be reached, by "endpoint.kind"."""
        return {
            f"{endpoint}.{kind}": value for endpoint, kinds in self.require.items() for kind, value in kinds.items()
        }

    def workload(self, http_version: HttpVersion = HTTP_1) -> dict[str, Scalar | list[Scalar]]:
        """What two runs must share to be comparable, flattened to dotted keys.

        Args:
            http_version: in which the server was asked in the end.
        """
        shared: dict[str, Any] = {
            "sla": self.sla.terms(),
            **{f"sla_of.{endpoint}": sla.terms() for endpoint, sla in sorted(self.sla_of.items())},
            # What was not there before is left out where it does nothing, so that older runs stay comparable.
            "steps": self.steps.model_dump(
                exclude={"threads", "http_version", "streams"}
                | {name for name in ("request_coding", "think_s") if not getattr(self.steps, name)}
            ),
            "search": self.search.model_dump(exclude={"kinds"}),
        }
        for name, section in (("ramp", self.ramp), ("spike", self.spike)):
            if section.endpoints():
                levels: dict[str, Mapping[str, list[Any]]] = {"rates": section.rates, "clients": section.clients}
                shared[name] = section.model_dump(exclude=set(levels)) | {
                    f"{what}.{id_}": pair for what, named in levels.items() for id_, pair in named.items()
                }
        if http_version != HTTP_1:
            shared["steps"] |= {"http_version": http_version, "streams": self.steps.streams}
        if self.mix:
            total = sum(self.mix.values())
            shared["mix"] = {name: units.rounded(weight / total, 4) for name, weight in sorted(self.mix.items())}
        return {f"{section}.{key}": value for section, content in shared.items() for key, value in content.items()}
