"""What tests of whole commands share: a store of their own, and proof that no process is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab of the test's own; whatever the test did, no node may outlive it."""
    one = Lab(tmp_path / "store")
    yield one
    left = one.node_processes()
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture(scope="module")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that the tests of a module share, for runs that are made once and looked at often."""
    one = Lab(tmp_path_factory.mktemp("lab") / "store")
    yield one
    assert one.node_processes() == []
