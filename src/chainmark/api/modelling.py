"""Models: predictions for a network, whether the model reproduces a run, and logs of a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chainmark.api.clusters import cluster_address, machines_at
from chainmark.api.context import Cancellation, Relay, Settings, as_settings, resolve_profile, store_at
from chainmark.api.noting import noted
from chainmark.api.runs import RunReference, open_run
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.lab.profiles import shipped_profiles
from chainmark.lab.synthetic import FaultKind, SyntheticLogs, SyntheticRequest, synthetic
from chainmark.report.document import Document
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import ModelledSystem, ModelRequest, ModelSource, WhatIf, predictable
from chainmark.systems.offered import values_for

__all__ = ["explain", "fault_kinds", "predict", "synth"]

SOURCES_HINT = (
    "a source is the path of a published report, a profile (shipped or a .toml file), or a run (`chainmark runs list`)"
)
REPORT_SUFFIX = ".json"
_LISTED = 5


def predict(
    source: RunReference | Path,
    changes: Mapping[str, object] | Sequence[str | tuple[str, str]] = (),
    *,
    together: bool = False,
    version: str | None = None,
    settings: Settings | None = None,
    blocks: int | None = None,
    seed: int = 1,
    threads: int = 0,
    on: str | None = None,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Predict a network's figures with a model fitted to a report, a run or a profile, and the effects of changes.

    Args:
        source: a published report's path, a profile, or a run.
        changes: the what-ifs, each a key and an amount: ``[("rtt", "+20%"), ("block-size", "2x")]``,
            ``["rtt=+20%", "block-size=2x"]`` or ``{"rtt": "+20%", "block-size": "2x"}``.
        together: only all changes at once, not each of them alone.
        version: the column of a published report.
        settings: changes of the profile, if the source is one.
        blocks: number of simulated blocks per network.
        seed, threads: the results depend on the seed alone.
        on: the scheduler of a Dask cluster whose workers simulate, "tcp://10.0.0.1:8786".
        store, progress, cancel: as in `run`.

    Raises:
        UsageError: the source or a change cannot be used.

    Example:
        >>> document = cm.predict("cardano/value", [("rtt", "+20%")], blocks=64)
        >>> document.kind
        'prediction'
    """
    system, result = model_source(source, version, settings, store)
    what_ifs = _what_ifs(changes)
    listener = Relay(progress, cancel)
    with machines_at(cluster_address(on), listener) as machines:
        order = ModelRequest(what_ifs, together=together, blocks=blocks, seed=seed, threads=threads, machines=machines)
        document = system.predict(result, order, listener)
    return noted(document, _measured(result), store_at(store))


def _what_ifs(changes: Mapping[str, object] | Sequence[str | tuple[str, str]]) -> tuple[WhatIf, ...]:
    if isinstance(changes, Mapping):
        changes = as_settings(changes)
    pairs = (change.partition("=")[::2] if isinstance(change, str) else change for change in changes)
    return tuple(WhatIf(key, amount) for key, amount in pairs)


