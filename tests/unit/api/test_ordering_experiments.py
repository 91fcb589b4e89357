"""Experiments run both sides as requested and print their warnings before the first run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from pydantic import BaseModel

import chainmark as cm
from chainmark.api import clusters, experimenting
from chainmark.api.context import Cancellation, Relay, as_settings, measuring
from chainmark.api.experimenting import kinds_by_default, take_profiles
from chainmark.compare.decide import Past
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import EnvironmentFailure, InvalidRunError, UsageError
from chainmark.core.manifest import ExperimentLength, Scalar, Subject
from chainmark.core.metric import Better, Kind
from chainmark.core.progress import Progress
from chainmark.core.question import BaselineKind
from chainmark.core.verdict import Verdict
from chainmark.lab.attempts import MOST_ATTEMPTS
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.report.document import Document
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.api.listening import Reported
from tests.unit.compare.synthetic_runs import frames
from tests.unit.lab.stand_in import Profile, StandIn

EXPERIMENT: dict[str, Any] = {"baseline": "v1", "candidate": "v3"}


class _Gating(StandIn):
    """A system whose workload is the rate of the profile and whose metrics gate."""

    def catalogue(self) -> Catalogue:
        """Two gating metrics. The second has a margin of 1 %, which a single pair of runs cannot decide."""
        whole = super().catalogue()
        first, second = whole.metrics
        gating = {"gating": True, "better": Better.LOWER}
        narrow = second.model_copy(update={**gating, "kind": Kind.POSITIVE, "margin": 0.01})
        return whole.model_copy(update={"metrics": [first.model_copy(update=gating), narrow]})

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Execute a run whose peer counts vary slightly between runs."""
        execution = super().execute(profile, order, run, progress)
        nodes = frames(order.seed, (), 0.01, 10)["node"].with_columns(peer_count=pl.lit(3.0 + 0.01 * (order.seed % 3)))
        return replace(execution, samples={"node": nodes})

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The rate."""
        return {"load.rate": int(profile.model_dump()["rate"])}


class _Builds(_Gating):
    """A system with three versions. Two of them are the same build."""

    def installed(self) -> list[tuple[Subject, Path]]:
        """The versions with their binary hashes."""
        hashes = {"v1": "f00", "v2": "f00", "v3": "ba7"}
        return [
            (Subject(system=self.name, name=self.title, version=version, binary_sha256=revision_hash), Path())
            for version, revision_hash in hashes.items()
        ]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Gating:
    """The system of all profiles. The rate can be set. The user's own store is empty."""
    builds = _Builds()

    def resolved(name: str, settings: Mapping[str, int] | Sequence[str]) -> tuple[_Gating, Profile]:
        rates = [int(text.partition("=")[2]) for text in as_settings(settings)]
        return builds, Profile(system="cometbft", name=name, rate=rates[-1] if rates else 1)

    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "own"))
    monkeypatch.setattr(experimenting, "resolve_launchable", resolved)
    monkeypatch.setattr(clusters, "profile_cluster", lambda *_: None)
    monkeypatch.setattr(experimenting, "load_system", {builds.name: builds}.__getitem__)
    monkeypatch.setattr(experimenting, "launchable", lambda loaded: loaded)
    return builds


def _runs(store: Path) -> list[SealedRun]:
    return sorted(Store(store).sealed(), key=lambda run: place.position if (place := run.manifest.experiment) else 0)


def _made(store: Path) -> list[tuple[str, str, object, int]]:
    """Side, version, rate and seed of every judged run."""
    return [
        (place.side, run.manifest.subject.version, run.manifest.profile["rate"], run.manifest.seed)
        for run in _runs(store)
        if (place := run.manifest.experiment) and not run.manifest.profiles
    ]


