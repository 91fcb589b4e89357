"""The figures of an archive's runs in one file: estimating noise needs one number from each of hundreds of runs.

The file is a cache that can be deleted: a run's figures count if its seal and its ``metrics.json`` are the
files from which they were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from chainmark.store.caches import read_cache, write_cache
from chainmark.store.derived import FOLDER
from chainmark.store.index import SEAL, Entry, Stamp, stamp_of

METRICS = "metrics.json"
FEWEST = 20  # runs of a workload: fewer are read as fast without the file
_LAYOUT = "figures 2"

Name = tuple[str, str]  # of a metric and of one of its statistics
Stamps = tuple[Stamp, Stamp]


@dataclass(frozen=True)
class ArchivedFigures:
    """The figures of one run, by the indices of their names, which the runs of a file share.

    Attributes:
        places: index of each name in ``values``.
        values: of each name its value and the standard error within the run.
    """

    places: Mapping[Name, int]
    values: Sequence[float | None]

    def value(self, metric_id: str, statistic: str) -> float | None:
        """One of them; None if the run has none of that name."""
        index = self.places.get((metric_id, statistic))
        return None if index is None or index >= len(self.values) else self.values[index]

    def standard_error(self, metric_id: str, statistic: str) -> float | None:
        """Its standard error; None if the run has none of that name, or it could not be estimated."""
        index = self.places.get((metric_id, statistic))
        return None if index is None or index >= len(self.values) else self.values[index + 1]


class FigureArchive:
    """The figures of the runs of one workload; read when one of them is first requested.

    Args:
        runs: the folder of runs.
        workload: the digest that they share.
        names: of the runs.
    """

    def __init__(self, runs: Path, workload: str, names: Sequence[str]) -> None:
        self._runs, self._names = runs, names
        self._path = runs.parent / FOLDER / "figures" / f"{workload}.json"

    def of(self, run_id: str) -> ArchivedFigures | None:
        """The figures of a run; None if its ``metrics.json`` cannot be read."""
        result = self._rows.get(run_id)
        return None if result is None else ArchivedFigures(self._places, result[1])

    @cached_property
    def _places(self) -> dict[Name, int]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, tuple[Stamps, list[float | None]]]:
        """Stamps and values by run: the valid ones of the file, and those of the other runs from their own files."""
        cached = self._read()
        result, is_changed = {}, False
        for name in self._names:
            stamps = self._stamps(name)
            if stamps is None:
                continue
            if name in cached and cached[name][0] == stamps:
                result[name] = cached[name]
            elif (values := self._values(name)) is not None:
                result[name], is_changed = (stamps, values), True
        if is_changed:
            others = {name: row for name, row in cached.items() if name not in result and self._stamps(name) == row[0]}
            self._write({**others, **result})
        return result

    def _stamps(self, name: str) -> Stamps | None:
        seal, metrics = (stamp_of(f"{self._runs}/{name}/{file}") for file in (SEAL, METRICS))
        return None if seal is None or metrics is None else (seal, metrics)

    def _values(self, name: str) -> list[float | None] | None:
        """The values of one run, from its ``metrics.json``."""
        try:
            rows = from_json((self._runs / name / METRICS).read_bytes())["metrics"]
            reported = {
                (str(row["metric_id"]), str(statistic)): (
                    _number(estimate["value"]), _number(estimate["standard_error"])
                )
                for row in rows
                for statistic, estimate in row["estimates"].items()
            }  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        for figure in reported:
            self._places.setdefault(figure, 2 * len(self._places))
        return [number for figure in self._places for number in reported.get(figure, (None, None))]

    def _read(self) -> dict[str, tuple[Stamps, list[float | None]]]:
        body = read_cache(self._path, _LAYOUT)
        if body is None:
            return {}
        content: dict[str, Any] = from_json(body)  # as it was written: its hash is correct
        self._places.update({(metric, name): 2 * index for index, (metric, name) in enumerate(content["figures"])})
        return {
            name: ((_stamp(seal), _stamp(metrics)), values) for name, (seal, metrics, values) in content["runs"].items()
        }

    def _write(self, rows: Mapping[str, tuple[Stamps, list[float | None]]]) -> None:
        content = {
            "figures": list(self._places),
            "runs": {name: (*stamps, values) for name, (stamps, values) in rows.items()},
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return
        write_cache(self._path, _LAYOUT, json.dumps(content, separators=(",", ":")).encode())


def archives(root: Path, entries: Iterable[Entry]) -> dict[str, FigureArchive]:
    """By run, the archive of its workload; empty for workloads with few runs."""
    groups: dict[str, list[str]] = {}
    for entry in entries:
        groups.setdefault(entry.workload, []).append(entry.run_id)
    groups_of = [
        (FigureArchive(root / "runs", key, names), names) for key, names in groups.items() if len(names) >= FEWEST
    ]
    return {name: archive for archive, names in groups_of for name in names}


def _number(value: object) -> float | None:
    if value is None:
        return None
    if type(value) not in {int, float}:
        raise TypeError
    return float(value)  # type: ignore[arg-type]


def _stamp(read: Sequence[int]) -> Stamp:
    return read[0], read[1], read[2]
