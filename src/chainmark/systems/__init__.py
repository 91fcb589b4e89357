"""The systems under test: everything particular to one stands in its own folder here, found by entry point."""