def test_each_side_runs_its_version_with_its_settings(tmp_path: Path, system: _Gating) -> None:
    """A comparison of two workloads must be reported before the first run, not after the last one."""
    progress = Reported()
    cm.experiment(
        "p", baseline="v1", candidate="v3", repeat=1, seed=7, settings={"rate": 2}, candidate_settings={"rate": 3},
        store=tmp_path, progress=progress,
    )  # fmt: skip
    assert _made(tmp_path) == [("baseline", "v1", 2, 7), ("candidate", "v3", 3, 8)]
    warning = "warning: the workloads differ (load.rate is 2 against 3): the comparison will be invalid"
    assert progress.lines[0] == warning
    listener = Reported()
    cm.experiment(
        "p",
        baseline="v1",
        candidate="v3",
        repeat=1,
        baseline_settings={"rate": 5},
        store=tmp_path / "b",
        progress=listener,
    )
    assert [rate for _, _, rate, _ in _made(tmp_path / "b")] == [5, 1]
    same = Reported()
    cm.experiment("p", baseline="v1", candidate="v3", repeat=1, store=tmp_path / "c", progress=same)
    assert _made(tmp_path / "c") == [("baseline", "v1", 1, 1), ("candidate", "v3", 1, 2)]
    assert not any("workloads differ" in line for line in same.lines)


@pytest.mark.parametrize(
    ("candidate", "rate", "is_reported"), [("v2", 1, True), ("v3", 1, False), ("v1", 1, False), ("v2", 2, False)]
)
def test_two_names_of_one_build_are_reported_unless_intended(
    tmp_path: Path, system: _Gating, candidate: str, rate: int, *, is_reported: bool
) -> None:
    """The warning is omitted if one version is compared with itself or one build with two settings on purpose."""
    listener = Reported()
    cm.experiment(
        "p", baseline="v1", candidate=candidate, candidate_settings={"rate": rate}, repeat=1, store=tmp_path,
        progress=listener,
    )  # fmt: skip
    line = "warning: v1 and v2 are the same build: the comparison will be an A/A"
    assert (line in listener.lines) is is_reported


def test_what_one_run_per_side_cannot_decide_is_reported_before_it_starts(tmp_path: Path, system: _Gating) -> None:
    def warned(store: Path, repeat: int, **options: Any) -> list[str]:
        listener = Reported()
        cm.experiment("p", **EXPERIMENT, repeat=repeat, store=store, progress=listener, **options)
        return [line for line in listener.lines if line.startswith("warning: one run per side")]

    label = system.catalogue().metrics[1].label
    assert warned(tmp_path, 1) == [
        f"warning: one run per side cannot decide these metrics for an equal release: {label}. Their noise between "
        "runs is unknown and is assumed to exceed their margins (measure it with `chainmark aa`, or omit `--repeat 1`)"
    ]
    assert warned(tmp_path / "two", 2) == []
    assert warned(tmp_path / "two", 1) == [], "the two existing runs show the noise"
    assert warned(tmp_path / "two", 1, candidate_settings={"rate": 2}) == [], "of the baseline's workload"


def test_profiles_are_taken_as_requested_and_of_cpu_heap_and_goroutines_by_default(
    tmp_path: Path, system: _Gating
) -> None:
    def taken(store: str, **kinds: str) -> list[list[str]]:
        order: dict[str, Any] = {"baseline": "v1", "candidate": "v3", "repeat": 1, "progress": Reported(), **kinds}
        cm.experiment("p", store=tmp_path / store, **order)
        return [run.manifest.profiles for run in _runs(tmp_path / store)]

    assert taken("a") == [[], [], ["cpu", "heap"], ["cpu", "heap"]]
    assert taken("b", profiles="heap") == [[], [], ["heap"], ["heap"]]
    assert taken("c", profiles="none") == [[], []]
    system.profile_kinds = ("cpu", "mutex")
    assert taken("d") == [[], [], ["cpu"], ["cpu"]]


def test_margins_are_used_as_set_and_only_for_judged_metrics(tmp_path: Path, system: _Gating) -> None:
    metric_id, other = (metric.id for metric in system.catalogue().metrics)
    document = cm.experiment(
        "p", baseline="v1", candidate="v3", repeat=1, margins={metric_id: 0.35}, store=tmp_path, progress=Reported()
    )
    (folder,) = (tmp_path / "experiments").iterdir()
    assert f'"{metric_id}": 0.35' in (folder / "experiment.json").read_text(encoding="utf-8")
    assert other not in (folder / "experiment.json").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=f"^`{folder.name}` already has its settings$") as refused:
        cm.experiment(resume=folder.name, margins={metric_id: 0.1}, store=tmp_path)
    assert refused.value.hint == "omit `--margin` when you resume"
    with pytest.raises(UsageError, match="`nothing_s` is not a metric"):
        cm.experiment("p", baseline="v1", candidate="v3", margins={"nothing_s": 0.1}, store=tmp_path)
    assert document.kind == "comparison"
    stored = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert (stored["verdict"], stored["sentence"]) == (document.verdict.value, document.sentence)


