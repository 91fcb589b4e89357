"""The plan of a release's qualification: which scenarios are run, on which sides, and what is drawn of them.

Common to all systems: a scenario names a profile, and a plot a metric of the catalogue.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
Role = Literal["baseline", "candidate"]
MOST_REPETITIONS = 100
# Runs of a side where a plan says nothing: at most of a scenario that decides, and of any other.
MOST_RUNS, REPETITIONS = 8, 3


class ScenarioKind(StrEnum):
    """What a scenario is for."""

    COMPARISON = "comparison"  # baseline against candidate, judged metric by metric
    SWEEP = "sweep"  # loads step by step, to find how much each version takes
    INFORMATIONAL = "informational"  # shown side by side, never judged


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SidePlan(_Part):
    """One side of a scenario.

    Attributes:
        id: under which its runs are kept; "baseline" and "candidate" in a comparison.
        version: which of the two versions it runs.
        label: how reports call it, after the version; "" where the version is enough.
        settings: of its profile alone, as `--set` takes them.
    """

    id: Identifier
    version: Role
    label: str = ""
    settings: list[str] = []


_BOTH = [SidePlan(id="baseline", version="baseline"), SidePlan(id="candidate", version="candidate")]


class ScenarioPlan(_Part):
    """One scenario.

    Attributes:
        question: what it answers; method: how it is made. Both stand in the report.
        profile: a shipped profile, or a TOML file.
        settings: of the profile, as `--set` takes them; `{baseline}` and `{candidate}` stand for the versions.
        repetitions: a fixed number of runs of each side; of a sweep at each load. None: a gating comparison goes on
            until it is decided, and anything else has `REPETITIONS`.
        most_runs: of each side of a comparison that goes on until it is decided; None: as ordered, or `MOST_RUNS`.
        gating: whether the release can fail by it.
        cores: where what is asked is whether and when something happens, and not how fast the network is under a load:
            processors that a run leaves enough of if it has so many. Two runs are made at a time where there are twice
            as many. None: a run has the machine to itself.
        needs: what the machine or the version must offer, as its system calls it: "namespaces", "cores:4".
        beside: a scenario whose runs of the candidate stand before the sides of this one, in its table and plots.
        headline: ids of the metrics that its result is told by where it is not judged, with every side's value.
        tables: of the catalogue, shown whole; none: the gating metrics and what moved.
        plots: ids of the plots drawn of it.
    """

    id: Identifier
    title: str
    question: str
    method: str
    kind: ScenarioKind = ScenarioKind.COMPARISON
    profile: str
    settings: list[str] = []
    repetitions: Annotated[int, Field(ge=1, le=MOST_REPETITIONS)] | None = None
    most_runs: Annotated[int, Field(ge=2, le=MOST_REPETITIONS)] | None = None
    sides: Annotated[list[SidePlan], Field(min_length=1)] = _BOTH
    gating: bool = True
    cores: Annotated[int, Field(ge=1)] | None = None
    needs: list[str] = []
    beside: str = ""
    headline: list[str] = []
    tables: list[str] = []
    plots: list[str] = []

    @model_validator(mode="after")
    def _sides_fit(self) -> ScenarioPlan:
        ids = [side.id for side in self.sides]
        if len(set(ids)) < len(ids):
            raise ValueError(f"the scenario `{self.id}` has two sides of the same id")
        if self.kind is not ScenarioKind.INFORMATIONAL and ids != ["baseline", "candidate"]:
            raise ValueError(f"the scenario `{self.id}` is judged, so its sides are `baseline` and `candidate`")
        if self.kind is ScenarioKind.INFORMATIONAL and self.gating:
            raise ValueError(f"the scenario `{self.id}` is informational, so it must say `gating = false`")
        if self.cores is not None and (self.gating or self.kind is ScenarioKind.SWEEP):
            raise ValueError(
                f"the scenario `{self.id}` is gating, so its runs cannot share the machine: remove `cores`"
            )
        if self.most_runs is not None and not self.goes_on:
            raise ValueError(
                f"`most_runs` does not apply to the scenario `{self.id}`: only a gating comparison without "
                f"`repetitions` runs until it is decided"
            )
        return self

    @property
    def goes_on(self) -> bool:
        """Whether runs are made until the verdict is decided."""
        return self.kind is ScenarioKind.COMPARISON and self.gating and self.repetitions is None

    @property
    def planned_runs(self) -> int:
        """Runs of each side, of a sweep at each load; where it goes on until it is decided, at most."""
        return (self.most_runs or MOST_RUNS) if self.goes_on else (self.repetitions or REPETITIONS)


class PlotPlan(_Part):
    """One plot: a metric of all runs of a scenario over time.

    Attributes:
        id: as published reports call it.
        metric: of the catalogue.
        y_label: with the unit in which it is drawn.
        factor: of the metric's values, into that unit.
        points: what is drawn: the samples; their reciprocals; how many rows of the metric's population there were per
            second of the last ``window_s``; or one dot for the samples that ended together, with their mean, where
            each ended: its time plus its value.
        by: a key of the population whose values get a line each; "": one line per run, the mean where it has keys to
            average over.
        mean: adds each version's mean over all its lines at each instant, dashed.
        limit: the upper end of the published plot's axis; None: it has none.
        note: what a reader must know of it.
    """

    id: Identifier
    title: str
    metric: str
    y_label: str
    factor: float = 1.0
    points: Literal["samples", "reciprocals", "rows per second", "ended together"] = "samples"
    window_s: Annotated[float, Field(gt=0)] = 20.0
    by: str = ""
    mean: bool = False
    limit: float | None = None
    note: str = ""


class QaPlan(_Part):
    """A whole plan: its scenarios in the order in which they are run and reported.

    Attributes:
        margins: by metric id, the relative change that is accepted instead of the catalogue's margin.
        name: "quick", or the file that it stands in.
        sections: the report's sections after the verdict, by title: ids of scenarios.
    """

    system: str
    name: str
    title: str
    description: str
    scenarios: Annotated[list[ScenarioPlan], Field(min_length=1, alias="scenario")]
    plots: Annotated[list[PlotPlan], Field(alias="plot")] = []
    margins: dict[str, float] = {}

    @model_validator(mode="after")
    def _names_fit(self) -> QaPlan:
        ids = [scenario.id for scenario in self.scenarios]
        twice = next((identifier for identifier in ids if ids.count(identifier) > 1), None)
        if twice:
            raise ValueError(f"two scenarios are called `{twice}`")
        plots = {plot.id for plot in self.plots}
        for place, scenario in enumerate(self.scenarios):
            missing = next((plot for plot in scenario.plots if plot not in plots), None)
            if missing:
                raise ValueError(f"the scenario `{scenario.id}` draws `{missing}`, but there is no such plot")
            if scenario.beside and scenario.beside not in ids[:place]:
                raise ValueError(
                    f"the scenario `{scenario.id}` refers to `{scenario.beside}` in `beside`, which must come before it"
                )
        return self

    def with_most_runs(self, most: int) -> QaPlan:
        """The same with so many runs per side at most, in every scenario that goes on until it is decided."""
        scenarios = [item.model_copy(update={"most_runs": most}) if item.goes_on else item for item in self.scenarios]
        return self.model_copy(update={"scenarios": scenarios})

    def scenario(self, scenario_id: str) -> ScenarioPlan:
        """The scenario of that id."""
        return next(item for item in self.scenarios if item.id == scenario_id)

    def plots_of(self, scenario: ScenarioPlan) -> list[PlotPlan]:
        """What is drawn of a scenario, in its order."""
        by_id = {plot.id: plot for plot in self.plots}
        return [by_id[plot] for plot in scenario.plots]
