"""What-ifs: a change as the user wrote it, applied to a scenario."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.systems.capabilities import WhatIf
from chainmark.systems.cardano.scenario import ClusterRequest, FetchChange, Scenario, link_of
from chainmark.systems.cardano.topology import ListedTopology, parse_topology

_Model = TypeVar("_Model", bound=BaseModel)
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
BYTES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 1024.0**2}
FOREVER_S = 1e9
DURATION_MAX_S = 600.0
FETCH_FACTOR_MAX = 100.0
SCALE_CPU = "scale-cpu"
# The names of a stage; its metric's ID is a name, too.
STAGE_NAMES: Mapping[str, str] = {
    "started": "started_s",
    "block-context": "block_context_s",
    "ledger-state": "ledger_state_s",
    "ledger-view": "ledger_view_s",
    "leadership-check": "leadership_s",
    "ticking": "ticked_s",
    "snapshotting": "snapshot_s",
    "forging": "forged_s",
    "forged-to-announced": "announced_s",
    "forged-to-self-adopted": "self_adopted_s",
    "notice-to-request": "request_s",
    "fetched-to-announced": "fetched_to_announced_s",
    "fetched-to-adopted": "adopted_s",
}
OTHER_STAGE_NAMES: Mapping[str, str] = {
    "started-forge-loop-iteration": "started_s",
    "acquired-block-context": "block_context_s",
    "acquired-ledger-state": "ledger_state_s",
    "acquired-ledger-view": "ledger_view_s",
    "leadership-check-duration": "leadership_s",
    "ledger-ticking": "ticked_s",
    "mempool-snapshotting": "snapshot_s",
    "leadership-to-forged": "forged_s",
    "notice-to-fetch-request": "request_s",
    "forge-started": "started_s",
    "forge-block-context": "block_context_s",
    "forge-ledger-state": "ledger_state_s",
    "forge-ledger-view": "ledger_view_s",
    "forge-leadership": "leadership_s",
    "forge-ticked": "ticked_s",
    "forge-snapshot": "snapshot_s",
    "forge-forged": "forged_s",
    "forge-announced": "announced_s",
    "forge-self-adopted": "self_adopted_s",
    "peer-request": "request_s",
    "peer-announced": "fetched_to_announced_s",
    "peer-adopted": "adopted_s",
}
SERVICE_NAMES: Mapping[str, str] = {"header-service": "header_service_s", "body-service": "body_service_s"}


@dataclass(frozen=True)
class Edit:
    """A parsed change: its effect on a scenario, and what a reader must know about it."""

    label: str
    apply: Callable[[Scenario], Scenario]
    notes: tuple[str, ...] = ()
    # Changes of the topology come first: a number of hosts only makes sense under a rule.
    rank: int = 1
    # Its target: only one change per target is possible.
    target: str = ""


# The mean fetch duration between two regions, by index; of all regions under None; s.
FetchMean = Callable[[tuple[int, int] | None], float | None]


def parse_change(change: WhatIf, base: Scenario, fetch_mean: FetchMean | None = None) -> Edit:
    """Parse a change and try it on the base scenario.

    Args:
        fetch_mean: the base scenario's fetch durations; None if it was not simulated yet.

    Raises:
        UsageError: the key or the value cannot be used; the hint states what to write.
    """
    parsers: dict[str, Callable[[WhatIf, Scenario], Edit]] = {**KEYS, FETCH: partial(_fetch, fetch_mean=fetch_mean)}
    known = parsers.get(change.key)
    if known is None:
        close = difflib.get_close_matches(change.key, parsers, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"possible changes: {', '.join(sorted(parsers))}"
        raise UsageError(f"`{change.key}` cannot be changed", hint)
    edit = known(change, base)
    return edit if edit.target else replace(edit, target=change.key)


def apply_edits(scenario: Scenario, edits: Sequence[Edit]) -> Scenario:
    """The scenario with all edits applied, the topology's first, the others in the given order.

    Raises:
        UsageError: two of them exclude each other.
    """
    for edit in sorted(edits, key=lambda edit: edit.rank):
        scenario = edit.apply(scenario)
    return scenario


def _with(model: _Model, **changes: object) -> _Model:
    """A copy with some fields changed, and validated again."""
    return type(model).model_validate({**{name: getattr(model, name) for name in type(model).model_fields}, **changes})


def _cluster(scenario: Scenario, **changes: object) -> Scenario:
    return _with(scenario, cluster=_with(scenario.cluster, **changes))


def _parameters(scenario: Scenario, **changes: object) -> Scenario:
    return _with(scenario, parameters=_with(scenario.parameters, **changes))


# --- amounts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Amount:
    """A new value, a difference, or a factor. ``act`` returns the new value for an old one."""

    kind: str  # "set", "add" or "scale"
    value: float

    def act(self, old: float) -> float:
        """The new value."""
        if self.kind == "set":
            return self.value
        return old + self.value if self.kind == "add" else old * self.value


def parse_amount(text: str, units: Mapping[str, float], change: WhatIf, hint: str) -> Amount:
    """``+20%``, ``x1.2``, ``1.2x``; with a unit ``+20ms`` (more) or ``250ms`` (the new value).

    Raises:
        UsageError: it is none of these, or the factor is not positive.
    """
    wrong = UsageError(f"`{change}`: `{text}` is not an amount", hint)
    number = r"(\d+(?:\.\d*)?|\.\d+)"
    if match := re.fullmatch(rf"([+\-−]){number}\s*%", text):
        factor = 1.0 + (1.0 if match[1] == "+" else -1.0) * float(match[2]) / 100.0
    elif match := re.fullmatch(rf"[x×]\s*{number}|{number}\s*[x×]", text):
        factor = float(match[1] or match[2])
    elif match := re.fullmatch(rf"([+\-−]?){number}\s*([a-zµ]+)", text, re.IGNORECASE):
        if match[3] not in units:
            raise wrong
        value = float(match[2]) * units[match[3]]
        return Amount("set", value) if not match[1] else Amount("add", value if match[1] == "+" else -value)
    else:
        raise wrong
    if factor <= 0.0 or not math.isfinite(factor):
        raise UsageError(f"`{change}` must be more than 0", hint)
    return Amount("scale", factor)


# --- distances ---------------------------------------------------------------------------------------------------

RTT_HINT = "for example `+20%`, `x1.2`, `EU-AP=+20ms`, `EU-AP=250ms`, `EU-AP=+10%`"


def _rtt(change: WhatIf, base: Scenario) -> Edit:
    where, equals, text = change.value.rpartition("=")
    amount = parse_amount(text.strip(), SECONDS, change, RTT_HINT)
    link = _link(where.strip(), change, base.cluster) if equals else None
    if link is None and amount.kind == "set":
        raise UsageError(f"`{change}` would give every link the same round trip", RTT_HINT)

    def apply(scenario: Scenario) -> Scenario:
        cluster = scenario.cluster
        matrix, spread = ([list(row) for row in rows] for rows in (cluster.rtt_s, cluster.rtt_spread_s or []))
        n = len(cluster.regions)
        for a in range(n):
            for b in range(n):
                # Within a region there is next to no distance to add to.
                chosen = {a, b} == set(link) if link is not None else a != b or amount.kind == "scale"
                if not chosen:
                    continue
                matrix[a][b] = amount.act(matrix[a][b])
                if spread and amount.kind == "scale":
                    spread[a][b] *= amount.value
                if not 0.0 < matrix[a][b] <= 60.0:
                    between = f"{cluster.regions[a].name}–{cluster.regions[b].name}"
                    raise UsageError(
                        f"`{change}` makes the round trip {between} {units.tidy(matrix[a][b], 4)} s", RTT_HINT
                    )
        return _cluster(scenario, rtt_s=matrix, rtt_spread_s=spread or None)

    apply(base)
    return Edit(str(change), apply, target=_on("rtt", link))


def _on(key: str, link: tuple[int, int] | None) -> str:
    """The target of a change of one link, or of all."""
    return key if link is None else f"{key} {min(link)}-{max(link)}"


FETCH = "fetch"
FETCH_HINT = "for example `+20%`, `x0.8`, `-30ms`, `300ms`, `EU-AP=+20ms`, `EU-AP=600ms`"
FETCH_NOTE = (
    "`{}`: only the time from a request to its body changes, for every fetched copy; the cause (round trips, windows "
    "or services) is not modelled"
)


def _fetch(change: WhatIf, base: Scenario, fetch_mean: FetchMean | None) -> Edit:
    where, equals, text = change.value.rpartition("=")
    amount = parse_amount(text.strip(), SECONDS, change, FETCH_HINT)
    link = _link(where.strip(), change, base.cluster) if equals else None
    if amount.kind == "set" and fetch_mean is not None:
        lasted = fetch_mean(link)
        if lasted is None:
            raise UsageError(f"`{change}`: nothing is fetched between these regions", FETCH_HINT)
        amount = Amount("add", amount.value - lasted)

    def apply(scenario: Scenario) -> Scenario:
        n = len(scenario.cluster.regions)
        old = scenario.cluster.fetches or [[FetchChange()] * n for _ in range(n)]
        chosen = {(a, b) for a in range(n) for b in range(n) if link is None or {a, b} == set(link)}
        fetches = [
            [
                _changed_fetch(fetch_change, amount, change) if (a, b) in chosen else fetch_change
                for b, fetch_change in enumerate(row)
            ]
            for a, row in enumerate(old)
        ]
        return _cluster(scenario, fetches=fetches)

    apply(base)
    return Edit(str(change), apply, (FETCH_NOTE.format(change),), target=_on(FETCH, link))


def _changed_fetch(old: FetchChange, amount: Amount, change: WhatIf) -> FetchChange:
    factor, more_s = old.factor, old.more_s
    if amount.kind == "scale":
        factor, more_s = factor * amount.value, more_s * amount.value
    elif amount.kind == "add":
        more_s += amount.value
    if factor > FETCH_FACTOR_MAX or abs(more_s) > DURATION_MAX_S:
        raise UsageError(f"`{change}` makes fetches too long to be simulated", FETCH_HINT)
    return FetchChange(factor=factor, more_s=more_s)


def _link(text: str, change: WhatIf, cluster: ClusterRequest) -> tuple[int, int]:
    """A pair of regions: "EU-AP", "EU–AP", "eu-central-1-ap-southeast-2"."""
    if (link := link_of(cluster.regions, text)) is not None:
        return link
    known = ", ".join(region.name for region in cluster.regions)
    raise UsageError(f"`{change}`: `{text}` is not a pair of regions", f"known regions: {known}; {RTT_HINT}")


# --- the cluster -------------------------------------------------------------------------------------------------


def _nodes(change: WhatIf, base: Scenario) -> Edit:
    hosts = _whole(change, 2, 100_000)

    def apply(scenario: Scenario) -> Scenario:
        if isinstance(scenario.cluster.topology, ListedTopology):
            raise UsageError(
                f"`{change}`: the hosts are those of a topology file",
                "choose a rule as well: the change `topology torus-dense` or `topology random:4+1`",
            )
        return _cluster(scenario, hosts=hosts)

    return Edit(str(change), apply)


def _topology(change: WhatIf, base: Scenario) -> Edit:
    topology = parse_topology(change.value)

    def apply(scenario: Scenario) -> Scenario:
        if isinstance(topology, ListedTopology):
            return _cluster(scenario, topology=topology, hosts=len(topology.hosts))
        return _cluster(scenario, topology=topology)

    return Edit(str(change), apply, rank=0)


def _lose_region(change: WhatIf, base: Scenario) -> Edit:
    index = base.cluster.region_number(change.value)
    if index is None:
        known = ", ".join(region.name for region in base.cluster.regions)
        raise UsageError(f"`{change}`: there is no region `{change.value}`", f"known regions: {known}")
    name = base.cluster.regions[index].name

    def apply(scenario: Scenario) -> Scenario:
        lost = [*scenario.cluster.lost_regions, name]
        if len(set(lost)) >= len(scenario.cluster.regions):
            raise UsageError(f"`{change}` leaves no region", "keep at least one region")
        return _cluster(scenario, lost_regions=lost)

    apply(base)
    note = f"`{change}`: the hosts of {name} neither forge nor relay; centiles are over the remaining hosts"
    return Edit(str(change), apply, (note,), target=f"lose-region {name}")


# --- blocks and stages -------------------------------------------------------------------------------------------

SIZE_HINT = f"for example `2x`, `120kB`, `+50%`; `2x:{SCALE_CPU}` also scales the stages that process every byte"
# Stages that grow with the size of a block, where requested.
SIZE_STAGES = ("ticked_s", "snapshot_s", "self_adopted_s", "adopted_s")
BLOCK_BYTES_MAX = 1e9
# The variation of the sizes of other blocks if a source does not report its own: between full blocks, which are all
# equal, and blocks with everything since the previous one, whose spread is 100 %.
ASSUMED_SPREAD = 0.25


def _block_size(change: WhatIf, base: Scenario) -> Edit:
    text, colon, option = change.value.partition(":")
    if colon and option != SCALE_CPU:
        raise UsageError(f"`{change}`: `{option}` is not an option of a size", SIZE_HINT)
    amount = parse_amount(text, BYTES, change, SIZE_HINT)

    def apply(scenario: Scenario) -> Scenario:
        size = amount.act(scenario.block_bytes)
        if not 1.0 <= size <= BLOCK_BYTES_MAX:
            raise UsageError(f"`{change}` makes blocks of {units.tidy(size, 4)} bytes", SIZE_HINT)
        factor = size / scenario.block_bytes
        changed = _with(scenario, block_bytes=size)
        if not _sizes_known(scenario):
            changed = _with(changed, block_bytes_variation=ASSUMED_SPREAD)
        if not colon:
            return changed
        old, services = scenario.stages, scenario.parameters
        stages = _with(old, **{name: _within(change, getattr(old, name) * factor) for name in SIZE_STAGES})
        changed = _with(changed, stages=stages)
        return _parameters(changed, body_service_s=_within(change, services.body_service_s * factor))

    apply(base)
    held = (
        f"`{change}`: ticking, snapshotting, both adoptions and the body's service grow in proportion to the size"
        if colon
        else f"`{change}`: only the transport of the body changes; all CPU-bound stages stay the same "
        f"(`{text}:{SCALE_CPU}` scales them)"
    )
    spread = (
        f"`{change}`: the sizes vary in proportion to those of the source"
        if _sizes_known(base)
        else f"`{change}`: the variation of sizes is unknown for the source and assumed to be "
        f"{units.plain_percent(ASSUMED_SPREAD)} (standard deviation over mean); `block-size-spread` changes it"
    )
    return Edit(str(change), apply, (held, spread))


def _sizes_known(scenario: Scenario) -> bool:
    return bool(scenario.block_bytes_shape) or scenario.block_bytes_variation > 0.0


SPREAD_HINT = "the standard deviation of the sizes over their mean, for example `30%`, or `none`"


def _block_size_spread(change: WhatIf, base: Scenario) -> Edit:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d*)?)\s*%", change.value.strip())
    spread = 0.0 if change.value.strip() == "none" else float(match[1]) / 100.0 if match else math.inf
    if spread > 1.0:
        raise UsageError(f"`{change}`: `{change.value}` is not a share between 0 and 100 %", SPREAD_HINT)

    def apply(scenario: Scenario) -> Scenario:
        return _with(scenario, block_bytes_shape=[], block_bytes_variation=spread)

    # Suffix for a change of the size, which may assume a spread.
    return Edit(str(change), apply, rank=2)


STAGE_HINT = "for example `fetched-to-adopted=+10ms`, `ticking=2x`, `snapshotting=5ms`"


def _stage(change: WhatIf, base: Scenario) -> Edit:
    name, equals, text = change.value.partition("=")
    if not equals:
        raise UsageError(f"`{change}` does not state the new duration of the stage", STAGE_HINT)
    amount = parse_amount(text.strip(), SECONDS, change, STAGE_HINT)
    plain = name.strip().lower().replace("_", "-").replace(" ", "-").removesuffix("-s")
    stage = STAGE_NAMES.get(plain) or OTHER_STAGE_NAMES.get(plain)
    service = SERVICE_NAMES.get(plain)
    if stage is None and service is None:
        known = [*STAGE_NAMES, *SERVICE_NAMES]
        raise UsageError(f"`{change}`: there is no stage `{name.strip()}`", f"stages: {', '.join(known)}")

    def apply(scenario: Scenario) -> Scenario:
        if stage is not None:
            value = _within(change, amount.act(getattr(scenario.stages, stage)))
            return _with(scenario, stages=_with(scenario.stages, **{stage: value}))
        value = _within(change, amount.act(getattr(scenario.parameters, str(service))))
        return _parameters(scenario, **{str(service): value})

    apply(base)
    return Edit(str(change), apply, target=f"stage {stage or service}")


def _within(change: WhatIf, seconds: float) -> float:
    if not 0.0 <= seconds <= DURATION_MAX_S:
        raise UsageError(
            f"`{change}` makes a stage {units.tidy(seconds, 4)} s long", "a stage must take between 0 and 600 s"
        )
    return seconds


# --- transport and scheduling ------------------------------------------------------------------------------------


def _initial_window(change: WhatIf, base: Scenario) -> Edit:
    segments = _whole(change, 1, 1_000_000)

    def apply(scenario: Scenario) -> Scenario:
        limit = max(scenario.parameters.window_limit_segments, float(segments))
        return _parameters(scenario, initial_window_segments=float(segments), window_limit_segments=limit)

    return Edit(str(change), apply)


def _no_pipelining(change: WhatIf, base: Scenario) -> Edit:
    if change.value:
        raise UsageError(f"`{change}`: `no-pipelining` does not accept a value", "write `no-pipelining` alone")
    return Edit(str(change), lambda scenario: _parameters(scenario, pipelining=False))


def _fetch_concurrency(change: WhatIf, base: Scenario) -> Edit:
    peers = _whole(change, 1, 64)
    return Edit(str(change), lambda scenario: _parameters(scenario, fetch_concurrency=peers))


def _window_memory(change: WhatIf, base: Scenario) -> Edit:
    hint = "for example `10s`, `none` (windows are cold at once) or `forever` (they never shrink)"
    words = {"none": 0.0, "forever": FOREVER_S}
    seconds = words.get(change.value)
    if seconds is None:
        amount = parse_amount(change.value, SECONDS, change, hint)
        seconds = amount.act(base.parameters.window_memory_s)
    if seconds < 0.0:
        raise UsageError(f"`{change}` makes the memory {units.tidy(seconds, 4)} s", hint)
    chosen = min(seconds, FOREVER_S)
    return Edit(str(change), lambda scenario: _parameters(scenario, window_memory_s=chosen))


def _whole(change: WhatIf, low: int, high: int) -> int:
    text = change.value.strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    if not low <= number <= high:
        raise UsageError(
            f"`{change}`: `{change.value}` is not a whole number from {low} to {units.count(high)}",
            f"for example `{change.key} {min(high, max(low, 40))}`",
        )
    return number


KEYS: Mapping[str, Callable[[WhatIf, Scenario], Edit]] = {
    "rtt": _rtt,
    "block-size": _block_size,
    "block-size-spread": _block_size_spread,
    "nodes": _nodes,
    "topology": _topology,
    "lose-region": _lose_region,
    "initial-window": _initial_window,
    "no-pipelining": _no_pipelining,
    "fetch-concurrency": _fetch_concurrency,
    "window-memory": _window_memory,
    "stage": _stage,
}
