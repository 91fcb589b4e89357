"""`chainmark history`: notes shown with the runs, and rejected notes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import InvalidRunError, UsageError

from tests.support import Lab
from tests.unit.systems.cardano import made_reports


def test_a_change_is_noted_listed_and_removed(lab: Lab) -> None:
    done = lab.run("history", "note", "cardano", "2025-08-01", "new hosts", "--metric", "rss_mib")
    assert done.stdout == "noted: cardano since 2025-08-01T00:00:00Z: new hosts\n"
    listed = lab.run("history", "list").stdout
    assert "new hosts" in listed
    assert "rss_mib" in listed
    lab.run("history", "remove", "cardano", "2025-08-01")
    assert "new hosts" not in lab.run("history", "list", "--json").stdout


def test_a_history_shows_changes_and_notes_of_its_releases(lab: Lab, tmp_path: Path) -> None:
    """Computed from published reports alone.

    Only the change at 9.6.0 is reported. Each note is shown at its release.
    """
    deviations = [0.001 * (number % 3) + 0.1 * (number >= 6) for number in range(1, 12)]
    reports = made_reports.written(tmp_path / "reports.json", made_reports.content(*made_reports.series(deviations)))
    lab.run("ingest", "cardano", str(reports))
    lab.run("history", "note", "cardano", "2024-04-01", "new switches", "--metric", "rss_mib")
    lab.run("history", "note", "cardano", "9.8.0", "a clock was wrong")
    output = lab.run("history", "show", "9.11.0", "--json-file", str(tmp_path / "history.json")).stdout
    document = json.loads((tmp_path / "history.json").read_text(encoding="utf-8"))
    adoption = next(series for series in document["series"] if series["label"] == "0.80 adoption")
    assert [change["label"] for change in adoption["changes"]] == ["9.6.0"]
    notes = {release["label"]: release["notes"] for release in document["releases"] if release["notes"]}
    assert notes == {"9.3.0": ["new switches"], "9.8.0": ["a clock was wrong"]}  # 9.3.0 ran on 2024-04-11
    assert "9.6.0" in output
    assert "new switches" in output


def test_an_invalid_note_is_reported(tmp_path: Path) -> None:
    """A misspelled metric would make the change count as noise."""
    with pytest.raises(UsageError, match="`rss` is not a metric"):
        cm.note("cardano", "2025-08-01", "new hosts", metrics=["rss"], store=tmp_path)
    with pytest.raises(UsageError, match="no run matches `last summer`"):
        cm.note("cardano", "last summer", "new hosts", store=tmp_path)
    cm.note("cardano", "2025-08-01", "new hosts", store=tmp_path)
    with pytest.raises(UsageError, match="there is already a note of a change"):
        cm.note("cardano", "2025-08-01", "again", store=tmp_path)
    with pytest.raises(UsageError, match="no note of a change of `mesh`"):
        cm.unnote("mesh", "2025-08-01", store=tmp_path)
    with pytest.raises(UsageError, match=r"no run matches `10\.1\.4`"):
        cm.pin("cardano", "10.1.4", store=tmp_path)


def test_damaged_notes_are_an_error_and_not_ignored(tmp_path: Path) -> None:
    """Without its epochs a comparison would judge metrics that the notes declare not comparable."""
    (tmp_path / "history.json").write_text('{"epochs": [', encoding="utf-8")
    with pytest.raises(InvalidRunError, match=r"history\.json cannot be read"):
        cm.notes(tmp_path)
