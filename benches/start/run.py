"""CPU seconds of commands that print only a line, compared with an empty Python: ``python benches/start/run.py``.

The store is filled with runs whose manifests are real and whose other files are missing, because nothing reads them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

RUNS = 2000
TIMES = 9
_MAIN = [sys.executable, "-c", "import sys; sys.argv[0] = 'chainmark'; from chainmark.cli import main; main()"]
_COMPLETE = {"_CHAINMARK_COMPLETE": "complete_bash"}
_MANIFEST = {
    "subject": {"system": "cometbft", "name": "CometBFT", "version": "v1.0.1"},
    "profile_name": "cometbft/demo",
    "status": "valid",
    "started_at": "2026-01-01T00:00:00Z",
    "ended_at": "2026-01-01T00:01:00Z",
    "workload": {},
    "host": {"cpu_model": "unknown"},
}


def _cpu_s(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """The least CPU time of several starts, including the system's time."""
    taken = []
    for _ in range(TIMES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def _fill(store: Path) -> None:
    for number in range(RUNS):
        folder = store / "runs" / f"cometbft-demo-v1.0.1-20260101T000000-{number:04x}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps(_MANIFEST), encoding="utf-8")
        (folder / "SEALED").write_text("{}", encoding="utf-8")


def main() -> None:
    """Print a line for each command."""
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        store = {"CHAINMARK_STORE": folder}
        started: list[tuple[str, list[str], dict[str, str]]] = [
            ("python -c pass", [sys.executable, "-c", "pass"], {}),
            ("chainmark --version", [*_MAIN, "--version"], {}),
            ("chainmark --help", [*_MAIN, "--help"], {}),
            ("completing a command", _MAIN, {**_COMPLETE, "COMP_WORDS": "chainmark r", "COMP_CWORD": "1"}),
            ("completing an option", _MAIN, {**_COMPLETE, "COMP_WORDS": "chainmark compare --", "COMP_CWORD": "2"}),
            ("chainmark compare --help", [*_MAIN, "compare", "--help"], {}),
            (f"chainmark runs list, {RUNS:,} runs", [*_MAIN, "runs", "list"], store),
        ]
        for name, command, environment in started:
            print(f"{name:32}  {_cpu_s(command, environment):6.3f} s of CPU")


if __name__ == "__main__":
    main()
