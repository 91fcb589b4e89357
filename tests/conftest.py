"""What tests of whole commands share: a store of their own, and proof that no process is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainmark.lab.machine import USE, MachineUse

import tests.property_examples  # noqa: F401 - chooses the examples of every property test
from tests.begin import place
from tests.support import Lab

# Tests of behaviour run several networks at a time on purpose; their commands inherit this.
os.environ[USE] = MachineUse.SHARED
# Thousands of runs are sealed here, and no test cuts the power: waiting for the disk is most of what many of them take.
os.fsync = lambda fd: None
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest; skip, saying so, what needs published material on a machine that has none."""
    items.sort(key=place)
    if SHARED_DATA.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the published material is not here: {SHARED_DATA}")
    for item in items:
        if item.get_closest_marker("shared_data"):
            item.add_marker(absent)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Where published material lies; for tests marked ``shared_data``."""
    return SHARED_DATA


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab of the test's own; whatever the test did, no node may outlive it."""
    lab_run = Lab(tmp_path / "store")
    yield lab_run
    left = lab_run.node_processes()
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture(scope="module")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that the tests of a module share, for runs that are made once and looked at often."""
    lab_run = Lab(tmp_path_factory.mktemp("lab") / "store")
    yield lab_run
    assert lab_run.node_processes() == []
