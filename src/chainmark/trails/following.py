"""Trace one item of a run, such as a block: what every host did with it, and which log lines show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from chainmark.core.caveats import caveats_of
from chainmark.core.errors import UsageError
from chainmark.report.document import Document
from chainmark.store.log_lines import find_log, read_lines
from chainmark.store.sealed import SealedRun
from chainmark.trails.document import trail_document
from chainmark.trails.follower import Follower
from chainmark.trails.hops import RegionTrip, region_map
from chainmark.trails.slowest import slowest_document
from chainmark.trails.trace import LogLine, SlowestTraces, Trace, TracePlace, follow_command
from chainmark.trails.trail import FollowRequest, Trail, trails_of

_SLOWEST = 3
_LISTED = 3

EventsOf = Callable[[SealedRun, Trail], pl.LazyFrame | None]
"""The rows of a trail of one run; None if it has none."""


def sealed_events(run: SealedRun, trail: Trail) -> pl.LazyFrame | None:
    """The events as they were sealed."""
    return run.scan_events(trail.events)


def followed(
    run: SealedRun,
    order: FollowRequest,
    *,
    trails: Sequence[Trail] | None = None,
    events_of: EventsOf = sealed_events,
    trips: Sequence[RegionTrip] = (),
    total: int | None = None,
) -> Document:
    """The trace of one item of a run, or its slowest items, as a document.

    Args:
        run: the run.
        order: what to follow and show.
        trails: those of the run; None: those of its catalogue.
        events_of: returns the rows of a trail.
        trips: round trips between the regions of its hosts.
        total: number of items in the run, if the rows are of the slowest alone.

    Raises:
        UsageError: there is no such item, host or file, or the run stores nothing that can be followed.
    """
    trail = _trail(run, trails_of(run.catalogue) if trails is None else trails, order.trail)
    events = events_of(run, trail)
    if events is None:
        raise _no_trace_data(run, trail.id)
    follower = Follower(events, trail, run.manifest)
    if order.key is None:
        return slowest_document(_slowest(run, trail, follower, order.most, total))
    return trail_document(_trace(trail, follower, order, trips))


def _slowest(run: SealedRun, trail: Trail, follower: Follower, most: int, total: int | None) -> SlowestTraces:
    slowest, others = follower.slowest(most), [] if trail.only_slowest else follower.others(most)
    traces = follower.traces([*slowest, *others])
    usual = follower.usual_s()
    for trace in traces.values():
        trace.usual_s = usual
    size, counted = follower.size() if total is None else (total, total)
    return SlowestTraces(
        run_id=run.run_id,
        subject=follower.subject,
        trail_id=trail.id,
        label=trail.label,
        total=size,
        counted=counted,
        counted_label=trail.main_label,
        outcomes={} if trail.only_slowest else follower.outcomes(),
        done=trail.done,
        slowest=[traces[key] for key in slowest],
        others=[traces[key] for key in others],
        listed=[trail.facts[column] for column in trail.listed if column in trail.facts],
        command=follow_command(trail.id, run.run_id),
        caveats=caveats_of([run.manifest]),
    )


def _trace(trail: Trail, follower: Follower, order: FollowRequest, trips: Sequence[RegionTrip]) -> Trace:
    trace = follower.trace(follower.find(order.key or ""))
    if trail.place is not None:
        regions, senders = (follower.of_places(trace.key, column) for column in (trail.region, trail.sender))
        trace.region_map, trace.no_map = region_map(trace, regions, senders, trips)
    trace.usual_s = follower.usual_s()
    selected = _selected_places(trace, order.hosts)
    trace.shown = [place.place for place in selected]
    if order.lines is not None:
        trace.log_lines = _log_lines(trace, selected or _telling(trace), order.lines)
    return trace


def _trail(run: SealedRun, trails: Sequence[Trail], trail_id: str) -> Trail:
    trail = next((trail for trail in trails if trail.id == trail_id), None)
    if trail is not None:
        return trail
    if not trails:
        raise _no_trace_data(run, trail_id)
    known = ", ".join(f"`{follow_command(trail.id, run.run_id, 'KEY')}`" for trail in trails)
    raise UsageError(f"run `{run.run_id}` has no trail `{trail_id}`", f"it has {known}")


def _no_trace_data(run: SealedRun, trail_id: str) -> UsageError:
    return UsageError(
        f"run `{run.run_id}` has no data to trace a {trail_id}",
        "its system's catalogue has no trails; `chainmark runs show` lists its metrics",
    )


def _selected_places(trace: Trace, hosts: Sequence[str]) -> list[TracePlace]:
    if hosts and not trace.place_label:
        raise UsageError(f"a {trace.label} has no separate hosts", "omit `--host`")
    known = {place.place: place for place in trace.places}
    for host in hosts:
        if host in trace.absent:
            raise UsageError(f"{trace.place_label} `{host}` has no event of {trace.name}", _known_hint(trace))
        if host not in known:
            raise UsageError(f"the run has no {trace.place_label} `{host}`", _known_hint(trace))
    return [place for place in trace.places if place.place in hosts]


def _known_hint(trace: Trace) -> str:
    names = sorted(place.place for place in trace.places)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{trace.name} is known to {', '.join(names[:_LISTED])}{more}"


def _telling(trace: Trace) -> list[TracePlace]:
    """The most informative places: those with a unique role, and the last ones to reach the end."""
    roles = [place.role for place in trace.places]
    ended = [place for place in trace.places if place.seconds[trace.end] is not None]
    last = [place.place for place in ended[-_SLOWEST:]]
    return [
        place for place in trace.places if place.place in last or (place.role and roles.count(place.role) == 1)
    ]  # fmt: skip


def _log_lines(trace: Trace, places: Sequence[TracePlace], folder: Path) -> list[LogLine]:
    """The lines of those places, read from the files and checked to be of this item."""
    wanted = [
        (place, stage, trace.files[file], line)
        for place in places
        for stage, (file, line) in enumerate(zip(place.files, place.lines, strict=True))
        if file is not None and line is not None
    ]
    if not wanted:
        raise UsageError(f"the run does not store the log lines of {trace.name}", "omit `--lines`")
    names = sorted({name for _, _, name, _ in wanted})
    paths = {name: path for name in names if (path := find_log(folder, name)) is not None}
    if not paths:
        raise UsageError(
            f"`{folder}` has no file `{names[0]}`", "give the folder that the run's logs were imported from"
        )
    texts = {
        name: read_lines(path, [line for _, _, other, line in wanted if other == name]) for name, path in paths.items()
    }
    log_lines = []
    for place, stage, name, line in wanted:
        text, problem = _line_text(trace, line, texts.get(name))
        log_lines.append(LogLine(place=place.place, stage=stage, file=name, line=line, text=text, problem=problem))
    return log_lines


def _line_text(trace: Trace, line: int, texts: dict[int, str] | None) -> tuple[str, str]:
    """A line of a file, and why it has changed, if so; no texts: the file does not exist."""
    if texts is None:
        return "", "the file does not exist"
    if line not in texts:
        return "", "the file has fewer lines now: it changed after the import"
    if trace.key not in texts[line]:
        return texts[line], f"this line does not mention the {trace.label}: the file changed after the import"
    return texts[line], ""
