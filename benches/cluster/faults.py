"""Faults of a cluster at random moments of an experiment on it: what remains, and what is said.

``python -m benches.cluster.faults [--seed N] [KIND ...]`` (root) starts a cluster for every kind of fault: a scheduler
and three workers in namespaces of their own, and one that is reserved for the load. It starts an experiment on it, and
lets the fault happen at a random moment. Whatever that is, the experiment must end by itself: with a verdict, or with
an error that names the machine or the scheduler. Every sealed run must be intact and must not count against its
version, and no node may remain. It prints one line per kind, and fails if one of these is not so.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from chainmark.core.manifest import Status
from chainmark.network.emulation import EmulationPlan, emulated_links
from chainmark.network.namespaces import HOST_NUMBER
from chainmark.network.zones import load_zone_table
from chainmark.store.runs import Store

from tests.real.dask_cluster import ROOT, LocalCluster, local_cluster, wait_for_workers, watching
from tests.real.test_cometbft_hosts import SHORT, nodes_on_hosts
from tests.support import wait_until

ZONES = {"w1": "N_Virginia", "w2": "Canada", "w3": "N_Virginia", "w4": "N_Virginia"}
LOAD, VICTIM = 4, 3
EARLIEST_S, LATEST_S = 8.0, 40.0
ENDS_WITHIN_S = 400.0
NODES_END_WITHIN_S = 60.0
SMALL_DISK = "200m"
BUSY = "other work takes all processors"
ENDED = {0, 1, 3, 4, 5, 130, -int(signal.SIGKILL)}


@dataclass
class Scene:
    """A cluster and an experiment on it, while a fault happens."""

    cluster: LocalCluster
    client: subprocess.Popen[str]
    restart: Callable[[int], None]
    scratch: Path
    undo: list[Callable[[], None]] = field(default_factory=list)

    @property
    def victim(self) -> subprocess.Popen[bytes]:
        """The worker that something happens to."""
        return self.cluster.workers[f"w{VICTIM}"]

    def inside(self, *command: str) -> None:
        """Run a command in the victim's network namespace."""
        subprocess.run(["nsenter", "-t", str(self.victim.pid), "-n", *command], check=True, timeout=20)


def _killed(scene: Scene) -> None:
    scene.cluster.kill(f"w{VICTIM}")


def _restarted(scene: Scene) -> None:
    scene.cluster.kill(f"w{VICTIM}")
    time.sleep(2.0)  # as long as a nanny takes
    scene.restart(VICTIM)


def _generator_killed(scene: Scene) -> None:
    scene.cluster.kill(f"w{LOAD}")


def _paused(scene: Scene) -> None:
    scene.victim.send_signal(signal.SIGSTOP)
    time.sleep(5.0)
    scene.victim.send_signal(signal.SIGCONT)


def _hanging(scene: Scene) -> None:
    scene.victim.send_signal(signal.SIGSTOP)


def _partitioned(scene: Scene) -> None:
    names = subprocess.run(
        ["nsenter", "-t", str(scene.victim.pid), "-n", "ip", "-o", "link"], capture_output=True, text=True, check=True
    ).stdout
    for name in re.findall(r"^\d+: ([^:@]+)", names, re.MULTILINE):
        if name != "lo":
            scene.inside("ip", "link", "set", name, "down")


def _slow(scene: Scene) -> None:
    """Something else takes both processors."""
    hogs = [subprocess.Popen(["chrt", "-r", "1", "timeout", "8", "sh", "-c", "while :; do :; done"]) for _ in range(2)]
    scene.undo += [hog.kill for hog in hogs]


def _disk_full(scene: Scene) -> None:
    with (scene.scratch / "disk" / "filling").open("wb") as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            return


def _other_version(scene: Scene) -> None:
    (scene.scratch / "sitecustomize.py").write_text('from chainmark.core import tool\ntool.VERSION = "9.9"\n')
    paths = os.pathsep.join([str(scene.scratch), str(ROOT / "src")])
    scene.cluster.start_worker(9, host="127.0.0.9", environment={"PYTHONPATH": paths})


def _scheduler_killed(scene: Scene) -> None:
    scene.cluster.scheduler.kill()


def _client_killed(scene: Scene) -> None:
    scene.client.kill()


def _client_interrupted(scene: Scene) -> None:
    scene.client.send_signal(signal.SIGINT)


FAULTS: dict[str, Callable[[Scene], None]] = {
    "a worker is killed": _killed,
    "a worker is killed and restarted": _restarted,
    "the load's worker is killed": _generator_killed,
    "a worker is paused for 5 s": _paused,
    "a worker hangs": _hanging,
    "a worker is cut off": _partitioned,
    BUSY: _slow,
    "a worker's disk is full": _disk_full,
    "a worker of another version joins": _other_version,
    "the scheduler is killed": _scheduler_killed,
    "the client is killed": _client_killed,
    "the client is interrupted": _client_interrupted,
}


