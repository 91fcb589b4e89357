"""Required capacities that are proposed for the next test, based on the current one."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from chainmark.capacity.profile import LoadProfile
from chainmark.capacity.requirements import read_requirements, requirements, requirements_text
from chainmark.core.errors import UsageError
from chainmark.core.load_report import CapacityEntry, EndpointEntry, LoadReport, ServiceLevel, TargetEntry
from chainmark.core.manifest import Subject


def report(**capacities: float | None) -> LoadReport:
    """A report of the endpoint `block` with these capacities by kind."""
    entries = [
        CapacityEntry.model_validate(
            {
                "kind": kind,
                "capacity": capacity,
                "low": capacity or 0.0,
                "high": None,
                "stopped_by": "p99",
                "condition": None,
                "finding": "found" if capacity else "unsettled",
                "confirmed": True,
                "best_step": None,
                "fail_step": None,
            }
        )
        for kind, capacity in capacities.items()
    ]
    sla = ServiceLevel(p95_s=None, p99_s=1.0, error_share=0.01, achieved_share=0.99, min_requests=299)
    endpoint = EndpointEntry(id="block", label="/block", requests=1, sla=sla, capacities=entries, steps=[])
    subject = Subject(system="mesh", name="Mesh API", version="1")
    target = TargetEntry(name="server", url="http://x", subject=subject, run_id="r", facts=[], endpoints=[endpoint])
    return LoadReport(
        title="t",
        system="mesh",
        profile_name="p",
        scenario="",
        started_at="2026-01-01T00:00:00Z",
        tool_version="0",
        machine=[],
        corpus_hash=None,
        targets=[target],
    )


def test_the_assumed_noise_is_subtracted_for_a_single_test() -> None:
    """A noise of 5 % in both tests: 1 − exp(−1.645 · 0.05 · √2) = 11 %."""
    document = requirements([report(clients=100.0, rate=1000.0)])
    assert document == {"block": {"clients": 89.0, "rate": 890.0}}
    assert requirements([report(clients=1.0, rate=0.731)]) == {"block": {"clients": 1.0, "rate": 0.65}}


def test_with_many_tests_an_unchanged_server_misses_as_rarely_as_stated() -> None:
    """Simulated with a noise of 8 %, which the rule does not know."""
    source, missed, trials = random.Random(7), 0, 3000
    for _ in range(trials):
        drawn = [1000.0 * math.exp(source.gauss(0.0, 0.08)) for _ in range(5)]
        required = requirements([report(rate=value) for value in drawn])["block"]["rate"]
        missed += 1000.0 * math.exp(source.gauss(0.0, 0.08)) < required
        assert required <= min(drawn)
    assert missed / trials < 0.06


def test_an_undecided_capacity_is_not_required(tmp_path: Path) -> None:
    assert requirements([report(clients=None, rate=500.0), report(clients=64.0, rate=500.0)]) == {
        "block": {"rate": pytest.approx(449, abs=8)}
    }
    assert requirements([report(clients=0.0)]) == {}


def test_the_written_file_is_a_section_of_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "require.toml"
    path.write_text(requirements_text({"block": {"rate": 0.65, "clients": 89.0}}, ["run-1"]), encoding="utf-8")
    profile = LoadProfile.model_validate({"system": "x", "name": "y", "require": read_requirements(path)})
    assert profile.required() == {"block.clients": 89.0, "block.rate": 0.65}
    for text in ("[required]\n", "[require\n", "require = 3\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="require"):
            read_requirements(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_requirements(tmp_path / "none.toml")
