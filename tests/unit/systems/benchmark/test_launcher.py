"""What an execution takes is that of all its processes, and of nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from chainmark.core.errors import EnvironmentFailure
from chainmark.core.progress import Silent
from chainmark.systems.benchmark import launcher
from chainmark.systems.benchmark.executions import Executed, Invocation, execute_all
from chainmark.systems.benchmark.profile import CommandWorkload

from tests.support import wait_until

MIB = 1 << 20
# A process that waits until the launcher has looked at the memory some times more: it waits between two looks.
LOOKED_AT = """
def looks():
    with open(f"/proc/{launcher}/status") as file:
        return int(file.read().split("voluntary_ctxt_switches:")[1].split()[0])

def wait_for_looks():
    begin = looks()
    while looks() < begin + 5:
        time.sleep(0.005)
"""


def _executed(tmp_path: Path, *words: str, work: CommandWorkload | None = None) -> Executed:
    command = Invocation(words, dict(os.environ), None, frozenset({0}))
    return execute_all(command, work or CommandWorkload(executions=1, warm_up=0), tmp_path, Silent())


def _python(code: str) -> tuple[str, str, str]:
    return sys.executable, "-c", textwrap.dedent(code)


def test_memory_of_concurrent_processes_is_summed(tmp_path: Path) -> None:
    """The kernel's peak covers one process: a command with many processes would seem to need a third of it."""
    code = f"""
import os, subprocess, sys, time
launcher = int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid()
{LOOKED_AT}
held = bytearray(os.urandom(1)) * (40 * 2**20)
if len(sys.argv) == 1:
    children = [subprocess.Popen([sys.executable, "-c", CODE, str(launcher)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE) for _ in range(2)]
    for child in children:
        child.stdout.read(1)
    wait_for_looks()
    for child in children:
        child.communicate()
else:
    print(1, end="", flush=True)
    sys.stdin.read()
"""
    code = f"CODE = {code!r}\n{code}"
    (execution,) = _executed(tmp_path, sys.executable, "-c", code).executions
    assert execution.peak_bytes is not None
    assert 120 * MIB < execution.peak_bytes < 240 * MIB


def test_a_peak_of_any_duration_is_measured(tmp_path: Path) -> None:
    """The kernel records it, so the result does not depend on sampling times."""
    (execution,) = _executed(tmp_path, *_python("bytearray(b'x') * (60 * 2**20)")).executions
    assert execution.peak_bytes is not None
    assert 60 * MIB < execution.peak_bytes < 110 * MIB


def test_a_command_smaller_than_its_launcher_has_no_memory_figure(tmp_path: Path) -> None:
    """The kernel would report the launcher's figure: two tools of 1 and 7 MiB would be equal."""
    executed = _executed(tmp_path, "/bin/true")
    assert [execution.peak_bytes for execution in executed.executions] == [None]
    assert "peak_memory_bytes" not in executed.samples().columns


def test_leftover_processes_are_ended_and_counted(tmp_path: Path) -> None:
    """A daemon would run during the next execution; its work and that of its children belong to the command."""
    code = """
    import os, subprocess, sys, time
    work = "import time\\nwhile time.process_time() < 0.3: pass\\nopen(1, 'w').write('done')\\ntime.sleep(600)"
    reading, writing = os.pipe()
    subprocess.Popen([sys.executable, "-c", work], stdout=writing, start_new_session=True)
    os.read(reading, 4)
    """
    (execution,) = _executed(tmp_path, *_python(code)).executions
    assert execution.left == 1
    assert execution.cpu_s >= 0.3
    assert not [process for process in psutil.process_iter(["cmdline"]) if "process_time() < 0.3" in str(process.info)]


def test_a_command_that_never_ends_is_killed_with_its_children(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", "echo begun; sleep 98765 & sleep 98765")
    executed = _executed(tmp_path, *command, work=CommandWorkload(executions=3, warm_up=0, timeout_s=0.3))
    assert executed.failure == "execution 1 of 3 did not end within 300 ms"
    assert (tmp_path / "stdout.txt").read_text() == "begun\n"
    assert not [process for process in psutil.process_iter(["cmdline"]) if "98765" in str(process.info["cmdline"])]


def test_a_launcher_that_is_ended_several_times_ends_its_command(tmp_path: Path) -> None:
    """The kernel reports a parent's death once per thread of it; the command would run during the next measurement."""
    words = ("/bin/sh", "-c", "echo $$; sleep 98764")
    with (tmp_path / "result").open("wb") as result:
        arguments = [sys.executable, "-I", "-S", launcher.__file__, str(result.fileno()), "600", *words]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, pass_fds=[result.fileno()]) as process:
            assert process.stdout is not None
            command = psutil.Process(int(process.stdout.readline()))
            while process.poll() is None:
                process.terminate()
                time.sleep(0.0001)  # equal signals that arrive together count once
    wait_until(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE, "the command's end", 20)


def test_failures_are_described(tmp_path: Path) -> None:
    work = CommandWorkload(executions=1, warm_up=1)
    assert _executed(tmp_path, "/bin/false", work=work).failure == "execution 1 of 2 ended with exit code 1"
    killed = _executed(tmp_path, "/bin/sh", "-c", "kill -9 $$", work=work)
    assert killed.failure == "execution 1 of 2 was killed by signal 9"
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(EnvironmentFailure, match="could not be started"):
        _executed(tmp_path, str(script))
