"""Readings of a server's resource use, assigned to the steps of its load test."""

from __future__ import annotations

import pytest

from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.model import LevelKind, LoadLevel, Phase, Step, StepRequest, StepResult, Waits
from chainmark.capacity.report import endpoint_entry
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.watched import MOST_WITHOUT_LIMIT, WATCH_SCHEMA, source_entries, watch_frame, with_watched
from chainmark.core.load_report import EndpointEntry
from chainmark.network.server_series import Name, Readings, Resource, SeriesRecorder, SourceState, Statement, Watched

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

BEGIN_NS = 1_700_000_000_000_000_000
NS = 1_000_000_000
SECONDS = 4


def _step(clients: float, began_s: int, lost: float | None = None) -> Step:
    """A step with one second of warm-up, two of the window and one of draining."""
    result = finished([0.01] * 400, window_s=2.0, answered=[100] * SECONDS) | {"started_ns": BEGIN_NS + began_s * NS}
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, clients), warm_up_s=1.0, duration_s=2.0)
    waits = Waits(0.0, lost, 0.0, *([(None,) * SECONDS] * 3))
    return judge(StepResult.of(order, result), Sla(), Phase.FIXED, False, Latencies, waits=waits)


def _results(*steps: Step) -> EndpointResult:
    return EndpointResult(ENDPOINT, Sla(), fixed=list(steps))


def _entry(result: EndpointResult, watched: Watched) -> EndpointEntry:
    return with_watched(endpoint_entry(result, {}, read_histogram=Latencies), result, watched)


def _read(name: Name, values: list[float], first_s: int = -1) -> Readings:
    """One reading in the middle of every second."""
    recorder = SeriesRecorder()
    for at, value in enumerate(values):
        recorder.add(BEGIN_NS + (first_s + at) * NS + NS // 2, name, value)
    (readings,) = recorder.series()
    return readings


def test_every_reading_has_a_step_and_a_second_or_neither_between_steps() -> None:
    used = _read(Name("app", "used"), list(map(float, range(12))))
    frame = watch_frame(Watched(series=(used,)), [_results(_step(1.0, 0), _step(2.0, 6))])
    assert dict(frame.schema) == dict(WATCH_SCHEMA)
    assert frame.select("step", "second").rows() == [
        (None, None), (0, 0), (0, 1), (0, 2), (0, 3), (None, None), (None, None), (1, 0), (1, 1), (1, 2), (1, 3),
        (None, None),
    ]  # fmt: skip


def test_a_table_without_readings_or_steps_has_all_columns() -> None:
    used = _read(Name("app", "used"), [1.0])
    for frame in (watch_frame(Watched(), [_results(_step(1.0, 0))]), watch_frame(Watched(series=(used,)), [])):
        assert dict(frame.schema) == dict(WATCH_SCHEMA)


def test_a_step_has_the_resource_use_during_its_load() -> None:
    """Readings before the step and during draining do not count."""
    pool = _read(Name("app", "pool_active"), [90.0, 1.0, 2.0, 3.0, 90.0])
    watched = Watched(resources=(Resource("the pool", pool, 4.0, "`pool_max`"),))
    (resource,) = _entry(_results(_step(1.0, 0)), watched).resources
    (use,) = resource.uses
    assert (use.mean, use.highest, use.limit, use.share) == (2.0, 3.0, 4.0, 0.5)
    assert resource.limit_is == "`pool_max`"


@pytest.mark.parametrize(("lost", "share"), [(None, 0.5), (0.0, 0.5), (0.5, 1.0), (1.0, None)])
def test_the_cpu_share_is_relative_to_what_other_processes_left(lost: float | None, share: float | None) -> None:
    cpu = _read(Name("process", "cpu", "cores", "counter"), [float(at) for at in range(6)])
    watched = Watched(resources=(Resource("the server's CPU", cpu, 2.0, "cores", is_cpu=True),))
    (resource,) = _entry(_results(_step(1.0, 0, lost)), watched).resources
    assert resource.uses[0].mean == pytest.approx(1.0)
    assert resource.uses[0].share == (share if share is None else pytest.approx(share))


def test_a_step_without_readings_has_no_resource_use() -> None:
    pool = _read(Name("app", "pool_active"), [1.0, 2.0], first_s=100)
    assert _entry(_results(_step(1.0, 0)), Watched(resources=(Resource("the pool", pool, 4.0),))).resources == []


def test_of_many_series_without_a_limit_the_most_changing_are_reported() -> None:
    steps = _step(1.0, 0), _step(2.0, 6)
    many = [
        _read(Name("app", f"gauge_{at:02}"), [100.0] * 6 + [100.0 + at] * 6) for at in range(MOST_WITHOUT_LIMIT + 5)
    ]
    entry = _entry(
        _results(*steps), Watched(resources=tuple(Resource(f"`{readings.name.series}`", readings) for readings in many))
    )
    assert entry.series_left_out == 5
    assert [resource.series for resource in entry.resources][:2] == ["gauge_24", "gauge_23"]


def test_the_most_expensive_statements_of_a_step_are_listed() -> None:
    def statement(text: str, busy: float) -> Statement:
        seconds = _read(Name("postgres", f"{text} time", "s/s", "counter"), [busy * at for at in range(6)])
        return Statement(
            text, seconds, _read(Name("postgres", f"{text} calls", "/s", "counter"), [10.0 * at for at in range(6)])
        )

    statements = tuple(
        statement(text, busy) for text, busy in (("a", 0.1), ("b", 3.0), ("c", 0.2), ("d", 0.3), ("e", 0.0))
    )
    shown = _entry(_results(_step(1.0, 0)), Watched(statements=statements)).statements
    assert [(statement.text, round(statement.busy, 6), round(statement.calls_per_s, 6)) for statement in shown] == [
        ("b", 3.0, 10.0), ("d", 0.3, 10.0), ("c", 0.2, 10.0),
    ]  # fmt: skip


def test_sources_are_reported_with_their_missing_readings() -> None:
    (source,) = source_entries(Watched(sources=(SourceState("app", "metrics", 5, 2, "no answer"),)))
    assert (source.read, source.missed, source.why) == (5, 2, "no answer")


def test_memory_growth_over_a_soak_is_reported_and_fails_if_limited() -> None:
    """A leak of 10 % during a soak is reported before latencies show it."""
    seconds = 1200
    engine_result = finished([0.01] * 400, window_s=float(seconds), answered=[100] * seconds) | {"started_ns": BEGIN_NS}
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.RATE, 100.0), warm_up_s=0.0, duration_s=float(seconds))
    step = judge(StepResult.of(order, engine_result), Sla(), Phase.FIXED, read_histogram=Latencies)
    used = _read(Name("process", "memory", "bytes"), [1e9 * (1.0 + 0.1 * at / seconds) for at in range(seconds)], 0)
    for limit, outcome in ((None, "pass"), (0.05, "fail"), (0.2, "pass")):
        result = EndpointResult(ENDPOINT, Sla(memory_drift_share=limit), fixed=[step])
        memory = [drift for drift in _entry(result, Watched(series=(used,))).drifts if drift.what == "memory"]
        assert [(drift.outcome, drift.limit) for drift in memory] == [(outcome, limit)]
        assert memory[0].begin == pytest.approx(1e9, rel=0.01)
        assert memory[0].rise == pytest.approx(0.1, rel=0.05)
    assert not [drift for drift in _entry(result, Watched()).drifts if drift.what == "memory"]
