"""What several comparisons with published material need, made once per process."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainmark as cm


@pytest.fixture(scope="session")
def history(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all runs of all reports, which nobody writes to."""
    store = tmp_path_factory.mktemp("history")
    for folder in ("reports", "more-reports"):
        cm.ingest("cardano", shared_data / "cardano" / folder, store=store)
    return store
