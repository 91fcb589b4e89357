"""The differences between consecutive releases of a series, besides their figures: builds, settings, machine, tool."""

from __future__ import annotations

from collections.abc import Iterator

from chainmark.compare.build_differences import build_differences
from chainmark.compare.gates import configuration_differences
from chainmark.compare.inputs import LoadedRun
from chainmark.core import units
from chainmark.core.history_report import ReleaseDifference
from chainmark.core.manifest import Manifest

_MOST = 60  # per release
Facts = dict[str, str]


def differences(before: LoadedRun, after: LoadedRun) -> list[ReleaseDifference]:
    """The differences between two runs that represent their releases, the programs first."""
    release_differences = [*_of_builds(before, after)]
    for recorded_fact, other in zip(_recorded_facts(before.manifest), _recorded_facts(after.manifest), strict=True):
        release_differences += [
            ReleaseDifference(
                what=name, before=recorded_fact.get(name, units.UNSET), after=other.get(name, units.UNSET)
            )
            for name in sorted(recorded_fact.keys() | other.keys())
            if recorded_fact.get(name) != other.get(name)
        ]
    return [*release_differences, *_of_settings(before.manifest, after.manifest)][:_MOST]


def _of_builds(before: LoadedRun, after: LoadedRun) -> Iterator[ReleaseDifference]:
    result = build_differences(before.data, after.data)
    if result is not None:
        for name, fact, other in [*result.facts, *result.modules]:
            if fact != other:
                yield ReleaseDifference(what=name, before=fact or units.UNSET, after=other or units.UNSET)


def _recorded_facts(manifest: Manifest) -> tuple[Facts, ...]:
    """A run's description of its set-up by kind, the most relevant first."""
    subject, host = manifest.subject, manifest.host
    program = {"version": subject.version, "revision": subject.revision or "", "build": subject.build or ""}
    machine = {
        "machine": host.hardware_class,
        "kernel": host.kernel,
        "operating system": host.operating_system,
        "chainmark": manifest.tool_version,
    }
    return {key: value for key, value in program.items() if value}, dict(manifest.conditions), machine


def _of_settings(before: Manifest, after: Manifest) -> Iterator[ReleaseDifference]:
    for difference in configuration_differences(before.configuration, after.configuration):
        sides = [
            units.UNSET if difference.only_in == absent else units.scalar(value)
            for absent, value in (("candidate", difference.baseline), ("baseline", difference.candidate))
        ]
        suffix = " (its own default)" if difference.is_default_change else ""
        yield ReleaseDifference(what=f"{difference.file}: {difference.key}{suffix}", before=sides[0], after=sides[1])
