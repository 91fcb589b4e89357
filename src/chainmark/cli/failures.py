"""The failure of a command, as a sentence and as an exit code."""

from __future__ import annotations

import os
import sys

import typer
from typer.exceptions import TyperException

from chainmark.core.errors import ChainmarkError, UsageError

INTERRUPTED = 130


def report_failure(error: BaseException) -> int:
    """Print the failure of a command; its exit code."""
    from chainmark.cli.console import print_error

    if isinstance(error, KeyboardInterrupt | typer.Abort):
        sys.stderr.write("interrupted: all processes were stopped\n")
        return INTERRUPTED
    if isinstance(error, TyperException):
        message = error.format_message().rstrip(".")
        error = UsageError(message, "`chainmark COMMAND --help` shows the options and an example")
    elif os.environ.get("CHAINMARK_DEBUG"):
        raise error
    elif not isinstance(error, ChainmarkError):
        message = f"chainmark failed: {type(error).__name__}: {error}"
        error = ChainmarkError(message, "`chainmark --debug …` shows the traceback; please report it")
    print_error(error)
    return error.exit_code
