"""Who listens to work that takes a while; what draws the bars is loaded only then."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chainmark.cli.bars import Bars


@contextmanager
def progress(expose: str | None = None, *, no_wait: bool = False, scenarios: bool = False) -> Iterator[Bars]:
    """A progress listener for as long as the context lasts.

    Args:
        expose: where the state can be scraped meanwhile, as ``--expose`` takes it; None: nowhere.
        no_wait: be refused by a machine on which somebody measures.
        scenarios: whether runs are those of a qualification's scenarios.
    """
    from chainmark.cli.bars import shown
    from chainmark.lab.machine import USE, MachineUse

    if no_wait:
        os.environ[USE] = MachineUse.REFUSE
    with shown(expose, scenarios=scenarios) as listener:
        yield listener
