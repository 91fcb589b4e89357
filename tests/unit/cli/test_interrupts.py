"""An interrupted command exits as interrupted, wherever the signal arrives."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Sends the signal from within Python code that polars calls, as in conversions and expressions.
WITHIN_POLARS = """
import os, sys
import polars as pl
from chainmark.cli.interrupts import handle_interrupts

def interrupted(series):
    os.kill(os.getpid(), int(sys.argv[1]))
    return series.rechunk()

handle_interrupts()
try:
    pl.DataFrame({"a": [1, 2]}).lazy().select(pl.col("a").map_batches(interrupted)).collect()
    while True:
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [1, 2, 15])
def test_a_signal_during_a_polars_call_is_not_a_polars_failure(number: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHIN_POLARS, str(number)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
