"""Mesh (Rosetta) APIs: what a server offers, what it can be asked, what a right answer is, what others published."""

from chainmark.systems.mesh.system import SYSTEM

__all__ = ["SYSTEM"]
