"""Mesh (Rosetta) APIs: what a server offers, what it can be asked, what is right, what others have published."""

from chainmark.systems.mesh.system import SYSTEM

__all__ = ["SYSTEM"]
