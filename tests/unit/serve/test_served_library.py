"""The dashboard as an object of the library: it is served while a notebook goes on, and ends when it is closed."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

import chainmark as cm
from chainmark.core.errors import EnvironmentFailure

from tests.unit.serve.stores import filled

TIMEOUT_S = 60


def test_a_dashboard_is_served_until_it_is_closed(tmp_path: Path) -> None:
    """Two stores can be served at once."""
    (name,) = filled(tmp_path / "one", releases=1)
    with cm.serve(tmp_path / "one", port=0) as dashboard, cm.serve(tmp_path / "two", port=0) as other:
        assert name in httpx.get(f"{dashboard.url}runs", timeout=TIMEOUT_S).text
        assert name not in httpx.get(f"{other.url}runs", timeout=TIMEOUT_S).text
        assert dashboard.url in dashboard._repr_html_()
        with pytest.raises(EnvironmentFailure, match="cannot listen on"):
            cm.serve(tmp_path, port=httpx.URL(dashboard.url).port or 0)
    for closed in (dashboard, other):
        with pytest.raises(httpx.ConnectError):
            httpx.get(closed.url, timeout=TIMEOUT_S)
    dashboard.close()  # again, without effect
    dashboard.wait()


def test_the_address_for_other_machines_has_a_random_token_unless_one_is_given(tmp_path: Path) -> None:
    with cm.serve(tmp_path, host="0.0.0.0", port=0) as dashboard:  # noqa: S104 - it requires a token
        assert "?token=" in dashboard.url
        local = dashboard.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert httpx.get(local, timeout=TIMEOUT_S, follow_redirects=True).status_code == 200
        assert httpx.get(local.partition("?")[0], timeout=TIMEOUT_S).status_code in {401, 403}
    with cm.serve(tmp_path, host="0.0.0.0", port=0, token="given") as dashboard:  # noqa: S104, S106
        assert "given" not in dashboard.url
