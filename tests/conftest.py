"""Fixtures for tests of whole commands: a separate store, and a check that no process is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainmark.lab.machine import USE, MachineUse

import tests.property_examples  # noqa: F401 - chooses the examples of every property test
from tests.begin import place
from tests.support import Lab

# Tests of behaviour run several networks concurrently on purpose; their commands inherit this variable.
os.environ[USE] = MachineUse.SHARED
# Tests seal thousands of runs and none of them simulates a power failure. Waiting for the disk would dominate their
# time.
os.fsync = lambda fd: None
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest files. Skip tests that need published material, with a reason, if it is not available."""
    items.sort(key=place)
    if SHARED_DATA.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the published material is not here: {SHARED_DATA}")
    for item in items:
        if item.get_closest_marker("shared_data"):
            item.add_marker(absent)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the published material; for tests marked ``shared_data``."""
    return SHARED_DATA


@pytest.fixture
def lab_type() -> type[Lab]:
    """The way in which commands are started."""
    return Lab


@pytest.fixture
def lab(tmp_path: Path, lab_type: type[Lab]) -> Iterator[Lab]:
    """A separate lab for a test. Whatever the test did, no node may outlive it."""
    lab_run = lab_type(tmp_path / "store")
    yield lab_run
    left = lab_run.node_processes()
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture(scope="module")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab shared by the tests of a module, for runs that are made once and used often."""
    lab_run = Lab(tmp_path_factory.mktemp("lab") / "store")
    yield lab_run
    assert lab_run.node_processes() == []
