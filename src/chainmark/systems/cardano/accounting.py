"""The decoder's accounting of a file's beginning and of a host: its output besides the tables, each read once."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from chainmark.core.errors import EnvironmentFailure

# Unknown keys must not be ignored: the compiled core may be of another version.
_READ = ConfigDict(frozen=True, extra="forbid")


class Head(BaseModel):
    """The facts in the first lines of a file.

    Attributes:
        lines: number of lines read.
        objects: those with a readable envelope: trace messages.
        starts: (slot, ns since 1970-01-01 UTC) of the forge loop's first rounds.
        names: host names in the lines, with the number of lines per name.
        node_version: if the node reports it.
        problem: why the first unreadable line is unreadable.
        backward: lines with a time earlier than that of the previous line.
    """

    model_config = _READ

    container: str
    wrapper: str
    lines: int
    objects: int
    decoded: int
    malformed: int
    first_ns: int | None
    last_ns: int | None
    starts: list[tuple[int, int]]
    names: dict[str, int]
    node_version: str | None
    node_revision: str | None
    compiler_version: str | None
    network_magic: str | None
    problem: str | None
    backward: int
    damage: str | None

    @property
    def runs_backwards(self) -> bool:
        """Whether its lines are newest first, as log stores print them."""
        return self.backward > self.objects / 2 and self.objects > 2


class FileCounts(BaseModel):
    """One file, sorted by time among its host's; ``damage`` says why its end could not be read, if so."""

    model_config = _READ

    path: str
    stored_bytes: int
    text_bytes: int
    lines: int
    blake3: str
    first_ns: int | None
    container: str
    wrapper: str
    damage: str | None


class MalformedLine(BaseModel):
    """A line that could not be read; ``file`` is its file's path, ``line`` counts that file's lines from 1."""

    model_config = _READ

    file: str
    line: int
    reason: str
    text: str


class LineCounts(BaseModel):
    """Every line of a host in one class.

    Attributes:
        objects: lines with a readable envelope.
        skipped: announcements without new information: falling edges, non-blocking reads, rollbacks.
        not_objects: lines that are not JSON objects.
        pieces: of these, pieces of cut lines, without the last one of each.
        seconds_before_order: the largest step back in time from one line to the next.
        names: host names in the lines, with the number of lines per name.
        local_addresses: the host's own addresses by its connections, with the number of lines per address.
    """

    model_config = _READ

    files: list[FileCounts]
    raw_lines: int
    objects: int
    decoded: int
    ignored: int
    skipped: int
    not_objects: int
    pieces: int
    malformed: int
    malformed_envelope: int
    malformed_body: int
    decoded_by_message: dict[str, int]
    ignored_by_message: dict[str, int]
    malformed_examples: list[MalformedLine]
    first_ns: int | None
    last_ns: int | None
    seconds_before_order: float
    names: dict[str, int]
    node_version: str | None
    node_revision: str | None
    compiler_version: str | None
    network_magic: str | None
    local_addresses: dict[str, int]

    @property
    def text_bytes(self) -> int:
        """The size of the logs, uncompressed."""
        return sum(file.text_bytes for file in self.files)

    @property
    def imbalances(self) -> list[str]:
        """The sums that do not balance; empty unless the decoder has an error."""
        sums = {
            "lines": (self.raw_lines, self.decoded + self.ignored + self.skipped + self.malformed + self.not_objects),
            "lines of files": (self.raw_lines, sum(file.lines for file in self.files)),
            "malformed lines": (self.malformed, self.malformed_envelope + self.malformed_body),
            "messages": (self.objects, self.decoded + self.ignored + self.skipped + self.malformed_body),
            "decoded messages": (self.decoded, sum(self.decoded_by_message.values())),
            "ignored messages": (self.ignored, sum(self.ignored_by_message.values())),
        }
        return [f"{total} {name} in {parts} parts" for name, (total, parts) in sums.items() if total != parts]


class Timeline(BaseModel):
    """The slots of one host.

    Attributes:
        gaps: slots without any line.
        restarts: when the process's counters began again, ns since 1970-01-01 UTC.
        before_start: messages from before the network's start.
    """

    model_config = _READ

    records: int
    first_slot: int | None
    last_slot: int | None
    gaps: int
    long_gaps: list[tuple[int, int]]
    skipped_future: int
    skipped_before: int
    jumps_skipped: int
    restarts: list[int]
    before_start: int


class BlockCounts(BaseModel):
    """The blocks that one host knew.

    Attributes:
        switched_adoptions: blocks that it adopted by a change of its chain.
        switched_unknown: changes of the chain to blocks that no earlier message mentioned.
    """

    model_config = _READ

    entries: int
    forged: int
    errors: int
    switched_adoptions: int
    switched_unknown: int
    errors_by: dict[str, int]


class ChainLinks(BaseModel):
    """What one host's lines record of the chain.

    Attributes:
        blocks: those in any line.
        lowest_tip: the lowest block number of a tip in the forge loop; -1 is the chain's beginning.
    """

    model_config = _READ

    blocks: int
    lowest_tip: int | None


class MessageCounts(BaseModel):
    """Every decoded message of a host in one class.

    Attributes:
        unused: by reason.
    """

    model_config = _READ

    used: int
    unused: dict[str, int]


class HostSummary(BaseModel):
    """The decoder's summary of one host.

    Attributes:
        usage: the use of the decoded messages.
        loop_offsets_s: lowest, median and highest distance of the forge loop's rounds from their slots' starts.
        bytes: stored bytes of all files.
    """

    model_config = _READ

    host: str
    line_counts: LineCounts
    usage: MessageCounts
    timeline: Timeline
    block_counts: BlockCounts
    links: ChainLinks
    loop_offsets_s: tuple[float, float, float] | None
    bytes: int

    @property
    def imbalances(self) -> list[str]:
        """The sums of lines and of messages that do not balance; empty unless the decoder has an error."""
        decoded, parts = self.line_counts.decoded, self.usage.used + sum(self.usage.unused.values())
        use = [] if decoded == parts else [f"{decoded} decoded messages in {parts} uses"]
        return self.line_counts.imbalances + use


_Account = TypeVar("_Account", Head, HostSummary)


def read_head(path: str, text: str) -> Head:
    """The facts in a file's first lines, checked.

    Raises:
        EnvironmentFailure: it is of another version than this code.
    """
    return _read(Head, path, text)


def read_summary(host: str, text: str) -> HostSummary:
    """The decoder's summary, checked.

    Raises:
        EnvironmentFailure: its sums do not balance, or it is of another version than this code.
    """
    summary = _read(HostSummary, host, text)
    if summary.imbalances:
        raise EnvironmentFailure(
            f"the lines of {host} were not all counted: {summary.imbalances[0]}", "please report this"
        )
    return summary


def _read(model: type[_Account], of: str, text: str) -> _Account:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise EnvironmentFailure(
            f"the decoder's output for {of} is not as expected at `{place}` ({first['msg']}): the compiled core is of "
            "a different version",
            "reinstall chainmark",
        ) from error