@contextmanager
def _scene(scratch: Path, kind: str) -> Iterator[Scene]:
    """The cluster with an experiment that was just started."""
    plan = EmulationPlan(tuple(ZONES), ZONES, load_zone_table("aws"))
    disk = scratch / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(disk)], check=True)
    try:
        with emulated_links(plan, scratch) as links:
            network, _, _ = links.addresses["w1"].rpartition(".")
            with local_cluster(host=f"{network}.{HOST_NUMBER}") as cluster, watching(cluster) as seen:

                def start(number: int) -> None:
                    name = f"w{number}"
                    cluster.start_worker(
                        number,
                        host=links.addresses[name],
                        before=links.command(name, []),
                        environment={"TMPDIR": str(disk)} if number == VICTIM else None,
                        for_load=number == LOAD,
                    )

                for number in range(1, len(ZONES) + 1):
                    start(number)
                wait_for_workers(seen, set(ZONES))
                client = _experiment(cluster, scratch, kind)
                scene = Scene(cluster, client, start, scratch)
                try:
                    yield scene
                finally:
                    client.kill()
                    client.wait()
                    for undo in scene.undo:
                        undo()
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _experiment(cluster: LocalCluster, scratch: Path, kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "chainmark.cli", "experiment", "cometbft/demo", "--baseline", "v0.38.17"]
    command += ["--candidate", "v1.0.1", "--repeat", "2", "--profile", "none", "--on", cluster.address]
    # The other faults happen on any machine; this one must be found by the profile's own gates.
    settings = {key: value for key, value in SHORT.items() if kind != BUSY or not key.startswith("gates.")}
    command += [f"--set={key}={value}" for key, value in settings.items()]
    environment = {**os.environ, "CHAINMARK_STORE": str(scratch / "store")}
    with (scratch / "output").open("wb") as out, (scratch / "errors").open("wb") as errors:
        return subprocess.Popen(command, stdout=out, stderr=errors, env=environment, text=True)


@dataclass(frozen=True)
class Outcome:
    """What became of an experiment with a fault."""

    kind: str
    at_s: float
    lasted_s: float
    code: int | None
    runs: int
    said: str
    wrong: list[str]


def happen(kind: str, at_s: float) -> Outcome:
    """Let a fault happen after that time, and look at the end."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        scratch = Path(folder)
        with _scene(scratch, kind) as scene:
            begun = time.monotonic()
            try:
                scene.client.wait(at_s)
                wrong.append("it ended before the fault")
            except subprocess.TimeoutExpired:
                FAULTS[kind](scene)
            try:
                code: int | None = scene.client.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                code = None
            lasted_s = time.monotonic() - begun
            if kind == "a worker hangs":
                scene.victim.kill()  # a process that does nothing cannot stop its nodes; its end does
            try:
                wait_until(lambda: nodes_on_hosts() == [], "the end of all nodes", timeout_s=NODES_END_WITHIN_S)
            except AssertionError:
                wrong.append("nodes remain: " + ", ".join(str(node.pid) for node in nodes_on_hosts()))
        said = _said(scratch)
        sealed = Store(scratch / "store").sealed() if (scratch / "store").exists() else []
        wrong += [f"the run {run.run_id} is damaged" for run in sealed if not _is_intact(scratch, run.run_id)]
        blamed = [run for run in sealed if run.manifest.status is Status.FAILED]
        wrong += [f"the fault counts against the version of {run.run_id}" for run in blamed]
    if code not in ENDED or (kind == BUSY and code == 1):
        wrong.append(f"exit code {code}")
    if "Traceback" in said or (code == 5 and not re.search(r"\d+\.\d+\.\d+\.\d+", said)):
        wrong.append("the message does not name the machine")
    return Outcome(kind, at_s, lasted_s, code, len(sealed), said, wrong)


def _said(scratch: Path) -> str:
    """The error, or the last line."""
    errors = (scratch / "errors").read_text(encoding="utf-8", errors="replace").strip()
    lines = [line for line in errors.splitlines() if line.startswith("error:") or "Traceback" in line or "lost" in line]
    return " | ".join(lines) or (errors.splitlines() or ["nothing"])[-1]


def _is_intact(scratch: Path, run_id: str) -> bool:
    command = [sys.executable, "-m", "chainmark.cli", "runs", "verify", run_id]
    environment = {**os.environ, "CHAINMARK_STORE": str(scratch / "store")}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def main() -> int:
    """Let every requested fault happen once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="part of a kind's name; all if omitted")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    failed = 0
    print(f"load average {psutil.getloadavg()[0]:.1f}")
    for kind in FAULTS:
        at_s = moments.uniform(EARLIEST_S, LATEST_S)
        if options.kinds and not any(part in kind for part in options.kinds):
            continue
        outcome = happen(kind, at_s)
        failed += bool(outcome.wrong)
        word = "; ".join(outcome.wrong) or "ok"
        print(
            f"{outcome.kind:36} at {outcome.at_s:4.1f} s: exit {outcome.code} after {outcome.lasted_s:5.1f} s, "
            f"{outcome.runs} runs, {word}\n    {outcome.said[:300]}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
