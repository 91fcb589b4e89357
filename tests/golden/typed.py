"""Commands as typed, run in sequence in one separate process, which runs this file.

One process runs all commands of a width, because most of a command's time is its start. Its environment sets the width,
the time zone and no colours. Its working directory is the workspace, so all paths are relative.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

TIMEOUT_S = 600  # for an overloaded machine; usually seconds


@dataclass(frozen=True)
class Typed:
    """One command line.

    Attributes:
        arguments: the arguments after `chainmark`.
        store: the folder in the workspace that is its store.
        files: written files that are also stored.
    """

    arguments: Sequence[str]
    store: str = "empty"
    files: Sequence[str] = ()


def printed(workspace: Path, width: int, lines: Sequence[Typed]) -> list[str]:
    """The output of all these commands on a terminal of this width."""
    environment = {
        "PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "HOME": str(workspace), "COLUMNS": str(width), "NO_COLOR": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-P", __file__],  # not as a module: the usage lines would show its name
        input=json.dumps([asdict(line) for line in lines]),
        capture_output=True, text=True, cwd=workspace, env=environment, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [str(json.loads(line)) for line in ended.stdout.splitlines()]


def _type(line: Typed) -> str:
    # Imported here: only the process that runs the commands needs it.
    from chainmark.cli.app import main  # noqa: PLC0415

    os.environ["CHAINMARK_STORE"] = line.store
    sys.argv = ["chainmark", *line.arguments]
    code: object = None
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code
    parts = [f"$ chainmark {' '.join(line.arguments)}\n", out.getvalue(), "\n[stderr]\n", err.getvalue()]
    parts.append(f"\n[exit {code}]\n")
    for name in line.files:
        parts.append(f"\n[{name}]\n{Path(name).read_text(encoding='utf-8')}")
    return "".join(parts)


if __name__ == "__main__":
    for item in json.load(sys.stdin):
        print(json.dumps(_type(Typed(**item))), flush=True)  # noqa: T201 - for the process that asked
