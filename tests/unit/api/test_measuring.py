"""What all functions that measure have in common: they expose their progress, and refuse to wait for the machine."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import chainmark as cm
from chainmark.api import clusters, measure
from chainmark.api.context import measuring
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import LiveFigures, Silent
from chainmark.lab import machine
from chainmark.lab.machine import machine_to_itself
from chainmark.store.sealed import SealedRun

from tests.unit.api.listening import Reported
from tests.unit.lab.stand_in import Profile, StandIn

TIMEOUT_S = 60


class _Scraping(Reported):
    """Scrapes the exposed page whenever a run ends."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[str] = []

    def end(self, run: SealedRun) -> None:
        """Scrape the page."""
        self.pages.append(httpx.get(self.url, timeout=TIMEOUT_S).text)

    @property
    def url(self) -> str:
        """The address that was reported."""
        (url,) = [line.removeprefix("exposed at ") for line in self.lines if line.startswith("exposed at ")]
        return url


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file for this test only, which no other measurement uses."""
    monkeypatch.setattr(machine, "LOCK", tmp_path / "machine.lock")
    return tmp_path / "machine.lock"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The system of all profiles."""
    stand_in = StandIn()
    monkeypatch.setattr(measure, "resolve_launchable", lambda *_: (stand_in, Profile(system="cometbft", name="p")))
    monkeypatch.setattr(clusters, "profile_cluster", lambda *_: None)
    return stand_in


def _value(page: str, name: str) -> float:
    match = re.search(rf"^chainmark_{re.escape(name)} (\S+)$", page, re.MULTILINE)
    assert match is not None, page
    return float(match[1])


@pytest.mark.usefixtures("system")
def test_a_notebook_can_expose_its_runs_to_prometheus(tmp_path: Path) -> None:
    listener = _Scraping()
    cm.run("p", "v1", repeat=2, expose="127.0.0.1:0", store=tmp_path, progress=listener)
    finished = [_value(page, 'runs_finished_total{status="valid"}') for page in listener.pages]
    assert finished == [1.0, 2.0]
    assert [_value(page, "run_position") for page in listener.pages] == [1.0, 2.0]
    assert _value(listener.pages[0], "runs_planned") == 2.0
    assert 'chainmark_run_info{side="subject",version="v1"} 1.0' in listener.pages[0]
    with pytest.raises(httpx.ConnectError):
        httpx.get(listener.url, timeout=TIMEOUT_S)
    with pytest.raises(UsageError, match="is not a valid address to listen on"):
        cm.run("p", "v1", expose="nowhere", store=tmp_path)


def test_stages_and_live_figures_reach_the_listener_and_prometheus() -> None:
    heard: list[LiveFigures] = []

    class Live(_Scraping):
        @contextmanager
        def live(self, source: object) -> Iterator[None]:
            assert callable(source)
            heard.append(source())
            yield

    listener = Live()
    with measuring(listener, None, "127.0.0.1:0", no_wait=False) as relay:
        relay.stage("loading")
        relay.update(0.25)
        with relay.live(lambda: LiveFigures(sent=7)):
            page = httpx.get(listener.url, timeout=TIMEOUT_S).text
        relay.step("step 1")
        assert 'stage="step 1"' in httpx.get(listener.url, timeout=TIMEOUT_S).text
    assert 'chainmark_stage_info{stage="loading"} 1.0' in page
    assert (_value(page, "stage_progress_ratio"), _value(page, "load_sent_total")) == (0.25, 7.0)
    assert heard == [LiveFigures(sent=7)]


@pytest.mark.usefixtures("lock")
def test_a_function_that_must_not_wait_fails_while_another_measurement_runs(tmp_path: Path, system: StandIn) -> None:
    """Whatever the policy of the machine is; the next call of the same process has that policy again."""
    begun, ended = threading.Event(), threading.Event()

    def other() -> None:
        with machine.not_waiting(), machine_to_itself(Silent()):
            begun.set()
            ended.wait(TIMEOUT_S)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(TIMEOUT_S)
    try:
        with pytest.raises(EnvironmentFailure, match="this machine is in use: process"):
            cm.run("p", "v1", no_wait=True, store=tmp_path)
    finally:
        ended.set()
        thread.join(TIMEOUT_S)
    assert system.made == []
    assert machine.is_shared()  # as all unit tests run
    assert cm.run("p", "v1", no_wait=True, store=tmp_path)[0].is_valid
