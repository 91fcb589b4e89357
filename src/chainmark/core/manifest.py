"""The manifest: who was measured, how, where, and what the run is worth in a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from operator import not_
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.labels import cell_of

SCHEMA_VERSION = 1
Scalar = str | int | float | bool | None
# Of fields that few runs have: a manifest without them is as it was before they were known.
Rare = Field(exclude_if=not_)


class Status(StrEnum):
    """What a run is worth in a comparison."""

    VALID = "valid"
    FAILED = "failed"  # the subject failed it: evidence against its side
    INVALID = "invalid"  # the measurement failed: the run says nothing


class GateStatus(StrEnum):
    """The result of one gate. One whose measure is not known fails nothing, and is not met either."""

    PASS = "pass"  # noqa: S105 - not a password
    WARN = "warn"
    UNKNOWN = "unknown"
    FAIL = "fail"


class GateKind(StrEnum):
    """Whose failure it is when a gate is not met."""

    INSTRUMENT = "instrument"  # ours or the machine's: the run says nothing of its subject
    SUBJECT = "subject"  # that of what is tested: the run is evidence against it


class Gate(BaseModel):
    """A condition that a run, or a pair of sides, must meet before it may be compared.

    Attributes:
        kind: manifests that were written before gates had one are read as if all were of instruments.
        conclusive: of a subject's gate: no failure of the measurement explains it, so that it counts whatever the
            instruments did. A node that died makes the generator late, and not the other way round.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    label: str
    status: GateStatus
    measured: str  # what was found, with unit
    limit: str  # what was required, with unit
    detail: str = ""
    kind: GateKind = GateKind.INSTRUMENT
    conclusive: bool = False


def failed_gates(gates: Iterable[Gate]) -> list[Gate]:
    """Those that were not met."""
    return [gate for gate in gates if gate.status is GateStatus.FAIL]


def status_of(gates: Iterable[Gate]) -> Status:
    """What a run with these gates is worth.

    A conclusive failure of the subject makes it FAILED; else a failed instrument makes it INVALID, because what an
    overloaded machine did not commit says nothing of the subject; else any failure of the subject makes it FAILED.
    """
    failed = failed_gates(gates)
    if any(gate.conclusive for gate in failed):
        return Status.FAILED
    if any(gate.kind is GateKind.INSTRUMENT for gate in failed):
        return Status.INVALID
    return Status.FAILED if failed else Status.VALID


class Subject(BaseModel):
    """What is judged: a system at one version and configuration.

    Attributes:
        release: the version that it calls itself, where a document gives it another label ("8.9.1-rerun").
        aliases: what other documents call the same version.
        is_untold: its version tells no build from another, as that of a node of somebody else.
        told: the version that the logs tell, where it is called otherwise.
    """

    model_config = ConfigDict(frozen=True)

    system: str
    name: str  # as people say it: "CometBFT"
    version: str
    revision: str | None = None
    build: str | None = None
    binary_sha256: str | None = None
    release: Annotated[str | None, Rare] = None
    aliases: Annotated[list[str], Rare] = []
    is_untold: Annotated[bool, Rare] = False
    told: Annotated[str | None, Rare] = None


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
        """CPU model, cores and memory to the GiB; of a cluster that others ran only what was stated."""
        if self.cores == 0:
            return self.cpu_model
        return f"{self.cpu_model} × {self.cores}, {round(self.memory_bytes / 2**30)} GiB"


class ExperimentLength(BaseModel):
    """How many runs per side an experiment was planned with, at most; and whether it ends as soon as it is decided."""

    model_config = ConfigDict(frozen=True)

    most: int
    stops_early: bool


class ExperimentPlace(BaseModel):
    """Where a run stands in its experiment: which side, which repetition, which position in the interleaved order."""

    model_config = ConfigDict(frozen=True)

    id: str
    side: str  # "baseline", "candidate"; "subject" where there is only one
    repetition: int
    position: int
    length: ExperimentLength | None = None  # of runs that no experiment of two sides made: None


class ConfigChange(BaseModel):
    """A configuration value that is not the version's default."""

    model_config = ConfigDict(frozen=True)

    default: Scalar | list[Scalar]
    used: Scalar | list[Scalar]


class Configuration(BaseModel):
    """The subject's effective configuration, flattened to dotted keys, and what was changed from its defaults.

    Attributes:
        effective: every key common to all nodes, per file ("config.toml", "genesis.json").
        changed: per file, the changes against that version's own defaults that all nodes share.
        changed_per_node: per node and file, the changes that differ between nodes (addresses, peers).
    """

    effective: dict[str, dict[str, Scalar | list[Scalar]]] = {}
    changed: dict[str, dict[str, ConfigChange]] = {}
    changed_per_node: dict[str, dict[str, dict[str, ConfigChange]]] = {}


class Incident(BaseModel):
    """Something that happened during the run and that a reader must know; ``planned`` if the profile asked for it."""

    model_config = ConfigDict(frozen=True)

    time_ns: int
    what: str
    planned: bool = False


# The label of the fact that says what was measured at the same time on the same machine.
BESIDE = "on the machine at the same time"


class Fact(BaseModel):
    """Something that the reports of a system say of a run before anything else, as text: "Machines", "52"."""

    model_config = ConfigDict(frozen=True)

    label: str
    value: str


class Source(BaseModel):
    """A file that the run was made from: raw material kept in the run, or, of an import, where it was found.

    Attributes:
        place: the host whose log it is, where that is known; the files of one host stand in the order of time.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    size_bytes: int
    blake3: str
    place: str | None = None


class Grouping(BaseModel):
    """Which values of a key are alike: hosts of one region. ``label`` is what a group is called."""

    model_config = ConfigDict(frozen=True)

    label: str
    of: dict[str, str]


class Manifest(BaseModel):
    """``manifest.json`` of a run.

    Attributes:
        workload: what two runs must share to be comparable, flattened to dotted keys (load, network, window).
        conditions: facts of the run by the catalogue's condition ids.
        counts: the accounting: for each account, its classes; the sums have been checked.
        facts: what the system's own reports say of a run, in their order.
        contradictions: of the warnings, those that say that the subject is not what it is called.
        groups: by key of the samples, which of its values are held against each other.
        synthetic: no node ran: a simulation wrote what the run was made from.
        printed: the figures were read from a published report: there are no samples, and what the report does not
            state of the workload is not known.
        identity: what distinguishes the run from all others wherever it was read: two manifests with the same are of
            one run.
        profiles: kinds of profiles that were taken of its nodes; such a run shows why, and is not judged.
        labels: words by which a selector finds the run, by key ("scenario", "hardware", "endpoint"); the first of each
            key is what it is called. All but `ENDPOINT` name its cell: runs of two cells are no repetitions.
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
    sources: list[Source] = []
    status: Status

    @property
    def cell(self) -> dict[str, str]:
        """Which cell of a matrix of tests the run is of, by key; empty where it is of none."""
        return cell_of(self.labels)

    @property
    def failed_gates(self) -> list[Gate]:
        """The gates that the run did not meet."""
        return failed_gates(self.gates)

    @property
    def deciding_gates(self) -> list[Gate]:
        """Of the gates that were not met, those that made the status what it is."""
        kind = GateKind.SUBJECT if self.status is Status.FAILED else GateKind.INSTRUMENT
        return [gate for gate in self.failed_gates if gate.kind is kind]
