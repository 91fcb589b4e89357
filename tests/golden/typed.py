"""Commands as typed, one after the other in a process of their own, which runs this file.

One process for all of a width, for most of a command's time is its start. Its environment says the width, the zone
and that nothing is coloured; its working directory is the workspace, so that all paths are relative.
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

TIMEOUT_S = 600  # of an overloaded machine; they take seconds


@dataclass(frozen=True)
class Typed:
    """One command line.

    Attributes:
        arguments: behind `chainmark`.
        store: the folder of the workspace that is its store.
        files: what it writes and is kept, too.
    """

    arguments: Sequence[str]
    store: str = "empty"
    files: Sequence[str] = ()


def printed(workspace: Path, width: int, lines: Sequence[Typed]) -> list[str]:
    """Everything that these commands print, on a terminal of that width."""
    environment = {
        "PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "HOME": str(workspace), "COLUMNS": str(width), "NO_COLOR": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-P", __file__],  # not as a module, whose name the usage lines would show
        input=json.dumps([asdict(line) for line in lines]),
        capture_output=True, text=True, cwd=workspace, env=environment, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [str(json.loads(line)) for line in ended.stdout.splitlines()]


def _type(line: Typed) -> str:
    # Here, so that only the process that types pays for the command.
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
