"""Experiments on disk: the plan and the progress, next to the runs."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.storage import storage_errors
from chainmark.core.verdict import Verdict
from chainmark.store.conclusions import CONCLUSION
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.runs import Store

DOCUMENT = "experiment.json"
CLUSTER = "cluster.json"
_COMMANDS = {"load plan": "load"}  # of kinds that are not named after theirs
_NAME = re.compile(r"^[A-Za-z0-9._+~-]+$")

Record = TypeVar("Record", bound=BaseModel)


class Conclusion(BaseModel):
    """``verdict.json`` of an experiment."""

    schema_version: int = 1
    verdict: Verdict
    sentence: str


class ExperimentFolder:
    """One experiment's document; the runs themselves are the store's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment_id = path.name
        self._cluster: str | None = None

    def write(self, content: BaseModel) -> None:
        """Replace the document; a reader sees the old one or the new one."""
        self._write_cluster()
        write_bytes(self.path / DOCUMENT, json_bytes(content))

    def _write_cluster(self) -> None:
        if self._cluster is not None:
            write_bytes(self.path / CLUSTER, json_bytes({"address": self._cluster}))

    def read(self) -> dict[str, Any]:
        """The document.

        Raises:
            InvalidRunError: it cannot be read.
        """
        try:
            content: dict[str, Any] = json.loads((self.path / DOCUMENT).read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise InvalidRunError(
                f"the experiment `{self.experiment_id}` is damaged: {DOCUMENT} cannot be read ({error})",
                "its finished runs are kept (`chainmark runs list`); start a new experiment",
            ) from error
        return content

    def record(self, model: type[Record], what: str, system: str | None = None) -> Record:
        """The document as the record of one kind of experiment.

        Args:
            model: of that kind.
            what: such an experiment, in an error.
            system: of the experiment; None: any.

        Raises:
            UsageError: it is of another kind or system.
            InvalidRunError: it cannot be read.
        """
        content = self.read()
        kind, wanted = str(content.get("kind", "qa")), model.model_fields["kind"].default
        if kind != wanted or system not in (None, content.get("system")):
            command = f"`chainmark {_COMMANDS.get(kind, kind)} --resume {self.experiment_id}` continues it"
            raise UsageError(f"`{self.experiment_id}` is not {what}", None if kind == wanted else command)
        return model.model_validate(content)

    def keep_cluster(self, address: str) -> None:
        """Store the address of the cluster that its nodes run on: it is continued there. Not before the document."""
        self._cluster = address
        if (self.path / DOCUMENT).exists():
            self._write_cluster()

    def cluster(self) -> str | None:
        """The address of that cluster; None if its nodes run on this machine."""
        path = self.path / CLUSTER
        return str(json.loads(path.read_text(encoding="utf-8"))["address"]) if path.exists() else None

    def conclude(self, verdict: Verdict, sentence: str) -> None:
        """Store the verdict, or replace that of fewer runs."""
        write_bytes(self.path / CONCLUSION, json_bytes(Conclusion(verdict=verdict, sentence=sentence)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this experiment among all processes; the system frees the lock of a killed one.

        Raises:
            UsageError: a running process works on it.
        """
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"the experiment `{self.experiment_id}` is still running in another process",
                    "wait for it, or stop it first",
                ) from error
            yield
        finally:
            os.close(descriptor)


def experiments(store: Store) -> list[str]:
    """The ids of all experiments with a document, by name."""
    return sorted(path.parent.name for path in (store.root / "experiments").glob(f"*/{DOCUMENT}"))


def experiment_folder(store: Store, experiment_id: str) -> ExperimentFolder:
    """The folder of an experiment, whether or not it exists.

    Raises:
        UsageError: that is not a valid experiment name.
    """
    if not _NAME.match(experiment_id):
        raise UsageError(f"`{experiment_id}` is not a valid experiment name")
    return ExperimentFolder(store.root / "experiments" / experiment_id)


def find_experiment(store: Store, reference: str) -> ExperimentFolder:
    """The one experiment whose id is, or begins with, ``reference``.

    Raises:
        UsageError: none or several match.
    """
    ids = experiments(store)
    matches = [item for item in ids if item == reference] or [item for item in ids if item.startswith(reference)]
    if len(matches) == 1:
        return experiment_folder(store, matches[0])
    listed = f"experiments: {', '.join(ids[-3:])}" if ids else "this store has no experiments"
    problem = f"matches {len(matches)} experiments" if matches else "is not an experiment"
    raise UsageError(f"`{reference}` {problem}", listed)
