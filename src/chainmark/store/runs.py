"""A store of runs on disk: created, found by reference, imported, removed."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Self

from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.storage import existing_parent, storage_errors
from chainmark.store.archive import archives
from chainmark.store.derived import Derived
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.index import Entry, Index, Selection, is_sealed
from chainmark.store.sealed import ArchivedRun, SealedRun
from chainmark.store.unfinished import STATE, StagedRun, UnfinishedRun, staged_run

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+~-]+")
_VERSION_LENGTH_MAX = 64


class Store:
    """A folder of runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._runs = root / "runs"
        self._index = Index(root)
        self._held: Selection | None = None

    def create(self, system: str, profile_name: str, version: str, state: Mapping[str, Any]) -> UnfinishedRun:
        """Make the folder of a new run, named ``<system>-<profile>-<version>-<UTC time>-<4 random>``."""
        profile = profile_name.removeprefix(f"{system}/").replace("/", "-")
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        # A server may report a version such as "<appd>/unknown".
        named = _NOT_IN_NAMES.sub("-", version)[:_VERSION_LENGTH_MAX]
        path = self._free_path(f"{system}-{profile}-{named}-{stamp}")
        write_bytes(path / STATE, json_bytes(dict(state)))
        return UnfinishedRun(path)

    def _free_path(self, name: str) -> Path:
        """A new folder of that name and four random digits; runs of the same second may draw the same ones."""
        while True:
            path = self._runs / f"{name}-{secrets.token_hex(2)}"
            with storage_errors(path):
                self._runs.mkdir(parents=True, exist_ok=True)
                try:
                    path.mkdir()
                except FileExistsError:
                    continue
            return path

    def stage(self, name: str, state: Mapping[str, Any]) -> StagedRun:
        """Create the folder of an import; leftovers of ended imports are removed first.

        Args:
            name: depends on the order: equal orders have equal names.
            state: the state of the import; ``pid`` is its process.

        Raises:
            UsageError: a running process is making the same import.
        """
        return staged_run(self._runs, name, state)

    def free_bytes(self) -> int:
        """Free space in the store."""
        return shutil.disk_usage(existing_parent(self._runs)).free

    def selection(self) -> Selection:
        """The current contents of the store, and the resolution of references, without opening any run."""
        return self._held or Selection(self._index.contents())

    def held(self) -> Self:
        """A snapshot of the store for one response, so that it is read only once."""
        result = copy(self)
        result._held = self.selection()
        return result

    def sealed(self) -> list[SealedRun]:
        """All sealed runs, oldest first."""
        return self._opened(self.selection().sealed)

    def unfinished(self) -> list[UnfinishedRun]:
        """All folders without a seal, by name."""
        return [UnfinishedRun(self._runs / name) for name in self.selection().unfinished]

    def find(self, reference: str) -> SealedRun | UnfinishedRun:
        """The one run whose id is, or begins with, ``reference``.

        Raises:
            UsageError: none or several match.
        """
        path = self._runs / self.selection().find(reference)
        return SealedRun(path) if is_sealed(path) else UnfinishedRun(path)

    def select(self, reference: str) -> list[SealedRun]:
        """The sealed runs of a reference.

        A reference is a run id or a unique prefix; ``version:V`` (or a bare version), the runs of that version
        like its newest one (same profile, experiment and side); terms such as ``release:V,hardware:mid``, likewise for
        the runs that have all of these labels; or ``EXPERIMENT`` or ``EXPERIMENT/SIDE``, the runs of
        an experiment or of one of its sides.

        Raises:
            UsageError: nothing matches, or a prefix is not unique.
            InvalidRunError: the run was not finished.
        """
        return self._opened(self.selection().select(reference))

    def all_of(self, reference: str) -> list[SealedRun]:
        """Every sealed run of a reference; see `chainmark.store.index.Selection.all_of`."""
        return self._opened(self.selection().all_of(reference))

    def groups(self, reference: str) -> list[list[SealedRun]]:
        """The same by profile, workload and machine: a version may have been run under several."""
        return [self._opened(group) for group in self.selection().groups(reference)]

    def identified(self, identity: str) -> list[SealedRun]:
        """The imports of one published run; see `Manifest.identity`."""
        return self._opened(self.selection().identified(identity))

    def members(self, experiments: Iterable[str]) -> list[SealedRun]:
        """The sealed runs of experiments, oldest first."""
        return self._opened(self.selection().members(experiments))

    def alike(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The runs in the store that may show the noise between runs like these, oldest first."""
        return self._archived(self.selection().alike([run.run_id for run in runs]))

    def series(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The runs in the store that may belong to the history of runs like these, oldest first."""
        return self._archived(self.selection().series([run.run_id for run in runs]))

    def profiled(self, runs: Sequence[SealedRun], *, elsewhere: bool = True) -> list[SealedRun]:
        """Those of the runs that have profiles; if none has, with ``elsewhere``, similar runs in the store."""
        own = [run for run in runs if run.manifest.profiles]
        return own if own or not elsewhere else self._opened(self.selection().profiled([run.run_id for run in runs]))

    def shows_noise(self, system: str, workload: Mapping[str, object], cpu_model: str) -> bool:
        """Whether runs in the store may show the noise between runs of such a workload on such a machine."""
        return self.selection().shows_noise(system, workload, cpu_model)

    def _opened(self, entries: Iterable[Entry]) -> list[SealedRun]:
        return [SealedRun(self._runs / entry.run_id) for entry in entries]

    def _archived(self, entries: list[Entry]) -> list[SealedRun]:
        """The same runs, for reading a few figures of each."""
        archived = archives(self.root, entries)
        return [
            ArchivedRun(self._runs / entry.run_id, archived[entry.run_id])
            if entry.run_id in archived
            else SealedRun(self._runs / entry.run_id)
            for entry in entries
        ]

    def import_archive(self, archive: Path) -> SealedRun:
        """Import a run from the file that `runs export` wrote; an existing run stays unchanged.

        Raises:
            UsageError: the file does not exist, or is not an exported run.
            InvalidRunError: the run differs from its sealed state.
        """
        try:
            with tarfile.open(archive) as packed, storage_errors(self._runs):
                names = {Path(member.name).parts[0] for member in packed.getmembers() if Path(member.name).parts}
                if len(names) != 1 or not re.fullmatch(r"\w[\w.+~-]*", next(iter(names))):
                    raise UsageError(f"{archive} does not contain one run", "`chainmark runs export` writes such files")
                name = names.pop()
                if odd := next((member.name for member in packed.getmembers() if not _is_of_a_run(member)), None):
                    raise UsageError(
                        f"{archive} is not an exported run (`{odd}` is not a file or folder of a run)",
                        "`chainmark runs export` writes such files",
                    )
                if is_sealed(self._runs / name):
                    return SealedRun(self._runs / name)
                return self._unpacked(packed, name)
        except FileNotFoundError as error:
            raise UsageError(f"there is no file `{archive}`", "`chainmark runs export` writes such files") from error
        except tarfile.TarError as error:
            reason = str(error).splitlines()[0]
            raise UsageError(
                f"{archive} is not an exported run ({reason})", "`chainmark runs export` writes such files"
            ) from error

    def _unpacked(self, packed: tarfile.TarFile, name: str) -> SealedRun:
        staged = self.stage(f"archive-{name}", {"pid": os.getpid()})
        try:
            # Python before 3.11.4, which Debian 12 has, knows no filters.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            for member in packed.getmembers():
                packed.extract(member, staged.path)
            run = SealedRun(staged.path / name)
            if not is_sealed(run.path) or (problems := run.verify()):
                reason = problems[0] if is_sealed(run.path) else "it has no seal"
                raise InvalidRunError(
                    f"run `{name}` cannot be imported: {reason}", "export it again from the original store"
                )
            run.path.rename(self._runs / name)
        finally:
            staged.drop()
        return SealedRun(self._runs / name)

    def remove(self, run: SealedRun | UnfinishedRun) -> None:
        """Delete a run with everything in it."""
        shutil.rmtree(run.path)
        Derived(run.path).remove()


def _is_of_a_run(member: tarfile.TarInfo) -> bool:
    """Whether it is a file or folder below where it is extracted: no link, no device, no way out."""
    return (member.isfile() or member.isdir()) and not {"..", "/"} & set(PurePosixPath(member.name).parts)