def test_margins_are_learnt_from_re_runs_of_the_same_workload_and_reported(tmp_path: Path, system: _Gating) -> None:
    with pytest.raises(UsageError, match="margins cannot be learnt"):
        cm.experiment("p", baseline="v1", candidate="v3", margins=["learnt"], store=tmp_path)
    cm.experiment("p", baseline="v1", candidate="v1", repeat=4, profiles="none", store=tmp_path)
    listener = Reported()
    order = {"baseline": "v1", "candidate": "v3", "repeat": 1, "margins": ["learnt"], "store": tmp_path}
    cm.experiment("p", **order, progress=listener)  # type: ignore[arg-type]
    learnt = [line for line in listener.lines if line.startswith("margins learnt from earlier runs: ")]
    assert len(learnt) == 1
    assert learnt[0].endswith(" %")
    with pytest.raises(UsageError, match="margins cannot be learnt"):
        cm.experiment("p", **order, settings={"rate": 9})  # type: ignore[arg-type]


def test_an_incomplete_request_is_rejected_with_an_alternative(tmp_path: Path) -> None:
    for order in ({"baseline": "v1"}, {"candidate": "v1"}, {}):
        with pytest.raises(UsageError, match=r"^an experiment requires a profile and two versions$") as refused:
            cm.experiment("p", **order, store=tmp_path)  # type: ignore[arg-type]
        assert refused.value.hint == "or continue an experiment: `--resume ID`"
    with pytest.raises(UsageError, match=r"^an experiment requires"):
        cm.experiment(baseline="v1", candidate="v2", store=tmp_path)


def test_a_resumed_experiment_makes_added_runs_with_the_original_settings(tmp_path: Path, system: _Gating) -> None:
    cm.experiment(
        "p", baseline="v1", candidate="v3", repeat=1, seed=5, profiles="none", store=tmp_path, progress=Reported()
    )
    (folder,) = (tmp_path / "experiments").iterdir()
    cm.experiment(resume=folder.name, store=tmp_path)
    assert len(_made(tmp_path)) == 2, "a complete experiment makes no further run"
    cm.experiment(resume=folder.name, more=2, store=tmp_path)
    assert [(side, seed) for side, _, _, seed in _made(tmp_path)] == [
        ("baseline", 5), ("candidate", 6), ("candidate", 7), ("baseline", 8), ("baseline", 9), ("candidate", 10),
    ]  # fmt: skip


