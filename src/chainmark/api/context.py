"""Common parts of all functions: the store, listeners, cancellation, profiles and settings."""

from __future__ import annotations

import re
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.catalogue import NO_MARGINS, WIDEST, Bounds, Margins
from chainmark.core.errors import UsageError
from chainmark.core.profiles import NO_PROFILES, profile_kinds
from chainmark.core.progress import LiveListener, LiveSource, Progress, begin_step
from chainmark.core.tool import tool_version
from chainmark.lab.machine import not_waiting
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import LaunchableSystem, ProfiledSystem, System, installed_for, pinned
from chainmark.lab.schedules import PlannedRun, Total
from chainmark.store.paths import data_directory
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import launchable

__all__ = ["Cancellation"]

if TYPE_CHECKING:
    from chainmark.network.openmetrics import ExperimentState

Settings = Mapping[str, object] | Sequence[str]


class Cancellation:
    """Ends work from another thread, as Ctrl-C ends a command: processes are stopped, finished runs are kept."""

    def __init__(self) -> None:
        self._wanted = threading.Event()

    def cancel(self) -> None:
        """Request the end; the work ends at its next progress message."""
        self._wanted.set()

    def check(self) -> None:
        """Raise KeyboardInterrupt if the end was requested."""
        if self._wanted.is_set():
            raise KeyboardInterrupt


class Relay:
    """Forwards progress messages to a listener, which may support only some, and ends the work on request.

    Args:
        progress: the listener.
        cancel: the request to end the work.
        state: receives the progress for Prometheus.
    """

    def __init__(
        self, progress: Progress | None, cancel: Cancellation | None, state: ExperimentState | None = None
    ) -> None:
        self._progress = progress
        self._cancel = cancel or Cancellation()
        self._state = state

    def _pass(self, name: str, *arguments: object) -> None:
        self._cancel.check()
        if (method := getattr(self._progress, name, None)) is not None:
            method(*arguments)

    def stage(self, name: str) -> None:
        """Start of a stage."""
        if self._state:
            self._state.stage(name)
        self._pass("stage", name)

    def step(self, name: str) -> None:
        """Start of one of many steps."""
        if self._state:
            self._state.stage(name)
        self._cancel.check()
        if self._progress is not None:
            begin_step(self._progress, name)

    def update(self, fraction: float, detail: str = "") -> None:
        """Progress of the stage, from 0 to 1."""
        if self._state:
            self._state.update(fraction)
        self._pass("update", fraction, detail)

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Start of a run."""
        if self._state:
            self._state.begin(step.version, step.side, number, total.runs)
        self._pass("begin", step, number, total, left_s)

    def end(self, run: SealedRun) -> None:
        """A run was sealed."""
        if self._state:
            gates = Counter(gate.status.value for gate in run.manifest.gates)
            self._state.end(run.manifest.status.value, gates)
        self._pass("end", run)

    def scenario(self, scenario: object, lacking: Sequence[str]) -> None:
        """Start of a scenario of a qualification, or the reason why it cannot run."""
        self._pass("scenario", scenario, lacking)

    def again(self, step: PlannedRun, because: str) -> None:
        """Repetition of a run."""
        self._pass("again", step, because)

    def say(self, text: str) -> None:
        """A message that is needed now, not only in the result."""
        self._cancel.check()
        if (method := getattr(self._progress, "say", None)) is not None:
            method(text)
        else:
            warnings.warn(text, stacklevel=4)

    def tell(self, text: str) -> None:
        """Progress text, only for interactive listeners."""
        if (method := getattr(self._progress, "say", None)) is not None:
            method(text)

    @contextmanager
    def live(self, source: LiveSource) -> Iterator[None]:
        """Offer live figures to a listener that supports them, and to Prometheus."""
        with ExitStack() as stack:
            for listener in (self._progress, self._state):
                if isinstance(listener, LiveListener):
                    stack.enter_context(listener.live(source))
            yield


@contextmanager
def measuring(
    progress: Progress | None, cancel: Cancellation | None, expose: str | None, no_wait: bool
) -> Iterator[Relay]:
    """A relay for work that measures, for the lifetime of the context.

    Args:
        progress, cancel: as for a relay.
        expose: the address at which the progress is exposed to Prometheus; None: nowhere.
        no_wait: fail if another measurement runs on the machine, instead of waiting for its end.

    Raises:
        UsageError: it is not an address.
        EnvironmentFailure: the address is in use.
    """
    with not_waiting(no_wait):
        if expose is None:
            yield Relay(progress, cancel)
            return
        from chainmark.network.openmetrics import ExperimentState, exposed  # noqa: PLC0415 - few need the server

        state = ExperimentState(tool_version())
        with exposed(state, expose) as url:
            listener = Relay(progress, cancel, state)
            listener.tell(f"exposed at {url}")
            yield listener


def store_at(store: Store | Path | str | None) -> Store:
    """The store to use; None: the user's own (`CHAINMARK_STORE`, or the data folder)."""
    if isinstance(store, Store):
        return store
    return Store(Path(store) if store is not None else data_directory())


