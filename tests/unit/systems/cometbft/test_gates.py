"""Gates that only some profiles have: who kept transactions from being sent, and whether consensus kept up."""

from __future__ import annotations

import polars as pl
import pytest

from chainmark.core.manifest import GateStatus
from chainmark.systems.cometbft.gates import rounds_gate, unsent_gate

_S = 10**9


def _transactions(late_s: float, answered_s: float, *, refused: int = 0, unsent: int = 50) -> pl.DataFrame:
    """50 that were sent so late and answered so long after, and some that were not sent or refused."""
    due = [number * _S // 100 for number in range(50 + unsent)]
    sent = [one + round(late_s * _S) for one in due[:50]] + [None] * unsent
    answered = [one + round(answered_s * _S) for one in sent[:50] if one is not None] + [None] * unsent
    answers = ["mempool full"] * refused + ["accepted"] * (50 - refused) + ["unsent"] * unsent
    return pl.DataFrame({"due_ns": due, "sent_ns": sent, "answered_ns": answered, "answer": answers})


@pytest.mark.parametrize(
    ("transactions", "status"),
    [
        (_transactions(0.001, 0.001, unsent=0), GateStatus.PASS),
        (_transactions(3.0, 0.001), GateStatus.FAIL),  # answered at once: nobody held the generator up
        (_transactions(3.0, 3.0), GateStatus.PASS),  # the node read slowly
        (_transactions(3.0, 0.001, refused=5), GateStatus.PASS),  # the mempool was full
        (_transactions(0.001, 0.001), GateStatus.FAIL),
    ],
    ids=["all sent", "late by itself", "held up", "refused", "stopped sending"],
)
def test_who_kept_transactions_from_being_sent(transactions: pl.DataFrame, status: GateStatus) -> None:
    (gate,) = unsent_gate(transactions, 0.02)
    assert gate.status is status


def test_other_profiles_have_no_such_gate() -> None:
    assert unsent_gate(_transactions(3.0, 0.001), 1.0) == []


@pytest.mark.parametrize(
    ("rounds", "status"),
    [([0, 0, 0], GateStatus.PASS), ([0, 1, 0], GateStatus.FAIL), ([None, None], GateStatus.FAIL)],
    ids=["first rounds", "one more", "nobody knows"],
)
def test_a_network_that_must_not_need_further_rounds(rounds: list[int | None], status: GateStatus) -> None:
    """On a machine that is too slow for its nodes, proposals come late and every figure is the machine's."""
    blocks = pl.DataFrame({"block_extra_rounds": rounds}, schema={"block_extra_rounds": pl.Int64})
    (gate,) = rounds_gate(blocks, 0)
    assert gate.status is status
    assert rounds_gate(blocks, None) == []
