"""The manifest: subject, method, environment, and whether the run may be compared."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from operator import not_
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.former_names import renamed
from chainmark.core.labels import cell_of

SCHEMA_VERSION = 1
Scalar = str | int | float | bool | None
# For fields that few runs have: a manifest without them stays unchanged.
Rare = Field(exclude_if=not_)


class Status(StrEnum):
    """Whether a run may be compared."""

    VALID = "valid"
    FAILED = "failed"  # the subject failed it: evidence against its side
    INVALID = "invalid"  # the measurement failed: the run is not evidence


class GateStatus(StrEnum):
    """The result of one gate. A gate with an unknown measure is neither failed nor met."""

    PASS = "pass"  # noqa: S105 - not a password
    WARN = "warn"
    UNKNOWN = "unknown"
    FAIL = "fail"


class GateKind(StrEnum):
    """The cause when a gate is not met."""

    INSTRUMENT = "instrument"  # the measurement or the machine: the run is not evidence about its subject
    SUBJECT = "subject"  # the subject: the run is evidence against it


class Gate(BaseModel):
    """A condition that a run, or a pair of sides, must meet before it may be compared.

    Attributes:
        kind: in manifests from before this field, all gates are of instruments.
        conclusive: for a subject's gate: a failure of the measurement cannot be the cause, so it counts whatever the
            instruments' status. A node that died makes the generator late, and not the other way round.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    label: str
    status: GateStatus
    measured: str  # the measured value, with unit
    limit: str  # the requirement, with unit
    detail: str = ""
    kind: GateKind = GateKind.INSTRUMENT
    conclusive: bool = False


def failed_gates(gates: Iterable[Gate]) -> list[Gate]:
    """The gates that were not met."""
    return [gate for gate in gates if gate.status is GateStatus.FAIL]


def status_of(gates: Iterable[Gate]) -> Status:
    """The status of a run with these gates.

    A conclusive failure of the subject makes it FAILED. Otherwise a failed instrument makes it INVALID, because
    transactions that an overloaded machine did not commit are not evidence about the subject. Otherwise any failure of
    the subject makes it FAILED.
    """
    failed = failed_gates(gates)
    if any(gate.conclusive for gate in failed):
        return Status.FAILED
    if any(gate.kind is GateKind.INSTRUMENT for gate in failed):
        return Status.INVALID
    return Status.FAILED if failed else Status.VALID


class Subject(BaseModel):
    """The subject of a judgement: a system at one version and configuration.

    Attributes:
        release: its own version, if a document gives it another label ("8.9.1-rerun").
        aliases: other documents' names of the same version.
        is_version_unknown: its version does not distinguish builds, for example of a node run by others.
        logged_version: the version in the logs, if its label differs.
    """

    model_config = ConfigDict(frozen=True)

    system: str
    name: str  # its usual spelling
    version: str
    revision: str | None = None
    build: str | None = None
    binary_sha256: str | None = None
    release: Annotated[str | None, Rare] = None
    aliases: Annotated[list[str], Rare] = []
    is_version_unknown: Annotated[bool, Rare, renamed("is_version_unknown", "is_untold")] = False
    logged_version: Annotated[str | None, Rare, renamed("logged_version", "told")] = None


class HostFacts(BaseModel):
    """The machine of the run; ``hardware_class`` is what two runs must share."""

    model_config = ConfigDict(frozen=True)

    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    operating_system: str

    @property
    def hardware_class(self) -> str:
        """CPU model, cores and memory to the GiB; of a cluster that others ran only the stated facts."""
        if self.cores == 0:
            return self.cpu_model
        return f"{self.cpu_model} × {self.cores}, {round(self.memory_bytes / 2**30)} GiB"


class ExperimentLength(BaseModel):
    """The planned number of runs per side of an experiment, and whether it ends as soon as it is decided."""

    model_config = ConfigDict(frozen=True)

    most: int
    stops_early: bool


class ExperimentPlace(BaseModel):
    """The position of a run in its experiment: side, repetition, position in the interleaved order."""

    model_config = ConfigDict(frozen=True)

    id: str
    side: str  # "baseline", "candidate"; "subject" if there is only one
    repetition: int
    position: int
    length: ExperimentLength | None = None  # None for runs without an experiment of two sides


class ConfigChange(BaseModel):
    """A configuration value that is not the version's default."""

    model_config = ConfigDict(frozen=True)

    default: Scalar | list[Scalar]
    used: Scalar | list[Scalar]


