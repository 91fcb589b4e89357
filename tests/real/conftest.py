"""Servers that all tests with real processes share."""

from __future__ import annotations

from tests.real.mesh_servers import rosetta_example, simd

__all__ = ["rosetta_example", "simd"]
