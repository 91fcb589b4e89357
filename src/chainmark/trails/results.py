"""The tails of a comparison: the most extreme samples of its metrics, and how each can be followed."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel

from chainmark.core.former_names import renamed


class TailSample(BaseModel):
    """One of a metric's most extreme samples, and how to follow it.

    Attributes:
        key: of the sampled item, a block for instance; ``number`` finds it, too.
        place: where it was sampled, in a population with places; otherwise "".
        value: in the metric's unit.
        trace_index: index into the comparison's traces; None if only the command shows it.
        command: shows what happened.
    """

    run_id: str
    key: str
    number: int | None
    place: str
    value: float
    trace_index: Annotated[int | None, renamed("trace_index", "story")]
    command: str


class Tail(BaseModel):
    """The most extreme samples of one metric on one side, the most extreme first, each of another item.

    ``label`` is the noun for the items ("block"), ``extreme`` what is extreme about them ("slowest").
    """

    metric_id: str
    side: str
    label: str
    extreme: str
    samples: list[TailSample]