class Configuration(BaseModel):
    """The subject's effective configuration, flattened to dotted keys, and its changes from the defaults.

    Attributes:
        effective: every key common to all nodes, per file ("config.toml").
        changed: per file, the changes against that version's own defaults that all nodes share.
        changed_per_node: per node and file, the changes that differ between nodes (addresses, peers).
    """

    effective: dict[str, dict[str, Scalar | list[Scalar]]] = {}
    changed: dict[str, dict[str, ConfigChange]] = {}
    changed_per_node: dict[str, dict[str, dict[str, ConfigChange]]] = {}


class Incident(BaseModel):
    """An event during the run that a reader must know; ``planned`` if it is part of the profile."""

    model_config = ConfigDict(frozen=True)

    time_ns: int
    what: str
    planned: bool = False


# The label of the fact about simultaneous measurements on the same machine.
BESIDE = "on the machine at the same time"


class Fact(BaseModel):
    """A key fact about a run for the reports of a system, as text: "Machines", "52"."""

    model_config = ConfigDict(frozen=True)

    label: str
    value: str


class Source(BaseModel):
    """A source file of the run: raw material stored in the run, or, for an import, its original location.

    Attributes:
        place: the host whose log it is, if that is known; the files of one host are in chronological order.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    size_bytes: int
    blake3: str
    place: str | None = None


class Grouping(BaseModel):
    """Groups of similar values of a key: hosts of one region. ``label`` is the name of a group."""

    model_config = ConfigDict(frozen=True)

    label: str
    of: dict[str, str]


class Manifest(BaseModel):
    """``manifest.json`` of a run.

    Attributes:
        workload: properties that comparable runs must share, flattened to dotted keys (load, network, window).
        conditions: facts of the run by the catalogue's condition ids.
        counts: the accounting: for each account, its classes; the sums have been checked.
        facts: the facts for the system's own reports, in order.
        contradictions: of the warnings, those about a subject that differs from its label.
        groups: by key of the samples, the groups within which its values are compared.
        synthetic: no node ran: the source of the run is a simulation.
        printed: the figures were imported from a published report: there are no samples, and workload settings that the
            report does not state are unknown.
        identity: distinguishes the run from all others, wherever it was imported from: two manifests with the same
            identity are of one run.
        profiles: kinds of profiles that were taken of its nodes; such a run serves as an explanation, and is not
            judged.
        labels: labels for selectors, by key ("scenario", "hardware", "endpoint"); the first value of each
            key is the displayed one. All but `ENDPOINT` and `SLA` name its cell: runs of two cells are not repetitions.
        measurement_errors: the greatest error that all samples of a metric may share, by metric ID, in its unit; the
            standard errors of its figures contain it.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA_VERSION
    run_id: str
    subject: Subject
    profile_name: str
    profile: dict[str, object]
    workload: dict[str, Scalar | list[Scalar]]
    conditions: dict[str, str] = {}
    configuration: Configuration = Field(default_factory=Configuration)
    experiment: ExperimentPlace | None = None
    tool_version: str
    seed: int
    started_at: str  # ISO 8601, UTC
    ended_at: str
    host: HostFacts
    counts: dict[str, dict[str, int]] = {}
    facts: list[Fact] = []
    gates: list[Gate] = []
    incidents: list[Incident] = []
    warnings: list[str] = []
    contradictions: list[str] = []
    synthetic: bool = False
    printed: Annotated[bool, Rare] = False
    identity: Annotated[str, Rare] = ""
    groups: dict[str, Grouping] = {}
    profiles: Annotated[list[str], Rare] = []
    labels: Annotated[dict[str, list[str]], Rare] = {}
    measurement_errors: Annotated[dict[str, float], Rare] = {}
    sources: list[Source] = []
    status: Status

    @property
    def cell(self) -> dict[str, str]:
        """The cell of a matrix of tests, by key; empty without a matrix."""
        return cell_of(self.labels)

    @property
    def is_evidence(self) -> bool:
        """Whether the run counts for its side: not if the instrument failed, or if profiles were taken."""
        return self.status is not Status.INVALID and not self.profiles

    @property
    def failed_gates(self) -> list[Gate]:
        """The gates that the run did not meet."""
        return failed_gates(self.gates)

    @property
    def deciding_gates(self) -> list[Gate]:
        """The unmet gates that determine the status."""
        kind = GateKind.SUBJECT if self.status is Status.FAILED else GateKind.INSTRUMENT
        return [gate for gate in self.failed_gates if gate.kind is kind]
