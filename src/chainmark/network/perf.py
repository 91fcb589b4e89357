"""CPU time of processes without pprof pages: by Linux's `perf`, if the kernel allows it.

Source: perf-record(1) and perf-script(1). Calls are followed by frame pointers, which Go's programs have; for a program
built without them the innermost function is correct, and its callers may be missing.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from chainmark.core.errors import EnvironmentFailure
from chainmark.core.units import number

SAMPLES_PER_S = 99  # not synchronous with activities at a hundred times per second
_LEAST_S = 1.0
_READY_TIMEOUT_S = 20.0
_ENDING_TIMEOUT_S = 20.0
# Samples by the machine's timer: most virtual machines lack the CPU's hardware counters.
_RECORD = ("record", "--quiet", "--event", "cpu-clock", "--freq", str(SAMPLES_PER_S), "--call-graph", "fp")
_SCRIPT = ("script", "--no-inline", "--fields", "comm,period,ip,sym,dso")
_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")
# Suffixes that compilers add to the name of a part or a copy of a function.
_COMPILERS = re.compile(r"(\.(part|constprop|isra|cold|llvm)\b[\w.]*|\+0x[0-9a-f]+)$")


def sample(pids: Sequence[int], seconds: float, stopped: Event) -> str:
    """The output of `perf script` for some processes, sampled until the time is over or sampling is stopped.

    They are sampled for at least a second after perf is ready, which takes it seconds on a busy machine.

    Raises:
        EnvironmentFailure: perf is not installed, lacks permission, or recorded no sample.
    """
    perf = shutil.which("perf")
    if perf is None:
        raise EnvironmentFailure("`perf` is not installed", "install it: on Debian the package is linux-perf")
    with tempfile.TemporaryDirectory(prefix="chainmark-perf-") as folder:
        data = Path(folder) / "perf.data"
        errors = _record([perf, *_RECORD, "--pid", ",".join(map(str, pids)), "--output", str(data)], seconds, stopped)
        if not data.is_file() or not data.stat().st_size:
            raise EnvironmentFailure(f"`perf` recorded nothing: {_brief(errors)}")
        shown = subprocess.run([perf, *_SCRIPT, "--input", data], capture_output=True, text=True, check=False)
    if not shown.stdout:
        raise EnvironmentFailure(
            f"`perf` recorded no sample in {number(seconds, 1)} s: {_brief(errors + shown.stderr)}"
        )
    return shown.stdout


def _record(command: Sequence[str], seconds: float, stopped: Event) -> str:
    """Run `perf record` for this time, and for at least `_LEAST_S` after it is ready; return its messages."""
    end_s = time.monotonic() + seconds
    with ExitStack() as ends:
        control, to_control = _pipe(ends)
        answers, answer = _pipe(ends)
        recording = ends.enter_context(
            subprocess.Popen(
                [*command, f"--control=fd:{control},{answer}"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=(control, answer),
            )
        )
        os.write(to_control, b"enable\n")  # they are enabled: only the answer matters
        deadline_s = time.monotonic() + _READY_TIMEOUT_S
        while recording.poll() is None and time.monotonic() < deadline_s and not stopped.is_set():
            if select.select([answers], [], [], 0.1)[0]:
                stopped.wait(max(_LEAST_S, end_s - time.monotonic()))
                break
        recording.send_signal(signal.SIGINT)
        try:
            return recording.communicate(timeout=_ENDING_TIMEOUT_S)[1]
        except subprocess.TimeoutExpired:
            recording.kill()
            return "it did not stop"


def _pipe(ends: ExitStack) -> tuple[int, int]:
    """Its ends for reading and writing, closed with the stack."""
    pair = os.pipe()
    for end in pair:
        ends.callback(os.close, end)
    return pair


def _brief(messages: str) -> str:
    return " ".join(messages.split())[:200] or "no message"


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
