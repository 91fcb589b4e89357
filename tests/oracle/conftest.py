"""Fixtures shared by several comparisons with published material."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

import chainmark as cm


@pytest.fixture(scope="session")
def history(shared_data: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A read-only store with all runs of all reports. Only the first process creates it (10 s)."""
    base = tmp_path_factory.getbasetemp()
    store = (base if worker_id == "master" else base.parent) / "history"
    with store.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.with_suffix(".made").exists():
            for folder in ("reports", "more-reports"):
                cm.ingest("cardano", shared_data / "cardano" / folder, store=store)
            store.with_suffix(".made").touch()
    return store
