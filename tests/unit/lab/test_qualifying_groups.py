"""Which runs of a scenario with one side, or with more sides than fit on the machine, are made at the same time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from chainmark.core.qa_plan import ScenarioPlan
from chainmark.lab import qualifying
from chainmark.lab.protocols import ExecutionRequest
from chainmark.lab.qualifying import Qualifier
from chainmark.lab.scenarios import QaRequest
from chainmark.network.host import host_facts
from chainmark.store.runs import Store

from tests.unit.lab.stand_in import Followed, Staged, two_scenarios

ALONE, BY_TWO = "", "1 more network of this plan"


@pytest.mark.parametrize(
    ("sides", "beside"),
    [
        (1, [BY_TWO] * 2),  # both rounds together
        (3, [BY_TWO, BY_TWO, ALONE] * 2),  # what is left of a round does not wait for the next round
    ],
)
def test_rounds_that_do_not_fill_the_machine_exactly_are_made_completely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: int, beside: list[str]
) -> None:
    """Each run needs two of four processors, and each side has two rounds."""
    host = host_facts().model_copy(update={"cores": 4})
    monkeypatch.setattr(qualifying, "host_facts", lambda: host)
    plan = two_scenarios(tmp_path)
    changes = {
        "kind": "informational",
        "gating": False,
        "cores": 2,
        "sides": [{"id": f"side{number}", "version": "candidate"} for number in range(sides)],
    }
    shown = ScenarioPlan.model_validate(plan.scenarios[0].model_dump() | changes)
    orders: list[ExecutionRequest] = []
    system = Staged(under_load=lambda order, _: orders.append(order))
    order = QaRequest(plan.model_copy(update={"scenarios": [shown]}), "v1", "v2", seed=10)
    qualification = Qualifier(Store(tmp_path / "store"), system).make(order, Followed())
    assert [order.beside for order in orders] == beside
    made = Counter(place.side for run in qualification.scenarios[0].runs if (place := run.manifest.experiment))
    assert made == {f"side{number}": 2 for number in range(sides)}
