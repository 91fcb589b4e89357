"""The systems under test: all code specific to one is in its own folder here, found by entry point."""
