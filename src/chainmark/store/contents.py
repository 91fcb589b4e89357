"""What a file contained when it was listed: whoever reads it on another machine, or later, can check for the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import blake3

_BLOCKS, _BLOCK_BYTES = 16, 4096


@dataclass(frozen=True)
class FileContent:
    """A file's content, known by a sample: to read all of it takes as long as to use it.

    Attributes:
        size_bytes: its length when it was listed; what is appended later is not part of it.
        sample_hash: see `sample_hash`.
    """

    path: Path
    size_bytes: int
    sample_hash: str

    @classmethod
    def of(cls, path: Path, size_bytes: int) -> FileContent:
        """The content of the first bytes of a file.

        Raises:
            OSError: it cannot be read.
        """
        return cls(path, size_bytes, sample_hash(path, size_bytes))

    def is_unchanged(self) -> bool:
        """Whether the file of this path on this machine has this content.

        Raises:
            OSError: it cannot be read.
        """
        return sample_hash(self.path, self.size_bytes) == self.sample_hash


def sample_hash(path: Path, size_bytes: int) -> str:
    """BLAKE3 of a file's length and of 16 blocks of 4 KiB that are equally far apart, the first and last ones included.

    Two logs of one length differ in every block, because every line has a time; of a file of up to 64 KiB all is read.

    Args:
        size_bytes: of the beginning of the file that is meant.

    Raises:
        OSError: it cannot be read.
    """
    hasher = blake3.blake3(size_bytes.to_bytes(8, "big"))
    last = max(size_bytes - _BLOCK_BYTES, 0)
    with path.open("rb", buffering=0) as file:
        for number in range(_BLOCKS):
            file.seek(last * number // (_BLOCKS - 1))
            hasher.update(file.read(min(_BLOCK_BYTES, size_bytes)))
    return hasher.hexdigest()
