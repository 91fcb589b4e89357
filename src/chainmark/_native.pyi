"""chainmark's Rust core.

Errors: ValueError for an argument that cannot be used and for a call out of order; ConnectionError for a target that
cannot be dialled or does not confirm a subscription. The message is one sentence, then a line that starts with `hint:`.
"""

from pathlib import Path
from typing import Any, Self, TypedDict, final

import numpy as np
import numpy.typing as npt

class DecodedTransaction(TypedDict):
    connections: int
    rate: int
    """Transactions per second per connection."""
    size_bytes: int
    time_ns: int
    """When the transaction was due, in wall nanoseconds since 1970."""
    experiment_id: bytes
    """16 bytes."""

class LoadProgress(TypedDict):
    """Transactions so far; `offered` is the whole schedule."""

    offered: int
    due: int
    sent: int
    answered: int
    accepted: int

# The functional form, because one key is a Python keyword.
LoadResult = TypedDict(
    "LoadResult",
    {
        # Columns: little-endian bytes, one value per offered transaction, ordered by connection and sequence.
        "connection": bytes,  # u32
        "sequence": bytes,  # u32
        "due_ns": bytes,  # i64, wall nanoseconds since 1970
        "sent_ns": bytes,  # i64, when the socket had taken the whole transaction; -1 if unsent
        "answered_ns": bytes,  # i64; -1 if not answered in time
        "class": bytes,  # u8, a place in transaction_classes()
        "check_code": bytes,  # u32, the application's code for "check code"
        "hash": bytes,  # 32 bytes each: SHA-256 of the transaction; zero if unsent
        "size_bytes": bytes,  # u32
        "rows": int,
        "cpu_s": float,  # CPU time of the generator's thread while the load ran
        "wall_s": float,  # from schedule time 0 to the last answer or time-out
        "reconnects": int,
        "late_answers": int,  # answers after the time-out; their transactions stay unanswered
        "unmatched_answers": int,  # messages that answer no transaction, or one already answered
        # RPC errors, unmatched answers, lost connections: the first 20 texts per connection, then all others
        "errors": dict[str, int],
    },
)

@final
class ZstdWriter:
    """A file that is compressed (zstd, level 3) as it is written. One thread at a time.

    Raises:
        OSError: it cannot be made or written.
    """

    def __init__(self, path: Path) -> None: ...
    def write(self, content: bytes) -> None:
        """Compress a piece.

        Raises:
            ValueError: the file is closed.
        """

    def close(self) -> None:
        """Finish the file; it is not whole before. Does nothing a second time."""

    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _value: object, _traceback: object) -> None: ...

@final
class ZstdReader:
    """What a compressed file holds, frame after frame; one that was cut off ends there. One thread at a time.

    Raises:
        OSError: it cannot be opened or read.
    """

    def __init__(self, path: Path) -> None: ...
    def read(self, size_bytes: int) -> bytes:
        """The next bytes, at most so many; none at the end.

        Raises:
            ValueError: it does not hold what zstd wrote.
        """

