"""Storage of runs: created unfinished, sealed once, verified by their hashes."""
