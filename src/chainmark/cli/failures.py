"""The failure of a command, as a sentence and as an exit code."""

from __future__ import annotations

import os
import sys

import typer
from typer.exceptions import TyperException

from chainmark.core.errors import ChainmarkError, UsageError

INTERRUPTED = 130
# A value of these that is not quoted becomes several arguments, of which the last may be a token.
_OPTIONS_WITH_SECRETS = frozenset({"--header", "--header-command", "--user", "--proxy"})


def report_failure(error: BaseException) -> int:
    """Print the failure of a command; its exit code."""
    from chainmark.cli.console import print_error

    if isinstance(error, KeyboardInterrupt | typer.Abort):
        sys.stderr.write("interrupted: all processes were stopped\n")
        sys.stderr.writelines(f"hint: {note}\n" for note in getattr(error, "__notes__", []))
        return INTERRUPTED
    if isinstance(error, TyperException):
        error = _usage_error(error.format_message().rstrip("."), sys.argv[1:])
    elif os.environ.get("CHAINMARK_DEBUG"):
        raise error
    elif not isinstance(error, ChainmarkError):
        message = f"chainmark failed: {type(error).__name__}: {error}"
        error = ChainmarkError(message, "`chainmark --debug …` shows the traceback; please report it")
    print_error(error)
    return error.exit_code


def _usage_error(message: str, arguments: list[str]) -> UsageError:
    if "unexpected extra argument" in message and _OPTIONS_WITH_SECRETS.intersection(arguments):
        return UsageError(
            "the command has unexpected arguments, which are not shown because they may be secret",
            "quote a value that has spaces: `--header 'Authorization: Bearer ${TOKEN}'`",
        )
    return UsageError(message, "`chainmark COMMAND --help` shows the options and an example")
