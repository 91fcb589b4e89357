"""The common fields of every result in JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.verdict import Verdict


class Result(BaseModel):
    """A result that judges nothing itself.

    Attributes:
        schema_version: of its JSON; incremented if a key changes its name or its meaning, and not for new keys.
        title: "NAME v1.0.1 against v0.38.17".
        subtitle: "profile NAME/demo · 3 + 3 runs, interleaved · 2026-11-20".
        date: of the newest run, ISO 8601; never the clock.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = 1
    tool_version: str
    title: str
    subtitle: str
    date: str


class JudgedResult(Result):
    """A result with a verdict, and the verdict as one sentence."""

    verdict: Verdict
    sentence: str
