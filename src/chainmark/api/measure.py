"""Making runs: of networks that chainmark runs, and from existing measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chainmark.api.clusters import machines_for, machines_for_nodes, requested_cluster
from chainmark.api.context import (
    Cancellation,
    Relay,
    Settings,
    as_settings,
    check_repeat,
    installed,
    measuring,
    profiles_of,
    resolve_launchable,
    resolve_profile,
    store_at,
)
from chainmark.api.runs import Run
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.profiles import NO_PROFILES
from chainmark.core.progress import Progress
from chainmark.core.times import RANGE_HINT, time_range
from chainmark.lab.importing import Importer
from chainmark.lab.protocols import ChoosingSystem, ExistingNetwork, ImportRequest
from chainmark.lab.running import Lab
from chainmark.lab.schedules import LONE_SIDE, Arm
from chainmark.store.objects import is_address
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import attachable, importable

__all__ = ["attach", "ingest", "run"]


def run(
    profile: str | Path,
    version: str,
    *,
    repeat: int = 1,
    settings: Settings | None = None,
    seed: int = 1,
    keep_homes: bool = False,
    profiles: str = NO_PROFILES,
    on: str | None = None,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> list[Run]:
    """Run a profile on a real network of one version, several times, and store the measurements.

    Args:
        profile: a shipped profile's name, or the path of a TOML file.
        version: the version to run; it is installed first if necessary.
        repeat: number of runs.
        settings: changes of the profile, ``{"load.rate": 400}``.
        seed: of all random draws; a run's index is added to it.
        keep_homes: keep the nodes' homes in the run.
        profiles: kinds of profiles to take of the nodes, "cpu,heap"; a run with profiles is not judged.
        on: the scheduler of a Dask cluster on whose machines the nodes run, "tcp://10.0.0.1:8786"; the load comes from
            this machine unless some are reserved for it. `CHAINMARK_CLUSTER` if omitted; without that, the nodes run
            here.
        expose: the address at which the progress is exposed to Prometheus, "127.0.0.1:9464"; None: nowhere.
        no_wait: fail if another measurement is running on this machine, instead of waiting for its end.
        store: where the runs are stored.
        progress, cancel: receives progress messages, and ends the work early.

    Raises:
        UsageError: the profile, a setting or the version cannot be used.
        EnvironmentFailure: the machine or a node did not do what the run needs.

    Example:
        >>> (run,) = cm.run("cometbft/demo", "v1.0.1", settings={"load.warm_up_s": 2, "load.duration_s": 8})
        >>> run.manifest.subject.version, run.samples("block").height > 0
        ('v1.0.1', True)
    """
    check_repeat(repeat)
    system, resolved = resolve_launchable(profile, settings)
    kinds = profiles_of(system, profiles)
    with measuring(progress, cancel, expose, no_wait) as listener:
        names = installed(system, [version], listener, resolved)
        arm = Arm(LONE_SIDE, names[version], resolved)
        with machines_for_nodes(system, requested_cluster(on, profile, settings), listener) as machines:
            lab = Lab(store_at(store), system, machines)
            lab_runs = lab.repeat(arm, repeat, seed, listener, keep_homes=keep_homes, profiles=kinds)
        return [Run(item) for item in lab_runs]


def attach(
    profile: str | Path,
    nodes: Sequence[str],
    *,
    metrics: Sequence[str] = (),
    label: str | None = None,
    repeat: int = 1,
    settings: Settings | None = None,
    seed: int = 1,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> list[Run]:
    """Load and observe a running network; nothing is launched, changed or stopped.

    A gate on unknown properties (the nodes' clocks, processors, links) is neither met nor failed.

    Args:
        profile: a shipped profile's name, or the path of a TOML file; its network is not used.
        nodes: addresses, ``"10.0.0.1:26657"``; those that `load.targets` names, by number, receive the load.
        metrics: the nodes' metrics pages in the same order, ``"http://10.0.0.1:26660/metrics"``.
        label: name of the subject, if its reported version is not sufficient.
        repeat: number of runs.
        settings, seed, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: an address is not a node's, the nodes are of several networks, or the profile is not supported.
        EnvironmentFailure: a node does not answer.

    Example:
        >>> cm.attach("cometbft/demo", ["127.0.0.1:1"])
        Traceback (most recent call last):
        chainmark.core.errors.EnvironmentFailure: 127.0.0.1:1 does not respond ([Errno 111] Connection refused)
    """
    check_repeat(repeat)
    system, resolved = resolve_profile(profile, settings)
    with measuring(progress, cancel, expose, no_wait) as listener:
        listener.stage(f"connecting to {units.plural(len(nodes), 'node')}")
        attached = attachable(system).attached(resolved, ExistingNetwork(tuple(nodes), tuple(metrics), label))
        arm = Arm(LONE_SIDE, attached.install("").version, resolved)
        lab_runs = Lab(store_at(store), attached).repeat(arm, repeat, seed, listener, keep_homes=False)
        return [Run(item) for item in lab_runs]


def ingest(
    system: str,
    source: Path | str,
    *,
    version: str | None = None,
    settings: Settings | None = None,
    filters: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    threads: int = 0,
    keep_events: bool = False,
    published_rules: bool = False,
    begin: str | None = None,
    end: str | None = None,
    duration: str | None = None,
    on: str | None = None,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
    **options: Any,
) -> list[Run]:
    """Import a cluster's logs, or the data of a Prometheus server, as sealed runs, usually one.

    Args:
        system: the system of the logs.
        source: a folder, one file, a server's URL, or the address of a folder in an object store, "s3://bucket/folder".
        version: the measured version, if the logs do not contain it.
        settings: values that no document contains.
        filters: names and expressions; None: as in the logs' documents, an empty sequence: none.
        exclude: hosts to exclude.
        threads: 0 means all cores; the run does not depend on it. Polars has its own threads, as many as
            `POLARS_MAX_THREADS` when it is first loaded.
        keep_events: store every decoded event, too.
        published_rules: judge and show by the rules of the published reports; a run contains those figures in any case.
        begin, end, duration: the period of a server's data: two of the three, as
            "2026-01-01T10:00:00Z" and "90s".
        on: the scheduler of a Dask cluster whose workers read the logs, "tcp://10.0.0.1:8786"; `source` is then a path
            on their machines. `CHAINMARK_CLUSTER` if omitted; without that, this machine. The run is the same.
        store, progress, cancel: as in `run`.
        options: of the system, as `chainmark ingest --help` lists them.

    Raises:
        UsageError: the source cannot be used, or an option has no effect; the hint names the missing input.
        EnvironmentFailure: it cannot be read, the store cannot be written, or the cluster cannot be used.

    Example:
        >>> (run,) = cm.ingest("cardano", logs, filters=[])
        >>> run.manifest.subject.system, run.samples("block").height > 0
        ('cardano', True)
    """
    is_url = is_address(source)
    begin_ns, end_ns = time_range(begin, end, duration)
    if begin_ns is not None and not is_url:
        raise UsageError(
            f"`--from`, `--to` and `--duration` apply only to a server, and `{source}` is not one", RANGE_HINT
        )
    order = ImportRequest(
        source=str(source) if is_url else Path(source),
        version=version,
        settings=tuple(as_settings(settings)),
        filters=None if filters is None else tuple(filters),
        exclude=tuple(exclude),
        options=options,
        threads=threads,
        keep_events=keep_events,
        published_rules=published_rules,
        begin_ns=begin_ns,
        end_ns=end_ns,
    )
    importing_system, listener = importable(load_system(system)), Relay(progress, cancel)
    with machines_for(importing_system, order, on, listener) as machines:
        order = replace(order, machines=machines)
        imports = Importer(store_at(store), importing_system).make_all(order, listener)
    if isinstance(importing_system, ChoosingSystem) and (omitted := importing_system.left_out(order)):
        listener.say(omitted)
    return [Run(item.run, is_new=item.is_new) for item in imports]
