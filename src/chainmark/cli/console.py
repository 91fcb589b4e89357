"""What commands print: results on stdout, progress and messages on stderr, JSON for machines on request."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from chainmark.core.errors import ChainmarkError
from chainmark.core.progress import LiveSource
from chainmark.core.tool import tool_version
from chainmark.lab.schedules import LONE_SIDE, Step
from chainmark.network.openmetrics import ExperimentState, exposed
from chainmark.store.runs import SealedRun

# Where nobody looks at a screen, nothing need be cut to its width: ids and paths must stay whole in a pipe.
PIPE_WIDTH = 200
_width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
Expose = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Let Prometheus scrape the experiment's state while it runs, e.g. `127.0.0.1:9464`.",
        show_default="nobody can",
    ),
]
out = Console(highlight=False, soft_wrap=True, width=_width)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(content: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Write JSON to stdout."""
    plain = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    sys.stdout.write(json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def print_error(error: ChainmarkError) -> None:
    """One sentence, then a hint."""
    err.print(Text.assemble(("error: ", "bold red"), error.message))
    if error.hint:
        err.print(Text.assemble(("hint: ", "bold cyan"), error.hint))


class TerminalProgress:
    """Progress as a bar on stderr; where stderr is no terminal, one line per stage."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._heading = ""

    def begin(self, step: Step, number: int, total: int, left_s: float | None = None, heading: str = "") -> None:
        """Announce a run, by a heading of its own where there is one."""
        side = "" if step.side == LONE_SIDE else f" ({step.side})"
        self._heading = heading or f"run {number} of {total} · {step.version}{side}"
        if self._bars is None:
            err.print(self._heading, markup=False)

    def say(self, text: str) -> None:
        """A line that stays."""
        (self._bars.console if self._bars else err).print(text, markup=False, highlight=False)

    def end(self, run: SealedRun) -> None:
        """Say how a run ended."""
        failed = run.manifest.failed_gates
        told = "valid" if not failed else f"invalid: {failed[0].label}: {failed[0].measured} ({failed[0].limit})"
        line = Text.assemble((" ✓ " if not failed else " ✗ ", "green" if not failed else "red"), self._heading, "  ")
        (self._bars.console if self._bars else err).print(line + Text(f"{run.run_id}  {told}", "dim"))

    def stage(self, name: str) -> None:
        """A new stage begins."""
        if self._bars is None:
            err.print(f"  {name}")
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(f"{self._heading} · {name}".strip(" ·"), total=1.0, detail="")

    def update(self, fraction: float, detail: str = "") -> None:
        """Move the bar."""
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=min(1.0, fraction), detail=detail)


class ExposedProgress:
    """Tells a listener everything, and the state that is scraped."""

    def __init__(self, shown: TerminalProgress, state: ExperimentState) -> None:
        self._shown = shown
        self._state = state

    def begin(self, step: Step, number: int, total: int, left_s: float | None = None, heading: str = "") -> None:
        """Announce a run."""
        self._state.begin(step.version, step.side, number, total)
        self._shown.begin(step, number, total, left_s, heading)

    def say(self, text: str) -> None:
        """A line that stays."""
        self._shown.say(text)

    def end(self, run: SealedRun) -> None:
        """Count a run and its gates."""
        manifest = run.manifest
        self._state.end(manifest.status.value, Counter(gate.status.value for gate in manifest.gates))
        self._shown.end(run)

    def stage(self, name: str) -> None:
        """A new stage begins."""
        self._state.stage(name)
        self._shown.stage(name)

    def update(self, fraction: float, detail: str = "") -> None:
        """Move on."""
        self._state.update(fraction)
        self._shown.update(fraction, detail)

    def live(self, source: LiveSource) -> AbstractContextManager[None]:
        """Whoever scrapes sees these figures."""
        return self._state.live(source)


@contextmanager
def progress(expose: str | None = None) -> Iterator[TerminalProgress | ExposedProgress]:
    """A progress listener for as long as the context lasts.

    Args:
        expose: where the state can be scraped meanwhile, as ``--expose`` takes it; None: nowhere.
    """
    with _shown() as shown:
        if expose is None:
            yield shown
            return
        state = ExperimentState(tool_version())
        with exposed(state, expose) as url:
            err.print(f"exposed at {url}", markup=False)
            yield ExposedProgress(shown, state)


@contextmanager
def _shown() -> Iterator[TerminalProgress]:
    if not err.is_terminal:
        yield TerminalProgress(None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}", style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        yield TerminalProgress(bars)
