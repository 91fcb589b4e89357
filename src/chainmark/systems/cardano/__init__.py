"""Cardano: clusters of block producers, their published reports, and a model of how blocks spread among them."""

from chainmark.systems.cardano.system import SYSTEM

__all__ = ["SYSTEM"]
