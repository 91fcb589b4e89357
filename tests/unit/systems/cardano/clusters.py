"""Small clusters for tests of the import: generated once, modified as needed, imported in this process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from chainmark.core.progress import Silent
from chainmark.lab.importing import ImportedRun, Importer
from chainmark.lab.protocols import ImportRequest
from chainmark.lab.synthetic import SyntheticRequest
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import importable
from chainmark.systems.cardano.synth import synthesise

SETTINGS = ("chain.active_slots_coefficient=0.1", "workload.tps=2.0")


def make_cluster(
    folder: Path, *, hosts: int | None = 4, slots: int = 160, seed: int = 1, faults: tuple[str, ...] = (), **more: Any
) -> Path:
    """Write a cluster's logs: a block every ten slots, few transactions."""
    values = {"slots": slots, "seed": seed, "hosts": hosts, "settings": SETTINGS, "faults": faults, "threads": 2}
    synthesise(logs_request(folder, **{**values, **more}), Silent())
    return folder


def logs_request(folder: Path, **values: Any) -> SyntheticRequest:
    """A request for logs; values that are not its own are options of Cardano."""
    return SyntheticRequest(**_with_options(SyntheticRequest, {"folder": folder, **values}))


def import_request(source: Path | str, **values: Any) -> ImportRequest:
    """A request for an import; values that are not its own are options of Cardano."""
    return ImportRequest(**_with_options(ImportRequest, {"source": source, **values}))


def _with_options(kind: type[SyntheticRequest | ImportRequest], values: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    own = {name: value for name, value in values.items() if name in names}
    return {**own, "options": {name: value for name, value in values.items() if name not in names}}


def ingest(store: Path, source: Path | str, **options: Any) -> ImportedRun:
    """Import logs into a store."""
    return Importer(Store(store), importable(load_system("cardano"))).make(import_request(source, **options), Silent())


def changed(source: Path, target: Path, *changes: Callable[[Path], None]) -> Path:
    """Copy a cluster's folder and apply changes to the copy."""
    shutil.copytree(source, target)
    for change in changes:
        change(target)
    return target


def edit_json(name: str, **values: Any) -> Callable[[Path], None]:
    """Set keys of a JSON document."""

    def change(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")

    return change


def edit_lines(name: str, keep: Callable[[str], str | None]) -> Callable[[Path], None]:
    """Rewrite a log line by line; None drops a line."""

    def change(folder: Path) -> None:
        path = folder / name
        lines = [keep(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(f"{line}\n" for line in lines if line is not None), encoding="utf-8")

    return change
