"""The comparison of two sides' profiles: the changed functions, their changes, and the cost of profiling."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class FunctionChange(BaseModel):
    """A function with its calls into its language's standard library, on both sides, for each node, in the kind's unit.

    Attributes:
        low, high: the 90 % interval of the change; None with only one node.
        within_baseline, within_candidate: the same including all callees.
        grown_baseline, grown_candidate: the part of the final value that was added over the window.
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
        """The candidate's value minus the baseline's."""
        return self.candidate - self.baseline


class Frame(BaseModel):
    """A call in the tree of all stacks of both sides; its children are on top of it, one level deeper.

    Attributes:
        begin, end: its position: its width is the mean of both sides, in the kind's unit.
        is_rest: it represents calls that are too small to be drawn.
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
        unit: of its values; ``per`` is their divisor: "transaction and node", "node".
        functions: those that changed most clearly, at most twenty; ``functions_in_all`` is their total number.
        basis: source of the intervals.
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
    """The cost of profiling on one side: a metric of its runs with profiles against that of its runs without.

    Attributes:
        low, high: the 90 % interval of the difference; None with one run each.
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
    """The profiles of a comparison. They explain it, and do not affect the verdict.

    Attributes:
        runs: with profiles, by side.
        changes: by kind, in the order of `chainmark.core.profiles.KINDS`.
        notes: what is missing or empty, a sentence each.
        is_asked: they were requested, whatever the verdict is.
    """

    model_config = ConfigDict(frozen=True)

    runs: dict[str, list[str]]
    changes: list[ProfileChange]
    costs: list[ProfileCost] = []
    notes: list[str] = []
    is_asked: bool = False
