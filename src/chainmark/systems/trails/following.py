"""Following one thing of a run, such as a block: what every host did with it, and which log lines say so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.core.errors import UsageError
from chainmark.store.log_lines import find_log, read_lines
from chainmark.store.runs import SealedRun
from chainmark.systems.capabilities import FollowRequest
from chainmark.systems.cardano.network import known_network
from chainmark.systems.trails.follower import Follower
from chainmark.systems.trails.regions import region_map
from chainmark.systems.trails.trace import Trace, LogLine, TracePlace
from chainmark.systems.trails.trail import Trail, trails_of

_SLOWEST = 3
_LISTED = 3


def follow(run: SealedRun, order: FollowRequest) -> Trace:
    """The story of one thing of a run.

    Raises:
        UsageError: there is no such thing, host or file, or the run keeps nothing that could be followed.
    """
    trail = _trail(run, order.trail)
    follower = Follower(run.scan_events(trail.events), trail, run.manifest)
    story = follower.story(follower.find(order.key))
    regions, senders = (follower.of_places(story.key, column) for column in (trail.region, trail.sender))
    known = known_network(run)
    story.region_map, story.no_map = region_map(story, regions, senders, known.round_trips if known else [])
    story.usual_s = follower.usual_s()
    asked = _asked(story, order.hosts)
    story.shown = [place.place for place in asked]
    if order.lines is not None:
        story.log_lines = _log_lines(story, asked or _telling(story), order.lines)
    return story


def _trail(run: SealedRun, trail_id: str) -> Trail:
    trails = trails_of(run.catalogue)
    trail = next((trail for trail in trails if trail.id == trail_id), None)
    if trail is not None:
        return trail
    if not trails:
        raise UsageError(
            f"run `{run.run_id}` keeps nothing by which a {trail_id} could be followed",
            "its system's catalogue has no trails; `chainmark runs show` lists its metrics",
        )
    known = ", ".join(f"`chainmark trail {run.run_id} {trail.id} KEY`" for trail in trails)
    raise UsageError(f"run `{run.run_id}` has no trail `{trail_id}`", f"it has {known}")


def _asked(trace: Trace, hosts: Sequence[str]) -> list[TracePlace]:
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
    """The places whose lines say most: those in a role of their own, and the last ones to get to the end."""
    roles = [place.role for place in trace.places]
    ended = [place for place in trace.places if place.seconds[trace.end] is not None]
    last = [place.place for place in ended[-_SLOWEST:]]
    return [
        place for place in trace.places if place.place in last or (place.role and roles.count(place.role) == 1)
    ]  # fmt: skip


def _log_lines(trace: Trace, places: Sequence[TracePlace], folder: Path) -> list[LogLine]:
    """The lines of those places, read from the files and checked to be of this thing."""
    wanted = [
        (place, stage, trace.files[file], line)
        for place in places
        for stage, (file, line) in enumerate(zip(place.files, place.lines, strict=True))
        if file is not None and line is not None
    ]
    if not wanted:
        raise UsageError(f"the run does not say on which lines {trace.name} was told", "leave `--lines` out")
    names = sorted({name for _, _, name, _ in wanted})
    paths = {name: path for name in names if (path := find_log(folder, name)) is not None}
    if not paths:
        raise UsageError(
            f"`{folder}` has no file `{names[0]}`", "`--lines` wants the folder that the run's logs were imported from"
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
    """A line of a file, and why it is not what it was, if so; no texts: the file is not there."""
    if texts is None:
        return "", "this file is not there"
    if line not in texts:
        return "", "the file has fewer lines now: it changed since it was read"
    if trace.key not in texts[line]:
        return texts[line], f"this line does not mention the {trace.label}: the file changed since it was read"
    return texts[line], ""
