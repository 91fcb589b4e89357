"""Progress of work: bars on a terminal, and a line per stage elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from chainmark.cli.console import err
from chainmark.core.qa_plan import ScenarioPlan
from chainmark.lab.schedules import LONE_SIDE, PlannedRun, Total
from chainmark.lab.session import name_of
from chainmark.store.sealed import SealedRun

_MINUTE_S = 60.0
_QUIET_S = 30.0  # between the steps in a log


class TerminalProgress:
    """Progress as a bar on stderr; one line per stage if stderr is not a terminal."""

    def __init__(self, bars: Progress | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._bars = bars
        self._clock = clock
        self._printed_s = -math.inf
        self._task: TaskID | None = None
        self._title = self._heading = ""
        self._headings: dict[tuple[str, str, int, int], str] = {}  # a run may end after the next one has started

    def scenario(self, scenario: ScenarioPlan, lacking: Sequence[str]) -> None:
        """Name the scenario of the following runs of a qualification, or its missing requirements."""
        self._title = scenario.title
        reported = f": not run; it requires {'; '.join(lacking)}" if lacking else ""
        self.say(f"{scenario.title}{reported}")

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Announce a run; one of a scenario with the estimated remaining time."""
        side = "" if step.side == LONE_SIDE else f" ({step.side})"
        self._heading = f"{_which(number, total)} · {step.version}{side}"
        if self._title:
            side = step.side.partition("/")[2] or step.side
            remaining = " ".join(filter(None, (_left(left_s or 0.0), total.bound)))
            self._heading = f"{_which(number, total)} · {self._title} · {step.version} ({side}) · {remaining}"
        self._headings[name_of(step.profile), step.side, step.repetition, step.position] = self._heading
        if self._bars is None:
            err().print(self._heading, markup=False)

    def again(self, step: PlannedRun, because: str) -> None:
        """Report why a run is repeated."""
        self.say(f"{step.version} ({step.side}) is repeated: {because}")

    def say(self, text: str) -> None:
        """A permanent line."""
        self._printed_s = self._clock()
        (self._bars.console if self._bars else err()).print(text, markup=False, highlight=False)

    def end(self, run: SealedRun) -> None:
        """Report the status of a run."""
        failed = run.manifest.deciding_gates
        status = run.manifest.status.value
        reported = status if not failed else f"{status}: {failed[0].label}: {failed[0].measured} ({failed[0].limit})"
        name, place = run.manifest.profile_name, run.manifest.experiment
        heading = self._headings.pop((name, place.side, place.repetition, place.position), "") if place else ""
        mark = (" ✓ " if not failed else " ✗ ", "green" if not failed else "red")
        line = Text.assemble(mark, heading or self._heading, "  ")
        (self._bars.console if self._bars else err()).print(line + Text(f"{run.run_id}  {reported}", "dim"))

    def stage(self, name: str) -> None:
        """Start of a stage."""
        if self._bars is None:
            self._print(name)
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(f"{self._heading} · {name}".strip(" ·"), total=1.0, detail="")

    def step(self, name: str) -> None:
        """Start of one of many steps; a log gets one occasionally."""
        if self._bars is not None:
            self.stage(name)
        elif self._clock() - self._printed_s >= _QUIET_S:
            self._print(name)

    def tell(self, text: str) -> None:
        """The result of the steps so far."""
        self.say(f"  {text}")

    def _print(self, name: str) -> None:
        self._printed_s = self._clock()
        err().print(f"  {name}", markup=False)

    def update(self, fraction: float, detail: str = "") -> None:
        """Move the bar."""
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=min(1.0, fraction), detail=detail)


def _which(number: int, total: Total) -> str:
    """The index of a run: "run 3 of 6", "run 3 of at most 16", "run 7 of 8, for profiles, not judged"."""
    which = " ".join(filter(None, (f"run {number} of", total.bound, str(total.runs))))
    return f"{which}, {total.purpose}" if total.purpose else which


def _left(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return "less than a minute left"
    return f"about {round(seconds / _MINUTE_S)} min left"


@contextmanager
def shown() -> Iterator[TerminalProgress]:
    """A listener for the lifetime of the context."""
    if not err().is_terminal:
        yield TerminalProgress(None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}", style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err(), transient=True) as bars:
        yield TerminalProgress(bars)
