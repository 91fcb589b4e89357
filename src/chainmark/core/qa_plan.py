"""The plan of a release's qualification: the scenarios, their sides, and the plots.

Common to all systems: a scenario names a profile, and a plot a metric of the catalogue.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
Role = Literal["baseline", "candidate"]
MOST_REPETITIONS = 100
# Default numbers of runs per side: the limit of a deciding scenario, and the number of any other.
MOST_RUNS, REPETITIONS = 8, 3


class ScenarioKind(StrEnum):
    """The purpose of a scenario."""

    COMPARISON = "comparison"  # baseline against candidate, judged metric by metric
    SWEEP = "sweep"  # increasing loads, to find the capacity of each version
    INFORMATIONAL = "informational"  # shown side by side, never judged


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SidePlan(_Part):
    """One side of a scenario.

    Attributes:
        id: the side of its runs; "baseline" and "candidate" in a comparison.
        version: which of the two versions it runs.
        label: its name in reports, after the version; "" if the version suffices.
        settings: of its profile alone, in the form of `--set`.
    """

    id: Identifier
    version: Role
    label: str = ""
    settings: list[str] = []


_BOTH = [SidePlan(id="baseline", version="baseline"), SidePlan(id="candidate", version="candidate")]


class ScenarioPlan(_Part):
    """One scenario.

    Attributes:
        question: its question; method: its method. The report contains both.
        profile: a shipped profile, or a TOML file.
        settings: of the profile, in the form of `--set`; `{baseline}` and `{candidate}` represent the versions.
        repetitions: a fixed number of runs of each side; of a sweep at each load. None: a gating comparison continues
            until it is decided, and anything else has `REPETITIONS`.
        most_runs: of each side of a comparison that continues until it is decided; None: as ordered, or `MOST_RUNS`.
        gating: whether the release can fail by it.
        judges: of a gating comparison, the IDs of the metrics that decide, besides failed runs; none: only failed runs
            decide. None: all gating metrics of the catalogue.
        cores: for scenarios about whether and when something happens, not about speed under a load: the number of
            processors that suffices for a run, such as 0.5. Runs are made in parallel, up to four, as far as the
            machine has the processors for all of them. None: a run has the machine to itself.
        needs: requirements for the machine or the version, by the system's names: "namespaces", "cores:4".
        beside: a scenario whose runs of the candidate precede the sides of this one, in its table and plots.
        headline: ids of the metrics in its result if it is not judged, with every side's value.
        tables: of the catalogue, shown complete; none: the gating metrics and what moved.
        plots: ids of its plots.
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
    judges: list[Identifier] | None = None
    cores: Annotated[float, Field(gt=0)] | None = None
    needs: list[str] = []
    beside: str = ""
    headline: list[str] = []
    tables: list[str] = []
    plots: list[str] = []

    @model_validator(mode="after")
    def _sides_fit(self) -> ScenarioPlan:
        ids = [side.id for side in self.sides]
        if len(set(ids)) < len(ids):
            raise ValueError(f"the scenario `{self.id}` has two sides with the same id")
        if self.kind is not ScenarioKind.INFORMATIONAL and ids != ["baseline", "candidate"]:
            raise ValueError(f"the scenario `{self.id}` is judged, so its sides are `baseline` and `candidate`")
        if self.kind is ScenarioKind.INFORMATIONAL and self.gating:
            raise ValueError(f"the scenario `{self.id}` is informational, so it must have `gating = false`")
        if self.judges is not None and not (self.gating and self.kind is ScenarioKind.COMPARISON):
            raise ValueError(f"the scenario `{self.id}` is not a gating comparison: remove `judges`")
        all_metrics = self.gating and self.judges is None
        if self.cores is not None and (all_metrics or self.kind is ScenarioKind.SWEEP):
            raise ValueError(
                f"the scenario `{self.id}` judges speed, so its runs cannot share the machine: remove `cores`, or list "
                f"in `judges` what it judges"
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
        has_metrics = self.gating and self.judges != []
        return self.kind is ScenarioKind.COMPARISON and has_metrics and self.repetitions is None

    @property
    def planned_runs(self) -> int:
        """Runs of each side, of a sweep at each load; the limit if it continues until it is decided."""
        return (self.most_runs or MOST_RUNS) if self.goes_on else (self.repetitions or REPETITIONS)


class PlotPlan(_Part):
    """One plot: a metric of all runs of a scenario over time.

    Attributes:
        id: its id in published reports.
        metric: of the catalogue.
        y_label: with the unit in which it is drawn.
        factor: of the metric's values, into that unit.
        points: the drawn values: the samples; their reciprocals; the number of rows of the metric's population per
            second of the last ``window_s``; or one dot for the samples that ended together, with their mean, at
            each end: its time plus its value.
        by: a key of the population whose values get a line each; "": one line per run, the mean if it has keys to
            average over.
        mean: adds each version's mean over all its lines at each instant, dashed.
        limit: the upper end of the published plot's axis; None: it has none.
        note: a caveat.
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
    """A whole plan: its scenarios in the order of execution and of the report.

    Attributes:
        margins: by metric id, the relative change that is accepted instead of the catalogue's margin.
        name: of a shipped plan, or of its file.
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
        for index, scenario in enumerate(self.scenarios):
            missing = next((plot for plot in scenario.plots if plot not in plots), None)
            if missing:
                raise ValueError(f"the scenario `{scenario.id}` uses the unknown plot `{missing}`")
            if scenario.beside and scenario.beside not in ids[:index]:
                raise ValueError(
                    f"the scenario `{scenario.id}` refers to `{scenario.beside}` in `beside`, which must come before it"
                )
        return self

    def with_most_runs(self, most: int) -> QaPlan:
        """The plan with this limit of runs per side in every scenario that continues until it is decided."""
        scenarios = [item.model_copy(update={"most_runs": most}) if item.goes_on else item for item in self.scenarios]
        return self.model_copy(update={"scenarios": scenarios})

    def scenario(self, scenario_id: str) -> ScenarioPlan:
        """The scenario of that id."""
        return next(item for item in self.scenarios if item.id == scenario_id)

    def plots_of(self, scenario: ScenarioPlan) -> list[PlotPlan]:
        """The plots of a scenario, in order."""
        by_id = {plot.id: plot for plot in self.plots}
        return [by_id[plot] for plot in scenario.plots]
