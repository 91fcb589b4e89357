"""The command line: one file per command, parsing and printing only."""

import os

# Statistics bring threads of their own. Those of BLAS wait for each other by spinning, which on a busy machine takes
# many times as long as the products themselves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from chainmark.cli.app import main

__all__ = ["main"]
