"""A run in which the instrument failed is no evidence: it is repeated when the processors are free, a few times."""

from __future__ import annotations

from collections.abc import Callable

from chainmark.core.errors import InvalidRunError
from chainmark.core.manifest import Manifest, Status
from chainmark.core.progress import Progress
from chainmark.core.wording import enumerated
from chainmark.lab.processors import wait_for_processors
from chainmark.store.sealed import SealedRun

MOST_ATTEMPTS = 3


def until_evidence(
    make: Callable[[], SealedRun], progress: Progress, last: SealedRun | None = None, most: int = MOST_ATTEMPTS
) -> SealedRun:
    """Make a run until the instrument does not fail; return the last attempt, which may be invalid.

    Args:
        make: makes one attempt.
        progress: receives the progress of the wait for the processors.
        last: the run made before; if the instrument failed in it, the first attempt waits, too.
        most: maximum number of attempts.
    """
    if last is not None and last.manifest.status is Status.INVALID:
        wait_for_processors(progress)
    run = make()
    is_repeated = run.manifest.status is Status.INVALID and most > 1
    return until_evidence(make, progress, run, most - 1) if is_repeated else run


def failed_measurement(last: Manifest, label: str, experiment_id: str) -> InvalidRunError:
    """The error if no attempt gave evidence.

    Args:
        last: of the last attempt.
        label: of the subject.
        experiment_id: of the runs, which can be continued.
    """
    why = enumerated([f"{gate.label}: {gate.measured}" for gate in last.failed_gates])
    return InvalidRunError(
        f"the measurement failed in {MOST_ATTEMPTS} consecutive runs of {label}; last failure: {why}",
        f"stop other work on this machine, then continue with `--resume {experiment_id}`",
    )
