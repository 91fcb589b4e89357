"""The plans for the qualification of releases, read and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainmark.core.errors import UsageError
from chainmark.core.qa_plan import QaPlan
from chainmark.lab.named_files import checked_plan, toml_of
from chainmark.lab.protocols import QualifiableSystem


def read_plan(system: QualifiableSystem, reference: str) -> QaPlan:
    """A shipped plan, or one from a TOML file.

    Raises:
        UsageError: there is none, or it cannot be used; the message names the error.
    """
    plan = checked_plan(QaPlan, reference, _content(system, reference))
    if plan.system != system.name:
        raise UsageError(f"the plan `{reference}` is for `{plan.system}`, not for `{system.name}`")
    _require_measured(plan, system)
    return plan


def _content(system: QualifiableSystem, reference: str) -> dict[str, Any]:
    """The content of a plan, with its name and its plots."""
    path = Path(reference)
    shipped = reference in system.qa_plans()
    if shipped:
        content = dict(system.qa_plan(reference))
    elif path.is_file():
        content = toml_of("plan", path)
    else:
        known = ", ".join(system.qa_plans())
        raise UsageError(f"there is no plan `{reference}`", f"plans of `{system.name}`: {known}, or a TOML file")
    return {"name": reference if shipped else path.stem, "plot": list(system.qa_plots()), **content}


def _require_measured(plan: QaPlan, system: QualifiableSystem) -> None:
    """Reject plots, headlines, judgements and margins of metrics that the system does not have."""
    metrics = {metric.id for metric in system.catalogue().metrics}
    plotted = [(f"the plot `{plot.id}` draws", plot.metric) for plot in plan.plots]
    messages = [
        (f"the scenario `{scenario.id}` reports", name) for scenario in plan.scenarios for name in scenario.headline
    ]
    judged = [
        (f"the scenario `{scenario.id}` judges", name) for scenario in plan.scenarios for name in scenario.judges or []
    ]
    accepted = [("there is a margin for", name) for name in plan.margins]
    uses = [*plotted, *messages, *judged, *accepted]
    unknown = next(((use, name) for use, name in uses if name not in metrics), None)
    if unknown is not None:
        use, name = unknown
        raise UsageError(
            f"{use} `{name}`, which `{system.name}` does not measure",
            f"`chainmark metrics {system.name}` lists its metrics",
        )
