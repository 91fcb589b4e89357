"""Where runs live: created unfinished, sealed once, verified by their hashes."""
