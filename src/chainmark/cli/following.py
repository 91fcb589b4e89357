"""Listeners for long work; the module that draws the bars is loaded only then."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chainmark.cli.bars import Bars


@contextmanager
def progress(expose: str | None = None, *, no_wait: bool = False, scenarios: bool = False) -> Iterator[Bars]:
    """A progress listener for the lifetime of the context.

    Args:
        expose: address for Prometheus meanwhile, in the form of ``--expose``; None: none.
        no_wait: fail if another measurement runs on the machine.
        scenarios: whether the runs belong to a qualification's scenarios.
    """
    from chainmark.cli.bars import shown
    from chainmark.lab.machine import USE, MachineUse

    if no_wait:
        os.environ[USE] = MachineUse.REFUSE
    with shown(expose, scenarios=scenarios) as listener:
        yield listener