def beta_tails(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """I_x(a, b) and its complement; `y` is 1 - x, exact where it is small. NaN outside of the range."""

def beta_quantile(a: float, b: float, lower: float, upper: float) -> tuple[float, float]:
    """The x at which I_x(a, b) is `lower`, and 1 - x; `upper` is 1 - lower. NaN outside of the range."""

def gamma_quantile(a: float, lower: float, upper: float) -> float:
    """The x at which the lower incomplete gamma function P(a, x) is `lower`; `upper` is 1 - lower. NaN outside."""

def block_multiplicities(
    lengths: npt.NDArray[np.int64], first: npt.NDArray[np.int64], multiplicities: npt.NDArray[np.int32]
) -> None:
    """Write how often each unit is drawn, shape (resamples, units), by `chainmark.stats.bootstrap.multiplicities`.

    Args:
        lengths: of blocks, shape (resamples, blocks); a resample's lengths add up to at least the number of units.
        first: the first unit of each block, shape (resamples, blocks), from 0.
    """

def resampled_ranks(
    at_or_below: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    fractions: npt.NDArray[np.float64],
    ranks: npt.NDArray[np.int64],
) -> None:
    """Write the ranks of quantiles, shape (fractions, resamples), by `chainmark.stats.replicates.resampled_ranks`."""

def weighted_ranks(
    weights: npt.NDArray[np.int32],
    unit_of_value: npt.NDArray[np.uint32],
    fractions: npt.NDArray[np.float64],
    ranks: npt.NDArray[np.int64],
) -> None:
    """Write the ranks of quantiles, shape (resamples, fractions), by `chainmark.stats.bootstrap.resampled_centiles`."""

def read_pprof(
    content: bytes,
) -> tuple[list[tuple[str, str]], int, list[str], list[list[int]], list[list[int]]]:
    """A profile in the pprof format, compressed or not.

    Returns:
        Type and unit of each kind of value, the duration in ns, the functions' names, the stacks as places of their
        functions, the outermost first, and a value of each kind for each stack.

    Raises:
        ValueError: it is no such profile.
    """

def check_transaction_size(connections: int, rate: int, size_bytes: int) -> None:
    """Raise ValueError, naming the two nearest possible sizes, unless a transaction can have exactly this size."""

def encode_transaction(
    connections: int, rate: int, size_bytes: int, time_ns: int, experiment_id: bytes, seed: int
) -> bytes:
    """Return the transaction that a load with these parameters sends when `time_ns` is due."""

def decode_transaction(transaction: bytes) -> DecodedTransaction | None:
    """Read a transaction of this or the original load tool; None if it is neither's."""

def transaction_classes() -> list[tuple[str, str]]:
    """Return the name of every class in records, by number, and what it says of the node.

    That is `accepted`, `rejected`, `missing` (no answer in time) or `unsent` (nobody was asked).
    """

@final
class BankSends:
    """Signed bank sends of accounts of a Cosmos SDK chain; each connection has accounts of its own."""

    def __init__(
        self,
        *,
        chain_id: str,
        prefix: str,
        denom: str,
        fee: int,
        gas: int,
        size_bytes: int,
        connections: int,
        accounts_per_connection: int,
        first_account_number: int,
        seed: int,
    ) -> None:
        """Derive the accounts from the seed. `size_bytes` is reached by a memo; 0: as small as it is."""

    def addresses(self) -> list[str]:
        """Of all accounts, those of the first connection first."""

    def transaction(self, account: int, sequence: int, amount: int) -> bytes:
        """The account's transaction of that sequence number, which sends `amount` to the account after it."""

class TransactionLoad:
    """One open-loop load: made, started once, finished once. Deleting it ends its thread."""

    def __init__(
        self,
        *,
        targets: list[str],
        rate_per_connection: int,
        duration_s: float,
        size_bytes: int,
        method: str,
        schedule: str,
        seed: int,
        experiment_id: bytes,
        answer_timeout_s: float,
        send_grace_s: float,
        bank_sends: BankSends | None = None,
        given: list[list[bytes]] | None = None,
        share: tuple[int, int] = (0, 0),
    ) -> None:
        """Check the arguments and fix the schedule.

        `targets` holds one WebSocket URL per connection. `method` is "broadcast_tx_sync" or "broadcast_tx_async" (or
        "sync", "async"). `schedule` is "even", "poisson" or "burst". `send_grace_s` is how long after the end of the
        schedule late transactions are still sent; `answer_timeout_s` is how long each waits for its answer. The load
        tool's payload of `size_bytes` is sent, or `bank_sends`, or what is `given` for each connection: what is missing
        there stays unsent. `share` is the number of the first of these connections in a load of several generators,
        and the number of connections of all of them.
        """

    def start(self, start_delay_s: float = 0.1, begin_ns: int | None = None) -> int:
        """Dial all targets, then start the schedule; return the wall nanoseconds of schedule time 0.

        `begin_ns` is that time if it is given, the same for all generators of a load.
        """

    def progress(self) -> LoadProgress: ...
    def running(self) -> bool:
        """Whether transactions are still sent or answers waited for."""

    def stop(self) -> None:
        """End the schedule now. What is not sent yet is unsent; answers are still waited for."""

    def finish(self) -> LoadResult:
        """Wait for the end and return the records.

        Ctrl-C ends the waiting, not the load: stop() it and call this again to have its records.
        """

@final
class EventObserver:
    """A subscription to a node's events: made, started once, stopped once. Deleting it ends its thread."""

    def __init__(self, url: str, query: str) -> None: ...
    def start(self) -> None:
        """Return when the node has confirmed the subscription."""

    def stop(self) -> list[tuple[int, bytes]]:
        """End it; return (wall nanoseconds of arrival, raw message) in order, without the confirmations."""

    def reconnects(self) -> int:
        """How often the subscription was lost and made again."""

@final
class ReferenceWork:
    """A fixed amount of work, the same in every process. One thread at a time.

    Raises:
        OSError: the process may not open two more files, or the kernel refuses a system call.
    """

    def __init__(self) -> None: ...
    def perform(self) -> float:
        """Do it once; return the CPU time of this thread that it took, s."""

def http_record_classes() -> list[str]:
    """Return the names of the classes in records, by number: right answers, the kinds of failures, unsent."""

@final
class HttpLoad:
    """One step of load on an HTTP server: made, started once, finished once. Deleting it ends its threads."""

    def __init__(self, order_json: str) -> None:
        """Check the order, which crates/chainmark-load/src/http/order.rs describes."""

    def start(self, begin_ns: int | None = None) -> None:
        """Resolve the host and begin the step. What the server does or fails to do is counted, never raised.

        begin_ns: wall nanoseconds since 1970, the same for all generators of a load; None: now.
        """

    def progress(self) -> str:
        """Return how far it is, as JSON.

        phase (ready, warm-up, window, drain or done), elapsed_s, planned_s, started, measured, ok, failed, slow,
        faults, unanswered, in_flight, queued; of the last whole second ok_per_s, failed_per_s, p50_s and p99_s, or
        null.
        """

    def running(self) -> bool:
        """Whether requests are still sent or waited for."""

    def stop(self) -> None:
        """End the step now: nothing more starts, what is under way is waited for as long as draining may take."""

    def finish(self) -> dict[str, Any]:
        """Wait for the end and return what was measured: `chainmark.capacity.model.Finished` describes and checks it.

        Its `records` are columns of little-endian bytes, one value per measured request, by due time.

        Ctrl-C ends the waiting, not the load: stop() it and call this again to have its result.
        """

    def finish_share(self) -> str:
        """The same of one of several generators, for `merge_http_loads`."""

def merge_http_loads(order_json: str, begin_ns: int, outcomes: list[str]) -> dict[str, Any]:
    """Return what several generators measured, as `HttpLoad.finish` does of one.

    outcomes: in their order, what `finish_share` gave, or `{"lost": {"why", "at_ns", "started", "measured"}}` of one
    that ended before: its part of the load is counted as failed by the generator.
    """

@final
class Histogram:
    """Times from 1 µs to 120 s with 3 significant digits; an HdrHistogram of nanoseconds."""

    def __init__(self, base64: str | None = None) -> None:
        """Read one in V2 form, deflated or not; without a text it is empty."""

    def merge(self, other: Histogram) -> None: ...
    def count_over(self, time_s: float) -> int:
        """How many were longer; what falls into the bucket of `time_s` is not."""

    def quantile(self, share: float) -> float | None:
        """Return the time that this share did not exceed, in seconds; None if it is empty."""

    def n(self) -> int: ...
    def to_base64(self) -> str: ...

@final
class SimulatedBatches:
    """Averages over batches of simulated blocks; the columns are named by `figures`, times are in seconds."""

    @property
    def figures(self) -> list[str]: ...
    @property
    def normal(self) -> list[list[float]]:
        """[batch][figure]: means over the ordinary blocks."""
    @property
    def slow(self) -> list[list[float]]:
        """[batch][figure]: means over the slow blocks, a quarter as many."""
    @property
    def events(self) -> int: ...
    @property
    def blocks(self) -> int: ...

def simulate_batches(
    scenario_json: str, blocks_per_batch: int, first_batch: int, batches: int, threads: int
) -> SimulatedBatches:
    """Simulate batches of blocks; a batch depends on the scenario, its number and its size alone.

    Args:
        scenario_json: what is simulated, as crates/chainmark-sim/src/model.rs describes it.
        blocks_per_batch: ordinary blocks of a batch.
        first_batch: number of the first batch.
        batches: how many.
        threads: 0 for all cores; the result does not depend on it.
    """

@final
class ClusterLogs:
    """Logs of a cluster that are to be written to a folder: made, run once. Methods may be called from any thread."""

    def __init__(self, order_json: str, directory: str, threads: int, replace: bool) -> None:
        """Read the order, as crates/chainmark-sim/src/logs/order.rs describes it.

        Args:
            order_json: what is to be written.
            directory: the folder to make.
            threads: 0 for all cores; the bytes do not depend on it.
            replace: whether a folder that already holds such logs may be replaced.
        """

    def run(self) -> str | None:
        """Write everything and return a summary as JSON; None if it was cancelled. On failure nothing is left behind.

        Raises:
            ValueError: the order is impossible, or the folder is taken.
            OSError: the folder cannot be written.
        """

    def progress(self) -> tuple[float, int, int]:
        """The share of the slots that is written, lines, bytes of text."""

    def cancel(self) -> None:
        """End soon, and remove what was written."""

def fault_kinds() -> list[tuple[str, str, str]]:
    """Name, meaning and an example of every fault that logs can be ordered with."""

@final
class TraceDecoder:
    """One host's logs that are to be read: made, run once. Methods may be called from any thread."""

    def __init__(self, order_json: str) -> None:
        """Read the order, as crates/chainmark-trace/src/host.rs describes it.

        Raises:
            ValueError: the order is none, or its figures are those of no chain.
        """

    def run(self) -> str | None:
        """Read the files once, write the tables and return a summary as JSON; None if it was cancelled.

        A table is written beside its place (`.part`) and renamed when whole; on failure no part is left behind.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: the counts of the lines do not add up.
        """

    def progress(self) -> tuple[int, int]:
        """Stored bytes and lines read so far."""

    def cancel(self) -> None:
        """End soon."""

@final
class RangeDecoder:
    """A range of a log that is to be looked through: made, run once. Methods may be called from any thread."""

    def __init__(self, order_json: str) -> None:
        """Read the order, as crates/chainmark-trace/src/reader/ranges.rs describes it.

        Raises:
            ValueError: the order is none, or its range is no subtree of the file's hash.
        """

    def run(self) -> str | None:
        """Decode the lines that begin in the range, write the findings and return the hash of its bytes.

        None if it was cancelled.

        Raises:
            OSError: a file cannot be read or written.
        """

    def progress(self) -> tuple[int, int]:
        """Stored bytes and lines read so far."""

    def cancel(self) -> None:
        """End soon."""

def scan_head(path: str, max_lines: int) -> str:
    """Return what a file's first lines tell, as JSON: crates/chainmark-trace/src/reader.rs, `Head`, describes it.

    Raises:
        OSError: the file cannot be read.
    """

class SwitchStats(TypedDict):
    """What became of packets, by the classes of crates/chainmark-net/src/accounting.rs. Errors are lateness."""

    read: int
    read_bytes: int
    delivered: int
    delivered_bytes: int
    lost: int
    no_route: int
    cut: int
    queue_full: int
    write_failed: int
    not_ipv4: int
    queued: int
    resets: int
    unread: int
    delayed: int
    error_p50_ns: int
    error_p99_ns: int
    error_max_ns: int
    cpu_ns: int
    realtime: int

@final
class NetworkNamespace:
    """A network namespace without a name, with loopback up. It goes with this object and the processes in it."""

    def __init__(self) -> None:
        """Make it.

        Raises:
            OSError: that is not permitted.
        """

    def descriptor(self) -> int:
        """The file descriptor that holds it."""

@final
class DelaySwitch:
    """Links between namespaces, up from the beginning to :meth:`stop`. Methods may be called from any thread."""

    def __init__(
        self,
        *,
        namespaces: list[NetworkNamespace],
        addresses: list[str],
        host_address: str,
        host_device: str,
        one_way_s: list[list[float]],
        jitter_share: float,
        loss: float,
        bandwidth_bps: int | None,
        seed: int,
        mtu: int,
    ) -> None:
        """Make a device `wan0` in each namespace and one on the host, and start.

        Args:
            namespaces: one for each node.
            addresses: one for each node, all of one /24 network.
            host_address: of the same network. The host's links do nothing to packets, and no cut concerns them.
            host_device: the name of the host's device.
            one_way_s: row by row, from each node to each.
            jitter_share: standard deviation of a delay as a share of it.
            loss: probability that a packet between nodes is lost.
            bandwidth_bps: bits per second of each ordered pair of nodes.
            seed: of the random numbers.
            mtu: bytes of the largest packet.

        Raises:
            ValueError: an argument has no sense.
            OSError: the machine does not permit it.
        """

    def cut(self, node: int, reset: bool) -> None:
        """Cut a node off from all others; with `reset`, TCP connections that send are reset at both ends."""

    def mend(self, node: int) -> None:
        """Undo `cut`."""

    def partition(self, groups: list[int], reset: bool) -> None:
        """Cut nodes of different groups off from one another; one number for each node."""

    def heal(self) -> None:
        """Undo `partition`."""

    def stats(self) -> SwitchStats:
        """The state now."""

    def stop(self) -> SwitchStats:
        """End the links and return their last state."""

def measure_round_trips(
    *,
    namespaces: list[NetworkNamespace] | list[NetworkNamespace | None],
    addresses: list[str],
    pings: int,
    rate_per_s: int,
    patience_s: float,
) -> list[list[int]]:
    """Round-trip times of datagrams in nanoseconds, for every ordered pair of different ends, row by row.

    Args:
        namespaces: one for each end; None for this process's own.
        addresses: one for each end.
        pings: of each pair.
        rate_per_s: pings per second over all pairs.
        patience_s: how long to wait for the last answers.

    Raises:
        OSError: the machine refuses the sockets.
    """
