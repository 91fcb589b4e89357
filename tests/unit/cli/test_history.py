"""`chainmark history`: what is noted beside the runs, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import InvalidRunError, UsageError

from tests.support import Lab


def test_a_change_is_noted_listed_and_taken_away(lab: Lab) -> None:
    done = lab.run("history", "note", "cardano", "2025-08-01", "new hosts", "--metric", "rss_mib")
    assert done.stdout == "noted: cardano since 2025-08-01T00:00:00Z: new hosts\n"
    listed = lab.run("history", "list").stdout
    assert "new hosts" in listed
    assert "rss_mib" in listed
    lab.run("history", "remove", "cardano", "2025-08-01")
    assert "new hosts" not in lab.run("history", "list", "--json").stdout


def test_what_cannot_be_noted_is_said(tmp_path: Path) -> None:
    """A metric spelt wrong would let the change count as noise."""
    with pytest.raises(UsageError, match="`rss` is not a metric"):
        cm.note("cardano", "2025-08-01", "new hosts", metrics=["rss"], store=tmp_path)
    with pytest.raises(UsageError, match="is not a time"):
        cm.note("cardano", "last summer", "new hosts", store=tmp_path)
    cm.note("cardano", "2025-08-01", "new hosts", store=tmp_path)
    with pytest.raises(UsageError, match="noted already"):
        cm.note("cardano", "2025-08-01", "again", store=tmp_path)
    with pytest.raises(UsageError, match="no change of `mesh`"):
        cm.unnote("mesh", "2025-08-01", store=tmp_path)
    with pytest.raises(UsageError, match=r"no run matches `10\.1\.4`"):
        cm.pin("cardano", "10.1.4", store=tmp_path)


def test_damaged_notes_are_an_error_and_not_no_notes(tmp_path: Path) -> None:
    """Without its epochs a comparison would judge what was noted as not comparable."""
    (tmp_path / "history.json").write_text('{"epochs": [', encoding="utf-8")
    with pytest.raises(InvalidRunError, match=r"history\.json cannot be read"):
        cm.notes(tmp_path)
