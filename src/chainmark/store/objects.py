"""Files of an object store, or of any other storage that `fsspec` knows by an address: listed, and copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.core.storage import storage_errors

# A file is read in ranges of this size.
RANGE_BYTES = 8 << 20
# Where a line is continued behind a range.
_LINE_BYTES = 64 << 10
_IDENTITIES = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime", "modify")
CREDENTIALS_HINT = "every machine that reads it needs access: see the documentation of fsspec for this kind of storage"


@dataclass(frozen=True)
class StoredFile:
    """One file of a storage.

    Attributes:
        address: "s3://bucket/run/node-0/stdout".
        name: its path below the listed folder.
        identity: differs after every change, such as an entity tag; "" if the storage has none.
    """

    address: str
    name: str
    size_bytes: int
    identity: str

    def beginning(self, most_bytes: int) -> bytes:
        """Its first bytes."""
        with _failures(self.address):
            system, path = _opened(self.address)
            return b"" if self.size_bytes == 0 else bytes(system.cat_file(path, start=0, end=most_bytes))

    def copy(
        self, target: Path, is_cancelled: Callable[[], bool] = lambda: False, begin: int = 0, end: int | None = None
    ) -> None:
        """Copy it, or the lines that begin in a range, to the same positions in a file of this machine.

        Args:
            is_cancelled: whether nobody wants it any more; the copy is then incomplete.
            end: of the range; None copies to the end of the file.

        Raises:
            EnvironmentFailure: it was changed since it was listed, or cannot be read; or the target cannot be written.
        """
        position = max(begin - 1, 0)  # a line begins after a newline
        wanted_end = self.size_bytes if end is None else end
        last = b""
        with storage_errors(target), target.open("wb", buffering=0) as writer:
            writer.seek(position)
            while position < self.size_bytes and (position < wanted_end or b"\n" not in last):
                if is_cancelled():
                    return
                step = min(RANGE_BYTES, wanted_end - position) if position < wanted_end else _LINE_BYTES
                last = self._range(position, min(position + step, self.size_bytes))
                writer.write(last)
                position += len(last)
                last = last if position > wanted_end else last[-1:]
        with _failures(self.address):
            system, path = _opened(self.address)
            system.invalidate_cache()
            if _identity(system.info(path)) != self.identity:
                raise EnvironmentFailure(f"{self.address} was changed while it was read", "repeat the import")

    def _range(self, begin: int, end: int) -> bytes:
        with _failures(self.address):  # no error of the storage is one of the target's disk
            system, path = _opened(self.address)
            content = bytes(system.cat_file(path, start=begin, end=end))
            if len(content) != end - begin:
                raise EnvironmentFailure(f"{self.address} ends at {begin + len(content)} bytes", "repeat the import")
            return content


def is_address(source: Path | str) -> bool:
    """Whether a source is not a path of this machine."""
    return isinstance(source, str) and "://" in source


def is_server(address: str) -> bool:
    """Whether an address is that of a server with an interface of its own, and not of a folder."""
    return address.startswith(("http://", "https://"))


def listed_files(address: str, most_depth: int) -> tuple[bool, list[StoredFile]]:
    """Whether an address is a folder, and its files to that depth, or the one file that it is; by name.

    Raises:
        UsageError: there is nothing at this address, or a library for this kind of storage is missing.
        EnvironmentFailure: it cannot be read.
    """
    with _failures(address):
        system, path = _opened(address)
        system.invalidate_cache()
        is_folder = not system.isfile(path)
        found = system.find(path, maxdepth=most_depth, detail=True) if is_folder else {path: system.info(path)}
        base = path.rstrip("/") if is_folder else path.rpartition("/")[0]
        files = [
            StoredFile(system.unstrip_protocol(name), name[len(base) + 1 :], info["size"] or 0, _identity(info))
            for name, info in sorted(found.items())
            if info.get("type", "file") == "file"
        ]
    if not files:
        raise UsageError(f"there is nothing at {address}", "check the address; folders are prefixes of names")
    return is_folder, files


def _identity(info: Mapping[str, Any]) -> str:
    """What changes with the content, as far as the storage reports it: storages differ in the names."""
    return next((f"{key}={info[key]}" for key in _IDENTITIES if info.get(key)), "")


def _opened(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra

    system, path = url_to_fs(address)
    return system, path


@contextmanager
def _failures(address: str) -> Iterator[None]:
    """Errors of ours instead of those of `fsspec` and the libraries below it, which have no common class."""
    try:
        yield
    except ChainmarkError:
        raise
    except ImportError as error:
        hint = "`pip install 'chainmark[storage]'` installs those for S3; other kinds need one of their own"
        raise UsageError(f"{address} cannot be read without a library: {error}", hint) from error
    except FileNotFoundError as error:
        raise UsageError(f"there is nothing at {address}", "check the address") from error
    except ValueError as error:  # an unknown kind of storage
        raise UsageError(f"{address} cannot be read: {error}", "e.g. `s3://bucket/folder`") from error
    except (AttributeError, NameError, TypeError):  # defects of ours
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EnvironmentFailure(f"{address} cannot be read: {reason}", CREDENTIALS_HINT) from error
