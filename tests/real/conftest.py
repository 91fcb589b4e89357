"""Servers shared by all tests with real processes."""

from __future__ import annotations

from tests.real.mesh_servers import rosetta_example, simd

__all__ = ["rosetta_example", "simd"]
