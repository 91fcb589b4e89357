"""The most important of several verdicts decides the exit code, and each verdict has the same code everywhere."""

from __future__ import annotations

from itertools import combinations

import pytest

from chainmark.core.errors import ExitCode
from chainmark.core.verdict import Case, Suite, Verdict, shown, worst

HEARD_FIRST = [
    Verdict.GONE,
    Verdict.FAIL,
    Verdict.GENERATOR_GONE,
    Verdict.INVALID,
    Verdict.PARTIAL,
    Verdict.GENERATOR_LIMITED,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_RUN,
    Verdict.PASS,
    Verdict.INFORMATIONAL,
]


def test_a_miss_takes_precedence_over_every_other_verdict() -> None:
    """An interrupted or invalid part must not hide a regression, and a pass must not hide an undecided part."""
    for size in range(1, len(HEARD_FIRST) + 1):
        for some in combinations(HEARD_FIRST, size):
            assert worst(reversed(some)) is some[0]


def test_an_empty_judgement_is_informational() -> None:
    assert worst([]) is Verdict.INFORMATIONAL


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.PASS, ExitCode.DONE),
        (Verdict.INFORMATIONAL, ExitCode.DONE),
        (Verdict.FAIL, ExitCode.FAIL),
        (Verdict.GONE, ExitCode.ENVIRONMENT),
        (Verdict.GENERATOR_GONE, ExitCode.ENVIRONMENT),
        (Verdict.INVALID, ExitCode.INVALID),
        (Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
        (Verdict.PARTIAL, ExitCode.INCONCLUSIVE),
        (Verdict.GENERATOR_LIMITED, ExitCode.INCONCLUSIVE),
        (Verdict.NOT_RUN, ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_codes_of_verdicts(verdict: Verdict, code: ExitCode) -> None:
    """Pipelines depend on the codes 0, 1, 3, 4 and 5."""
    assert verdict.exit_code is code


def test_an_informational_document_is_a_test_case_that_cannot_fail() -> None:
    """A pipeline shows that the document was created, with its text."""
    case = Case("shown", "Side by side", Verdict.INFORMATIONAL, gates=False)
    assert shown("Side by side", iter(["a", "b"])) == Suite("Side by side", [case], output=["a", "b"])
    assert shown("Side by side").output == []
