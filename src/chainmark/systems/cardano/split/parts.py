"""The parts of a change of adoption, as they are called in every report."""

from __future__ import annotations

from chainmark.compare.split import Part

TITLE = "Network or node"
NETWORK = Part("network", "network")
NODE = Part("node", "node")
DISTANCE = Part("distance", "hops between regions", NETWORK.id)
LENGTH = Part("length", "number of hops", NETWORK.id)
FORGING = Part("forging", "slot start to announced", NODE.id)
HOPS = Part("hops", "header, request and body of a hop", NODE.id)
PASSING = Part("passing", "fetched to announced", NODE.id)
ADOPTING = Part("adopting", "fetched to adopted", NODE.id)
UNTOLD = Part("untold", "what no stage tells", NODE.id)
# From logs; those that others are not parts of stand in the order of `Ways.parts`.
OF_PATHS = (NETWORK, DISTANCE, LENGTH, NODE, FORGING, HOPS, PASSING, ADOPTING)
