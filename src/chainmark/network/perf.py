"""CPU time of processes without pprof pages: by Linux's `perf`, if the kernel allows it.

Source: perf-record(1) and perf-script(1). Calls are followed by frame pointers, which Go's programs have; for a program
built without them the innermost function is correct, and its callers may be missing.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

from chainmark.core.errors import EnvironmentFailure

SAMPLES_PER_S = 99  # not synchronous with activities at a hundred times per second
_ENDING_TIMEOUT_S = 20.0
# Samples by the machine's timer: most virtual machines lack the CPU's hardware counters.
_RECORD = ("record", "--quiet", "--event", "cpu-clock", "--freq", str(SAMPLES_PER_S), "--call-graph", "fp")
_SCRIPT = ("script", "--no-inline", "--fields", "comm,period,ip,sym,dso")
_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")
# Suffixes that compilers add to the name of a part or a copy of a function.
_COMPILERS = re.compile(r"(\.(part|constprop|isra|cold|llvm)\b[\w.]*|\+0x[0-9a-f]+)$")


def sample(pids: Sequence[int], seconds: float, stopped: Event) -> str:
    """The output of `perf script` for some processes, sampled until the time is over or sampling is stopped.

    Raises:
        EnvironmentFailure: perf is not installed, or lacks permission.
    """
    perf = shutil.which("perf")
    if perf is None:
        raise EnvironmentFailure("`perf` is not installed", "install it: on Debian the package is linux-perf")
    with tempfile.TemporaryDirectory(prefix="chainmark-perf-") as folder:
        data = Path(folder) / "perf.data"
        command = [perf, *_RECORD, "--pid", ",".join(map(str, pids)), "--output", str(data)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as recording:
            stopped.wait(seconds)
            recording.send_signal(signal.SIGINT)
            try:
                _, errors = recording.communicate(timeout=_ENDING_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                recording.kill()
                errors = "it did not stop"
        if not data.is_file() or not data.stat().st_size:
            raise EnvironmentFailure(f"`perf` recorded nothing: {' '.join(errors.split())[:200] or 'no message'}")
        shown = subprocess.run([perf, *_SCRIPT, "--input", data], capture_output=True, text=True, check=False)
    return shown.stdout


def stacks(text: str) -> Iterator[tuple[list[str], float]]:
    """Every sample in the output of `sample`: its functions, the outermost first, and its CPU time in seconds."""
    for block in text.split("\n\n"):
        head, *frames = block.strip("\n").split("\n")
        matches = [frame for line in frames if (frame := _FRAME.match(line))]
        if matches:
            yield [_function(frame[1], frame[2]) for frame in reversed(matches)], float(head.split()[-1]) * 1e-9


def _function(symbol: str, image: str) -> str:
    """A function's name; one without a name has that of its file."""
    return f"({Path(image).name})" if symbol == "[unknown]" else _COMPILERS.sub("", symbol)
