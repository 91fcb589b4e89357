"""Systems are found by their folders, and by entry points only in other packages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from chainmark.lab import registry

GROUP = "chainmark.systems"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    for function in (registry.registered, registry.folders):
        function.cache_clear()
    yield
    for function in (registry.registered, registry.folders):
        function.cache_clear()


def _with_points(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [EntryPoint(name, value, GROUP) for name, value in values.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == GROUP else [])


def test_an_earlier_installation_does_not_bring_a_removed_folder_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An editable installation keeps the entry points of the day when it was made."""
    _with_points(monkeypatch, removed="chainmark.systems.removed:SYSTEM", http="chainmark.systems.http:SYSTEM")
    assert "removed" not in registry.registered()
    assert registry.registered()["http"].value == "chainmark.systems.http:SYSTEM"


def test_another_package_cannot_replace_a_system_of_chainmark(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_points(monkeypatch, http="elsewhere:SYSTEM", zebra="elsewhere:SYSTEM")
    assert registry.registered()["http"].module == "chainmark.systems.http"
    assert [*registry.registered()][-1] == "zebra"


def test_a_package_that_was_removed_has_no_profiles_and_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_points(monkeypatch, gone="a_package_that_is_not_installed.system:SYSTEM")
    assert "gone" in registry.registered()
    assert "gone" not in registry.folders()
    assert "http/example" in registry.shipped("profiles")
