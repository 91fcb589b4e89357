"""The single way to make a run, whatever fills it: create, fill, summarise, seal; and clean up after a failure."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import blake3
import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import ExperimentPlace, HostFacts, Manifest, Scalar, Source, status_of
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress, Silent
from chainmark.core.times import utc_now
from chainmark.core.tool import tool_version
from chainmark.lab.protocols import Findings
from chainmark.lab.schedules import EXPLAINING
from chainmark.network.host import host_facts
from chainmark.stats.description import LAYOUT, describe, to_frame
from chainmark.stats.measurement_error import with_measurement_errors
from chainmark.stats.samples import ParquetSamples, ordered_source
from chainmark.stats.summarise import summarise
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import StagedRun, UnfinishedRun

HASH_DIGITS = 8


@dataclass(frozen=True)
class RunOrigin:
    """When and where a run was measured, and its source files."""

    started_at: str
    ended_at: str
    host: HostFacts
    sources: list[Source]


@dataclass(frozen=True, kw_only=True)
class RunContent:
    """The content of a run.

    Attributes:
        samples: by population; None: they are in the run already.
        origin: None: measured on this machine, from the session's beginning until now, from the run's raw data.
        options: other inputs that determine an import's result and so its name, besides its sources and its profile.
        summaries: the figures, if there are no samples to compute them from.
    """

    profile_name: str
    profile: dict[str, object]
    workload: dict[str, Scalar | list[Scalar]]
    seed: int
    findings: Findings
    catalogue: Catalogue
    samples: Mapping[str, pl.DataFrame] | None = None
    place: ExperimentPlace | None = None
    origin: RunOrigin | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    summaries: Sequence[MetricSummary] | None = None


class Session:
    """One run from its folder to its seal; its manifest records whether it is valid.

    As a context it decides what is kept if the run is not sealed. An interruption (Ctrl-C) and a user error remove the
    unfinished run, and so does a failure before any data were collected. Any other failure keeps it, with all collected
    data: it is listed as unfinished, never compared, and removed on request.
    """

    def __init__(self, run: UnfinishedRun, started_at: str) -> None:
        self.run = run
        self._started_at = started_at
        self._is_sealed = False

    @classmethod
    def create(cls, store: Store, system: str, profile_name: str, version: str, **known: str) -> Self:
        """Begin a run.

        Args:
            store: the store of the run.
            system: its name.
            profile_name: the profile that is run.
            version: the subject's.
            known: further facts about it while it is unfinished: its ``experiment``, or that it ``started_at`` another
                time than now.
        """
        state = {"pid": os.getpid(), "started_at": utc_now(), "version": version, "profile": profile_name, **known}
        return cls(store.create(system, profile_name, version, state), str(state["started_at"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._is_sealed and not self._is_worth_keeping(error):
            self.run.drop()

    def _is_worth_keeping(self, error: BaseException) -> bool:
        return not isinstance(error, KeyboardInterrupt | UsageError) and not self.run.is_empty()

    def seal(
        self, content: RunContent, progress: Progress | None = None, machines: Machines | None = None
    ) -> SealedRun:
        """Write the remaining data, summarise the run, and seal it.

        Args:
            content: of the run.
            progress: receives the stages.
            machines: other machines that share the work of summarising a large run.

        Raises:
            ChainmarkError: the machines or the network failed.
        """
        listener = progress or Silent()
        origin = content.origin or RunOrigin(self._started_at, utc_now(), host_facts(), self.run.sources())
        manifest = self._manifest(content, origin)
        samples = content.samples
        for population, frame in (samples or {}).items():
            self.run.write_samples(population, frame)
        listener.stage("summarising")
        source = ordered_source(ParquetSamples(self.run.path / "samples") if samples is None else samples)
        summaries = list(content.summaries or summarise(content.catalogue, source, content.seed, machines))
        summaries = with_measurement_errors(summaries, content.findings.measurement_errors)
        self.run.write_description(to_frame(describe(content.catalogue, source, content.seed)), LAYOUT)
        listener.stage("sealing")
        sealed = self._settled(self.run.seal(manifest, content.catalogue, summaries), manifest.run_id)
        self._is_sealed = True
        return sealed

    def _manifest(self, content: RunContent, origin: RunOrigin) -> Manifest:
        findings = content.findings
        return Manifest(
            run_id=self._run_id(content, origin),
            profile_name=content.profile_name,
            profile=content.profile,
            workload=content.workload,
            experiment=content.place,
            tool_version=tool_version(),
            seed=content.seed,
            status=status_of(findings.gates),
            **{item.name: getattr(findings, item.name) for item in fields(Findings)},
            **vars(origin),
        )

    def _run_id(self, content: RunContent, origin: RunOrigin) -> str:
        return self.run.run_id

    def _settled(self, sealed: SealedRun, run_id: str) -> SealedRun:
        return sealed


class StagedSession(Session):
    """A run made from existing data, and named after them: equal content has one run.

    An interruption only leaves a folder that the next attempt removes: its sources still exist.

    Attributes:
        is_new: false once this run turned out to exist already.
    """

    def __init__(self, run: StagedRun) -> None:
        super().__init__(run, utc_now())
        self._staged = run
        self.is_new = True

    @classmethod
    def stage(cls, store: Store, order: Mapping[str, object], **known: str) -> Self:
        """Begin the run.

        Args:
            store: the store of the run.
            order: everything that determines the result; equal orders are not processed at the same time.
            known: further facts about it while it is unfinished.

        Raises:
            UsageError: another process is making the same run.
        """
        return cls(
            store.stage(_digest(order)[: 2 * HASH_DIGITS], {"pid": os.getpid(), "started_at": utc_now(), **known})
        )

    def _is_worth_keeping(self, error: BaseException) -> bool:
        return False

    def _run_id(self, content: RunContent, origin: RunOrigin) -> str:
        """``<system>-<profile>-<version>-<UTC time of the first line>-<8 digits of the hash of the inputs>``."""
        subject, system = content.findings.subject, content.catalogue.system
        # A printed run is the same one in any report.
        sources: object = content.findings.identity or [(source.path, source.blake3) for source in origin.sources]
        digest = _digest(
            {
                "sources": sources,
                "subject": subject.model_dump(mode="json"),
                "profile": content.profile,
                "options": content.options,
                "tool_version": tool_version(),
            }
        )
        stamp = re.sub(r"[-:Z]", "", origin.started_at)
        profile = content.profile_name.removeprefix(f"{system}/")
        parts = (system, profile, subject.version, stamp, digest[:HASH_DIGITS])
        return "-".join(re.sub(r"[^A-Za-z0-9._+]+", "-", part).strip("-.") or "unnamed" for part in parts)

    def _settled(self, sealed: SealedRun, run_id: str) -> SealedRun:
        settled, self.is_new = self._staged.settle(run_id)
        return settled


def _digest(content: object) -> str:
    return blake3.blake3(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def name_of(profile: BaseModel) -> str:
    """The name in a profile."""
    return str(getattr(profile, "name", "profile"))


def new_experiment_id(system: str, name: str, kind: str = "") -> str:
    """A name for an experiment: the system, its kind, the profile's or plan's name, the time, four random digits."""
    plain = name.removeprefix(f"{system}/").replace("/", "-")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return "-".join(filter(None, (system, kind, plain, stamp, secrets.token_hex(2))))


def finished_runs(store: Store, experiment_id: str) -> dict[int, SealedRun]:
    """The sealed runs of an experiment by position; the unfinished ones of a killed process are removed.

    Only those of exactly this experiment: a reference that a user mistyped must not remove the data of others.
    """
    own = {experiment_id, f"{experiment_id}-{EXPLAINING}"}
    for run in store.unfinished():
        if run.state().get("experiment") in own and run.maker() is None:
            run.drop()
    return {place.position: run for run in store.members([experiment_id]) if (place := run.manifest.experiment)}
