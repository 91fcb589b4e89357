"""What a model of a network says: predictions with their uncertainty, and whether the parts explain the whole.

These documents are the only source of every rendering of them, as ``comparison.py`` is for comparisons.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.catalogue import Catalogue

PREDICTION_SCHEMA = 1
# Below this many standard errors a difference is not printed as one.
SIGNIFICANT_STANDARD_ERRORS = 2.0


class Modelled(BaseModel):
    """A figure from the model, in its metric's unit, with its Monte Carlo standard error."""

    model_config = ConfigDict(frozen=True)

    value: float
    standard_error: float


class Cell(BaseModel):
    """One metric under one scenario.

    Attributes:
        modelled: the prediction.
        change: the difference to the base scenario, with the standard error of that (paired) difference; None for
            the base scenario itself and where the two cannot be compared.
        formula: the second opinion of a closed formula, where there is one.
    """

    model_config = ConfigDict(frozen=True)

    modelled: Modelled
    change: Modelled | None = None
    formula: float | None = None

    @property
    def changed(self) -> bool:
        """Whether the change may be printed as one."""
        if self.change is None:
            return False
        return abs(self.change.value) > SIGNIFICANT_STANDARD_ERRORS * self.change.standard_error


class Row(BaseModel):
    """One metric under every scenario; ``measured`` is the source's own figure, None when it has none."""

    model_config = ConfigDict(frozen=True)

    metric_id: str
    measured: float | None = None
    cells: list[Cell]


class ScenarioEntry(BaseModel):
    """One network that was simulated. ``changes`` are what was changed, as the user wrote it; the base has none."""

    model_config = ConfigDict(frozen=True)

    label: str
    changes: list[str] = []
    hosts: int
    blocks: int


class Curve(BaseModel):
    """Adoption under one scenario: after ``values[i]`` seconds on average, ``fractions[i]`` of the hosts adopted."""

    model_config = ConfigDict(frozen=True)

    scenario: int
    fractions: list[float]
    values: list[float]
    standard_errors: list[float]


class Contribution(BaseModel):
    """What one stage adds, under one scenario, to the metrics ``metric_ids``; the stages add up to the metric.

    ``values[i]`` belongs to ``metric_ids[i]``, in that metric's unit.
    """

    model_config = ConfigDict(frozen=True)

    scenario: int
    stage: str
    values: list[float]


class Prediction(BaseModel):
    """A base scenario and what-ifs, side by side.

    ``fractions`` says, by metric id, which share of the hosts a metric waits for: where it lies on the curves.
    """

    model_config = ConfigDict(frozen=True)

    schema_version: int = PREDICTION_SCHEMA
    title: str
    source: str
    catalogue: Catalogue
    seed: int
    scenarios: list[ScenarioEntry]
    rows: list[Row]
    curves: list[Curve]
    contribution_metric_ids: list[str]
    contributions: list[Contribution]
    fractions: dict[str, float] = {}
    notes: list[str] = []


class WholeRow(BaseModel):
    """One figure of the whole: measured, and what the parts give.

    Attributes:
        error: modelled / measured − 1.
        limit: the largest |error| that the model's own record allows.
        flagged: the parts do not explain this figure.
        formula: the second opinion.
    """

    model_config = ConfigDict(frozen=True)

    metric_id: str
    measured: float
    modelled: Modelled
    error: float
    limit: float
    flagged: bool
    formula: float | None = None


class PartRow(BaseModel):
    """One stage that the model was calibrated to, or checked against."""

    model_config = ConfigDict(frozen=True)

    metric_id: str
    measured: float
    modelled: Modelled
    calibrated: bool


class RoundTripRow(BaseModel):
    """The round trip between two regions: ``measured_s`` by pings (of the reference), ``inferred_s`` from the run."""

    model_config = ConfigDict(frozen=True)

    link: str
    measured_s: float
    inferred_s: float
    standard_error_s: float
    inferred: bool
    differs: bool


class Explanation(BaseModel):
    """Do the parts explain the whole? ``fractions`` as in a prediction."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = PREDICTION_SCHEMA
    title: str
    source: str
    catalogue: Catalogue
    seed: int
    blocks: int
    explained: bool
    sentence: str
    whole: list[WholeRow]
    parts: list[PartRow]
    round_trips: list[RoundTripRow]
    curve: Curve
    contribution_metric_ids: list[str]
    contributions: list[Contribution]
    fractions: dict[str, float] = {}
    notes: list[str] = []


class EvidenceRow(BaseModel):
    """How far one method was off for one group of runs.

    ``mean``, ``root_mean_square`` and ``largest`` are relative errors (modelled / measured − 1) per metric, in the
    order of the evidence's ``metric_ids``; ``overall`` is the root mean square over all of them.
    """

    model_config = ConfigDict(frozen=True)

    group: str
    method: str
    runs: int
    mean: list[float]
    root_mean_square: list[float]
    largest: list[float]
    overall: float


class EvidenceRun(BaseModel):
    """The model's relative errors for one measured run."""

    model_config = ConfigDict(frozen=True)

    group: str
    label: str
    errors: list[float]
    standard_errors: list[float]


class Evidence(BaseModel):
    """The record of a model against many measured runs."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = PREDICTION_SCHEMA
    title: str
    catalogue: Catalogue
    seed: int
    metric_ids: list[str]
    rows: list[EvidenceRow]
    runs: list[EvidenceRun]
    notes: list[str] = []
