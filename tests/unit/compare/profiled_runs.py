"""Runs in memory with profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from chainmark.core.profiles import ProfilesRecord
from chainmark.network.pprof import PROFILE_SCHEMA

from tests.unit.compare.synthetic_runs import SyntheticRun, catalogue, manifest

Stacks = Mapping[tuple[str, ...], float]


@dataclass
class ProfiledRun(SyntheticRun):
    """A run in memory with profiles."""

    stacks: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROFILE_SCHEMA))
    record: ProfilesRecord = field(
        default_factory=lambda: ProfilesRecord(kinds=["cpu"], work=100.0, work_label="block")
    )

    def events(self, name: str) -> pl.DataFrame:
        """The stacks as a table."""
        assert name == "profiles"
        return self.stacks

    def document(self, name: str) -> Mapping[str, object] | None:
        """The record of the profiles."""
        assert name == "profiles"
        return self.record.model_dump()


def profiled_run(
    version: str, nodes: Sequence[Stacks], *, kind: str = "cpu", begin: Sequence[Stacks] = (), number: int = 1,
    record: ProfilesRecord | None = None,
) -> ProfiledRun:  # fmt: skip
    """A run with profiles: the stacks of each node, in seconds."""
    rows = [
        (kind, moment, f"node{place}", list(stack), stack[-1], value)
        for moment, own in (("end", nodes), ("begin", begin))
        for place, stacks in enumerate(own)
        for stack, value in stacks.items()
    ]
    about = manifest(version, number, position=number, seed=number, profiles=[kind])
    frame = pl.DataFrame(rows, schema=PROFILE_SCHEMA, orient="row")
    known = record or ProfilesRecord(kinds=[kind], work=100.0, work_label="block")
    return ProfiledRun(about, catalogue(), {}, {}, frame, known)
