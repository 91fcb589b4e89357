"""Logs of any system into sealed runs: staged, read, summarised, sealed, and named after what was read."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import blake3

from chainmark.core.manifest import GateStatus, Manifest, Status
from chainmark.core.progress import Progress
from chainmark.stats.samples import ParquetSamples
from chainmark.stats.summarise import summarise
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import ImportableSystem, Imported, ImportOrder, PartedSystem
from chainmark.systems.runner import tool_version

# Of everything drawn at random: the same logs have the same standard errors.
SEED = 1
HASH_DIGITS = 8
ORDER_DIGITS = 16


class ImportedRun(NamedTuple):
    """A run that was imported; ``is_new`` is false when the same import had been made before."""

    run: SealedRun
    is_new: bool


@dataclass(frozen=True)
class Importer:
    """Takes logs of one system into one store."""

    store: Store
    system: ImportableSystem

    def make_all(self, order: ImportOrder, progress: Progress) -> list[ImportedRun]:
        """Make every run that the source holds, as :meth:`make` does one."""
        parts: list[str | None] = [order.part]
        if isinstance(self.system, PartedSystem):
            parts = list(self.system.parts(order)) or parts
        return [self.make(replace(order, part=part), progress) for part in parts]

    def make(self, order: ImportOrder, progress: Progress) -> ImportedRun:
        """Make the run of these logs and seal it; whether it is valid stands in its manifest.

        There is no clock and no chance in it: the same logs and order give the same bytes under the same name,
        however many threads read them. Whatever breaks it off leaves nothing but a folder that the next import removes.

        Raises:
            UsageError: the logs cannot be used, or a living process is importing the same.
            EnvironmentFailure: they cannot be read, or the store cannot be written.
        """
        state = {"pid": os.getpid(), "source": str(order.source)}
        staged = self.store.stage(_order_name(self.system.name, order), state)
        try:
            imported = self.system.ingest(order, staged, progress)
            progress.stage("summarising")
            summaries = summarise(imported.catalogue, ParquetSamples(staged.path / "samples"), SEED)
            manifest = _manifest(self.system.name, imported)
            progress.stage("sealing")
            staged.seal(manifest, imported.catalogue, summaries)
            return ImportedRun(*staged.settle(manifest.run_id))
        except BaseException:
            staged.drop()
            raise


def _order_name(system: str, order: ImportOrder) -> str:
    """A name that equal orders share; the number of threads changes nothing that is made."""
    paths = {"source": order.source, "genesis": order.genesis, "meta": order.meta, "topology": order.topology}
    content = {**asdict(order), **{name: _place(path) for name, path in paths.items()}}
    del content["threads"]
    return _digest({"system": system, **content})[:ORDER_DIGITS]


def _place(path: Path | str | None) -> str | None:
    return str(path.resolve()) if isinstance(path, Path) else path


def _digest(content: object) -> str:
    return blake3.blake3(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def utc_time(time_ns: int) -> datetime:
    """Nanoseconds since 1970-01-01 as a time, cut to seconds."""
    return datetime.fromtimestamp(time_ns // 10**9, UTC)


def _text(time_ns: int) -> str:
    return utc_time(time_ns).isoformat(timespec="seconds").replace("+00:00", "Z")


def _run_id(system: str, imported: Imported) -> str:
    """``<system>-<profile>-<version>-<UTC time of the first line>-<8 digits of what decides the result>``."""
    content = {
        "sources": [(source.path, source.blake3) for source in imported.sources],
        "subject": imported.subject.model_dump(mode="json"),
        "profile": imported.profile,
        "options": imported.options,
        "tool_version": tool_version(),
    }
    profile = imported.profile_name.removeprefix(f"{system}/")
    stamp = utc_time(imported.first_ns).strftime("%Y%m%dT%H%M%S")
    parts = (system, profile, imported.subject.version, stamp, _digest(content)[:HASH_DIGITS])
    return "-".join(re.sub(r"[^A-Za-z0-9._+]+", "-", part).strip("-.") or "unnamed" for part in parts)


def _manifest(system: str, imported: Imported) -> Manifest:
    failed = any(gate.status is GateStatus.FAIL for gate in imported.gates)
    return Manifest(
        run_id=_run_id(system, imported),
        subject=imported.subject,
        profile_name=imported.profile_name,
        profile=imported.profile,
        workload=imported.workload,
        conditions=imported.conditions,
        configuration=imported.configuration,
        tool_version=tool_version(),
        seed=SEED,
        started_at=_text(imported.first_ns),
        ended_at=_text(imported.last_ns),
        host=imported.host,
        counts=imported.counts,
        facts=imported.facts,
        gates=imported.gates,
        incidents=imported.incidents,
        warnings=imported.warnings,
        sources=imported.sources,
        status=Status.INVALID if failed else Status.VALID,
    )
