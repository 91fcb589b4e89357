"""One host's run: how it received blocks, as a page for its operator, next to the figures of blockperf."""
