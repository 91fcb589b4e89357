"""Capacities that a passed load test may require of the next: the found ones less what noise explains."""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from chainmark.capacity.metrics import CAPACITY_NOISE
from chainmark.capacity.model import LevelKind
from chainmark.core.errors import UsageError
from chainmark.core.load_report import LoadReport
from chainmark.stats.special import normal_quantile, t_quantile

# By the endpoint's id and the kind of load.
Required = dict[str, dict[str, float]]

# How rarely an unchanged server falls short of one of its requirements.
MISSED_BY_CHANCE = 0.05
# With fewer tests, the noise between tests is assumed, as in comparisons.
_FEWEST_FOR_NOISE = 3
_WHOLE_FROM = 100.0  # rates


def requirements(reports: Sequence[LoadReport]) -> Required:
    """The capacities that the next test of an unchanged server reaches with 95 % probability.

    The lower prediction bound of one further capacity (Hahn & Meeker, *Statistical Intervals*, 2nd ed., 4.7), of
    logarithms, limited to the lowest that was found. A capacity that a test did not decide is omitted.

    Args:
        reports: of repetitions of one test; of several servers the first counts.
    """
    results: dict[tuple[str, str], list[float]] = defaultdict(list)
    for report in reports:
        for endpoint in report.targets[0].endpoints:
            for entry in endpoint.capacities:
                results[endpoint.id, entry.kind].append(entry.capacity or 0.0)
    required: Required = {}
    for (endpoint_id, kind), capacities in results.items():
        if min(capacities) > 0.0:
            required.setdefault(endpoint_id, {})[kind] = _rounded_down(_bound(capacities), kind)
    return required


def _bound(capacities: Sequence[float]) -> float:
    logs = [math.log(capacity) for capacity in capacities]
    count, confidence = len(logs), 1.0 - MISSED_BY_CHANCE
    if count < _FEWEST_FOR_NOISE:
        spread = CAPACITY_NOISE * normal_quantile(confidence)
    else:
        spread = stdev(logs) * t_quantile(confidence, count - 1)
    return min(*capacities, math.exp(fmean(logs) - spread * math.sqrt(1.0 + 1.0 / count)))


def _rounded_down(level: float, kind: str) -> float:
    """Whole clients, at least one; rates to three digits."""
    if kind == LevelKind.CLIENTS.value:
        return float(max(1, math.floor(level)))
    if level >= _WHOLE_FROM:
        return float(math.floor(level))
    scale = 10.0 ** (2 - math.floor(math.log10(level)))
    return math.floor(level * scale) / scale


def requirements_text(required: Mapping[str, Mapping[str, float]], runs: Iterable[str]) -> str:
    """The section of a profile, as `read_requirements` reads it."""
    lines = ["# What an unchanged server reaches with 95 % probability."]
    lines += [f"# from {run}" for run in runs]
    lines.append("[require]")
    for endpoint_id, kinds in sorted(required.items()):
        levels = ", ".join(f"{kind} = {str(level).removesuffix('.0')}" for kind, level in sorted(kinds.items()))
        lines.append(f"{endpoint_id} = {{ {levels} }}")
    return "\n".join([*lines, ""])


def read_requirements(path: Path) -> dict[str, object]:
    """The section `require` of a file, to be validated as part of a profile.

    Raises:
        UsageError: the file has none.
    """
    hint = "for example `[require]`, and below it `block = { clients = 100 }`; `--write-require FILE` writes one"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8")).get("require")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"`{path}` cannot be read: {error}", hint) from error
    if not isinstance(content, dict):
        raise UsageError(f"`{path}` has no section `[require]`", hint)
    return content
