"""A lab for tests: the command with a separate store, run to its end or interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from chainmark.core.manifest import Gate, GateStatus
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.machine import first_address, wait_until_calm

# Timeouts for a hang; a busy machine needs several times as long as an idle one.
COMMAND_TIMEOUT_S = 600
WAIT_TIMEOUT_S = 180
# Gates that fail if the machine had no time for the measurement: such a run proves nothing about its subject.
INSTRUMENT_GATES = frozenset({"pressure", "lag", "generator", "waited", "round_trips"})
ATTEMPTS = 3
CALM_TIMEOUT_S = 60
# For tests of behaviour without performance figures: other load on the machine must not decide the result.
ANYHOW = (
    "gates.waited_share_max=1", "gates.schedule_lag_p99_max_s=600", "gates.generator_cpu_max_cores=64",
    "gates.blocks_min=1", "load.send_grace_s=60", "load.answer_timeout_s=60",
)  # fmt: skip
# The first two and the last two blocks take most of the time of a short run. With these settings a block takes 0.17 s:
# by default, nodes check only every 100 ms whether a peer lacks a vote, so a block takes 0.2 s more than its timeout.
FAST_BLOCKS = (
    "node.config.consensus.timeout_commit=100ms", "node.config.consensus.peer_gossip_sleep_duration=20ms",
)  # fmt: skip
# A dozen blocks in the window.
QUICK = (*FAST_BLOCKS, "load.warm_up_s=1", "load.duration_s=2")
# Commands that create networks. Their addresses must differ from those of concurrent tests.
LAUNCHING = ("run", "experiment", "bisect", "saturation", "qa")


@dataclass
class Started:
    """A running command."""

    process: subprocess.Popen[str]
    errors_path: Path
    _last_errors: str | None = None

    def errors(self) -> str:
        """Its output to stderr so far."""
        return self.errors_path.read_text(encoding="utf-8") if self._last_errors is None else self._last_errors

    def wait_for_load(self) -> None:
        """Wait until it offers transactions."""
        wait_until(lambda: "offering" in self.errors(), "the load")

    def finish(self, timeout_s: float = COMMAND_TIMEOUT_S) -> subprocess.CompletedProcess[str]:
        """Wait for its end; kill it if it takes too long."""
        try:
            output, _ = self.process.communicate(timeout=timeout_s)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._last_errors = self.errors()
            self.errors_path.unlink(missing_ok=True)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, output, self.errors())


@dataclass
class Lab:
    """The `chainmark` command with a separate store."""

    store_path: Path

    @property
    def store(self) -> Store:
        """The store that the commands use."""
        return Store(self.store_path)

    def environment(self) -> dict[str, str]:
        """The environment of the commands: this store, no colours."""
        return {**os.environ, "CHAINMARK_STORE": str(self.store_path), "NO_COLOR": "1", "COLUMNS": "160"}

    def start(self, *arguments: str) -> Started:
        """Start a command in a separate process group, as a shell would."""
        number, errors_path = tempfile.mkstemp(prefix="chainmark-stderr-", text=True)
        with open(number, "w", encoding="utf-8") as errors:  # noqa: PTH123 - a descriptor, not a path
            process = subprocess.Popen(
                [sys.executable, "-m", "chainmark.cli", *arguments, *_placed(arguments)],
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        return Started(process, Path(errors_path))

    def ended(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever it is."""
        return self.start(*arguments).finish()

    def run(self, *arguments: str, code: int | Collection[int] | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; fail unless it exits with ``code``, or one of several (None: any).

        If only instruments' gates failed, the runs are removed and repeated a few times as soon as the machine has time
        to spare. The test is skipped with a reason if other load keeps the machine busy.
        """
        expected = {code} if isinstance(code, int) else code
        for attempt in range(1, ATTEMPTS + 1):
            before = {run.run_id for run in self.store.sealed()}
            ended = self.ended(*arguments)
            if expected is None or ended.returncode in expected:
                return ended
            runs = [run for run in self.store.sealed() if run.run_id not in before]
            spoiled = spoiled_by(runs)
            if not spoiled:
                break
            cause = ", ".join(f"{gate.label}: {gate.measured}" for gate in spoiled)
            print(f"attempt {attempt} of {ATTEMPTS} says nothing: {cause}")  # noqa: T201 - pytest shows it of failures
            if not wait_until_calm(CALM_TIMEOUT_S):
                pytest.skip(f"this machine is too busy with other work: {cause}")
            for run in runs:
                self.store.remove(run)
        raise AssertionError(f"exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}")

    def runs(self, *arguments: str, code: int | Collection[int] | None = 0) -> list[SealedRun]:
        """Run `chainmark run …`; return the runs."""
        before = {run.run_id for run in self.store.sealed()}
        self.run("run", *arguments, code=code)
        return [run for run in self.store.sealed() if run.run_id not in before]

    def node_processes(self) -> list[psutil.Process]:
        """Processes of nodes whose home is in this store."""
        processes = []
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            if any(str(self.store_path) in part for part in command) and "start" in command:
                processes.append(process)
        return processes


def changed(*settings: str) -> list[str]:
    """The options that change a profile in this way."""
    return [part for setting in settings for part in ("--set", setting)]


def spoiled_by(runs: Sequence[SealedRun]) -> list[Gate]:
    """The failed gates of these runs if all of them are instruments' gates; none if a subject also failed."""
    failed = [gate for run in runs for gate in run.manifest.gates if gate.status is GateStatus.FAIL]
    return failed if all(gate.id in INSTRUMENT_GATES for gate in failed) else []


def _placed(arguments: Sequence[str]) -> list[str]:
    """The option that assigns addresses to a network, if the command creates one and does not state them."""
    launches = arguments[0] in LAUNCHING and any(part.startswith("cometbft") for part in arguments[1:2])
    is_set = any(part.startswith("network.first_address=") for part in arguments)
    ordered_before = arguments[0] == "qa" and "--resume" in arguments
    return (
        ["--set", f"network.first_address={first_address()}"] if launches and not is_set and not ordered_before else []
    )


def wait_until(
    condition: Callable[[], object], what: str, timeout_s: float = WAIT_TIMEOUT_S, *, period_s: float = 0.05
) -> None:
    """Wait for a condition; fail with ``what`` after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s:g} s for {what}"
        time.sleep(period_s)
