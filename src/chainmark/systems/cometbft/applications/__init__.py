"""Applications other than CometBFT's own: how their nodes are created, started, and loaded."""
