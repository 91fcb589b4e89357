"""Gates of the pair: conditions that both sides must share before any number is compared."""

from __future__ import annotations

from chainmark.compare.sides import SelectedRuns, experiments_of, joined_conditions
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import ConditionDifference, ConfigurationDifference
from chainmark.core.manifest import Configuration, Gate, GateStatus, Manifest, Scalar
from chainmark.core.metric import Population, Weighting

NOT_STATED = "not stated"  # by the publisher of imported runs
Setting = Scalar | list[Scalar]
_WINDOW = "window"
_RUNS_VALID = "_runs_valid"


def _is_window(key: str) -> bool:
    return key == _WINDOW or key.startswith(f"{_WINDOW}.")


def workload_differences(baseline: SelectedRuns, candidate: SelectedRuns) -> dict[str, list[Setting]]:
    """Workload keys on which the judged runs disagree, with the baseline's and the candidate's value.

    Args:
        baseline: its judged runs.
        candidate: likewise. A key that a run lacks has the value None; a workload setting that a published report does
            not state is not a difference.
    """
    left = [run.manifest for run in baseline.included or baseline.runs]
    right = [run.manifest for run in candidate.included or candidate.runs]
    all_states = not any(manifest.printed for manifest in [*left, *right])
    settings: dict[str, list[Setting]] = {}
    for key in sorted({key for manifest in [*left, *right] for key in manifest.workload}):
        sides = [
            [manifest.workload.get(key) for manifest in side if all_states or key in manifest.workload]
            for side in (left, right)
        ]
        messages = [value for side in sides for value in side]
        if any(value != messages[0] for value in messages):
            first = sides[0][0] if sides[0] else None
            settings[key] = [first, next(value for value in [*sides[1], *sides[0]] if value != first)]
    return settings


def same_workload(left: Manifest, right: Manifest) -> bool:
    """Whether two runs' workloads are equal; with an imported run among them, whether the stated values are equal."""
    if not (left.printed or right.printed):
        return left.workload == right.workload
    shared = left.workload.keys() & right.workload.keys()
    return all(left.workload[key] == right.workload[key] for key in shared)


def _equality(gate_id: str, label: str, differences: dict[str, list[Setting]]) -> Gate:
    measured = ", ".join(f"{key} is {left} against {right}" for key, (left, right) in differences.items())
    return Gate(
        id=gate_id,
        label=label,
        status=GateStatus.FAIL if differences else GateStatus.PASS,
        measured=measured or "equal",
        limit="equal in every run of both sides",
    )


def _hardware(baseline: SelectedRuns, candidate: SelectedRuns) -> Gate:
    """It is unknown whether unstated machines, as of imported logs, are alike; this fails nothing."""
    runs = [*(baseline.included or baseline.runs), *(candidate.included or candidate.runs)]
    classes = list(dict.fromkeys(run.manifest.host.hardware_class or NOT_STATED for run in runs))
    stated = [name for name in classes if name != NOT_STATED]
    if len(stated) > 1:
        status = GateStatus.FAIL
    else:
        status = GateStatus.PASS if len(stated) == len(classes) else GateStatus.UNKNOWN
    return Gate(
        id="hardware_equal",
        label="same hardware class",
        status=status,
        measured=" against ".join(classes),
        limit="one class in every run of both sides",
        detail="" if len(stated) == len(classes) else "runs without recorded hardware are assumed to share it",
    )


def _builds(baseline: SelectedRuns, candidate: SelectedRuns) -> Gate:
    mixed, unknown = [], False
    for side in (baseline, candidate):
        builds = {run.manifest.subject.binary_sha256 for run in side.included}
        unknown = unknown or None in builds
        if len(builds - {None}) > 1:
            mixed.append(f"{side.name}: {len(builds - {None})} binaries")
    return Gate(
        id="one_build_a_side",
        label="one build per side",
        status=GateStatus.WARN if mixed else GateStatus.UNKNOWN if unknown else GateStatus.PASS,
        measured=", ".join(mixed) or (NOT_STATED if unknown else "one binary per side"),
        limit="one binary per side",
        detail="differences between builds count as noise between runs" if mixed else "",
    )


def rules(catalogue: Catalogue) -> dict[str, str]:
    """The rule for means of each population with keys to average over, in a few words.

    Args:
        catalogue: of a run.
    """
    return {
        population.id: f"{population.label}: {_rule(population)}"
        for population in catalogue.populations
        if population.average_over
    }


def _rule(population: Population) -> str:
    keys = " and ".join(population.average_over)
    silent = ", 0 for those without samples" if population.silent_keys_are_zero else ""
    if population.weighting is Weighting.SAMPLES:
        return "the mean of all samples"
    if population.weighting is Weighting.TIMES:
        return f"the mean over every {keys} at each time, then over time"
    if population.lowest_means is not None:
        return f"the mean of the {population.lowest_means} lowest means per {keys}{silent}"
    return f"the mean of the means per {keys}{silent}"


def _same_rules(baseline: SelectedRuns, candidate: SelectedRuns) -> Gate:
    results: dict[str, dict[str, None]] = {}
    for run in [*(baseline.included or baseline.runs), *(candidate.included or candidate.runs)]:
        for population_id, rule in rules(run.catalogue).items():
            results.setdefault(population_id, {})[rule] = None
    differing = [" against ".join(texts) for texts in results.values() if len(texts) > 1]
    return Gate(
        id="rules_equal",
        label="same averaging rules",
        status=GateStatus.FAIL if differing else GateStatus.PASS,
        measured="; ".join(differing) or "equal",
        limit="equal in every run of both sides",
    )


