"""Programs under test that are made or found on this machine: checkouts, Go builds, binaries, and their cache.

Nothing here knows a system: which program a build must give is said by a :class:`.program.Program`.
"""
