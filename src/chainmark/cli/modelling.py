"""What `predict` and `explain` share: the sources that a model can be fitted to, found by name or path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from chainmark.cli.common import only_run, open_store, resolve_profile
from chainmark.core.errors import UsageError
from chainmark.lab.profiles import shipped_profiles
from chainmark.lab.protocols import ModelledSystem, ModelSource, modelled
from chainmark.store.runs import SealedRun
from chainmark.systems.base import load_system, system_names

Column = Annotated[
    str | None,
    typer.Option("--version", metavar="V", help="The column of a published report; its last one if left out."),
]
Blocks = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Blocks to simulate per network; more give smaller errors.")
]
ModelSeed = Annotated[int, typer.Option(min=0, help="Seed of everything drawn at random.")]
Threads = Annotated[int, typer.Option(min=0, help="Threads; 0 means all cores. The result does not depend on it.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the profile, where the source is one."),
]
SOURCES_HINT = (
    "a source is a published report's path, a profile (shipped or a .toml file), or a run (`chainmark runs list`)"
)
REPORT_SUFFIX = ".json"


def find_source(reference: str, version: str | None, settings: Sequence[str]) -> tuple[ModelledSystem, ModelSource]:
    """The source of that name, and the system that understands it.

    Args:
        reference: a path, a profile's name, or a run.
        version: the column of a published report.
        settings: of a profile.

    Raises:
        UsageError: there is none, it is not of one run, or its system has no model.
    """
    path = Path(reference)
    is_profile = reference in shipped_profiles() or path.suffix == ".toml"
    if settings and not is_profile:
        raise UsageError(f"`--set` changes a profile, and `{reference}` is none", "leave `--set` out")
    if is_profile:
        system, profile = resolve_profile(reference, settings)
        return modelled(system), ModelSource(reference, profile=profile, version=version)
    if path.is_dir():
        raise UsageError(
            f"`{reference}` is a folder", f"give one report; `chainmark explain {reference}` takes them all"
        )
    if path.is_file() or path.suffix == REPORT_SUFFIX:
        return recognise(path), ModelSource(path.name, document=path, version=version)
    run = _run(reference)
    system = load_system(run.manifest.subject.system)
    return modelled(system), ModelSource(run.run_id, run=run, version=version)


def recognise(path: Path) -> ModelledSystem:
    """The system whose published report a file is.

    Raises:
        UsageError: there is no such file, or no system knows it.
    """
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`", SOURCES_HINT)
    found = system_of(path)
    if found is None:
        names = ", ".join(f"`{system.name}`" for system in modelled_systems())
        raise UsageError(f"`{path}` is not a published report that is known here", f"known are those of {names}")
    return found


def modelled_systems() -> list[ModelledSystem]:
    """The registered systems that have a model."""
    return [system for name in system_names() if isinstance(system := load_system(name), ModelledSystem)]


def system_of(path: Path) -> ModelledSystem | None:
    """The system that recognises a document, or None."""
    return next((system for system in modelled_systems() if system.recognises_document(path)), None)


def _run(reference: str) -> SealedRun:
    try:
        runs = open_store().select(reference)
    except UsageError as error:
        raise UsageError(f"`{reference}` is no report, profile or run: {error.message}", SOURCES_HINT) from error
    return only_run(runs, reference)
