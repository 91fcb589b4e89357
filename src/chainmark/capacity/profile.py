"""The sections that the profiles of all load tests share: the SLA, the steps, the searches, the fixed levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.capacity.course import Course, Ramp, Spike
from chainmark.capacity.generators import MOST
from chainmark.capacity.model import HTTP_1, HttpVersion, LevelKind, LoadLevel
from chainmark.capacity.plan import LINEAR_LADDER, SearchPlan
from chainmark.capacity.protocol import WantedVersion
from chainmark.capacity.service_level import Sla
from chainmark.capacity.step import StepSettings, timeout_of
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Scalar

_SECTION = ConfigDict(extra="forbid", frozen=True)
Seconds = Annotated[float, Field(ge=0, le=86_400, description="(seconds)")]


class Steps(BaseModel):
    """How every step of load is run.

    Attributes:
        duration_s: length (seconds) of the measured window; longer if an endpoint is too slow for its
            percentiles, up to `longest_s`.
        longest_s: longest window (seconds).
        warm_up_s: load (seconds) before the window; if omitted: the p99 of the SLA, from 1 to 10 s.
        drain_s: time (seconds) to wait for responses after the window.
        timeout_s: time (seconds) after which a request has failed; if omitted: twice the p99 of the SLA, at least
            10 s.
        cool_down_s: pause (seconds) between steps.
        recovery_longest_s: longest time (seconds) to wait after the pause until one client gets its responses
            as quickly as before the first step; 0: do not wait.
        schedule: intervals between the requests of a rate: "even" or "poisson" (random).
        connections: largest number of connections that a rate may open.
        requests_per_connection: requests after which a connection is closed; 0: it is kept as long as the
            server keeps it.
        http_version: "2": HTTP/2, which a server with TLS must offer; without TLS it is used from the first
            byte. "auto": what the server offers before the load.
        streams: HTTP/2: number of clients, or of requests of a rate, that share a connection.
        request_coding: compression of request bodies; for responses give `--header "Accept-Encoding: gzip"`.
        drawing: order of the requests of a corpus: "sequence" or "random".
        think_s: mean time (seconds) between a response and the same client's next request, drawn from an
            exponential distribution; does not apply to rates.
        threads: threads of each generator; 0: chosen by the machine.
        generators: number of processes that generate the load together; if omitted: 1, or with `--on` one on every
            machine of the cluster.
    """

    model_config = _SECTION

    duration_s: Annotated[float, Field(ge=1, le=86_400, description="(seconds)")] = 10.0
    longest_s: Annotated[float, Field(ge=1, le=86_400, description="(seconds)")] = 120.0
    warm_up_s: Seconds | None = None
    drain_s: Seconds = 5.0
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="(seconds)")] | None = None
    cool_down_s: Seconds = 0.5
    recovery_longest_s: Seconds = 30.0
    schedule: Literal["even", "poisson"] = "even"
    connections: Annotated[int, Field(ge=1, le=100_000)] = 1024
    requests_per_connection: Annotated[int, Field(ge=0)] = 0
    http_version: WantedVersion = "1.1"
    streams: Annotated[int, Field(ge=1, le=1000)] = 1
    request_coding: Literal["gzip", "br"] | None = None
    drawing: Literal["sequence", "random"] = "random"
    think_s: Annotated[float, Field(ge=0, le=3600, description="(seconds)")] = 0.0
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    generators: Annotated[int, Field(ge=1, le=MOST)] | None = None


class Search(BaseModel):
    """Which capacities are looked for, and between which ends.

    Attributes:
        kinds: which capacities are searched: number of concurrent clients, request rate per second.
        clients_first: number of clients at which the search begins.
        clients_last: number of clients at which it ends.
        rate_first: requests per second at which the search begins.
        rate_last: requests per second at which it ends.
        rate_floor: requests per second below which it gives up.
        relative_gap: largest distance between the best passed and the first failed level, divided by the lower
            one.
        times: how often these two levels are measured in all.
        ladder: "doubling": levels are doubled, then bisected; "published": the client counts of the published
            load tests, 1, 2, 4, 8 … 100, 125 … 500, in turn.
    """

    model_config = _SECTION

    kinds: list[Literal["clients", "rate"]] = ["clients", "rate"]
    clients_first: Annotated[int, Field(ge=1, le=100_000)] = 1
    clients_last: Annotated[int, Field(ge=1, le=100_000)] = 1024
    rate_first: Annotated[float, Field(gt=0, le=1e6)] = 32.0
    rate_last: Annotated[float, Field(gt=0, le=1e6)] = 32_768.0
    rate_floor: Annotated[float, Field(gt=0, le=1e6)] = 0.5
    relative_gap: Annotated[float, Field(ge=0.001, le=1)] = 0.05
    times: Annotated[int, Field(ge=1, le=20)] = 3
    ladder: Literal["doubling", "published"] = "doubling"

    def plans(self) -> tuple[SearchPlan, ...]:
        """One plan per kind."""
        return tuple(self._plan(LevelKind(kind)) for kind in dict.fromkeys(self.kinds))

    def _plan(self, kind: LevelKind) -> SearchPlan:
        if kind is LevelKind.RATE:
            return SearchPlan.of_rates(self.rate_first, self.rate_last, self.rate_floor, self.relative_gap, self.times)
        if self.ladder == "published":
            return SearchPlan.of_ladder(kind, LINEAR_LADDER, self.times)
        return SearchPlan.of_clients(self.clients_first, self.clients_last, self.relative_gap, self.times)


class Fixed(BaseModel):
    """Levels at which all sides of a comparison are measured alike.

    Attributes:
        shares: levels as shares of the lowest capacity found on any side; not used if levels are given.
        rates: levels in requests per second, by endpoint ID.
        clients: levels in clients, by endpoint ID.
        times: how often each level is measured.
        duration_s: length (seconds) of the measured window.
        records: largest number of requests per step that are stored one by one.
    """

    model_config = _SECTION

    shares: list[Annotated[float, Field(gt=0, le=1)]] = [0.5, 0.8]
    rates: dict[str, list[Annotated[float, Field(gt=0, le=1e6)]]] = {}
    clients: dict[str, list[Annotated[int, Field(ge=1, le=100_000)]]] = {}
    times: Annotated[int, Field(ge=0, le=100)] = 3
    duration_s: Annotated[float, Field(ge=1, le=86_400, description="(seconds)")] = 10.0
    records: Annotated[int, Field(ge=1000, le=5_000_000)] = 1_000_000


# Clients, or requests per second: before and after.
_Rates = Annotated[list[Annotated[float, Field(gt=0, le=1e6)]], Field(min_length=2, max_length=2)]
_Clients = Annotated[list[Annotated[int, Field(ge=1, le=100_000)]], Field(min_length=2, max_length=2)]
_PHASE = Field(gt=0, le=86_400, description="(seconds)")


class _Changing(BaseModel):
    """A load that changes from one level to another.

    Attributes:
        rates: first and last level in requests per second, by endpoint ID.
        clients: first and last level in clients, by endpoint ID.
    """

    model_config = _SECTION

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
        level_kinds: dict[str, list[tuple[LevelKind, float, float]]] = {}
        for kind, named in ((LevelKind.CLIENTS, self.clients), (LevelKind.RATE, self.rates)):
            for id_, pair in named.items():
                level_kinds.setdefault(id_, []).append((kind, float(pair[0]), float(pair[1])))
        return level_kinds


class RampSection(_Changing):
    """A load that rises linearly: from which level on the SLA is missed.

    Attributes:
        duration_s: time (seconds) from the first level to the last.
        times: how often it is measured.
    """

    duration_s: Annotated[float, _PHASE] = 300.0
    times: Annotated[int, Field(ge=1, le=100)] = 1


class SpikeSection(_Changing):
    """A steady load, much more for a short time, and the steady load again: how long the server takes to recover.

    Attributes:
        before_s: time (seconds) at the first level.
        rise_s: time (seconds) from the first level to the second; the load falls at once.
        peak_s: time (seconds) at the second level.
        after_s: time (seconds) at the first level again.
        recovery_share: the server has recovered when its p99 is at most this share above its p99 before the
            spike.
        times: how often it is measured.
    """

    before_s: Annotated[float, _PHASE] = 30.0
    rise_s: Seconds = 0.0
    peak_s: Annotated[float, _PHASE] = 10.0
    after_s: Annotated[float, _PHASE] = 60.0
    recovery_share: Annotated[float, Field(gt=0, le=10)] = 0.2
    times: Annotated[int, Field(ge=1, le=100)] = 3


class LoadProfile(BaseModel):
    """What the profile of any load test holds.

    Attributes:
        system: the system whose servers are tested.
        name: name of the profile, which reports show.
        description: a sentence for `chainmark profiles`.
        scenario: what is special about the server or its data, such as "huge address"; stated, not measured.
        hardware: hardware of the servers, if they run on another machine: of all, or by target name; stated,
            not measured.
        hardware_profile: short name of that hardware in tables, such as "mid".
        deployment: how the servers are deployed, such as "Docker Compose".
        sla_of: SLA of single endpoints, by ID.
        require: required capacities by endpoint ID: `block = {clients = 100, rate = 500}`.
        mix: several endpoints as one load: relative frequency by endpoint ID.
        mix_from: path of an access log from which the mix is taken: the combined format of nginx and Apache, or
            JSON lines.
    """

    model_config = _SECTION

    system: str
    name: str
    description: str = ""
    scenario: str = ""
    hardware: str | dict[str, str] = ""
    hardware_profile: str = ""
    deployment: str = ""
    sla: Sla = Sla()
    sla_of: dict[str, Sla] = {}
    require: dict[str, dict[Literal["clients", "rate"], Annotated[float, Field(gt=0)]]] = {}
    mix: dict[str, Annotated[float, Field(gt=0, le=1e9)]] = {}
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

    def endpoint_sla(self, endpoint_id: str) -> Sla:
        """The endpoint's SLA."""
        return self.sla_of.get(endpoint_id, self.sla)

    def timeout_s(self, endpoint_id: str = "") -> float:
        """The timeout of a response, the same before the load and under it."""
        return timeout_of(self.steps.timeout_s, self.endpoint_sla(endpoint_id))

    def fixed_levels(self) -> dict[str, tuple[LoadLevel, ...]]:
        """The given levels by the endpoint's id, without endpoints that have none."""
        load_levels: dict[str, set[LoadLevel]] = {}
        for endpoint, clients in self.fixed.clients.items():
            load_levels.setdefault(endpoint, set()).update(
                LoadLevel(LevelKind.CLIENTS, float(client)) for client in clients
            )
        for endpoint, rates in self.fixed.rates.items():
            load_levels.setdefault(endpoint, set()).update(LoadLevel(LevelKind.RATE, float(rate)) for rate in rates)
        return {endpoint: tuple(sorted(levels)) for endpoint, levels in load_levels.items() if levels}

    def courses(self) -> dict[str, tuple[Course, ...]]:
        """Loads that change while they run, by the endpoint's id."""
        result: dict[str, list[Course]] = {}
        for id_, ramps in self.ramp.endpoints().items():
            result.setdefault(id_, []).extend(
                Ramp(kind, low, high, self.ramp.duration_s, self.ramp.times) for kind, low, high in ramps
            )
        shape = self.spike.model_dump(exclude={"rates", "clients"})
        for id_, spikes in self.spike.endpoints().items():
            result.setdefault(id_, []).extend(Spike(kind, low, high, **shape) for kind, low, high in spikes)
        return {id_: tuple(courses) for id_, courses in result.items()}

    def step_settings(self, seed: int) -> StepSettings:
        """The settings of all steps."""
        return StepSettings(
            **self.steps.model_dump(exclude={"http_version", "generators"}), records=self.fixed.records, seed=seed
        )

    def required(self) -> dict[str, float]:
        """The required capacities, by "endpoint.kind"."""
        return {
            f"{endpoint}.{kind}": value for endpoint, kinds in self.require.items() for kind, value in kinds.items()
        }

    def workload(self, http_version: HttpVersion = HTTP_1) -> dict[str, Scalar | list[Scalar]]:
        """The settings that comparable runs must share, flattened to dotted keys.

        Args:
            http_version: the version that was used in the end.
        """
        shared: dict[str, Any] = {
            "sla": self.sla.terms(),
            **{f"sla_of.{endpoint}": sla.terms() for endpoint, sla in sorted(self.sla_of.items())},
            # Newer settings are omitted where they have no effect, so that older runs stay comparable.
            "steps": self.steps.model_dump(
                exclude={"threads", "generators", "http_version", "streams"}
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
