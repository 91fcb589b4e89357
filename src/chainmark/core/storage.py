"""Storage errors of the operating system as messages for users."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chainmark.core.errors import EnvironmentFailure, UsageError


def is_full(error: BaseException | None) -> bool:
    """Whether an error of the operating system says that a disk is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn a storage error of the operating system into an error that names the file and the remedy.

    Raises:
        EnvironmentFailure: the disk is full, read-only or not writable.
        UsageError: a folder has the file's path, or a file that of its folder.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            free_mib = shutil.disk_usage(existing_parent(path)).free >> 20
            raise EnvironmentFailure(
                f"the disk is full: {path} could not be written ({free_mib} MiB free)",
                "free some space, or store runs elsewhere with `--store DIR`; `chainmark runs remove` deletes runs",
            ) from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise EnvironmentFailure(
                f"{path} cannot be written ({error.strerror})", "store runs elsewhere with `--store DIR`"
            ) from error
        if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST):
            above = existing_parent(path)
            wrong = f"{above} is a {'folder' if above.is_dir() else 'file'}"
            raise UsageError(f"{path} cannot be written: {wrong}", "give a file in an existing folder") from error
        raise


def existing_parent(path: Path) -> Path:
    """The nearest folder at or above ``path`` that exists."""
    while not path.exists():
        path = path.parent
    return path
