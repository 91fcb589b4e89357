"""`chainmark block` and `chainmark trail`: from a sample to what happened, and to the log lines that say so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from chainmark.cli.common import Output, only_run, open_store, shows_result
from chainmark.core.errors import UsageError
from chainmark.core.metric import Trail
from chainmark.core.trail import LogLine, Story, StoryPlace
from chainmark.store.log_lines import find_log, read_lines
from chainmark.store.runs import SealedRun
from chainmark.store.stories import Follower

BLOCK = "block"
_SLOWEST = 3
_LISTED = 3

RunReference = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id or the beginning of it, or a version with one run.")
]
Key = Annotated[str, typer.Argument(metavar="HASH|HEIGHT", help="The hash, the beginning of it, or the height.")]
Hosts = Annotated[
    list[str] | None, typer.Option("--host", metavar="HOST", help="Show only this host; may be repeated.")
]
Lines = Annotated[
    Path | None,
    typer.Option("--lines", metavar="DIR", help="Print the log lines, from the folder that the run was made from."),
]


@shows_result
def block(
    run: RunReference,
    key: Key,
    hosts: Hosts = None,
    lines: Lines = None,
    *,
    output: Output,
) -> None:
    """Show the life of one block: when every host did what with it, and which log lines say so.

    Example: `chainmark block cardano-value-10.6.2-2026 1234 --lines logs/ --html block-1234.html`
    """
    story = _story(run, BLOCK, key, hosts or [], lines)
    output.present(story)


@shows_result
def trail(
    run: RunReference,
    trail_id: Annotated[str, typer.Argument(metavar="TRAIL", help="What to follow, as the run's catalogue calls it.")],
    key: Annotated[str, typer.Argument(metavar="KEY|NUMBER", help="Its key, the beginning of it, or its number.")],
    hosts: Hosts = None,
    lines: Lines = None,
    *,
    output: Output,
) -> None:
    """Follow anything that a run's catalogue has a trail of, as `chainmark block` follows blocks.

    Example: `chainmark trail cardano-value-10.6.2-2026 block 1234`
    """
    story = _story(run, trail_id, key, hosts or [], lines)
    output.present(story)


def _story(reference: str, trail_id: str, key: str, hosts: Sequence[str], lines: Path | None) -> Story:
    run = only_run(open_store().select(reference), reference)
    found = _trail(run, trail_id)
    follower = Follower(run.scan_events(found.events), found, run.manifest)
    story = follower.story(follower.find(key))
    asked = _asked(story, hosts)
    story.shown = [place.place for place in asked]
    if lines is not None:
        story.log_lines = _log_lines(story, asked or _telling(story), lines)
    return story


def _trail(run: SealedRun, trail_id: str) -> Trail:
    trails = run.catalogue.trails
    found = next((trail for trail in trails if trail.id == trail_id), None)
    if found is not None:
        return found
    if not trails:
        raise UsageError(
            f"run `{run.run_id}` keeps nothing by which a {trail_id} could be followed",
            "its system's catalogue has no trails; `chainmark runs show` lists its metrics",
        )
    known = ", ".join(f"`chainmark trail {run.run_id} {trail.id} KEY`" for trail in trails)
    raise UsageError(f"run `{run.run_id}` has no trail `{trail_id}`", f"it has {known}")


def _asked(story: Story, hosts: Sequence[str]) -> list[StoryPlace]:
    known = {place.place: place for place in story.places}
    for host in hosts:
        if host in story.absent:
            raise UsageError(f"{story.place_label} `{host}` has no event of {story.name}", _known_hint(story))
        if host not in known:
            raise UsageError(f"the run has no {story.place_label} `{host}`", _known_hint(story))
    return [place for place in story.places if place.place in hosts]


def _known_hint(story: Story) -> str:
    names = sorted(place.place for place in story.places)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{story.name} is known to {', '.join(names[:_LISTED])}{more}"


def _telling(story: Story) -> list[StoryPlace]:
    """The places whose lines say most: those in a role of their own, and the last ones to get to the end."""
    roles = [place.role for place in story.places]
    ended = [place for place in story.places if place.seconds[story.end] is not None]
    last = [place.place for place in ended[-_SLOWEST:]]
    return [
        place for place in story.places if place.place in last or (place.role and roles.count(place.role) == 1)
    ]  # fmt: skip


def _log_lines(story: Story, places: Sequence[StoryPlace], folder: Path) -> list[LogLine]:
    """The lines of those places, read from the files and checked to be of this thing."""
    wanted = [
        (place, stage, story.files[file], line)
        for place in places
        for stage, (file, line) in enumerate(zip(place.files, place.lines, strict=True))
        if file is not None and line is not None
    ]
    if not wanted:
        raise UsageError(f"the run does not say on which lines {story.name} was told", "leave `--lines` out")
    names = sorted({name for _, _, name, _ in wanted})
    paths = {name: path for name in names if (path := find_log(folder, name)) is not None}
    if not paths:
        raise UsageError(
            f"`{folder}` has no file `{names[0]}`", "`--lines` wants the folder that the run's logs were imported from"
        )
    texts = {
        name: read_lines(path, [line for _, _, other, line in wanted if other == name]) for name, path in paths.items()
    }
    return [
        _log_line(story, place, stage, name, line, texts.get(name)) for place, stage, name, line in wanted
    ]  # fmt: skip


def _log_line(
    story: Story, place: StoryPlace, stage: int, name: str, line: int, texts: dict[int, str] | None
) -> LogLine:
    text = "" if texts is None else texts.get(line, "")
    if texts is None:
        problem = "this file is not there"
    elif line not in texts:
        problem = "the file has fewer lines now: it changed since it was read"
    elif story.key not in text:
        problem = f"this line does not mention the {story.label}: the file changed since it was read"
    else:
        problem = ""
    return LogLine(place=place.place, stage=stage, file=name, line=line, text=text, problem=problem)
