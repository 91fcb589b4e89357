"""A note is shown with the runs that it concerns and does not change them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import chainmark as cm
from chainmark.api.noting import noted
from chainmark.core.epoch import Annotation
from chainmark.core.errors import UsageError
from chainmark.core.noted import Noted
from chainmark.store.runs import Store

from tests.golden import inputs
from tests.unit.compare.synthetic_runs import manifest

RUN = Noted("cometbft", "run-1", ["v1.0.1"], "2026-01-02T10:00:00Z", "2026-01-02T11:00:00Z")


@pytest.mark.parametrize(
    ("reach", "is_about"),
    [
        ({"run": "run-1"}, True),
        ({"run": "run-2"}, False),
        ({"version": "v1.0.1"}, True),
        ({"version": "v1.0.2"}, False),
        ({"since": "2026-01-02T10:30:00Z", "until": "2026-01-02T12:00:00Z"}, True),
        ({"since": "2026-01-02T11:00:01Z", "until": "2026-01-03T00:00:00Z"}, False),
        ({"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T09:59:59Z"}, False),
    ],
)
def test_a_note_is_about_a_run_a_version_or_a_time_span(reach: dict[str, str], *, is_about: bool) -> None:
    """Otherwise a note on a time span would be missing from its runs, or appear at runs of other days."""
    assert Annotation(system="cometbft", text="wrong clock", **reach).is_about(RUN) == is_about
    assert not Annotation(system="mesh", text="wrong clock", **reach).is_about(RUN)


def test_a_span_requires_a_system_and_a_run_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a range of days requires a system"):
        cm.annotate("2026-01-01", "links shared", until="2026-01-02", store=tmp_path)
    with pytest.raises(UsageError, match="no run matches"):
        cm.annotate("v9", "wrong clock", store=tmp_path)


def test_a_span_is_stored_complete_and_removed(tmp_path: Path) -> None:
    annotation = cm.annotate("2026-01-01", "links shared", system="cardano", until="2026-01-02", store=tmp_path)
    assert annotation.reach == "2026-01-01T00:00:00Z to 2026-01-02T23:59:59Z"
    assert cm.notes(tmp_path).annotations == [annotation]
    cm.unnote("cardano", "2026-01-01", store=tmp_path)
    assert cm.notes(tmp_path).annotations == []


# One document of every kind that is based on runs of a store.
NOTED = ("qa", "saturation", "aa", "published-typst", "block", "verification", "prediction", "explanation")


@pytest.mark.parametrize("name", NOTED)
def test_every_document_shows_the_notes_on_its_runs(name: str, tmp_path: Path) -> None:
    """Readers of a release's page must learn, for example, that a clock was wrong."""
    cm.annotate("2000-01-01", "links shared", system="cometbft", until="2100-01-01", store=tmp_path)
    run: Any = SimpleNamespace(manifest=manifest("v1", 1))
    plain = inputs.DOCUMENTS[name]()
    document = noted(plain, [run], Store(tmp_path))
    for medium in (document.text(160), document.markdown(), document.html()):
        assert "links shared" in medium
    assert "links shared" not in plain.text(160)
    assert all("links shared" in chart.note for chart in document.charts())
    assert "links shared" in document.json
    assert noted(plain, [], Store(tmp_path)) is plain
