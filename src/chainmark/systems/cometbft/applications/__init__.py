"""Applications that are not CometBFT's own: how their nodes are made and started, and how they are loaded."""
