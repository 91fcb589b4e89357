"""One host's run: how it received blocks, as a page for its operator, beside the figures of blockperf."""
