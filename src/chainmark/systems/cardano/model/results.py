"""The results of a network model: predictions with their uncertainty, and whether the parts explain the whole.

These documents are the only source of every rendering of them, as ``comparison.py`` is for comparisons.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import Split, Splits

PREDICTION_SCHEMA = 1
# Below this many standard errors a difference is not printed as such.
SIGNIFICANT_STANDARD_ERRORS = 2.0


def _is_empty(value: object) -> bool:
    return not value


class Modelled(BaseModel):
    """A figure from the model, in its metric's unit, with its Monte Carlo standard error."""

    model_config = ConfigDict(frozen=True)

    value: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends: two standard errors on either side of the value."""
        reach = SIGNIFICANT_STANDARD_ERRORS * self.standard_error
        return self.value - reach, self.value + reach

    @property
    def differs_from_zero(self) -> bool:
        """Whether a difference may be printed as one."""
        return abs(self.value) > SIGNIFICANT_STANDARD_ERRORS * self.standard_error

    def relative_to(self, base: float) -> Modelled:
        """The same as a fraction of a value above 0."""
        return Modelled(value=self.value / base, standard_error=self.standard_error / base)


class ScenarioFigure(BaseModel):
    """One metric under one scenario.

    Attributes:
        modelled: the prediction.
        change: the difference to the base scenario, with the standard error of that (paired) difference; None for the
            base scenario itself and if the two cannot be compared.
        formula: the second opinion of a closed formula, if there is one.
    """

    model_config = ConfigDict(frozen=True)

    modelled: Modelled
    change: Modelled | None = None
    formula: float | None = None

    @property
    def changed(self) -> bool:
        """Whether the change may be printed as one."""
        return self.change is not None and self.change.differs_from_zero


class ScenarioRow(BaseModel):
    """One metric under every scenario; ``measured`` is the source's own figure, None when it has none."""

    model_config = ConfigDict(frozen=True)

    metric_id: str
    measured: float | None = None
    cells: list[ScenarioFigure]


class ScenarioEntry(BaseModel):
    """One simulated network. ``changes`` are the changes as the user wrote them; the base has none."""

    model_config = ConfigDict(frozen=True)

    label: str
    changes: list[str] = []
    hosts: int
    blocks: int


class AdoptionCurve(BaseModel):
    """Adoption under one scenario: after ``values[i]`` seconds on average, ``fractions[i]`` of the hosts adopted."""

    model_config = ConfigDict(frozen=True)

    scenario: int
    fractions: list[float]
    values: list[float]
    standard_errors: list[float]

    @property
    def intervals(self) -> list[tuple[float, float]]:
        """Of the values, s."""
        pairs = zip(self.values, self.standard_errors, strict=True)
        return [Modelled(value=value, standard_error=error).interval for value, error in pairs]


class Contribution(BaseModel):
    """The contribution of one stage, under one scenario, to ``metric_ids``; the stages add up to the metric.

    ``values[i]`` belongs to ``metric_ids[i]``, in that metric's unit.
    """

    model_config = ConfigDict(frozen=True)

    scenario: int
    stage: str
    values: list[float]


class ScenarioSplits(BaseModel):
    """The change of one scenario from the base, divided between the network and the nodes."""

    model_config = ConfigDict(frozen=True)

    scenario: int
    splits: list[Split]


class ShareRow(BaseModel):
    """A part's share of a metric, in its unit: by the run's own logs, and simulated."""

    model_config = ConfigDict(frozen=True)

    metric_id: str
    part: str
    measured: float
    modelled: Modelled


class Prediction(BaseModel):
    """A base scenario and what-ifs, side by side.

    ``fractions`` gives, by metric ID, the share of the hosts that a metric waits for: its position on the curves.
    """

    model_config = ConfigDict(frozen=True)

    schema_version: int = PREDICTION_SCHEMA
    title: str
    source: str
    catalogue: Catalogue
    seed: int
    scenarios: list[ScenarioEntry]
    rows: list[ScenarioRow]
    curves: list[AdoptionCurve]
    contribution_metric_ids: list[str]
    contributions: list[Contribution]
    splits: list[ScenarioSplits] = Field(default=[], exclude_if=_is_empty)
    fractions: dict[str, float] = {}
    notes: list[str] = []
    caveats: CaveatsField = Caveats()


class WholeRow(BaseModel):
    """One figure of the whole: measured, and by the sum of the parts.

    Attributes:
        error: modelled / measured − 1.
        limit: the maximum |error| that is consistent with the model's errors for published runs.
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

    @property
    def modelled_error(self) -> Modelled:
        """``error`` with its standard error."""
        spread = self.modelled.standard_error / abs(self.measured) if self.measured else 0.0
        return Modelled(value=self.error, standard_error=spread)

    @property
    def formula_error(self) -> float | None:
        """The second opinion's: formula / measured − 1."""
        return self.formula / self.measured - 1.0 if self.formula is not None and self.measured else None


class PartRow(BaseModel):
    """One stage that the model was calibrated to, or compared with."""

    model_config = ConfigDict(frozen=True)

    metric_id: str
    measured: float
    modelled: Modelled
    calibrated: bool


class RoundTripRow(BaseModel):
    """The round trip between two regions: ``measured_s`` by pings (of the reference), ``inferred_s`` from the run.

    ``measured_s`` is None without pings.
    """

    model_config = ConfigDict(frozen=True)

    link: str
    measured_s: float | None
    inferred_s: float
    standard_error_s: float
    inferred: bool
    differs: bool

    @property
    def trip(self) -> Modelled:
        """The inferred round trip, s."""
        return Modelled(value=self.inferred_s, standard_error=self.standard_error_s)

    @property
    def change(self) -> Modelled | None:
        """Its relative difference from the one by pings; None if the difference is not significant."""
        if self.measured_s is None:
            return None
        result = Modelled(value=self.inferred_s - self.measured_s, standard_error=self.standard_error_s)
        return result.relative_to(self.measured_s) if result.differs_from_zero and self.measured_s > 0.0 else None


class Explanation(BaseModel):
    """Whether the parts explain the whole. ``fractions`` as in a prediction.

    Attributes:
        shares: network and node of every centile; empty if the run's logs do not contain them.
        split: the changes against the baseline of the same published report, divided; None if there is none.
    """

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
    curve: AdoptionCurve
    contribution_metric_ids: list[str]
    contributions: list[Contribution]
    shares: list[ShareRow] = Field(default=[], exclude_if=_is_empty)
    split: Splits | None = Field(default=None, exclude_if=_is_empty)
    fractions: dict[str, float] = {}
    notes: list[str] = []
    caveats: CaveatsField = Caveats()


class EvidenceRow(BaseModel):
    """The errors of one method for one group of runs.

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

    @property
    def modelled_errors(self) -> list[Modelled]:
        """The errors with their standard errors."""
        pairs = zip(self.errors, self.standard_errors, strict=True)
        return [Modelled(value=error, standard_error=spread) for error, spread in pairs]


class ModelRecord(BaseModel):
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
