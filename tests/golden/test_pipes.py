"""`chainmark … | head` must not look like a regression (1) to a pipeline, nor end in a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer

import pytest

from chainmark.cli.app import COMMANDS

from tests import forked
from tests.golden.commands import NARROW, TYPED, fill
from tests.golden.outputs import RETAINED
from tests.golden.typed import TIMEOUT_S, Typed

NOBODY_READS = 141
LINES = TYPED | NARROW
GROUPS = ("corpus", "history", "nodes", "runs")  # the second word is the command
BUILT_ON = "synth"  # the logs that other commands read
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    fill(folder)
    return folder


def _environment(workspace: Path, store: str = "empty") -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "HOME": str(workspace), "COLUMNS": "100", "NO_COLOR": "1", "CHAINMARK_STORE": store,
    }  # fmt: skip


def _closed_at_once(workspace: Path, line: Typed, **more: str) -> tuple[int, str]:
    """The exit code and stderr of a command whose stdout has no reader from the start."""
    reader, writer = os.pipe()
    os.close(reader)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        command = forked.start(
            line.arguments, _environment(workspace, line.store) | more,
            output=writer, errors=errors.fileno(), folder=workspace,
        )  # fmt: skip
        os.close(writer)
        code = command.wait(TIMEOUT_S)
        errors.seek(0)
        return code, errors.read()


def _retained(name: str) -> tuple[str, int]:
    """The stdout of a command with a reader, and its exit code."""
    path = next(RETAINED.rglob(f"{name}.100.txt"), None)
    assert path is not None, f"the output of `{name}` is not stored: `make golden` writes it"
    text = path.read_text(encoding="utf-8")
    code = re.search(r"^\[exit (\w+)\]$", text, re.MULTILINE)
    assert code is not None
    return text.partition("\n[stderr]\n")[0].partition("\n")[2].strip(), int(code[1].replace("None", "0"))


@cache
def _one_of_each() -> dict[str, Typed]:
    """Two command lines per command, one with output and one without; `--help` if the list has no other.

    Running all of them would cost a start of Python each and add nothing.
    """
    chosen: dict[tuple[str, bool], str] = {}
    for name, line in LINES.items():
        words = line.arguments[: 2 if line.arguments and line.arguments[0] in GROUPS else 1]
        chosen.setdefault((" ".join(words), bool(_retained(name)[0])), name)
    typed = {words.partition(" ")[0] for (words, _), name in chosen.items() if name in TYPED}
    words_of_commands = [
        BUILT_ON,
        *(name for (words, _), name in chosen.items() if name in TYPED or words.partition(" ")[0] not in typed),
    ]
    return {name: LINES[name] for name in LINES if name in words_of_commands}


def test_a_command_with_a_closed_output_pipe_ends_like_sigpipe(workspace: Path) -> None:
    """One test runs them in the order of their dependencies, because every process that runs one runs all of them."""
    wrong = {}
    for name, line in _one_of_each().items():
        code, errors = _closed_at_once(workspace, line)
        error_output, exit_code = _retained(name)
        if code != (NOBODY_READS if error_output else exit_code) or "Traceback" in errors or "BrokenPipe" in errors:
            wrong[name] = f"exit {code}: {errors}"
    assert wrong == {}


def test_a_new_command_is_reported_with_the_way_to_store_its_output() -> None:
    with pytest.raises(AssertionError, match="the output of `help-new` is not stored: `make golden` writes it"):
        _retained("help-new")


def test_every_command_is_piped() -> None:
    """A new command must be added to the list."""
    assert {line.arguments[0] for line in _one_of_each().values() if line.arguments} >= set(COMMANDS)


def test_completion_with_a_closed_output_pipe_ends_like_sigpipe(workspace: Path) -> None:
    words = {"_CHAINMARK_COMPLETE": "complete_bash", "COMP_WORDS": "chainmark ru", "COMP_CWORD": "1"}
    assert _closed_at_once(workspace, Typed([]), **words) == (NOBODY_READS, "")


@pytest.mark.parametrize("arguments", [["metrics", "cometbft"], ["--help"], ["runs", "list"], ["profiles", "--help"]])
def test_a_reader_that_stops_after_the_first_line_is_not_a_failure(workspace: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as errors:
        command = forked.start(
            arguments, _environment(workspace, "versions"), output=writer, errors=errors.fileno(), folder=workspace
        )
        os.close(writer)
        with open(reader, "rb") as output:  # noqa: PTH123 - a descriptor, not a path
            assert output.readline()
        code = command.wait(TIMEOUT_S)
        errors.seek(0)
        assert (code in (0, NOBODY_READS), errors.read()) == (True, b"")


@pytest.mark.parametrize("closed", ["2>&1 | true", ">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_not_a_failure(workspace: Path, closed: str) -> None:
    """The exit code is that of the command, 2 for a run that does not exist, or that of SIGPIPE."""
    ended = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$0" -m chainmark.cli runs show nowhere {closed}', sys.executable],
        capture_output=True, cwd=workspace, env=_environment(workspace), check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert ended.returncode in (2, NOBODY_READS), ended.stderr


def test_no_escape_code_is_printed_on_a_terminal_without_colours(workspace: Path) -> None:
    """NO_COLOR also turns off bold text. Without it, a terminal gets both."""
    assert "\x1b" not in _on_a_terminal(workspace, {})
    assert "\x1b[" in _on_a_terminal(workspace, {"NO_COLOR": ""})


def _on_a_terminal(workspace: Path, more: dict[str, str]) -> str:
    """The output and messages of a comparison on a terminal."""
    reader, writer = os.openpty()
    environment = _environment(workspace, "followed") | {"TERM": "xterm-256color"} | more
    started = forked.start(["compare", "v1", "v2"], environment, output=writer, errors=writer, folder=workspace)
    os.close(writer)
    limit = Timer(TIMEOUT_S, started.kill)
    limit.start()
    output = b""
    with suppress(OSError):  # a closed terminal ends reading with an error
        while part := os.read(reader, 65536):
            output += part
    limit.cancel()
    os.close(reader)
    assert started.wait(TIMEOUT_S) in {0, 1, 3}
    assert b"v2" in output
    return output.decode()
