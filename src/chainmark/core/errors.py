"""Errors as a user meets them: one sentence naming the offending thing, a hint, and an exit code."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """What a command's exit status means, the same for every command."""

    DONE = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INVALID = 4
    ENVIRONMENT = 5


class ChainmarkError(Exception):
    """Base of every error that chainmark raises on purpose.

    Args:
        message: one sentence with the offending thing in it.
        hint: what to do next; printed on a line of its own.
    """

    exit_code: ExitCode = ExitCode.ENVIRONMENT

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @classmethod
    def from_native(cls, error: Exception) -> Self:
        """The same for an error that a crate raised: its text is the sentence, and maybe a line with a hint."""
        sentence, _, hint = str(error).partition("\nhint: ")
        return cls(sentence, hint or None)


class UsageError(ChainmarkError):
    """The command, a profile or an input file is not as it must be (exit code 2)."""

    exit_code = ExitCode.USAGE


class InvalidRunError(ChainmarkError):
    """A run exists but may not be compared, or was not finished (exit code 4)."""

    exit_code = ExitCode.INVALID


class EnvironmentFailure(ChainmarkError):  # noqa: N818 - it is the environment that failed, not the user
    """The machine, a node or the network did not do what the run needs (exit code 5)."""

    exit_code = ExitCode.ENVIRONMENT


class InternalError(ChainmarkError):
    """Two parts of chainmark do not agree with each other: nobody's input is to blame (exit code 5)."""

    exit_code = ExitCode.ENVIRONMENT

    def __init__(self, message: str, hint: str | None = "this is a mistake in chainmark: please report it") -> None:
        super().__init__(message, hint)
