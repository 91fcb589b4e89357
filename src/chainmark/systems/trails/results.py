"""The tails of a comparison: the most extreme samples of its metrics, and how each can be followed."""

from __future__ import annotations

from pydantic import BaseModel


class TailSample(BaseModel):
    """One of a metric's most extreme samples, and how to follow it.

    Attributes:
        key: of what was sampled, a block for instance; ``number`` finds it, too.
        place: where it was sampled, in a population with places; "" else.
        value: in the metric's unit.
        story: index into the comparison's stories; None where the command alone tells it.
        command: shows what happened.
    """

    run_id: str
    key: str
    number: int | None
    place: str
    value: float
    story: int | None
    command: str


class Tail(BaseModel):
    """The most extreme samples of one metric on one side, the most extreme first, each of another thing.

    ``label`` says what the things are ("block"), ``extreme`` what is extreme in them ("slowest").
    """

    metric_id: str
    side: str
    label: str
    extreme: str
    samples: list[TailSample]
