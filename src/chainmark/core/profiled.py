"""What profiles of two sides say of a change: which functions, by how much, and what taking the profiles cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class FunctionChange(BaseModel):
    """A function with what it uses of its language's own library, on both sides, for each node, in the kind's unit.

    Attributes:
        low, high: the 90 % interval of the change; None where there is one node alone.
        within_baseline, within_candidate: the same with everything that the function calls.
        grown_baseline, grown_candidate: of what is there at the end, what was added over the window.
    """

    model_config = ConfigDict(frozen=True)

    function: str
    baseline: float
    candidate: float
    low: float | None = None
    high: float | None = None
    within_baseline: float = 0.0
    within_candidate: float = 0.0
    grown_baseline: float | None = None
    grown_candidate: float | None = None

    @property
    def change(self) -> float:
        """Of the candidate against the baseline."""
        return self.candidate - self.baseline


class Frame(BaseModel):
    """A call in the tree of all stacks of both sides; its children lie on it, one deeper.

    Attributes:
        begin, end: where it lies: its width is the mean of both sides, in the kind's unit.
        is_rest: it stands for calls that are too small to be drawn.
    """

    model_config = ConfigDict(frozen=True)

    function: str
    depth: int
    begin: float
    end: float
    baseline: float
    candidate: float
    is_rest: Annotated[bool, Field(exclude_if=lambda value: not value)] = False


class ProfileChange(BaseModel):
    """One kind of profile on both sides.

    Attributes:
        unit: of its values; ``per`` is what they are divided by: "transaction and node", "node".
        functions: those that changed most clearly, at most twenty; ``functions_in_all`` is of how many.
        basis: what the intervals rest on.
        frames: of the flame graph, the outermost first.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    label: str
    unit: str
    per: str
    baseline: float
    candidate: float
    functions: list[FunctionChange]
    functions_in_all: int
    basis: str
    frames: list[Frame] = []


class ProfileCost(BaseModel):
    """What taking profiles cost one side: a metric of its runs with profiles against that of its runs without.

    Attributes:
        low, high: the 90 % interval of the difference; None where one run stands against one.
        n_profiled, n_plain: runs.
    """

    model_config = ConfigDict(frozen=True)

    side: str
    metric_id: str
    profiled: float
    plain: float
    low: float | None
    high: float | None
    n_profiled: int
    n_plain: int


class Profiled(BaseModel):
    """The profiles of a comparison. They explain, and no verdict rests on them.

    Attributes:
        runs: with profiles, by side.
        changes: by kind, in the order of `chainmark.core.profiles.KINDS`.
        notes: what is missing or empty, a sentence each.
        is_asked: somebody wants to see them, whatever the verdict is.
    """

    model_config = ConfigDict(frozen=True)

    runs: dict[str, list[str]]
    changes: list[ProfileChange]
    costs: list[ProfileCost] = []
    notes: list[str] = []
    is_asked: bool = False
