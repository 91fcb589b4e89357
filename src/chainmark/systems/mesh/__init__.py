"""Mesh (formerly Rosetta) APIs: what a server offers, a corpus sampled from it, what a right answer is."""
