"""Allow one measurement at a time on a machine, for all stores: two would disturb each other."""

from __future__ import annotations

import fcntl
import itertools
import os
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import Progress

# The same for every user and environment, so neither a user's runtime folder nor $TMPDIR.
LOCK = Path("/tmp/chainmark.lock")  # noqa: S108 - opened without following links, and only locked
USE = "CHAINMARK_MACHINE"
LOOK_S = 0.25
# Anybody may write the holder's description; only this much of it is shown.
_MOST_SHOWN = 200


class MachineUse(StrEnum):
    """The policy in `CHAINMARK_MACHINE` for a machine with a measurement in progress."""

    WAIT = "wait"
    REFUSE = "refuse"
    SHARED = "shared"  # for behavioural tests, whose figures are not used


_mine: ContextVar[bool] = ContextVar("mine", default=False)
_refuses: ContextVar[bool] = ContextVar("refuses", default=False)


@contextmanager
def not_waiting(no_wait: bool = True) -> Iterator[None]:
    """With ``no_wait``, what measures in this context is refused if another process does, whatever the policy is."""
    token = _refuses.set(no_wait or _refuses.get())
    try:
        yield
    finally:
        _refuses.reset(token)


@contextmanager
def machine_to_itself(progress: Progress) -> Iterator[None]:
    """Measure while no other process does on this machine; reentrant, also in copies of its context.

    The lock is the system's (flock), which is released even if the process dies.

    Args:
        progress: receives the message that names the process it waits for.

    Raises:
        UsageError: `CHAINMARK_MACHINE` is not a `MachineUse`.
        EnvironmentFailure: another process measures, and this one must not wait; or there can be no lock.
    """
    use = _use()
    if use is MachineUse.SHARED or _mine.get():
        yield
        return
    descriptor = _taken(use, progress)
    token = _mine.set(True)
    try:
        yield
    finally:
        _mine.reset(token)
        os.close(descriptor)


def is_shared() -> bool:
    """Whether the figures of this machine are not used.

    Raises:
        UsageError: `CHAINMARK_MACHINE` is not a `MachineUse`.
    """
    return _use() is MachineUse.SHARED


def _use() -> MachineUse:
    if _refuses.get():
        return MachineUse.REFUSE
    reported = os.environ.get(USE) or MachineUse.WAIT
    if reported not in set(MachineUse):
        raise UsageError(
            f"`{reported}` is not a valid value of `{USE}`",
            f"use {', '.join(f'`{machine_use}`' for machine_use in MachineUse)}",
        )
    return MachineUse(reported)


def _taken(use: MachineUse, progress: Progress) -> int:
    """The descriptor that holds the lock, as soon as it is free."""
    began, reported = time.monotonic(), ""
    while True:
        descriptor, holder = _tried()
        if descriptor is not None:
            return descriptor
        if use is MachineUse.REFUSE:
            raise EnvironmentFailure(
                f"this machine is in use: {holder} is measuring on it",
                "omit `--no-wait` to wait for its end; simultaneous measurements disturb each other",
            )
        if holder != reported:
            reported = holder
            progress.stage(f"waiting for {holder}, which is measuring on this machine")
        progress.update(0.0, units.duration(round(time.monotonic() - began)))
        time.sleep(LOOK_S)


def _tried() -> tuple[int | None, str]:
    """The descriptor with the lock; or None, and the holder."""
    try:
        descriptor = _opened()
    except OSError as error:
        raise EnvironmentFailure(
            f"{LOCK}, the lock that prevents simultaneous measurements, cannot be opened: {error.strerror}",
            f"remove it, or set `{USE}=shared` to measure without the lock",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The folder may have been cleared since the file was opened: then the next process locks another file.
        if os.path.samestat(os.fstat(descriptor), os.stat(LOCK)):  # noqa: PTH116 - like fstat
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _own_name().encode(), 0)
            return descriptor, ""
        holder = "another process"
    except FileNotFoundError:
        holder = "another process"
    except BlockingIOError:
        holder = _name(os.pread(descriptor, _MOST_SHOWN, 0))
    os.close(descriptor)
    return None, holder


def _opened() -> int:
    """The lock file; created for all users if it does not exist.

    In a folder like /tmp, Linux refuses to open another user's file with O_CREAT.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(LOCK, flags)
    except FileNotFoundError:
        pass
    new = LOCK.with_name(f"{LOCK.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, flags | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fchmod(descriptor, 0o666)  # whatever the umask is, before any other process can find it
        os.link(new, LOCK)
    except FileExistsError:
        os.close(descriptor)
        return os.open(LOCK, flags)
    except OSError:
        os.close(descriptor)
        raise
    finally:
        new.unlink(missing_ok=True)
    return descriptor


def _own_name() -> str:
    """The command without its options, which may contain secrets."""
    program, *rest = sys.argv or ["python"]
    words = itertools.takewhile(lambda word: not word.startswith("-"), rest)
    return f"process {os.getpid()} ({shlex.join([Path(program).name, *words])})"


def _name(content: bytes) -> str:
    """The holder's description of itself, fit for a terminal."""
    line = content.decode(errors="replace").partition("\n")[0]
    return "".join(letter for letter in line if letter.isprintable()) or "another process"
