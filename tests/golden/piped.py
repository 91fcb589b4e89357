"""Runs commands whose stdout has no reader from the start, each in a separate process.

Most of the time of such a command is the start of Python and the imports of every command. Therefore this file runs
them once, before any thread computes. Each command is a fork of it and ends like every Python process.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from tests.golden.typed import TIMEOUT_S, Typed

# The command line is imported before numpy: it prevents BLAS from starting threads.
LOADED = (
    "chainmark.cli.app", "typer.rich_utils", "chainmark.report.layouts", "chainmark.systems.cardano.system",
    "chainmark.systems.cometbft.system", "chainmark.systems.mesh.system",
)  # fmt: skip
# Threads of polars that wait for work since its import and that no command needs. Those of a computation would be
# missing after a fork.
IDLE = {"jemalloc_bg_thd", "polars-ooc-clea"}


def closed_at_once(workspace: Path, environment: Mapping[str, str], lines: Sequence[Typed]) -> list[tuple[int, str]]:
    """The exit code and stderr of each of these commands, run in sequence."""
    ended = subprocess.run(
        [sys.executable, "-P", __file__], input=json.dumps([asdict(line) for line in lines]),
        capture_output=True, text=True, cwd=workspace, env=dict(environment), timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [(code, errors) for code, errors in map(json.loads, ended.stdout.splitlines())]


def _load() -> None:
    """Import what most commands import."""
    gc.disable()
    for name in LOADED:
        import_module(name)
    own = str(os.getpid())
    threads = [path for path in Path("/proc/self/task").iterdir() if path.name != own]
    assert {(path / "comm").read_text().strip() for path in threads} <= IDLE
    gc.freeze()  # a command's end collects garbage: it would copy every object of this process


def _command(line: Typed, errors: int) -> None:
    """Run the command in this process: its stdout is a pipe without a reader, its stderr a file."""
    from chainmark.cli import main  # noqa: PLC0415

    reader, writer = os.pipe()
    os.close(reader)
    for ours, theirs in ((writer, 1), (errors, 2)):
        os.dup2(ours, theirs)
        os.close(ours)
    os.environ["CHAINMARK_STORE"] = line.store
    gc.enable()
    sys.argv = ["chainmark", *line.arguments]
    main()
    sys.exit()


def _ended(line: Typed) -> tuple[int, str]:
    """The exit code and stderr of a command in a forked process."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        child = os.fork()
        if child == 0:
            _command(line, os.dup(errors.fileno()))
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        return os.waitstatus_to_exitcode(status), errors.read()


if __name__ == "__main__":
    _load()
    for item in json.load(sys.stdin):
        print(json.dumps(_ended(Typed(**item))), flush=True)  # noqa: T201 - for the process that asked
