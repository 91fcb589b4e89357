"""Programs under test that are built or found on this machine: checkouts, Go builds, binaries, and their cache.

This package is independent of systems: a :class:`.program.Program` defines what a build must produce.
"""