def test_versions_are_installed_with_the_profile_of_their_side(
    tmp_path: Path, system: _Gating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile may define the program of a version: without it, another program would be measured."""
    prepared: list[tuple[str, int]] = []

    def installed(_: object, versions: Sequence[str], __: object, profile: Profile) -> dict[str, str]:
        prepared.extend((version, profile.rate) for version in versions)
        return {version: version for version in versions}

    monkeypatch.setattr(experimenting, "installed", installed)
    rates: dict[str, Any] = {"settings": {"rate": 2}, "candidate_settings": {"rate": 3}}
    cm.experiment("p", **EXPERIMENT, **rates, repeat=1, store=tmp_path, progress=Reported())
    (folder,) = (tmp_path / "experiments").iterdir()
    cm.experiment(resume=folder.name, store=tmp_path)
    assert prepared == 2 * [("v1", 2), ("v3", 3)]
    cm.aa("p", "v1", repeat=4, settings={"rate": 4}, store=tmp_path)
    assert prepared[4:] == [("v1", 4)]


def test_a_measurement_that_always_fails_reports_the_cause(tmp_path: Path, system: _Gating) -> None:
    system.invalid = frozenset(range(9))
    with pytest.raises(InvalidRunError) as failure:
        cm.experiment("p", baseline="v1", candidate="v3", store=tmp_path)
    assert failure.value.message == (
        "the measurement failed in 3 consecutive runs of v1; last failure: offered load met: 91 %"
    )


@pytest.mark.parametrize("invalid", [frozenset(), frozenset({1, 2})])
def test_one_version_against_itself_makes_at_least_four_valid_runs(
    tmp_path: Path, system: _Gating, invalid: frozenset[int]
) -> None:
    system.invalid = invalid
    document = cm.aa("p", "v1", repeat=4, seed=3, settings={"rate": 4}, store=tmp_path)
    assert document.kind == "aa"
    runs = Store(tmp_path).sealed()
    assert sorted(run.manifest.seed for run in runs) == list(range(3, 7 + len(invalid)))
    assert {(run.manifest.subject.version, run.manifest.profile["rate"]) for run in runs} == {("v1", 4)}
    again = cm.aa_of_history("v1", store=tmp_path)
    assert (again.kind, again.verdict) == ("aa", Verdict.PASS)
    assert "of 3 re-runs of one build" in again.text(200)


def test_the_charts_of_one_version_against_itself_show_its_valid_runs_in_full(
    tmp_path: Path, system: _Gating, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[dict[str, list[int]], bool]] = []

    def charted(document: Document, sides: Mapping[str, Sequence[SealedRun]], *, in_full: bool = False) -> Document:
        drawn.append(({side: [run.manifest.seed for run in runs] for side, runs in sides.items()}, in_full))
        return document

    monkeypatch.setattr(experimenting, "charted", charted)
    system.invalid = frozenset({2})
    cm.aa("p", "v1", repeat=4, seed=3, store=tmp_path)
    assert drawn == [({"v1": [3, 5, 6, 7]}, True)]


def test_a_history_is_checked_for_the_newest_run_as_a_verdict_would_use_it(
    tmp_path: Path, system: _Gating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict compares with the level of the releases: false alarms against single runs would say nothing of it."""
    checked: list[tuple[str, BaselineKind]] = []

    def check(run: SealedRun, _: object, past: Past, __: str) -> None:
        checked.append((run.run_id, past.baseline))
        raise _EnoughError

    monkeypatch.setattr(experimenting, "history_check", check)
    cm.aa("p", "v1", repeat=4, store=tmp_path)
    _ordered(cm.aa_of_history, "v1", store=tmp_path)
    *_, newest = Store(tmp_path).select("v1")
    assert checked == [(newest.run_id, BaselineKind.HISTORY)]


@pytest.mark.parametrize(
    ("order", "length"), [({}, (8, True)), ({"most_runs": 1}, (2, True)), ({"repeat": 1}, (1, False))]
)
def test_an_experiment_is_as_long_as_requested(
    tmp_path: Path, system: _Gating, order: dict[str, int], length: tuple[int, bool]
) -> None:
    """A requested number of runs is made exactly. Otherwise runs are made until a decision, at least two per side."""
    whole: dict[str, Any] = {"baseline": "v1", "candidate": "v3", "progress": Reported(), "profiles": "none", **order}
    cm.experiment("p", store=tmp_path, **whole)
    lengths = {place.length for run in _runs(tmp_path) if (place := run.manifest.experiment)}
    assert lengths == {ExperimentLength(most=length[0], stops_early=length[1])}


class _EnoughError(Exception):
    """Ends a request before its first run."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What requests that end before their first run pass on, by function; the machines are those of the cluster."""
    received: dict[str, Any] = {}

    @contextmanager
    def listening(progress: Progress | None, *others: object) -> Iterator[Relay]:
        received["measuring"] = (progress, *others)
        with measuring(progress, None, None, no_wait=False) as listener:
            received["listener"] = listener
            yield listener

    def requested(*order: object) -> str:
        received["requested"] = order
        return "cluster"

    @contextmanager
    def machines(*order: object) -> Iterator[str]:
        received["machines"] = order
        yield f"machines of {order[1]}"

    def stopped(name: str) -> Any:
        def stop(*order: object, **more: object) -> None:
            received[name] = (order, more)
            raise _EnoughError

        return stop

    def lab(*order: object) -> Any:
        received["lab"] = order
        return SimpleNamespace(repeat=stopped("repeat"))

    monkeypatch.setattr(experimenting, "measuring", listening)
    monkeypatch.setattr(experimenting, "requested_cluster", requested)
    monkeypatch.setattr(experimenting, "machines_for_nodes", machines)
    monkeypatch.setattr(experimenting, "_until_decided", stopped("decided"))
    monkeypatch.setattr(experimenting, "Lab", lab)
    return received


def _ordered(function: Any, *order: str, **options: Any) -> None:
    with pytest.raises(_EnoughError):
        function(*order, **options)


@pytest.mark.parametrize("work", [partial(cm.experiment, "p", **EXPERIMENT), partial(cm.aa, "p", "v1")])
def test_the_listener_and_the_cluster_of_a_request_are_used(
    tmp_path: Path, system: _Gating, calls: dict[str, Any], work: Any
) -> None:
    """Without them, nodes would run on the wrong machine, and a request could not be cancelled or observed."""
    listener, cancel, settings = Reported(), Cancellation(), {"rate": 4}
    _ordered(
        work, settings=settings, on="hosts.toml", expose="localhost:9", no_wait=True, store=tmp_path,
        progress=listener, cancel=cancel,
    )  # fmt: skip
    assert calls["measuring"] == (listener, cancel, "localhost:9", True)
    assert calls["requested"] == ("hosts.toml", "p", settings)
    assert calls["machines"][:3] == (system, "cluster", calls["listener"])
    _ordered(work, store=tmp_path)
    assert calls["measuring"] == (None, None, None, False)


@pytest.mark.parametrize(("options", "stated"), [({}, False), ({"why": True, "keep_homes": True}, True)])
def test_an_experiment_keeps_its_options_its_machines_and_its_folder(
    tmp_path: Path, system: _Gating, calls: dict[str, Any], options: dict[str, bool], *, stated: bool
) -> None:
    _ordered(cm.experiment, "p", **EXPERIMENT, store=tmp_path, **options)
    (planned, _, listener), more = calls["decided"]
    assert (more, planned.record.keep_homes) == ({"why": stated}, stated)
    assert planned.series.lab.machines == "machines of cluster"
    assert listener is calls["listener"]
    assert calls["machines"][3] is planned.folder


@pytest.mark.parametrize(
    ("options", "expected"), [({}, (8, 1, False)), ({"repeat": 5, "seed": 3, "keep_homes": True}, (5, 3, True))]
)
def test_one_version_is_repeated_as_requested_on_the_machines(
    tmp_path: Path, system: _Gating, calls: dict[str, Any], options: dict[str, Any], expected: tuple[int, int, bool]
) -> None:
    _ordered(cm.aa, "p", "v1", store=tmp_path, **options)
    (_, repeat, seed, listener), more = calls["repeat"]
    assert (repeat, seed, more["keep_homes"]) == expected
    assert (listener, more["attempts"]) == (calls["listener"], MOST_ATTEMPTS)
    assert calls["lab"][1:] == (system, "machines of cluster")


def test_fewer_than_four_runs_against_itself_are_rejected(tmp_path: Path, system: _Gating) -> None:
    with pytest.raises(UsageError):
        cm.aa("p", "v1", repeat=3, store=tmp_path)
    assert Store(tmp_path).sealed() == [], "before the first run"


def test_learnt_margins_are_of_the_baseline_s_workload_and_shown_with_one_decimal(
    tmp_path: Path, system: _Gating, calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def learnt(_: str, workload: Mapping[str, object], *__: object) -> dict[str, float]:
        assert workload == {"load.rate": 5}
        return {"a_s": 0.1234, "b_s": 0.02}

    monkeypatch.setattr(experimenting, "learnt_before", learnt)
    listener = Reported()
    sides: dict[str, Any] = {**EXPERIMENT, "baseline_settings": {"rate": 5}}
    with pytest.raises((_EnoughError, UsageError)):
        cm.experiment("p", **sides, margins=["learnt"], store=tmp_path, progress=listener)
    assert "margins learnt from earlier runs: a_s 12.3 %, b_s 2.0 %" in listener.lines


def test_a_setting_of_one_workload_only_is_reported() -> None:
    listener = Reported()
    experimenting._warn_of_different_workloads({"a": 1}, {"b": 2}, Relay(listener, None))
    assert listener.lines == [
        "warning: the workloads differ (a is 1 against None): the comparison will be invalid",
        "warning: the workloads differ (b is None against 2): the comparison will be invalid",
    ]


def test_profiles_that_cannot_be_taken_are_reported_and_a_system_without_any_has_none() -> None:
    def take() -> None:
        raise EnvironmentFailure("node 1 does not respond")

    listener, plain = Reported(), SimpleNamespace()
    take_profiles(take, Relay(listener, None))
    assert listener.lines == ["warning: no profiles were collected: node 1 does not respond"]
    assert kinds_by_default(plain) == ()
