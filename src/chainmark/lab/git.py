"""Git, as a program: on the named repository, whatever the environment says about another."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from chainmark.core.errors import EnvironmentFailure

TIMEOUT_S = 300


def git(
    arguments: Sequence[str], cwd: Path, places: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end.

    Args:
        arguments: after ``git``.
        cwd: a folder of the repository.
        places: git's own variables for this run, such as ``GIT_DIR``.

    Raises:
        EnvironmentFailure: git is not installed, or it took too long.
    """
    # Inside a hook, git's own variables name another repository.
    retained = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CONFIG" in name}
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env={**retained, "LC_ALL": "C", **(places or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise EnvironmentFailure("`git` was not found", "install git, which reads the checkouts") from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFailure(f"`git {arguments[0]}` took more than {TIMEOUT_S} s in {cwd}", "try again") from error
