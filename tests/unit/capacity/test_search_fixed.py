"""The fixed levels at which two sides are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.capacity.fixed import fixed_asks, fixed_levels
from chainmark.capacity.loadtest import FixedPlan, LoadPlan, TargetServer, run_load_test
from chainmark.capacity.model import LevelKind, Phase
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.service_level import Sla
from chainmark.capacity.step import StepSettings

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Server
from tests.unit.capacity.test_step import Bench


def test_both_sides_are_measured_at_shares_of_the_lower_capacity() -> None:
    """At a level beyond one side's capacity, the comparison would be about its queue and not its release."""
    levels = fixed_levels(LevelKind.RATE, [1000.0, 800.0])
    assert [level.value for level in levels] == [400.0, 640.0]


def test_client_levels_are_whole_and_unique() -> None:
    assert [level.value for level in fixed_levels(LevelKind.CLIENTS, [1.0])] == [1.0]
    assert [level.value for level in fixed_levels(LevelKind.CLIENTS, [99.0])] == [49.0, 79.0]


def test_a_side_without_capacity_leaves_no_level() -> None:
    assert fixed_levels(LevelKind.RATE, [1000.0, 0.0]) == ()
    assert fixed_levels(LevelKind.RATE, []) == ()


def test_levels_are_measured_in_ascending_and_descending_order() -> None:
    asks = fixed_asks(fixed_levels(LevelKind.RATE, [100.0]), times=3)
    assert [ask.level.value for ask in asks] == [50.0, 80.0, 80.0, 50.0, 50.0, 80.0]
    assert {ask.phase for ask in asks} == {Phase.FIXED}


def test_fixed_levels_are_rates_if_both_capacities_were_searched() -> None:
    """A rate sends every side the same load. Clients wait for a slow server, and so send it less."""
    bench = Bench(Server(workers=2, service_s=0.05))
    plan = LoadPlan(
        lambda _: Sla(),
        (SearchPlan.of_clients(), SearchPlan.of_rates()),
        StepSettings(),
        FixedPlan(times=1),
    )
    result = run_load_test(
        [TargetServer(TARGET, (ENDPOINT,))],
        plan,
        make_runner=lambda _target, _endpoint, _sla, settings, _progress: replace(bench.runner, settings=settings),
    )
    ((endpoint,),) = (server.endpoint_results for server in result.servers)
    rate = endpoint.answers[LevelKind.RATE].capacity
    assert rate == pytest.approx(40.0, rel=0.05), "2 workers, 50 ms for each request"
    assert [step.level for step in endpoint.fixed] == list(fixed_levels(LevelKind.RATE, [rate or 0.0]))