def explain(
    *sources: RunReference | Path,
    version: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    threads: int = 0,
    on: str | None = None,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Check whether the model reproduces the measurement from the measured stages; for many reports, how often.

    Args:
        sources: one run or published report; or many reports, or a folder of them.
        version, blocks, seed, threads, on, store, progress, cancel: as in `predict`.

    Raises:
        UsageError: a source cannot be used.

    Example:
        >>> cm.explain(report, blocks=320).word
        'PASS'
    """
    listener = Relay(progress, cancel)
    with machines_at(cluster_address(on), listener) as machines:
        order = ModelRequest(blocks=blocks, seed=seed, threads=threads, machines=machines)
        if len(sources) == 1 and not Path(str(sources[0])).is_dir():
            system, result = model_source(sources[0], version, None, store)
            return noted(system.explain(result, order, listener), _measured(result), store_at(store))
        return _evidence(sources, version, order, listener)


def _evidence(
    sources: Sequence[RunReference | Path], version: str | None, order: ModelRequest, listener: Relay
) -> Document:
    """The accuracy of a model over many reports."""
    if version is not None:
        raise UsageError("`--version` applies to a single report, but several were given", "omit `--version`")
    reports, others = known_reports(sources)
    if others:
        listener.say(f"not published reports: {listed(others)}")
    systems = {system.name: system for _, system in reports}
    if not reports:
        raise UsageError(f"no published report in {listed([str(source) for source in sources])}", SOURCES_HINT)
    if len(systems) > 1:
        raise UsageError(
            f"the reports are of several systems: {', '.join(sorted(systems))}", "give reports of one system"
        )
    (only,) = systems.values()
    return only.evidence([path for path, _ in reports], order, listener)


def _measured(source: ModelSource) -> list[SealedRun]:
    """The run that a model is fitted to, if it is one."""
    return [source.run] if source.run else []


def synth(
    system: str,
    folder: Path | str,
    *,
    hosts: int | None = None,
    seed: int = 1,
    profile: str | None = None,
    settings: Settings | None = None,
    compression: str = "none",
    rotation: str | None = None,
    faults: Sequence[str] = (),
    threads: int = 0,
    replace: bool = False,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
    **options: Any,
) -> SyntheticLogs:
    """Write the logs of a simulated cluster, and the ground truth.

    Args:
        system: the system of the logs.
        folder: the folder to create.
        hosts: their number, None: the profile's.
        seed: of all random draws; the same arguments give the same bytes.
        profile, settings: the network.
        compression, rotation: of the logs, in the form of ``chainmark synth``.
        faults: simulated faults: ``["crash:node-3@400"]``.
        threads: 0 means all cores.
        replace: replace existing generated logs.
        progress, cancel: as in `run`.
        options: of the system, as `chainmark synth --help` lists them.

    Raises:
        UsageError: the folder exists, the system has no such option, or a request is not possible.

    Example:
        >>> made = cm.synth("cardano", folder, hosts=3, slots=100, faults=["crash:node-1@60"])
        >>> made.hosts, made.faults[0].fault
        (3, 'crash')
    """
    able = synthetic(load_system(system))
    order = SyntheticRequest(
        folder=Path(folder),
        seed=seed,
        profile=profile,
        settings=tuple(as_settings(settings)),
        hosts=hosts,
        compression=compression,
        rotation=rotation,
        faults=tuple(faults),
        options=values_for(system, "synth", options),
        threads=threads,
        replace=replace,
    )
    return able.synthesise(order, Relay(progress, cancel))


def fault_kinds(system: str) -> list[FaultKind]:
    """The faults that generated logs can contain, each with an example.

    Raises:
        UsageError: chainmark cannot generate logs of that system.

    Example:
        >>> {"crash", "restart"} <= {kind.name for kind in cm.fault_kinds("cardano")}
        True
    """
    return synthetic(load_system(system)).fault_kinds()


def model_source(
    reference: RunReference | Path,
    version: str | None,
    settings: Settings | None,
    store: Store | Path | str | None,
) -> tuple[ModelledSystem, ModelSource]:
    """The source of that name, and its system.

    Raises:
        UsageError: there is none, it is not a single run, or its system has no model.
    """
    if not isinstance(reference, str | Path):
        return _of_run(open_run(reference).sealed)
    name, path = str(reference), Path(reference)
    is_profile = name in shipped_profiles() or path.suffix == ".toml"
    if settings and not is_profile:
        raise UsageError(f"`--set` changes a profile, but `{name}` is not a profile", "omit `--set`")
    if is_profile:
        system, profile = resolve_profile(name, settings)
        return predictable(system), ModelSource(name, profile=profile, version=version)
    if path.is_dir():
        raise UsageError(f"`{name}` is a folder", f"give one report; `chainmark explain {name}` uses all of them")
    if path.is_file() or path.suffix == REPORT_SUFFIX:
        return recognise(path), ModelSource(path.name, document=path, version=version)
    try:
        run = open_run(name, store_at(store)).sealed
    except UsageError as error:
        raise UsageError(f"`{name}` is not a report, profile or run: {error.message}", SOURCES_HINT) from error
    return _of_run(run)


def _of_run(run: SealedRun) -> tuple[ModelledSystem, ModelSource]:
    return predictable(load_system(run.manifest.subject.system)), ModelSource(run.run_id, run=run)


def recognise(path: Path) -> ModelledSystem:
    """The system of a published report in a file.

    Raises:
        UsageError: there is no such file, or no system recognises it.
    """
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`", SOURCES_HINT)
    system = system_of(path)
    if system is None:
        names = ", ".join(f"`{system.name}`" for system in modelled_systems())
        raise UsageError(f"`{path}` is not a published report in a known format", f"known formats: {names}")
    return system


def modelled_systems() -> list[ModelledSystem]:
    """The registered systems that have a model."""
    return [system for name in system_names() if isinstance(system := load_system(name), ModelledSystem)]


def system_of(path: Path) -> ModelledSystem | None:
    """The system that recognises a document, or None."""
    return next((system for system in modelled_systems() if system.recognises_document(path)), None)


def known_reports(references: Sequence[object]) -> tuple[list[tuple[Path, ModelledSystem]], list[str]]:
    """All named reports, including those in a named folder that a system recognises; and names of its other files."""
    result: list[tuple[Path, ModelledSystem]] = []
    others: list[str] = []
    for reference in references:
        path = Path(str(reference))
        if not path.is_dir():
            result.append((path, recognise(path)))
            continue
        for file in sorted(path.glob(f"*{REPORT_SUFFIX}")):
            system = system_of(file)
            if system is None:
                others.append(file.name)
            else:
                result.append((file, system))
    return result, others


def listed(names: Sequence[str]) -> str:
    """The first of many names in a sentence."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:_LISTED]) + more
