"""The resource that limits a server, found in hand-made levels and resource uses with a known answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.capacity.bottleneck import LevelSeen, ResourceUse, Sort, exhausted_entries, first_exhausted
from chainmark.core.load_report import ResourceEntry, StepEntry, UseEntry

from tests.unit.report.load_samples import step

LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def _levels(most_per_s: float, missed: float | None = 16.0, limited: float | None = None) -> list[LevelSeen]:
    """Levels at which each client gets 100 responses per second until the server reaches its maximum."""
    return [
        LevelSeen(
            level,
            min(100.0 * level, most_per_s),
            missed=missed is not None and level >= missed,
            limited=limited is not None and level >= limited,
        )
        for level in LEVELS
    ]


def _limited(label: str, limit: float, used: list[float], unit: str = "", *, is_cpu: bool = False) -> ResourceUse:
    by_level = dict(zip(LEVELS, used, strict=False))
    return ResourceUse(
        label,
        unit,
        "gauge",
        by_level,
        {level: limit_share / limit for level, limit_share in by_level.items()},
        limit,
        is_cpu,
    )


def _free(label: str, used: list[float], unit: str = "", sort: Sort = "gauge") -> ResourceUse:
    return ResourceUse(label, unit, sort, dict(zip(LEVELS, used, strict=False)), highest=max(used))


CPU = _limited("the server's CPU", 1.0, [0.12, 0.25, 0.5, 1.0, 1.0, 0.99], "cores", is_cpu=True)
IDLE = _limited("the server's CPU", 2.0, [0.05, 0.1, 0.2, 0.35, 0.76, 0.76], "cores", is_cpu=True)
POOL = _limited("the connection pool", 4.0, [1.0, 2.0, 4.0, 4.0, 4.0, 4.0])


def test_an_exhausted_cpu_is_the_bottleneck() -> None:
    entry = first_exhausted("clients", _levels(800.0), [CPU])
    assert (entry.finding, entry.resource, entry.level) == ("exhausted", "the server's CPU", 8.0)
    assert entry.sentence == "the server's CPU reached 1 of 1 core from 8 clients on"


def test_an_exhausted_pool_is_reported_with_the_cpu_use_at_that_time() -> None:
    entry = first_exhausted("clients", _levels(400.0), [IDLE, POOL])
    assert (entry.finding, entry.resource, entry.level) == ("exhausted", "the connection pool", 4.0)
    assert entry.sentence == "the connection pool was full (4 of 4) from 4 clients on; CPU 10 %"


def test_the_resource_exhausted_at_the_lowest_level_is_the_bottleneck() -> None:
    late = _limited("the connection pool", 16.0, [1.0, 2.0, 4.0, 8.0, 16.0, 16.0])
    assert first_exhausted("clients", _levels(800.0), [late, CPU]).resource == "the server's CPU"


def test_of_two_resources_exhausted_at_one_level_the_fuller_one_below_it_is_the_bottleneck() -> None:
    empty_before = _limited("the queue", 1.0, [0.0, 0.0, 0.1, 1.0, 1.0, 1.0])
    assert first_exhausted("clients", _levels(800.0), [empty_before, CPU]).resource == "the server's CPU"


def test_a_resource_exhausted_only_after_the_sla_was_missed_is_not_the_bottleneck() -> None:
    late = _limited("the open files", 32.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    entry = first_exhausted("clients", _levels(400.0, missed=8.0), [IDLE, late])
    assert entry.finding == "nothing"


def test_a_cpu_that_one_client_keeps_busy_is_exhausted_where_throughput_stops_rising() -> None:
    """Garbage collection or spinning threads use a full core at one client. More clients still increase throughput."""
    busy = replace(CPU, shares=dict.fromkeys(CPU.shares, 1.0))
    first = first_exhausted("clients", _levels(800.0), [CPU])
    entry = first_exhausted("clients", _levels(800.0), [busy])
    assert (entry.finding, entry.resource) == ("exhausted", "the server's CPU")
    assert entry.level is not None
    assert entry.level == first.level


def test_a_full_resource_does_not_matter_while_throughput_rises() -> None:
    """For example a cache that fills all memory, or a disk that other processes keep busy."""
    always = _limited("the server's memory", 100.0, [99.0] * 6, "bytes")
    assert first_exhausted("clients", _levels(800.0), [always, CPU]).resource == "the server's CPU"
    assert first_exhausted("clients", _levels(800.0), [always]).finding == "nothing"


def test_a_resource_full_at_one_level_and_not_at_higher_levels_is_not_exhausted() -> None:
    once = _limited("the connection pool", 4.0, [1.0, 2.0, 4.0, 1.0, 1.0, 1.0])
    assert first_exhausted("clients", _levels(400.0), [once]).finding == "nothing"


def test_the_generator_is_the_limit() -> None:
    entry = first_exhausted("clients", _levels(3200.0, missed=None, limited=16.0), [IDLE])
    assert (entry.finding, entry.level) == ("generator", 16.0)
    assert "generator" in entry.sentence


def test_the_server_saturates_before_the_generator_is_the_limit() -> None:
    assert first_exhausted("clients", _levels(400.0, limited=32.0), [POOL]).resource == "the connection pool"


def test_a_place_where_much_of_the_load_waits_is_the_bottleneck() -> None:
    disk = _free("the disk", [0.3, 0.5, 1.5, 4.0, 10.0, 24.0], "threads", "waiting")
    entry = first_exhausted("clients", _levels(400.0), [IDLE, disk])
    assert (entry.finding, entry.resource, entry.level) == ("waiting", "the disk", 4.0)
    assert "threads waited" in entry.sentence


def test_occasional_waiting_requests_are_not_a_bottleneck() -> None:
    disk = _free("the disk", [0.0, 0.1, 0.1, 0.2, 0.5, 0.8], "threads", "waiting")
    assert first_exhausted("clients", _levels(400.0), [IDLE, disk]).finding == "nothing"


def test_a_gauge_without_a_known_limit_that_rises_to_a_plateau_is_bounded() -> None:
    workers = _free("`workers_busy`", [1.0, 2.0, 4.0, 4.0, 4.0, 4.0])
    entry = first_exhausted("clients", _levels(400.0), [IDLE, workers])
    assert (entry.finding, entry.resource, entry.level) == ("flat", "`workers_busy`", 4.0)
    assert "stayed at 4 from 4 clients on, while the load grew 8-fold" in entry.sentence


def test_a_gauge_with_a_plateau_below_earlier_peaks_is_not_bounded() -> None:
    """By Little's law the mean number in use levels off everywhere once throughput does."""
    workers = replace(_free("`workers_busy`", [0.4, 0.8, 1.6, 1.6, 1.6, 1.6]), highest=3.0)
    assert first_exhausted("clients", _levels(400.0), [IDLE, workers]).finding == "nothing"