def as_settings(settings: Settings | None) -> list[str]:
    """Settings as ``KEY=VALUE`` texts: ``{"load.rate": 400}`` is ``["load.rate=400"]``."""
    if not settings:
        return []
    if isinstance(settings, Mapping):
        return [f"{key}={_text(value)}" for key, value in settings.items()]
    return list(settings)


def refuse(given: Mapping[str, object], why: str) -> None:
    """Reject options that do not apply.

    Raises:
        UsageError: one was given.
    """
    if wrong := next((name for name, value in given.items() if value), None):
        raise UsageError(f"`{wrong}` {why}", "omit it")


def refuse_with_resume(resume: str, given: Mapping[str, object]) -> None:
    """Reject options that an experiment which is continued has since its beginning.

    Raises:
        UsageError: one was given.
    """
    if wrong := next((name for name, value in given.items() if value), None):
        raise UsageError(f"`{resume}` already has its settings", f"omit `{wrong}` when you resume")


def check_repeat(repeat: int, least: int = 1) -> None:
    """Check the number of runs, before anything is installed or started.

    Raises:
        UsageError: it is too small.
    """
    if repeat < least:
        raise UsageError(f"`repeat` is {repeat}", f"give a number of runs of at least {least}")


LEARNT, WIDENED, OWN = "learnt", "widened", "catalogue"


@dataclass(frozen=True)
class Accepted:
    """Which changes are accepted.

    Attributes:
        margins: those that were set, by metric id.
        learnt: bounds of margins that are learnt from re-runs; None: none is.
        widest: limit for margins widened by re-runs, if a series of releases shows the noise; None: none is widened.
    """

    margins: Margins = field(default_factory=lambda: NO_MARGINS)
    learnt: Bounds | None = None
    widest: float | None = WIDEST


def as_margins(margins: Margins | Sequence[str] | None) -> Margins:
    """Margins by metric id: ``["rss_bytes=20%"]`` is ``{"rss_bytes": 0.2}``.

    Raises:
        UsageError: a text is not a metric with a percentage, or a margin is above 100 %.
    """
    if not margins:
        return NO_MARGINS
    accepted = margins if isinstance(margins, Mapping) else dict(map(_margin, margins))
    for metric_id, margin in accepted.items():
        if margin > 1.0:
            raise UsageError(
                f"the margin of `{metric_id}` is {units.plain_percent(margin)}, and the largest one is 100 %",
                "a margin is a share: 0.15 accepts 15 %",
            )
    return accepted


