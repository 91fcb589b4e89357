"""Storage errors of the operating system as messages for users."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chainmark.core.errors import EnvironmentFailure, UsageError

# Below this a node's next block may not fit, and the measurement so far could not be stored.
FREE_BYTES_MIN = 64 << 20


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


def require_space(folder: Path) -> None:
    """Check that nodes can still write to a folder.

    Raises:
        EnvironmentFailure: its disk is full. They fail soon, which is not their fault.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < FREE_BYTES_MIN:
        raise EnvironmentFailure(
            f"the disk is full: {free_bytes >> 20} MiB are left in {folder}, but the nodes need more",
            "free some space, or store runs elsewhere with `--store DIR`",
        )


def existing_parent(path: Path) -> Path:
    """The nearest folder at or above ``path`` that exists."""
    while not path.exists():
        path = path.parent
    return path