def more_runs_may_pass(gate: Gate) -> bool:
    """Whether more runs may pass a failed gate: only the one about the share of usable runs can change."""
    return gate.id.endswith(_RUNS_VALID)


def _remaining(side: SelectedRuns) -> Gate:
    """Whether enough runs are evidence about the subject, including those that it failed."""
    usable, total = side.telling, len(side.runs)
    # A side has at least one run, so half of them is at least one.
    status = GateStatus.PASS if usable == total else GateStatus.WARN if 2 * usable >= total else GateStatus.FAIL
    failed = {run.run_id for run in side.failed}
    lost = {run_id: reason for run_id, reason in side.excluded.items() if run_id not in failed}
    return Gate(
        id=side.name + _RUNS_VALID,
        label=f"valid runs of the {side.name}",
        status=status,
        measured=f"{usable} of {total} runs" + (f", {len(failed)} of them failed" if failed else ""),
        limit="at least half of the runs, and at least one",
        detail="; ".join(f"{run_id}: {reason}" for run_id, reason in lost.items()),
    )


def _at_one_time(baseline: SelectedRuns, candidate: SelectedRuns) -> list[Gate]:
    """A machine drifts, and runs of one experiment do not show by how much; the drift of imported runs is unknown."""
    experiments = experiments_of(baseline, candidate)
    if not experiments:
        return []
    apart = len(experiments) > 1
    begun = [f"the {side.name} from {units.utc(side.runs[0].manifest.started_at)}" for side in (baseline, candidate)]
    return [
        Gate(
            id="one_experiment",
            label="both sides in one experiment",
            status=GateStatus.WARN if apart else GateStatus.PASS,
            measured=f"{len(experiments)} experiments: {', '.join(begun)}" if apart else "one experiment",
            limit="one experiment",
            detail="changes of the machine in between count as changes of the release; "
            "`chainmark experiment` measures both sides alternately"
            if apart
            else "",
        )
    ]


def pair_gates(
    baseline: SelectedRuns,
    candidate: SelectedRuns,
    workload: dict[str, list[Setting]],
) -> list[Gate]:
    """The gates of the pair; a failed one makes the verdict invalid.

    Args:
        baseline: one side.
        candidate: the other.
        workload: from `workload_differences`.
    """
    window = {key: values for key, values in workload.items() if _is_window(key)}
    load = {key: values for key, values in workload.items() if not _is_window(key)}
    return [
        _remaining(baseline),
        _remaining(candidate),
        _equality("workload_equal", "same workload", load),
        _equality("window_equal", "same analysis window", window),
        _hardware(baseline, candidate),
        _builds(baseline, candidate),
        _same_rules(baseline, candidate),
        *_at_one_time(baseline, candidate),
    ]


def condition_differences(
    catalogue: Catalogue, baseline: SelectedRuns, candidate: SelectedRuns
) -> list[ConditionDifference]:
    """Conditions that differ, in the catalogue's order; ones unknown to the catalogue come last."""
    left, right = joined_conditions(baseline), joined_conditions(candidate)
    explained = {condition.id: condition for condition in catalogue.conditions}
    result = []
    for key in [*explained, *sorted((left.keys() | right.keys()) - explained.keys())]:
        if left.get(key) == right.get(key):
            continue
        result.append(
            ConditionDifference(
                id=key,
                label=explained[key].label if key in explained else key,
                baseline=left.get(key, NOT_STATED),
                candidate=right.get(key, NOT_STATED),
                explanation=explained[key].explanation if key in explained else "",
            )
        )
    return result


def incomparable(catalogue: Catalogue, differences: list[ConditionDifference]) -> dict[str, str]:
    """Metrics with different meanings on the two sides, by id, each with the conditions that cause it.

    Args:
        catalogue: defines which condition makes which metrics incomparable.
        differences: from `condition_differences`.
    """
    named = {condition.id: condition.makes_incomparable for condition in catalogue.conditions}
    results: dict[str, list[str]] = {}
    for item in differences:
        for metric_id in named.get(item.id, []):
            results.setdefault(metric_id, []).append(f"{item.label} differs ({item.baseline} against {item.candidate})")
    return {metric_id: " and ".join(texts) for metric_id, texts in results.items()}


def _file_differences(file: str, left: Configuration, right: Configuration) -> list[ConfigurationDifference]:
    item, other = left.effective.get(file, {}), right.effective.get(file, {})
    result = []
    for key in sorted(item.keys() | other.keys()):
        if key in item and key in other and _same(item[key], other[key]):
            continue
        changed = key in left.changed.get(file, {}) or key in right.changed.get(file, {})
        only_in = "candidate" if key not in item else "baseline" if key not in other else None
        result.append(
            ConfigurationDifference(
                file=file,
                key=key,
                baseline=item.get(key),
                candidate=other.get(key),
                only_in=only_in,
                is_default_change=not changed,
            )
        )
    return result


def _same(left: Setting, right: Setting) -> bool:
    """Equal values; true is not 1, although they are equal in Python."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def configuration_differences(left: Configuration, right: Configuration) -> list[ConfigurationDifference]:
    """Effective settings that differ between two configurations, by file and key.

    Args:
        left: of the baseline's first judged run.
        right: of the candidate's.
    """
    files = sorted(left.effective.keys() | right.effective.keys())
    return [difference for file in files for difference in _file_differences(file, left, right)]
