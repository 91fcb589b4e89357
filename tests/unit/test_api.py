"""The public Python API: every promised name is there and is what its home says."""

from __future__ import annotations

import pytest

import chainmark


@pytest.mark.parametrize("name", chainmark.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(chainmark, name).__module__.startswith("chainmark.")
