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


# Sends the signal at every instruction of a function of `subprocess`, each time for another process.
WITHIN_SUBPROCESS = """
import os, signal, subprocess, sys
from contextlib import suppress
from chainmark.cli.interrupts import handle_interrupts

handle_interrupts()
function, wait, timeout_s = sys.argv[1], sys.argv[2] == "wait", 0.003

def interrupt_at(instruction):
    reached = [0]
    def trace(frame, event, argument):
        if frame.f_code.co_name != function or frame.f_globals["__name__"] != "subprocess":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            reached[0] += 1
            if reached[0] == instruction:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace
    process = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        sys.settrace(trace)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s) if wait else process.poll()
        sys.settrace(None)
        while reached[0] >= instruction:
            pass
    except KeyboardInterrupt:
        pass
    sys.settrace(None)
    process.kill()
    assert not process._waitpid_lock.locked(), instruction
    process.wait()
    return reached[0] >= instruction

count = 1
while interrupt_at(count):
    count += 1
print(count)
"""


@pytest.mark.parametrize(("function", "call"), [("_internal_poll", "poll"), ("_wait", "wait")])
def test_a_process_can_be_waited_for_after_a_signal_at_any_moment(function: str, call: str) -> None:
    """Otherwise a command that is interrupted while it looks for dead nodes may wait for them forever."""
    command = [sys.executable, "-c", WITHIN_SUBPROCESS, function, call]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert int(ended.stdout) > 20, "the function was not traced"
