"""The resource that limits a server, found in hand-made levels and resource uses with a known answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.capacity.bottleneck import LevelSeen, ResourceUse, Sort, exhausted_entries, first_exhausted
from chainmark.core.load_report import Kind, ResourceEntry, StepEntry, UseEntry

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


def _sentence(most_per_s: float, *uses: ResourceUse, kind: Kind = "clients") -> str:
    return first_exhausted(kind, _levels(most_per_s), uses).sentence


CPU = _limited("the server's CPU", 1.0, [0.12, 0.25, 0.5, 1.0, 1.0, 0.99], "cores", is_cpu=True)
IDLE = _limited("the server's CPU", 2.0, [0.05, 0.1, 0.2, 0.35, 0.752, 0.752], "cores", is_cpu=True)
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


def test_a_resource_that_was_full_from_the_lowest_level_on_was_no_fuller_below_it_than_any_other() -> None:
    """Nothing is known below the lowest level, so it comes first: it was full at every load."""
    always = _limited("the queue", 4.0, [4.0, 4.0, 4.0, 4.0, 3.7, 4.0])
    at_once = _limited("the pool", 4.0, [4.0] * 6)
    assert first_exhausted("clients", _levels(100.0), [always, at_once]).resource == "the queue"
    # Without a reading at the lowest level the pool is full from the second on, which is the first known level.
    later = ResourceUse("the pool", "", "gauge", {2.0: 4.0, 32.0: 4.0}, {2.0: 1.0, 32.0: 1.0}, 4.0)
    before = _limited("the disk", 4.0, [3.7, 4.0, 4.0, 4.0, 4.0, 4.0])
    assert first_exhausted("clients", _levels(200.0), [before, later]).resource == "the pool"
    busy = _limited("the server's CPU", 1.0, [1.0] * 6, "cores", is_cpu=True)
    assert first_exhausted("clients", _levels(200.0), [busy, later]).resource == "the server's CPU"


def test_the_share_below_the_level_is_that_of_the_next_lower_level() -> None:
    uses = [
        _limited("the queue", 4.0, [1.0, 3.0, 2.0, 4.0, 4.0, 4.0]),
        _limited("the pool", 4.0, [3.0, 1.0, 2.5, 4.0, 4.0, 4.0]),
        _limited("the cache", 4.0, [1.0, 1.0, 2.0, 4.0, 4.0, 4.0]),
    ]
    for use in uses:
        assert first_exhausted("clients", _levels(800.0), [use]).level == 8.0
    assert first_exhausted("clients", _levels(800.0), uses).resource == "the pool"
    assert first_exhausted("clients", _levels(800.0), [uses[2], uses[0]]).resource == "the cache"


@pytest.mark.parametrize(
    ("used", "finding"),
    [
        ([10.0, 20.0, 40.0, 95.0, 90.0, 92.0], "exhausted"),
        ([10.0, 20.0, 40.0, 94.9, 94.9, 94.9], "nothing"),
        ([10.0, 20.0, 40.0, 95.0, 89.9, 94.0], "nothing"),
    ],
)
def test_a_resource_is_full_from_95_percent_on_and_stays_so_down_to_90_percent(used: list[float], finding: str) -> None:
    pool = _limited("the connection pool", 100.0, used)
    assert first_exhausted("clients", _levels(800.0, missed=32.0), [pool]).finding == finding


@pytest.mark.parametrize(("most_per_s", "finding"), [(500.0, "exhausted"), (501.0, "nothing")])
def test_throughput_that_grows_by_a_quarter_or_less_does_not_grow(most_per_s: float, finding: str) -> None:
    pool = _limited("the connection pool", 4.0, [1.0, 2.0, 4.0, 4.0, 4.0, 4.0])
    assert first_exhausted("clients", _levels(most_per_s), [pool]).finding == finding


def test_throughput_of_nothing_does_not_grow() -> None:
    """All requests fail at the level that fills the pool: it is the bottleneck, although 0 is not below 1.25 * 0."""
    levels = [LevelSeen(1.0, 100.0), LevelSeen(2.0, 0.0, missed=True)]
    pool = _limited("the connection pool", 4.0, [1.0, 4.0])
    assert first_exhausted("clients", levels, [pool]).level == 2.0


def test_a_resource_full_at_the_first_level_that_missed_the_sla_is_the_bottleneck() -> None:
    pool = _limited("the connection pool", 4.0, [0.2, 0.4, 1.0, 2.0, 4.0, 4.0])
    assert first_exhausted("clients", _levels(1600.0), [pool]).level == 16.0


def test_a_resource_full_below_rising_throughput_does_not_hide_the_next_resource() -> None:
    """The disk is busy at every level, and the pool fills later. Without the pool nothing is exhausted."""
    disk = _limited("the disk", 1.0, [1.0] * 6, "fraction")
    pool = _limited("the connection pool", 4.0, [0.5, 1.0, 2.0, 4.0, 4.0, 4.0])
    assert first_exhausted("clients", _levels(800.0), [disk, pool]).resource == "the connection pool"


def test_sentences_name_the_amount_in_the_unit_of_the_resource() -> None:
    half = [0.1, 0.25, 0.5, 1.0, 1.0, 1.0]
    of = {
        "full": _limited("the server's CPU", 2.0, [2 * share for share in half], "cores", is_cpu=True),
        "thread": replace(_limited("the main thread", 1.0, half, "cores"), shares={8.0: 0.976, 16.0: 1.2, 32.0: 1.0}),
        "disk": replace(_limited("the disk", 1.0, half, "fraction"), shares={8.0: 1.04, 16.0: 1.0, 32.0: 1.0}),
        "memory": _limited("the server's memory", 3 * 2**30, [share * 3 * 2**30 for share in half], "bytes"),
        "files": _limited("the open files", 1500.0, [round(share * 1500.0) for share in half]),
        "few": _limited("the open files", 12.5, [share * 12.5 for share in half]),
        "hundred": _limited("the pool", 100.56, [share * 100.56 for share in half]),
    }
    assert {name: _sentence(800.0, use) for name, use in of.items()} == {
        "full": "the server's CPU reached 2 of 2 cores from 8 clients on",
        "thread": "the main thread ran 98 % of the time, on one core, from 8 clients on",
        "disk": "the disk was busy 100 % of the time from 8 clients on",
        "memory": "the server's memory was full (3.000 GiB of 3.000 GiB) from 8 clients on",
        "files": "the open files were full (1500 of 1500) from 8 clients on",
        "few": "the open files were full (12 of 12) from 8 clients on",
        "hundred": "the pool was full (100.6 of 100.6) from 8 clients on",
    }


def test_the_use_of_other_resources_at_that_level_is_reported_from_5_percent_on_with_the_cpu_first() -> None:
    idle = replace(IDLE, shares={4.0: 0.013})
    disk, memory = (
        _limited(label, 1000.0, [0.0, 0.0, used, 0.0, 0.0, 0.0], "fraction")
        for label, used in (("the disk", 376.0), ("the server's memory", 50.0))
    )
    below = _limited("the server's network", 1000.0, [0.0, 0.0, 49.0, 0.0, 0.0, 0.0])
    elsewhere = replace(POOL, label="the cache", shares={2.0: 0.5})
    beside = "the connection pool was full (4 of 4) from 4 clients on"
    assert _sentence(400.0, POOL, memory, disk, idle) == f"{beside}; CPU 1 %, the disk 38 %"
    assert _sentence(400.0, POOL, memory) == f"{beside}; memory 5 %"
    assert _sentence(400.0, POOL, below, elsewhere) == beside
    # Another source reports the same pool.
    assert _sentence(400.0, POOL, replace(POOL, shares={4.0: 0.9})) == beside


def test_a_resource_full_at_one_level_and_not_at_higher_levels_is_not_exhausted() -> None:
    once = _limited("the connection pool", 4.0, [1.0, 2.0, 4.0, 1.0, 1.0, 1.0])
    assert first_exhausted("clients", _levels(400.0), [once]).finding == "nothing"


def test_the_generator_is_the_limit() -> None:
    entry = first_exhausted("clients", _levels(3200.0, missed=None, limited=16.0), [IDLE])
    assert (entry.finding, entry.level) == ("generator", 16.0)
    assert entry.sentence == "the load generator, not the server, was the limit from 16 clients on"
    entry = first_exhausted("rate", _levels(3200.0, missed=None, limited=16.0), [IDLE])
    assert entry.sentence == "the load generator, not the server, was the limit from 16 requests/s on"


@pytest.mark.parametrize(("limited", "finding"), [(8.0, "generator"), (16.0, "generator"), (32.0, "nothing")])
def test_the_generator_is_the_limit_up_to_the_level_that_missed_the_sla(limited: float, finding: str) -> None:
    assert first_exhausted("clients", _levels(3200.0, limited=limited), [IDLE]).finding == finding


def test_the_server_saturates_before_the_generator_is_the_limit() -> None:
    assert first_exhausted("clients", _levels(400.0, limited=32.0), [POOL]).resource == "the connection pool"


def test_a_place_where_much_of_the_load_waits_is_the_bottleneck() -> None:
    disk = _free("the disk", [0.3, 0.5, 1.5, 4.0, 10.0, 24.0], "threads", "waiting")
    entry = first_exhausted("clients", _levels(400.0), [IDLE, disk])
    assert (entry.finding, entry.resource, entry.level) == ("waiting", "the disk", 4.0)
    assert "threads waited" in entry.sentence


@pytest.mark.parametrize(
    ("kind", "waiting", "finding"),
    [
        ("clients", 8.0, "waiting"),
        ("clients", 7.9, "nothing"),
        ("rate", 1.0, "waiting"),
        ("rate", 0.99, "nothing"),
    ],
)
def test_a_quarter_of_the_clients_or_one_request_at_a_rate_must_wait(kind: Kind, waiting: float, finding: str) -> None:
    disk = _free("the disk", [0.0, 0.0, 0.0, 0.0, 0.0, waiting], "threads", "waiting")
    assert first_exhausted(kind, _levels(400.0, missed=32.0), [disk]).finding == finding


def test_with_few_clients_at_least_one_must_wait() -> None:
    disk = _free("the disk", [0.9, 0.9], "threads", "waiting")
    assert first_exhausted("clients", _levels(100.0, missed=2.0), [disk]).finding == "nothing"
    disk = _free("the disk", [0.9, 1.0], "threads", "waiting")
    assert first_exhausted("clients", _levels(100.0, missed=2.0), [disk]).level == 2.0


def test_of_two_places_where_the_load_waits_the_one_with_more_at_the_highest_level_is_the_bottleneck() -> None:
    """Throughput may grow while the load waits; it must not grow any more above the level that missed the SLA."""
    first = _free("the disk", [1.0, 2.0, 3.0, 4.0, 6.0], "threads", "waiting")
    last = _free("the lock", [0.0, 0.0, 1.0, 2.0, 12.0], "threads", "waiting")
    third = _free("the log", [0.0, 0.0, 1.0, 2.0, 12.0], "threads", "waiting")
    levels = _levels(1600.0)
    entry = first_exhausted("clients", levels, [first, last, third])
    assert (entry.resource, entry.level) == ("the lock", 4.0)
    assert first_exhausted("clients", levels, [first]).level == 1.0
    assert first_exhausted("clients", _levels(2100.0), [first, last]).finding == "nothing"


def test_the_sentence_about_waiting_has_the_amount_at_the_highest_level_and_what_else_was_used() -> None:
    disk = _free("the disk", [0.3, 0.5, 1.5, 4.0, 10.0, 24.0], "threads", "waiting")
    assert _sentence(400.0, disk, IDLE) == "the disk limited the server from 4 clients on: 24 threads waited; CPU 10 %"
    assert _sentence(400.0, replace(disk, unit=""), kind="rate") == (
        "the disk limited the server from 4 requests/s on: 24 waited"
    )


def test_occasional_waiting_requests_are_not_a_bottleneck() -> None:
    disk = _free("the disk", [0.0, 0.1, 0.1, 0.2, 0.5, 0.8], "threads", "waiting")
    assert first_exhausted("clients", _levels(400.0), [IDLE, disk]).finding == "nothing"


def test_a_gauge_without_a_known_limit_that_rises_to_a_plateau_is_bounded() -> None:
    workers = _free("`workers_busy`", [1.0, 2.0, 4.0, 4.0, 4.0, 4.0])
    entry = first_exhausted("clients", _levels(400.0), [IDLE, workers])
    assert (entry.finding, entry.resource, entry.level) == ("flat", "`workers_busy`", 4.0)
    assert "stayed at 4 from 4 clients on, while the load grew 8-fold" in entry.sentence


@pytest.mark.parametrize(
    ("used", "level"),
    [
        pytest.param([2.8, 4.0, 4.0, 4.0, 4.0, 4.0], 2.0, id="it rose from 70 % of the plateau"),
        pytest.param([2.9, 4.0, 4.0, 4.0, 4.0, 4.0], None, id="it was nearly constant from the lowest level on"),
        pytest.param([10.0, 20.0, 110.0, 100.0, 90.0, 100.0], 4.0, id="within a tenth of its median"),
        pytest.param([10.0, 20.0, 111.0, 100.0, 90.0, 100.0], 8.0, id="not yet flat at 4 clients"),
        pytest.param([1.0, 2.0, 3.0, 3.5, 8.0, 8.0], 16.0, id="the load doubled at the plateau"),
        pytest.param([1.0, 2.0, 3.0, 3.5, 5.0, 8.0], None, id="no plateau"),
        pytest.param([0.1, 0.3, 0.6, 0.6, 0.6, 0.6], 4.0, id="less than one in use on average"),
    ],
)
def test_a_plateau_is_above_the_first_level_flat_and_lasts_while_the_load_doubles(
    used: list[float], level: float | None
) -> None:
    workers = replace(_free("`workers_busy`", used), highest=max(used) / 1.1)
    levels = [LevelSeen(number, 400.0, missed=number >= 16.0) for number in LEVELS]
    assert first_exhausted("clients", levels, [IDLE, workers]).level == level


def test_a_plateau_that_begins_after_the_sla_was_missed_is_not_the_bottleneck() -> None:
    for missed, last in ((8.0, 16.0), (32.0, 32.0)):
        workers = _free("`workers_busy`", [1.0, 2.0, 4.0, 8.0, 16.0, last])
        levels = [LevelSeen(level, 400.0, missed=level >= missed) for level in LEVELS]
        assert first_exhausted("clients", levels, [workers]).finding == "nothing"


@pytest.mark.parametrize(("highest", "finding"), [(100.0, "flat"), (101.0, "nothing"), (0.0, "nothing")])
def test_a_plateau_is_at_least_95_percent_of_the_largest_use(highest: float, finding: str) -> None:
    workers = replace(_free("`workers_busy`", [20.0, 40.0, 95.0, 95.0, 95.0, 95.0]), highest=highest)
    assert first_exhausted("clients", _levels(400.0), [workers]).finding == finding


def test_an_unused_resource_is_not_at_a_plateau() -> None:
    assert first_exhausted("clients", _levels(100.0), [_free("`errors`", [0.0] * 6)]).finding == "nothing"


@pytest.mark.parametrize(
    ("cores", "finding"), [(2.19, "flat"), (2.25, "nothing"), (1.81, "flat"), (1.75, "nothing"), (0.45, "nothing")]
)
def test_a_program_is_limited_by_a_whole_number_of_cores(cores: float, finding: str) -> None:
    used = [cores / 4, cores / 2, cores, cores, cores, cores]
    cpu = _limited("the server's CPU", 8.0, used, "cores", is_cpu=True)
    assert first_exhausted("clients", _levels(400.0), [cpu]).finding == finding


def test_of_several_plateaus_the_lowest_level_is_reported_then_the_more_informative() -> None:
    rate = _free("answers", [100.0, 200.0, 400.0, 400.0, 400.0, 400.0], "/s", "counter")
    late = _free("`late`", [1.0, 2.0, 4.0, 8.0, 8.0, 8.0])
    early, same = (_free(name, [9.0, 19.0, 40.0, 40.0, 40.0, 40.0]) for name in ("`early`", "`same`"))
    entry = first_exhausted("clients", _levels(400.0), [rate, late, early, same])
    assert (entry.resource, entry.level) == ("`early`", 4.0)
    assert first_exhausted("clients", _levels(400.0), [same, early]).resource == "`same`"


def test_the_sentence_about_a_plateau_has_the_growth_of_the_load_and_what_else_was_used() -> None:
    workers = _free("`workers_busy`", [1.0, 2.0, 4.0, 4.0, 4.0, 4.0], "tasks")
    assert _sentence(400.0, workers, IDLE) == (
        "`workers_busy` stayed at 4 tasks from 4 clients on, while the load grew 8-fold; CPU 10 %"
    )
    levels = [LevelSeen(level, 400.0, missed=level >= 3.0) for level in (1.0, 3.0, 8.0)]
    workers = ResourceUse("`workers_busy`", "", "gauge", {1.0: 1.0, 3.0: 4.0, 8.0: 4.0}, highest=4.0)
    assert first_exhausted("rate", levels, [workers]).sentence == (
        "`workers_busy` stayed at 4 from 3 requests/s on, while the load grew 2.7-fold"
    )


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
    met = "no level missed the SLA, and " if missed is None else ""
    fullest = "the fullest was the server's CPU, 38 % at 32 clients"
    assert entry.sentence == f"{met}no monitored resource was exhausted; {fullest}"


def test_without_a_limited_resource_none_is_the_fullest() -> None:
    disk = _free("the disk", [0.1], "threads", "waiting")
    assert first_exhausted("rate", [LevelSeen(1.0, 1.0, missed=True)], [disk]).sentence == (
        "no monitored resource was exhausted"
    )


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


def test_a_level_missed_the_sla_if_most_of_its_steps_did() -> None:
    """One of two steps is not most: only the two of three at 32 clients are."""
    missed = {"point_outcome": "fail"}
    steps = [
        *_steps(point_outcome="pass"),
        *(step(number, "clients", 16.0, 10.0, ok_per_s=800.0, **missed) for number in (6,)),
        *(step(number, "clients", 32.0, 10.0, ok_per_s=800.0, **missed) for number in (7, 8)),
    ]
    # Full at 32 clients only: the bottleneck if that level still counts, and later levels do not exist.
    full = _resource([0.1, 0.2, 0.3, 0.4, 0.5, 1.0, 0.5, 1.0, 1.0])
    (entry,) = exhausted_entries(steps, [full])
    assert (entry.finding, entry.level) == ("exhausted", 32.0)
    idle = _resource([0.1] * 9)
    assert exhausted_entries(steps, [idle])[0].sentence.startswith("no monitored resource was exhausted")
    (entry,) = exhausted_entries(steps[:7], [idle])
    assert entry.sentence.startswith("no level missed the SLA")


def test_the_generator_was_the_limit_of_a_level_if_it_limited_all_its_steps() -> None:
    limited = {"outcome": "generator-limited", "point_outcome": "generator-limited", "reason": "generator"}
    steps = [
        *_steps(**limited)[:2],
        step(2, "clients", 1.0, 10.0, outcome="pass", point_outcome="pass"),
    ]
    idle = _resource([0.1] * 3)
    (entry,) = exhausted_entries(steps, [idle])
    assert (entry.finding, entry.level) == ("generator", 2.0)
    waited = [item.model_copy(update={"reason": "waited"}) for item in steps[:2]]
    assert exhausted_entries(waited, [idle])[0].finding == "nothing", "others had the processors"


def test_partial_steps_and_steps_of_other_kinds_of_load_do_not_count() -> None:
    steps = [
        *_steps(),
        step(6, "clients", 64.0, 10.0, ok_per_s=6400.0, partial=True),
        step(7, "rate", 1000.0, 10.0, ok_per_s=6400.0),
    ]
    entries = exhausted_entries(steps, [_resource([0.1, 0.2, 0.5, 1.0, 1.0, 1.0, 0.2, 0.3])])
    assert [(entry.kind, entry.finding) for entry in entries] == [("clients", "exhausted"), ("rate", "nothing")]
    assert entries[1].sentence.endswith("the fullest was the server's CPU, 30 % at 1000 requests/s")


def test_the_use_at_a_level_is_the_median_of_its_steps_and_its_limit_the_last_known() -> None:
    """A resource without a limit at the highest level keeps the one that it had before."""
    steps = [*_steps(), *(step(number, "clients", 8.0, 10.0, ok_per_s=800.0) for number in (6, 7))]
    cores = [0.2, 0.4, 1.0, 2.0, 2.0, 2.0, 1.96, 0.3]
    uses = [
        UseEntry(step=number, mean=used, highest=used, limit=limit, share=used / 2.0)
        for number, (used, limit) in enumerate(zip(cores, [4.0, 4.0, 4.0, 2.0, 2.0, None, None, 2.0], strict=True))
    ]
    cpu = _resource([]).model_copy(update={"uses": uses})
    (entry,) = exhausted_entries(steps, [cpu])
    assert entry.sentence == "the server's CPU reached 2 of 2 cores from 8 clients on"


@pytest.mark.parametrize(("highest", "finding"), [(4.0, "flat"), (5.0, "nothing")])
def test_a_plateau_of_a_report_is_compared_with_the_largest_reading_of_any_step(highest: float, finding: str) -> None:
    used = [1.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    uses = [UseEntry(step=number, mean=mean, highest=highest) for number, mean in enumerate(used)]
    workers = ResourceEntry(
        source="metrics", series="busy", label="`workers_busy`", unit="tasks", sort="gauge", uses=uses
    )
    steps = [
        step(number, "clients", level, 10.0, ok_per_s=400.0, point_outcome="fail" if level > 4.0 else "pass")
        for number, level in enumerate(LEVELS)
    ]
    (entry,) = exhausted_entries(steps, [workers])
    assert (entry.finding, "4 tasks" in entry.sentence) == (finding, finding == "flat")
    waiting = workers.model_copy(update={"sort": "waiting"})
    assert exhausted_entries(steps, [waiting])[0].finding == "waiting", "4 of 8 clients wait for it"