def as_choice(margins: Margins | Sequence[str] | None) -> Accepted:
    """Parse margins: ``["learnt:5%,15%", "rss_bytes=20%"]``, ``["widened:15%"]`` or ``["catalogue"]``.

    Raises:
        UsageError: a text is none of these, two of them contradict each other, or a margin is above 100 %.
    """
    if margins is None or isinstance(margins, Mapping):
        return Accepted(as_margins(margins))
    modes = [text for text in margins if text.partition(":")[0].strip() in (LEARNT, WIDENED, OWN)]
    if len(modes) > 1:
        raise UsageError(
            f"`{modes[0]}` and `{modes[1]}` exclude each other",
            f"give only one of `--margin {LEARNT}`, `--margin {WIDENED}` and `--margin {OWN}`",
        )
    given = as_margins([text for text in margins if text not in modes])
    word, colon, text = modes[0].partition(":") if modes else (WIDENED, "", "")
    if word.strip() == LEARNT:
        return Accepted(given, learnt=_bounds(text) if colon else Bounds())
    if word.strip() == WIDENED:
        return Accepted(given, widest=_widest(text) if colon else WIDEST)
    if colon:
        raise UsageError(f"`{modes[0]}` is not a margin", f"`--margin {OWN}` has no bounds")
    return Accepted(given, widest=None)


_PERCENT = r"\s*(\d+(?:\.\d+)?)\s*%?\s*"


def _bounds(text: str) -> Bounds:
    """The smallest and the largest learnt margin."""
    match = re.fullmatch(f"{_PERCENT},{_PERCENT}", text)
    low, high = (float(match[1]) / 100.0, float(match[2]) / 100.0) if match else (0.0, 0.0)
    if not 0.0 < low <= high:
        raise UsageError(
            f"`{LEARNT}:{text}` lacks the bounds of the margins",
            f"give the lowest and the highest: `--margin {LEARNT}:5%,15%`",
        )
    return Bounds(low, high)


def _widest(text: str) -> float:
    """The limit of widened margins."""
    match = re.fullmatch(_PERCENT, text)
    if not match or not float(match[1]):
        raise UsageError(f"`{WIDENED}:{text}` lacks the widest margin", f"give it: `--margin {WIDENED}:15%`")
    return float(match[1]) / 100.0


def _margin(text: str) -> tuple[str, float]:
    match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None:
        raise UsageError(f"`{text}` is not a margin", "give a metric and a percentage: `--margin METRIC=15%`")
    return match[1], float(match[2]) / 100.0


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def resolve_profile(reference: str | Path, settings: Settings | None = None) -> tuple[System, BaseModel]:
    """A profile with its settings applied, validated by its system.

    Raises:
        UsageError: there is no such profile, or a key or value is not valid.
    """
    content = read_profile(str(reference), as_settings(settings))
    system = load_system(str(content["system"]))
    return system, system.profile(content)


def resolve_launchable(reference: str | Path, settings: Settings | None = None) -> tuple[LaunchableSystem, BaseModel]:
    """The same for a profile whose nodes chainmark runs.

    Raises:
        UsageError: chainmark cannot run nodes of the profile's system.
    """
    system, profile = resolve_profile(reference, settings)
    return launchable(system), pinned(system, profile)


def profiles_of(system: LaunchableSystem, text: str) -> tuple[str, ...]:
    """The kinds of profiles in a text, if the system supports them.

    Raises:
        UsageError: a kind is unknown, or the system supports none.
    """
    supported = system.profile_kinds if isinstance(system, ProfiledSystem) else ()
    if not supported and text != NO_PROFILES:
        raise UsageError(f"chainmark cannot profile {system.title} nodes", "omit `--profile`")
    return profile_kinds(text, supported)


def installed(
    system: LaunchableSystem, versions: Sequence[str], listener: Progress, profile: BaseModel | None = None
) -> dict[str, str]:
    """Install all versions; returns their names, which stay the same when a branch or a file changes.

    Args:
        profile: the profile to run, which may define the program of the versions.

    Raises:
        UsageError: there is no such version, or it does not compile.
        EnvironmentFailure: it could not be built.
    """
    names = {}
    for version in dict.fromkeys(versions):
        listener.stage(f"preparing {version}")
        subject = system.install(version) if profile is None else installed_for(system, version, profile)
        names[version] = subject.version
    return names
