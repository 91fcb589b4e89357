"""Cardano: clusters of block producers, their published reports, and a model of block propagation."""

from chainmark.systems.cardano.system import SYSTEM

__all__ = ["SYSTEM"]
