"""Mesh (Rosetta) APIs: a server's endpoints, the requests, the correct responses, and published load tests."""

from chainmark.systems.mesh.system import SYSTEM

__all__ = ["SYSTEM"]
