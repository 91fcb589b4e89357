"""CometBFT: real networks of its nodes on one machine, loaded, observed and measured."""

from chainmark.systems.cometbft.system import SYSTEM

__all__ = ["SYSTEM"]
