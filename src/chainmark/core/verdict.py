"""How something ended: one set of words for a step, a case, a scenario and a whole document, and their exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from chainmark.core.errors import ExitCode

# What a document and a list say of data that a simulation made.
SYNTHETIC = "SYNTHETIC"
PRINTED = "PRINTED"
PROFILED = "profiled"


class Verdict(StrEnum):
    """How a step, a case or a document ended, the worst first.

    A found regression outweighs what could not be measured, and that outweighs what was measured without deciding.
    """

    GONE = "server gone"  # what was tested went away, and nobody knows why: what was measured until then counts
    FAIL = "fail"
    INVALID = "invalid"
    PARTIAL = "partial"  # interrupted: what was measured until then counts
    GENERATOR_LIMITED = "generator-limited"  # the load generator was the limit, not what it asked
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not run"
    PASS = "pass"  # noqa: S105 - not a password
    INFORMATIONAL = "informational"  # nothing is judged

    @property
    def exit_code(self) -> ExitCode:
        """What a command that shows it ends with."""
        return _EXIT_CODES.get(self, ExitCode.INCONCLUSIVE)


_EXIT_CODES = {
    Verdict.PASS: ExitCode.DONE,
    Verdict.INFORMATIONAL: ExitCode.DONE,
    Verdict.GONE: ExitCode.ENVIRONMENT,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.INVALID: ExitCode.INVALID,
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides of several; informational if there is none."""
    result = set(verdicts)
    return next((verdict for verdict in Verdict if verdict in result), Verdict.INFORMATIONAL)


@dataclass(frozen=True)
class Case:
    """One thing that a document judges: a metric, a capacity, a scenario, a host.

    Attributes:
        id: unique among the cases of its suite.
        label: what a reader calls it.
        verdict: how it ended.
        reason: why, as a clause or sentence; "" where the verdict says all.
        gates: whether the document's verdict depends on it.
        figures: by name with the unit last, what was measured; in full precision.
        seconds: how long it was measured; 0 where that is not known.
    """

    id: str
    label: str
    verdict: Verdict
    reason: str = ""
    gates: bool = True
    figures: dict[str, float | str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Suite:
    """Cases of one thing that was tested: a version, a server.

    Attributes:
        name: unique in the document.
        cases: in reading order.
        properties: what a pipeline is told of it.
        host: where it was, for suites of servers.
        started_at: ISO time; "" where that is not known.
        output, messages: what a pipeline keeps as its output, and as its errors.
    """

    name: str
    cases: list[Case]
    properties: list[tuple[str, str]] = field(default_factory=list)
    host: str = "localhost"
    started_at: str = ""
    output: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def shown(title: str, output: Iterable[str] = ()) -> Suite:
    """The suite of a document that judges nothing: a pipeline sees that it was made."""
    return Suite(title, [Case("shown", title, Verdict.INFORMATIONAL, gates=False)], output=list(output))
