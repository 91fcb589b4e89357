"""Classes of responses are exactly those that the load generator reports."""

from __future__ import annotations

import pytest

from chainmark._native import transaction_classes
from chainmark.core.errors import InternalError
from chainmark.systems.cometbft.answers import ACCEPTED, ANSWERS, MISSING, REJECTED, UNSENT, answer_names, known_answer


def test_every_class_has_one_outcome_and_the_name_used_in_sealed_runs() -> None:
    assert ACCEPTED == ("accepted",)
    assert REJECTED == ("mempool full", "in cache", "check code", "rpc error")
    assert MISSING == ("timeout",)
    assert UNSENT == ("unsent",)
    assert sorted(ANSWERS) == sorted([*ACCEPTED, *REJECTED, *MISSING, *UNSENT])


def test_numbers_are_mapped_to_the_names_of_the_core() -> None:
    numbers = bytes(range(len(ANSWERS)))
    assert answer_names(numbers) == [name for name, _ in transaction_classes()]
    assert answer_names(b"") == []


def test_an_unknown_class_raises_an_error() -> None:
    with pytest.raises(InternalError, match=f"no class of answers with the number {len(ANSWERS)}"):
        answer_names(bytes([0, len(ANSWERS)]))
    with pytest.raises(InternalError, match="no class of answers `mempool is full`"):
        known_answer("mempool is full")
