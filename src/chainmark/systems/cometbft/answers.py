"""The outcomes of sent transactions: the load generator's classes, by name."""

from __future__ import annotations

from chainmark._native import transaction_classes
from chainmark.core.errors import InternalError

_CLASSES = transaction_classes()
# By their numbers in records.
ANSWERS = tuple(name for name, _ in _CLASSES)


def _of(outcome: str) -> tuple[str, ...]:
    """The classes of one outcome.

    Raises:
        InternalError: no class has it.
    """
    result = tuple(name for name, its in _CLASSES if its == outcome)
    if not result:
        raise InternalError(f"the load generator has no class of answers that is `{outcome}`")
    return result


def known_answer(name: str) -> str:
    """The name itself.

    Raises:
        InternalError: no class has it.
    """
    if name not in ANSWERS:
        raise InternalError(f"the load generator has no class of answers `{name}`")
    return name


ACCEPTED, REJECTED, MISSING, UNSENT = (_of(outcome) for outcome in ("accepted", "rejected", "missing", "unsent"))
if stranger := set(ANSWERS).difference(ACCEPTED, REJECTED, MISSING, UNSENT):
    raise InternalError(f"the load generator's class of answers `{min(stranger)}` is of an unknown outcome")
MEMPOOL_FULL = known_answer("mempool full")


def answer_names(numbers: bytes) -> list[str]:
    """The classes of transactions by their names.

    Raises:
        InternalError: a number has no class.
    """
    if numbers and max(numbers) >= len(ANSWERS):
        raise InternalError(f"the load generator has no class of answers with the number {max(numbers)}")
    return [ANSWERS[number] for number in numbers]