def test_a_single_threaded_program_is_limited_by_one_core() -> None:
    one_core = _limited("the server's CPU", 2.0, [0.25, 0.5, 1.02, 1.0, 1.01, 1.0], "cores", is_cpu=True)
    entry = first_exhausted("clients", _levels(400.0), [one_core])
    assert (entry.finding, entry.level) == ("flat", 4.0)
    assert entry.sentence.startswith("the server's CPU stayed at 1 of 2 cores from 4 clients on")


def test_a_pool_is_exhausted_whichever_load_fills_it() -> None:
    entry = first_exhausted("clients", _levels(400.0, missed=None, limited=1.0), [POOL])
    assert (entry.finding, entry.level) == ("exhausted", 4.0)


def test_rates_and_bytes_level_off_at_any_saturated_server_and_are_not_evidence() -> None:
    uses = [
        _free("answers", [100.0, 200.0, 400.0, 400.0, 400.0, 400.0], "/s", "counter"),
        _free("memory", [1.0, 2.0, 4.0, 4.0, 4.0, 4.0], "bytes"),
        _free("what waits", [1.0, 2.0, 4.0, 4.0, 4.0, 4.0], "requests", "counter"),
    ]
    assert first_exhausted("clients", _levels(400.0), uses).finding == "nothing"


@pytest.mark.parametrize("missed", [None, 16.0])
def test_no_observed_resource_is_exhausted(missed: float | None) -> None:
    entry = first_exhausted("clients", _levels(3200.0, missed=missed), [IDLE])
    assert entry.finding == "nothing"
    assert "no monitored resource was exhausted; the fullest was the server's CPU, 38 %" in entry.sentence
    assert entry.sentence.startswith("no level missed") == (missed is None)


def test_a_level_without_readings_is_skipped() -> None:
    gap = ResourceUse("the pool", "", "gauge", {1.0: 1.0, 8.0: 4.0}, {1.0: 0.25, 8.0: 1.0}, 4.0)
    assert first_exhausted("clients", _levels(400.0), [gap]).level == 8.0


def test_rates_have_levels_as_well() -> None:
    entry = first_exhausted("rate", _levels(400.0), [POOL])
    assert "from 4 requests/s on" in entry.sentence


def _steps(**changes: object) -> list[StepEntry]:
    return [
        step(number, "clients", level, 10.0, ok_per_s=min(100.0 * level, 800.0), **changes)
        for number, level in enumerate(LEVELS)
    ]


def _resource(shares: list[float]) -> ResourceEntry:
    uses = [
        UseEntry(step=number, mean=share, highest=share, limit=1.0, share=share) for number, share in enumerate(shares)
    ]
    return ResourceEntry(
        source="process", series="cpu", label="the server's CPU", unit="cores", sort="counter", is_cpu=True, uses=uses
    )


def test_the_entries_of_a_report() -> None:
    (entry,) = exhausted_entries(_steps(), [_resource([0.1, 0.2, 0.5, 1.0, 1.0, 1.0])])
    assert (entry.kind, entry.finding, entry.level) == ("clients", "exhausted", 8.0)


def test_the_throughput_of_a_level_is_the_median_of_its_steps() -> None:
    """The first step at the highest level reached more than the server sustains, for example from a cache."""
    steps = [step(6, "clients", 32.0, 10.0, ok_per_s=3200.0), *_steps(), step(7, "clients", 32.0, 10.0, ok_per_s=800.0)]
    (entry,) = exhausted_entries(steps, [_resource([0.1, 0.2, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0])])
    assert (entry.finding, entry.level) == ("exhausted", 8.0)


def test_without_observed_resources_nothing_is_reported() -> None:
    assert exhausted_entries(_steps(), []) == []
    assert exhausted_entries(_steps(), [_resource([])]) == []


def test_a_step_that_waited_for_a_cpu_counts_only_if_it_is_the_only_one() -> None:
    """The second step with 8 clients was measured while other processes used the CPUs."""
    steps = [*_steps(), step(6, "clients", 8.0, 10.0, ok_per_s=800.0, reason="waited", outcome="generator-limited")]
    (entry,) = exhausted_entries(steps, [_resource([0.1, 0.2, 0.5, 1.0, 1.0, 1.0, 0.3])])
    assert entry.level == 8.0
    waited = _steps(reason="waited", outcome="generator-limited")
    (entry,) = exhausted_entries(waited, [_resource([0.1, 0.2, 0.5, 1.0, 1.0, 1.0])])
    assert (entry.finding, entry.level) == ("exhausted", 8.0)
