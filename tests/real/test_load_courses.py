"""A ramp and a spike on a real server whose queue can be computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.lab.stages import has_stages
from chainmark.report.blocks import Table
from chainmark.report.layouts import document_of
from chainmark.store.runs import Store

from tests.real.load_servers import Queue, known_test, serving
from tests.support import ATTEMPTS

pytestmark = pytest.mark.quiet  # the test depends on timing


def test_the_backlog_of_a_spike_and_the_failing_rate_of_a_ramp_are_measured(tmp_path: Path) -> None:
    """The server handles 400/s. An excess of 400 requests needs 2 s at 200/s. Above 400/s a queue grows."""
    for attempt in range(ATTEMPTS):  # repeated if the generator could not keep up
        with serving(Queue(workers=4, service_s=0.01)) as server:
            test = known_test(
                Store(tmp_path / str(attempt)),
                server,
                search={"kinds": []},
                ramp={"rates": {"work": [100, 1000]}, "duration_s": 4.5},
                spike={"rates": {"work": [200, 800]}, "before_s": 2, "peak_s": 1, "after_s": 5, "times": 1},
                sla={"p99_s": 1.0, "recovery_s": 4},
            )
        (endpoint,) = test.report.targets[0].endpoints
        if all(course.measured is not None and not course.note for course in endpoint.courses):
            break
    ramp, spike = endpoint.courses
    assert (ramp.note, spike.note, endpoint.steps) == ("", "", [])
    # The rate rises by 200/s each second. At 800/s, the excess over 400/s is one second of work for the server.
    assert ramp.measured is not None
    assert 650.0 < ramp.measured < 950.0
    assert ramp.outcome == "fail"
    assert spike.measured is not None
    assert 1.7 < spike.measured < 4.0
    assert (spike.step.due, spike.step.phase) == (200 * 2 + 800 + 200 * 5, "spike")
    (run,) = test.runs
    assert has_stages(run)
    assert set(run.events("steps")["phase"]) == {"ramp", "spike"}
    name = "work_spike_200_to_800_per_s"
    assert run.samples(name)[f"{name}_recovery_s"].to_list() == [spike.measured]
    assert run.manifest.workload["spike.rates.work"] == [200.0, 800.0]
    document = document_of(test.report)
    tables = {block.id for section in document.sections for block in section.blocks if isinstance(block, Table)}
    assert {"spikes-0", "ramps-0"} <= tables
