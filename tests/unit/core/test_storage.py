"""The error for a path that cannot be written names the path and the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.store.files import write_bytes


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(UsageError, match=r"report\.html cannot be written: .*report\.html is a folder"):
        write_bytes(tmp_path / "report.html", b"<!doctype html>")
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


@pytest.mark.parametrize("below", ["report.html", "deeper/report.html"])
def test_nothing_is_written_below_a_file(tmp_path: Path, below: str) -> None:
    (tmp_path / "notes").write_text("kept", encoding="utf-8")
    with pytest.raises(UsageError, match=r"report\.html cannot be written: .*notes is a file") as error:
        write_bytes(tmp_path / "notes" / below, b"<!doctype html>")
    assert error.value.hint == "give a file in an existing folder"
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "kept"
