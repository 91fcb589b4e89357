"""Errors for users: one sentence that names the problem, a hint, and an exit code."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """The meaning of a command's exit status, the same for every command."""

    DONE = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INVALID = 4
    ENVIRONMENT = 5


class ChainmarkError(Exception):
    """Base of every error that chainmark raises deliberately.

    Args:
        message: one sentence that names the problem.
        hint: what to do next; printed on a separate line.
    """

    exit_code: ExitCode = ExitCode.ENVIRONMENT

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @classmethod
    def from_native(cls, error: Exception) -> Self:
        """The same for an error from a crate: its text is the sentence, optionally with a second line as the hint."""
        sentence, _, hint = str(error).partition("\nhint: ")
        return cls(sentence, hint or None)


class UsageError(ChainmarkError):
    """The command, a profile or an input file is not valid (exit code 2)."""

    exit_code = ExitCode.USAGE


class InvalidRunError(ChainmarkError):
    """A run exists but may not be compared, or was not finished (exit code 4)."""

    exit_code = ExitCode.INVALID


class EnvironmentFailure(ChainmarkError):  # noqa: N818 - it is the environment that failed, not the user
    """The machine, a node or the network did not do what the run needs (exit code 5)."""

    exit_code = ExitCode.ENVIRONMENT


class LostMachineError(EnvironmentFailure):
    """A machine of a cluster is gone; the same work may succeed when it is replaced.

    Attributes:
        worker: the lost worker's own address, which its replacement does not have.
    """

    def __init__(self, message: str, hint: str, worker: str) -> None:
        super().__init__(message, hint)
        self.worker = worker


class InternalError(ChainmarkError):
    """Two parts of chainmark are inconsistent: a bug, independent of the input (exit code 5)."""

    exit_code = ExitCode.ENVIRONMENT

    def __init__(self, message: str, hint: str | None = "this is a mistake in chainmark: please report it") -> None:
        super().__init__(message, hint)
