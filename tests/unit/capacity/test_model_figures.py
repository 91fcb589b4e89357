"""Figures that a load test's model derives, compared with values worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.capacity.access import Access
from chainmark.capacity.engine import IDLE_CLOSE
from chainmark.capacity.model import (
    ConditionResult,
    LevelKind,
    LoadLevel,
    MixPart,
    Phase,
    StepCondition,
    StepOutcome,
    StepRequest,
    StepResult,
    Target,
    Waits,
)
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

ORDER = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 64.0), warm_up_s=1.0, duration_s=10.0)


@pytest.mark.parametrize(("count", "n", "share"), [(3, 12, 0.25), (0, 12, 0.0), (None, 12, None), (3, 0, None)])
def test_the_share_of_violating_requests(count: int | None, n: int, share: float | None) -> None:
    condition = ConditionResult(StepCondition.ERRORS, None, 0.01, StepOutcome.PASS, met=True, count=count, n=n)
    assert condition.share == share


def test_the_rarest_endpoint_of_a_mix_has_the_smallest_share() -> None:
    parts = tuple(MixPart(name, f"/{name}", weight, 1, Sla()) for name, weight in (("a", 3.0), ("b", 1.0)))
    assert replace(ENDPOINT, parts=parts).rarest_share == 0.25
    assert ENDPOINT.rarest_share == 1.0


@pytest.mark.parametrize(
    ("waits", "worst"),
    [
        (Waits(0.3, 0.1, None), (0.3, "the generator's threads")),
        (Waits(0.1, 0.3, 0.2), (0.3, "the server's processes")),
        (Waits(None, 0.1, 0.2), (0.2, "the whole machine, by its hypervisor")),
        (Waits(None, None, None), None),
    ],
)
def test_the_longest_wait_is_named(waits: Waits, worst: tuple[float, str] | None) -> None:
    assert waits.worst() == worst


def test_a_socket_and_a_proxy_are_connected_to_at_their_own_address() -> None:
    socket, host = Target("s", "unix:/run/a.sock"), Target("h", "http://a:80")
    proxied = replace(host, access=Access(proxy="http://proxy:3128"))
    assert [of.socket_path for of in (socket, host)] == ["/run/a.sock", ""]
    assert [of.base_url for of in (socket, host)] == ["http://localhost", "http://a:80"]
    urls = [of.connected_url for of in (socket, host, proxied)]
    assert urls == ["unix:/run/a.sock", "http://a:80", "http://proxy:3128"]


def test_rates_of_a_short_window_and_of_one_that_never_began() -> None:
    half = StepResult.of(ORDER, finished([0.1] * 30, window_s=0.5, failed=5))
    assert (half.ok_per_s, half.due_per_s) == (60.0, 70.0)
    never = half.model_copy(update={"window_s": 0.0, "generators": []})
    assert (never.ok_per_s, never.due_per_s, never.generator_cpu_share) == (0.0, 0.0, 0.0)


def test_requests_on_connections_that_the_server_had_closed_are_counted() -> None:
    result = finished([0.1] * 30, failed=5)
    assert StepResult.of(ORDER, result).closed_idle == 0
    result["classes"][0]["class"] = IDLE_CLOSE
    assert StepResult.of(ORDER, result).closed_idle == 5


@pytest.mark.parametrize(("met", "waited"), [(None, False), (True, False), (False, True)])
def test_a_step_waited_if_its_condition_is_not_met(*, met: bool | None, waited: bool) -> None:
    """A step without that condition did not wait."""
    step = judge(StepResult.of(ORDER, finished([0.1] * 300)), Sla(), Phase.PROBE, read_histogram=Latencies)
    limits = tuple(limit for limit in step.limits if limit.name is not StepCondition.WAITED)
    if met is not None:
        limits += (ConditionResult(StepCondition.WAITED, 0.1, 0.2, StepOutcome.PASS, met=met),)
    assert replace(step, limits=limits).waited is waited
