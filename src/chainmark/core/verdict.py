"""The outcome of a step, a case, a scenario or a whole document, in one vocabulary with exit codes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from chainmark.core.errors import ExitCode

# The badge of a document or a list for simulated data.
SYNTHETIC = "SYNTHETIC"
PRINTED = "PRINTED"
PROFILED = "profiled"


class Verdict(StrEnum):
    """The outcome of a step, a case or a document, the worst first.

    A found regression outweighs a failed measurement, and that outweighs an undecided one. The value is its only word:
    in files and tables as it is here, and in capitals in the band of a document.
    """

    GONE = "server gone"  # the tested server went away for an unknown reason: the measurements until then count
    FAIL = "fail"
    GENERATOR_GONE = "generator gone"  # a machine with a load generator was lost: likewise
    INVALID = "invalid"
    PARTIAL = "partial"  # interrupted: the measurements until then count
    GENERATOR_LIMITED = "generator-limited"  # the load generator was the limit, not the tested server
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not run"
    PASS = "pass"  # noqa: S105 - not a password
    INFORMATIONAL = "informational"  # nothing is judged

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command that shows it."""
        return _EXIT_CODES.get(self, ExitCode.INCONCLUSIVE)

    @property
    def capitals(self) -> str:
        """Its word in the band of a document and on a badge of a list: "PASS"."""
        return self.value.upper()

    def predicate(self, count: int = 1) -> str:
        """What one or several subjects with this verdict do in a sentence: "passes", "are inconclusive"."""
        one, several = _PREDICATES.get(self, (f"is {self.value}", f"are {self.value}"))
        return one if count == 1 else several


_EXIT_CODES = {
    Verdict.PASS: ExitCode.DONE,
    Verdict.INFORMATIONAL: ExitCode.DONE,
    Verdict.GONE: ExitCode.ENVIRONMENT,
    Verdict.GENERATOR_GONE: ExitCode.ENVIRONMENT,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.INVALID: ExitCode.INVALID,
}
_PREDICATES = {
    Verdict.FAIL: ("fails", "fail"),
    Verdict.INVALID: ("cannot be judged", "cannot be judged"),
    Verdict.NOT_RUN: ("was not run", "were not run"),
    Verdict.PASS: ("passes", "pass"),
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides of several; informational if there is none."""
    result = set(verdicts)
    return next((verdict for verdict in Verdict if verdict in result), Verdict.INFORMATIONAL)


@dataclass(frozen=True)
class Case:
    """One judged item of a document: a metric, a capacity, a scenario, a host.

    Attributes:
        id: unique among the cases of its suite.
        label: its name for readers.
        verdict: the outcome.
        reason: why, as a clause or sentence; "" if the verdict suffices.
        gates: whether the document's verdict depends on it.
        figures: the measured values, by name with the unit last; in full precision.
        seconds: duration of the measurement; 0 if that is not known.
    """

    id: str
    label: str
    verdict: Verdict
    reason: str = ""
    gates: bool = True
    figures: dict[str, float | str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def known_figures(self) -> dict[str, float | str]:
        """The figures that JUnit and JSON can represent: all but infinite ones and those that are not a number."""
        return {name: value for name, value in self.figures.items() if isinstance(value, str) or math.isfinite(value)}

    def plain(self) -> dict[str, Any]:
        """Everything but its figures, as a row of a table or a part of a document's JSON."""
        return {
            "id": self.id,
            "label": self.label,
            "verdict": self.verdict.value,
            "gates": self.gates,
            "reason": self.reason,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Suite:
    """Cases of one tested subject: a version, a server.

    Attributes:
        name: unique in the document.
        cases: in reading order.
        properties: further properties for a pipeline.
        host: its host, for suites of servers.
        started_at: ISO time; "" if that is not known.
        output, messages: the output and the errors for a pipeline.
    """

    name: str
    cases: list[Case]
    properties: list[tuple[str, str]] = field(default_factory=list)
    host: str = "localhost"
    started_at: str = ""
    output: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As a part of a document's JSON: without the output and the messages, which repeat the result in words."""
        return {
            "name": self.name,
            "started_at": self.started_at,
            "properties": dict(self.properties),
            "cases": [{**case.plain(), "figures": case.known_figures} for case in self.cases],
        }


def shown(title: str, output: Iterable[str] = ()) -> Suite:
    """The suite of a document that judges nothing, so that a pipeline shows its existence."""
    return Suite(title, [Case("shown", title, Verdict.INFORMATIONAL, gates=False)], output=list(output))
