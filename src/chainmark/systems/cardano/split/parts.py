"""The parts of a change of adoption, by their names in every report."""

from __future__ import annotations

from chainmark.compare.split import MetricPart

TITLE = "Network or node"
NETWORK = MetricPart("network", "network")
NODE = MetricPart("node", "node")
DISTANCE = MetricPart("distance", "hops between regions", NETWORK.id)
LENGTH = MetricPart("length", "number of hops", NETWORK.id)
FORGING = MetricPart("forging", "slot start to announced", NODE.id)
HOPS = MetricPart("hops", "header, request and body of a hop", NODE.id)
PASSING = MetricPart("passing", "fetched to announced", NODE.id)
ADOPTING = MetricPart("adopting", "fetched to adopted", NODE.id)
UNREPORTED = MetricPart("unreported", "not shown by any stage", NODE.id)
# From logs; those that are not sums of others are in the order of `Ways.parts`.
OF_PATHS = (NETWORK, DISTANCE, LENGTH, NODE, FORGING, HOPS, PASSING, ADOPTING)
