"""Preconditions on logs: complete enough, of this genesis, of one network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import polars as pl

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.systems.cardano.accounting import HostSummary
from chainmark.systems.cardano.documents import GENESIS_HINT, Genesis
from chainmark.systems.cardano.logs import SHAPE_HINT, UNPACK_HINT, ClusterLogs, HostLogs, listed
from chainmark.systems.cardano.mixing import check_one_run, check_shared_names, exclude_hint, slot_length_s

# The forge loop's round begins right after its slot, by the host's own clock. No host of a network whose hosts accept
# each other's blocks deviates more than this; but after a hang its first rounds may begin this late.
HOST_MISFIT_S = 3600.0
# One clock may be wrong, but not all of them: a genesis that fits no host any better is the wrong one.
CLUSTER_MISFIT_S = 30.0
_FOREIGN_NETWORK_HINT = "import each network separately: `--exclude {}` excludes a host and may be repeated"


def check_heads(cluster: ClusterLogs, genesis: Genesis) -> None:
    """Checks on the beginnings of the logs, before all of them are read.

    Raises:
        UsageError: a host has no log, no host's slots match the genesis, or only some hosts' do.
    """
    for host in cluster.hosts:
        _check_not_empty(host, cluster)
    _check_order(cluster)
    logged_s = slot_length_s(cluster)
    if logged_s is not None and abs(logged_s - genesis.slot_length_s) < 0.02 * logged_s:
        check_one_run(cluster, genesis.slot_length_s, within_hosts=True)
    misfits = {host.name: _misfit_s(host, genesis) for host in cluster.hosts}
    start = implied_start(cluster, genesis.slot_length_s)
    _check_fit({name: value for name, value in misfits.items() if value is not None}, genesis, start)


def _check_fit(misfits: Mapping[str, float], genesis: Genesis, start: str | None) -> None:
    """Check that slots began when the genesis states.

    Args:
        misfits: per host with a forge loop, the delay between its slot's start and the loop's rounds.
        start: time of slot 0 according to the logs.
    """
    if not misfits:
        return
    best = min(misfits.values(), key=abs)
    if abs(best) > max(CLUSTER_MISFIT_S, 2 * genesis.slot_length_s):
        length = units.duration(genesis.slot_length_s)
        stated = f"; with slots of {length}, theirs began at `--set genesis.system_start={start}`"
        raise UsageError(
            f"these logs do not match the genesis: it has slots of {units.duration(genesis.slot_length_s)} from "
            f"{_text(genesis.system_start_ns)} on, but the logs' slots begin {_apart(best)}",
            "give the network's genesis with `--genesis FILE`" + (stated if start else ""),
        )
    misfitting = [name for name, value in misfits.items() if abs(value) > HOST_MISFIT_S]
    if misfitting:
        worst = max((misfits[name] for name in misfitting), key=abs)
        raise UsageError(
            f"logs of two different networks: the slots of {listed(misfitting)} begin {_apart(worst)} than those "
            f"of the genesis, which the other hosts match",
            _FOREIGN_NETWORK_HINT.format(misfitting[0]),
        )


def _check_not_empty(host: HostLogs, cluster: ClusterLogs) -> None:
    if host.files and any(file.stored_bytes for file in host.files):
        return
    unread_files = [unread for unread in cluster.unread if unread.name.startswith(f"{host.name}/")]
    if host.files:
        problem = f"{listed([file.name for file in host.files])} is empty"
    elif unread_files:
        problem = "not read: " + listed([f"{unread.name} ({unread.reason})" for unread in unread_files])
    else:
        problem = "its folder has no log in it"
    hint = exclude_hint(host.name)
    raise UsageError(f"{host.name} has no log lines: {problem}", f"{UNPACK_HINT}; {hint}" if unread_files else hint)


def _check_order(cluster: ClusterLogs) -> None:
    """Check that no log is in reverse order: missing parts of a block or slot are expected in the preceding lines."""
    backwards = [file.name for file in cluster.files if file.head.runs_backwards]
    if backwards:
        raise UsageError(
            f"the lines of {listed(backwards)} are in reverse order",
            "logs must start with the oldest line: `tac FILE` reverses a file",
        )


def check_any(cluster: ClusterLogs) -> None:
    """Check that there is a log at all; without one, a genesis is not needed either.

    Raises:
        UsageError: no file has a trace message at its beginning.
    """
    files = cluster.files
    if any(file.head.objects for file in files):
        return
    content = "no lines" if not any(file.stored_bytes for file in files) else "no line that cardano-node prints"
    problem = next((file.head.problem for file in files if file.head.problem), None)
    content += f" ({problem})" if problem else ""
    begin = (
        "its name is that of a log, but it contains"
        if len(files) == 1
        else "their names are those of logs, but they contain"
    )
    raise UsageError(f"no logs: {listed([file.name for file in files])}: {begin} {content}", SHAPE_HINT)


def _misfit_s(host: HostLogs, genesis: Genesis) -> float | None:
    """The median delay between a slot's start and the forge loop's round; None without a loop."""
    starts = host.loop_starts
    return median((at - genesis.slot_start_ns(slot)) / 1e9 for slot, at in starts) if starts else None


def _apart(seconds: float) -> str:
    """A difference in time of at least a second, in words: "3.2 hours later"."""
    sizes = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
    size, name = next(item for item in sizes if abs(seconds) >= item[0])
    return f"{units.number(abs(seconds) / size, 1)} {name} {'later' if seconds > 0 else 'earlier'}"


def _text(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 10**9, UTC).isoformat().replace("+00:00", "Z")


def implied_start(cluster: ClusterLogs, slot_length_s: float) -> str | None:
    """Time of slot 0 for this slot length, by the logs alone, to the second; None without a forge loop."""
    starts = [start for host in cluster.hosts for start in host.loop_starts]
    if not starts:
        return None
    length_ns = round(slot_length_s * 1e9)
    return _text(int(median(at - slot * length_ns for slot, at in starts)))


def genesis_hint(cluster: ClusterLogs) -> str:
    """What to do without a genesis; includes the slots' start times if the logs show them.

    Raises:
        UsageError: they are of several runs, which cannot share a genesis.
    """
    length_s = slot_length_s(cluster) or 1.0
    check_one_run(cluster, length_s, within_hosts=False)
    start = implied_start(cluster, length_s)
    if start is None:
        return GENESIS_HINT
    stated = f"--set genesis.system_start={start}"
    if length_s != 1.0:
        stated += f" --set genesis.slot_length_s={units.tidy(length_s)}"
        return f"give it with `--genesis FILE`, or state it; according to the logs it is `{stated}`"
    return f"give it with `--genesis FILE`, or state it; for slots of 1 s it is `{stated}`"


def check_read(summaries: Mapping[str, HostSummary], genesis: Genesis) -> None:
    """Checks that need the complete logs.

    Raises:
        UsageError: a host's lines cannot be read at all, none is usable, or a network is another one.
    """
    for name, summary in summaries.items():
        accounting = summary.line_counts
        if accounting.raw_lines == 0:
            raise UsageError(f"{name} has no log lines", exclude_hint(name))
        if accounting.objects == 0:
            malformed_line = next((line for line in accounting.malformed_examples), None)
            why = (
                f"; line {units.count(malformed_line.line)} of {Path(malformed_line.file).name}: "
                f"{malformed_line.reason}"
                if malformed_line
                else ""
            )
            raise UsageError(
                f"none of the {units.count(accounting.raw_lines)} lines of {name} can be read as a trace message{why}",
                f"logs are JSON lines as cardano-node, docker or `journalctl -o json` print them; {exclude_hint(name)}",
            )
    if not any(summary.line_counts.decoded for summary in summaries.values()):
        raise UsageError(
            "these are a node's messages, but none of them concerns slots, blocks or resources",
            "nodes must trace Forge.Loop, ChainSync.Client, BlockFetch.Client and ChainDB.AddBlockEvent at Info",
        )
    check_shared_names(summaries)
    _check_begun(summaries, genesis)
    offsets = {name: summary.loop_offsets_s[1] for name, summary in summaries.items() if summary.loop_offsets_s}
    _check_fit(offsets, genesis, None)
    _check_magic({name: summary.line_counts.network_magic for name, summary in summaries.items()}, genesis)


def _check_begun(summaries: Mapping[str, HostSummary], genesis: Genesis) -> None:
    """Check that the logs do not end before the chain begins: their whole content would be excluded."""
    last_ns = max(
        (summary.line_counts.last_ns for summary in summaries.values() if summary.line_counts.last_ns is not None),
        default=None,
    )
    if last_ns is not None and last_ns < genesis.system_start_ns:
        raise UsageError(
            f"these logs do not match the genesis: they end at {_text(last_ns)}, but its slot 0 began at "
            f"{_text(genesis.system_start_ns)}",
            "give the network's genesis with `--genesis FILE`",
        )


def _check_magic(magics: Mapping[str, str | None], genesis: Genesis) -> None:
    reported = {name: number for name, magic in magics.items() if (number := _number(magic)) is not None}
    expected = genesis.network_magic if genesis.network_magic is not None else next(iter(reported.values()), None)
    foreign = [name for name, magic in reported.items() if magic != expected]
    if foreign and len(foreign) == len(reported):
        raise UsageError(
            f"these logs do not match the genesis: their network magic is {reported[foreign[0]]}, its is {expected}",
            "give the network's genesis with `--genesis FILE`",
        )
    if foreign:
        raise UsageError(
            f"logs of two different networks: the magic of {listed(foreign)} is {reported[foreign[0]]}, "
            f"that of the others {expected}",
            _FOREIGN_NETWORK_HINT.format(foreign[0]),
        )


def _number(magic: str | None) -> int | None:
    """The number of a magic: "42" or "NetworkMagic {unNetworkMagic = 42}"; None if it cannot be parsed."""
    numbers = re.findall(r"(?<![\w.-])\d+(?![\w.])", magic or "")
    return int(numbers[0]) if len(numbers) == 1 else None


def check_one_network(blocks: Mapping[str, Path]) -> list[str]:
    """Check that hosts know each other's blocks.

    Args:
        blocks: per host, the table of the blocks that it knew.

    Returns:
        Hosts that share no block with the others because they received none: they know only their own.

    Raises:
        UsageError: hosts received blocks, but no block connects them with the others.
    """
    groups = _groups({name: _blocks(path) for name, path in blocks.items()})
    if len(groups) < 2:
        return []
    main = max(groups, key=len)
    others = [group for group in groups if group is not main]
    isolated = [group[0] for group in others if len(group) == 1 and not _has_times(blocks[group[0]])]
    foreign = [group for group in others if group[0] not in isolated]
    if foreign:
        raise UsageError(
            f"logs of two different networks: {listed(main)} and {listed(foreign[0])} share no block",
            _FOREIGN_NETWORK_HINT.format(foreign[0][0]),
        )
    return isolated


def _blocks(path: Path) -> list[str]:
    """The blocks that a host knew, and the parents of those that it forged."""
    frame = pl.read_parquet(path, columns=["block", "parent"])
    blocks = dict.fromkeys([*frame.get_column("block").to_list(), *frame.get_column("parent").to_list()])
    return [block for block in blocks if block is not None and block != "GenesisHash"]


def _has_times(path: Path) -> bool:
    return bool(pl.read_parquet(path, columns=["noticed_ns"]).get_column("noticed_ns").is_not_null().any())


def _groups(blocks: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Hosts connected by shared blocks; those that know none are in no group."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    first_with: dict[str, str] = {}
    for host, known in blocks.items():
        if known:
            leader[host] = host
        for block in known:
            owner = find(first_with.setdefault(block, host))
            leader[find(host)] = owner
    groups: dict[str, list[str]] = {}
    for host in leader:
        groups.setdefault(find(host), []).append(host)
    return list(groups.values())
