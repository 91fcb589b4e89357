"""Mesh (Rosetta) servers: what they are and offer, what they are asked, what a right answer is."""

from chainmark.systems.mesh.system import SYSTEM

__all__ = ["SYSTEM"]
