"""A system for chainmark: commands timed by `hyperfine --export-json`, one run per command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Gate, GateStatus, HostFacts, Source, Subject
from chainmark.core.progress import Progress
from chainmark.lab.profiles import check_profile
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.store.files import hash_file
from chainmark.store.unfinished import UnfinishedRun

UNREPORTED = "not stated"


class Profile(BaseModel):
    """What was timed."""

    command: str


class Hyperfine:
    """The system `hyperfine`, found by its entry point."""

    name = "hyperfine"
    title = "hyperfine"

    def catalogue(self) -> Catalogue:
        """The metrics of ``catalogue.toml``."""
        return load_catalogue(Path(__file__).with_name("catalogue.toml"))

    def profile(self, content: Mapping[str, object]) -> Profile:
        """A profile names a command. Systems that only read files need no profile files."""
        return check_profile(Profile, content)

    def parts(self, order: ImportRequest) -> list[str]:
        """One run for each command of the file."""
        return [result["command"] for result in _results(order.path)]

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Write one command's executions into a run as samples."""
        if order.version is None:
            raise UsageError("the version is unknown", "state the version: `--as 1.2.0`")
        progress.stage(f"reading {order.part}")
        result = next(entry for entry in _results(order.path) if entry["command"] == order.part)
        times = [float(seconds) for seconds in result["times"]]
        failed = sum(code != 0 for code in result.get("exit_codes", []))
        columns = {
            "index": range(len(times)),
            "time_s": list(accumulate(times[:-1], initial=0.0)),
            "wall_time_s": times,
            "peak_memory_b": result.get("memory_usage_byte") or [None] * len(times),
        }
        floats = dict.fromkeys(["time_s", "wall_time_s", "peak_memory_b"], pl.Float64)
        run.write_samples("execution", pl.DataFrame(columns, schema={"index": pl.UInt32, **floats}))
        gate = Gate(
            id="exit_codes",
            label="every execution succeeded",
            status=GateStatus.FAIL if failed else GateStatus.PASS,
            measured=f"{failed} failed",
            limit="0 failed",
        )
        size = order.path.stat().st_size
        return Imported(
            subject=Subject(system=self.name, name=result["command"], version=order.version),
            profile_name="hyperfine/command",
            profile={"command": result["command"]},
            workload={"command": result["command"]},  # two runs are only comparable if this is equal
            sources=[Source(path=order.path.name, size_bytes=size, blake3=hash_file(order.path))],
            host=HostFacts(
                cpu_model=UNREPORTED, cores=0, memory_bytes=0, kernel=UNREPORTED, operating_system=UNREPORTED
            ),
            first_ns=0,  # the file does not say when
            last_ns=round(sum(times) * 1e9),
            options={"part": order.part},
            catalogue=self.catalogue(),
            configuration=Configuration(),
            conditions={},
            counts={"executions": {"succeeded": len(times) - failed, "failed": failed}},
            gates=[gate],
        )


def _results(path: Path) -> list[dict[str, Any]]:
    try:
        results: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"`{path}` is not an export of hyperfine", "use `hyperfine --export-json FILE`") from error
    return results


SYSTEM = Hyperfine()
