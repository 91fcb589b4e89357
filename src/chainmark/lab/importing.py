"""Import logs of any system into sealed runs: staged, read, summarised, sealed, and named after their content."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.times import utc_text
from chainmark.core.wording import enumerated
from chainmark.lab.protocols import (
    IMPORT_OPTIONS,
    ConfigurableImports,
    ImportableSystem,
    Imported,
    ImportRequest,
    PartedSystem,
)
from chainmark.lab.session import RunContent, RunOrigin, StagedSession
from chainmark.stats.threads import at_most
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

# For all random draws: the same logs have the same standard errors.
SEED = 1


class ImportedRun(NamedTuple):
    """An imported run; ``is_new`` is false if the same import had been made before."""

    run: SealedRun
    is_new: bool


@dataclass(frozen=True)
class Importer:
    """Imports logs of one system into one store."""

    store: Store
    system: ImportableSystem

    def make_all(self, order: ImportRequest, progress: Progress) -> list[ImportedRun]:
        """Make every run of the source, as :meth:`make` does one.

        Raises:
            UsageError: also if an option was given that the import of this source does not use.
        """
        _check_name(order.source)
        self._check_options(order)
        parts: list[str | None] = [order.part]
        if isinstance(self.system, PartedSystem):
            parts = list(self.system.parts(order)) or parts
        return [self.make(replace(order, part=part), progress) for part in parts]

    def make(self, order: ImportRequest, progress: Progress) -> ImportedRun:
        """Make the run of these logs and seal it; its manifest records whether it is valid.

        It is deterministic: the same logs and request give the same bytes under the same name, for any number of
        threads.

        Raises:
            UsageError: the logs cannot be used, or another process is importing the same.
            EnvironmentFailure: they cannot be read, or the store cannot be written.
        """
        staged = StagedSession.stage(self.store, self._decisive(order), source=str(order.source))
        with at_most(order.threads), staged as session:
            imported = self.system.ingest(order, session.run, progress)
            known = self._known(imported)
            if known is not None:
                session.run.drop()
                return ImportedRun(known, is_new=False)
            return ImportedRun(session.seal(_content(imported), progress, order.machines), session.is_new)

    def _check_options(self, order: ImportRequest) -> None:
        used = self.system.import_options(order) if isinstance(self.system, ConfigurableImports) else ()
        own = sorted({*order.options, *used} - IMPORT_OPTIONS.keys())
        options = {**IMPORT_OPTIONS, **{name: f"--{name.replace('_', '-')}" for name in own}}
        unused = [option for name, option in options.items() if name not in used and _is_given(order, name)]
        if unused:
            known = enumerated([f"`{option}`" for name, option in options.items() if name in used])
            raise UsageError(
                f"`{unused[0]}` has no effect on the import of {order.source}",
                f"omit it; options for this source: {known}" if known else "omit it",
            )

    def _known(self, imported: Imported) -> SealedRun | None:
        """The existing run, if another report contained it under all the names that this one has for it."""
        names = {imported.subject.version, *imported.subject.aliases}
        runs = self.store.identified(imported.identity) if imported.identity else []
        subjects = [(run, run.manifest.subject) for run in runs]
        return next((run for run, subject in subjects if names <= {subject.version, *subject.aliases}), None)

    def _decisive(self, order: ImportRequest) -> dict[str, object]:
        """The identity of equal requests; the reader of the source does not affect the result."""
        values = {**vars(order), **order.options}
        del values["threads"], values["machines"], values["options"]
        reported = {name: str(value.resolve()) if isinstance(value, Path) else value for name, value in values.items()}
        return {"system": self.system.name, **reported}


def _check_name(source: object) -> None:
    """A manifest is UTF-8, and names what was read.

    Raises:
        UsageError: the path has other bytes.
    """
    try:
        str(source).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(str(source)).decode(errors="backslashreplace")
        raise UsageError(f"the path `{shown}` is not UTF-8", "rename the folder or file") from None


def _is_given(order: ImportRequest, name: str) -> bool:
    """Whether an option was given; no filters at all are a choice, too."""
    value = getattr(order, name) if name in IMPORT_OPTIONS else order.options.get(name)
    return value is not None if name == "filters" else bool(value)


def _content(imported: Imported) -> RunContent:
    started_at, ended_at = utc_text(imported.first_ns), utc_text(imported.last_ns)
    return RunContent(
        profile_name=imported.profile_name,
        profile=imported.profile,
        workload=imported.workload,
        seed=SEED,
        findings=imported,
        catalogue=imported.catalogue,
        origin=RunOrigin(started_at, ended_at, imported.host, imported.sources),
        options=imported.options,
        summaries=imported.summaries,
    )
