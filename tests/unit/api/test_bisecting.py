"""Complete searches among revisions with a known faulty one: the result, the skipped revisions, and resuming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import chainmark as cm
from chainmark.core.bisect_report import BisectReport, SideState, Way
from chainmark.core.errors import EnvironmentFailure, InvalidRunError, UsageError
from chainmark.core.verdict import Verdict
from chainmark.store.live import LiveSearch, live_searches
from chainmark.store.runs import Store
from chainmark.systems import base

from tests.unit.api.listening import Reported
from tests.unit.lab.line_system import LineSystem


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for other measurements, because these tests do not measure anything."""
    monkeypatch.setenv("CHAINMARK_MACHINE", "shared")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile of the simulated system."""
    path = tmp_path / "quick.toml"
    path.write_text('system = "line"\n', encoding="utf-8")
    return path


class _Lab:
    """Searches among versions of one simulated system."""

    def __init__(self, system: LineSystem, profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.system, self.profile, self.store = system, profile, profile.parent / "store"
        for module in ("chainmark.api.context", "chainmark.api.bisecting", "chainmark.api.comparing"):
            monkeypatch.setattr(f"{module}.load_system", lambda name: self.system)
        monkeypatch.setattr(base, "load_system", lambda name: self.system)

    def search(self, good: str = "v0", bad: str = "v40", **options: Any) -> cm.Document:
        return cm.bisect(self.profile, good=good, bad=bad, store=self.store, **options)


def _result(document: cm.Document) -> BisectReport:
    assert isinstance(document.result, BisectReport)
    return document.result


@dataclass(frozen=True)
class _Whole:
    """A complete search: its document, its measured versions and what a listener received."""

    document: cm.Document
    made: list[int]
    seen: list[LiveSearch]
    left: list[LiveSearch]
    messages: list[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Whole]:
    """A search among v0 … v40 where v23 introduced the change. Several tests read it and none modifies it."""
    profile = tmp_path_factory.mktemp("whole") / "quick.toml"
    profile.write_text('system = "line"\n', encoding="utf-8")
    seen: list[LiveSearch] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHAINMARK_MACHINE", "shared")
        lab = _Lab(LineSystem(change=23), profile, patch)

        class Watching(Reported):
            def begin(self, *run: Any) -> None:
                seen.extend(live_searches(lab.store / "experiments"))

        listener = Watching()
        document = lab.search(progress=listener)
        yield _Whole(document, lab.system.made, seen, live_searches(lab.store / "experiments"), listener.lines)


def test_the_version_that_introduced_the_change_is_found(whole: _Whole) -> None:
    document = whole.document
    report = _result(document)
    assert (report.way, report.first, report.last) == (Way.FOUND, 23, 23)
    assert (document.verdict, document.verdict.exit_code, document.word) == (Verdict.PASS, 0, "PASS")
    assert report.metric_id == "latency_s"
    assert report.effect is not None
    assert report.effect.low < 0.3 < report.effect.high
    assert report.chance is not None
    assert report.chance >= 0.95
    assert sum(report.chances) == pytest.approx(1.0)
    assert report.step_across is not None
    assert report.step_across.labels == ("v22", "v23")
    assert report.step_across.verdict is Verdict.FAIL
    assert report.runs == len(whole.made) < 30
    for step in report.steps:
        assert step.outcome is (SideState.BAD if step.place >= 23 else SideState.GOOD)
    assert report.steps[-1].left == 1
    assert "v23" in document.sentence
    assert all(f"v{place}" in document.text() for place in (22, 23))


def test_the_search_path_is_shown_during_the_search(whole: _Whole) -> None:
    """The viewer shows the tried revisions and the result of each step. No files of it remain afterwards."""
    report, seen = _result(whole.document), whole.seen
    assert (seen[0].good, seen[0].bad, seen[0].left, seen[0].followed) == ("v0", "v40", 40, "")
    last = seen[-1]
    assert last.followed.startswith("latency")
    assert last.runs == report.runs - 1
    path = [(step.place, step.outcome, step.left) for step in report.steps]
    steps = [(step.place, step.outcome, step.left) for step in last.steps]
    assert len(steps) >= 4
    assert steps[:4] == path[:4]
    assert whole.left == []


def test_every_revision_is_measured_with_new_runs_of_both_ends(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a drift of the machine would look like a change."""
    lab = _Lab(LineSystem(change=9), profile, monkeypatch)
    lab.search()
    run_numbers = lab.system.made
    first = next(place for place, number in enumerate(run_numbers) if 0 < number < 40)
    assert set(run_numbers[: first - 1]) == {0, 40}
    for left, right in zip(run_numbers[first - 1 :: 2], run_numbers[first::2], strict=True):
        assert len({left, right} & {0, 40}) == 1
    assert abs(run_numbers.count(0) - run_numbers.count(40)) <= 1


def test_versions_that_do_not_build_make_the_result_a_range(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _Lab(LineSystem(change=23, unbuildable=frozenset({22, 23})), profile, monkeypatch)
    document = lab.search()
    report = _result(document)
    assert (report.way, report.first, report.last) == (Way.RANGE, 22, 24)
    assert document.verdict.exit_code == 0
    assert report.skipped == {
        22: "v22 does not build: main.go:9: undefined: halt",
        23: "v23 does not build: main.go:9: undefined: halt",
    }
    assert "one of 3 revisions, v22 to v24" in document.sentence
    assert "undefined: halt" in document.markdown()


def test_a_version_whose_nodes_fail_is_skipped_after_two_runs(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _Lab(LineSystem(change=11, failing=frozenset({20})), profile, monkeypatch)
    report = _result(lab.search())
    assert (report.way, report.last) == (Way.FOUND, 11)
    assert report.skipped == {20: "no node died: node0 died"}
    assert lab.system.made.count(20) == 2


def test_the_first_failing_version_is_found_if_the_bad_side_fails_its_runs(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = _Lab(LineSystem(failing=frozenset(range(31, 41))), profile, monkeypatch)
    document = lab.search()
    report = _result(document)
    assert (report.way, report.first, report.last) == (Way.FOUND, 31, 31)
    assert report.followed == "failing runs"
    assert report.step_across is not None
    assert report.step_across.verdict is Verdict.FAIL
    assert "v31" in document.text()


def test_the_revisions_around_the_change_run_once_more_with_profiles(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profiles show why; the runs are not part of the search, and a resumed search does not repeat them."""
    lab = _Lab(LineSystem(change=23, profile_kinds=("cpu", "heap", "mutex")), profile, monkeypatch)
    report = _result(lab.search())
    taken = {run.manifest.subject.version: run.manifest.profiles for run in Store(lab.store).sealed()
             if run.manifest.profiles}  # fmt: skip
    assert taken == {"v22": ["cpu", "heap"], "v23": ["cpu", "heap"]}
    assert lab.system.made[-2:] == [22, 23]
    assert report.runs == len(lab.system.made) - 2
    again = _result(cm.bisect(resume=report.experiment, store=lab.store))
    assert lab.system.made[-2:] == [22, 23]
    assert (again.runs, again.steps, again.chances) == (report.runs, report.steps, report.chances)


def test_a_search_without_its_profiles_has_its_result(
    whole: _Whole, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _result(whole.document).runs

    def full_disk(run: int) -> None:
        if run > runs:
            raise EnvironmentFailure("the disk is full", "")

    lab, listener = _Lab(LineSystem(profile_kinds=("cpu",), on_run=full_disk), profile, monkeypatch), Reported()
    report = _result(lab.search(progress=listener))
    assert (report.way, report.first, report.runs) == (Way.FOUND, 23, runs)
    assert "warning: no profiles were collected: the disk is full" in listener.lines


def test_without_a_change_there_is_no_search(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _Lab(LineSystem(factor=1.0), profile, monkeypatch)
    document = lab.search()
    assert _result(document).way is Way.NO_CHANGE
    assert document.verdict.exit_code == 3
    assert set(lab.system.made) == {0, 40}
    assert "There is no regression to search for" in document.text()
    assert "--metric M" in document.text()


def test_a_named_metric_may_have_improved(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for the commit that made a metric faster must also be possible."""
    lab = _Lab(LineSystem(change=5, factor=0.8, metric_id="cpu_cores"), profile, monkeypatch)
    report = _result(lab.search(metric="cpu_cores"))
    assert (report.way, report.last, report.metric_id) == (Way.FOUND, 5, "cpu_cores")
    assert report.effect is not None
    assert report.effect.change == pytest.approx(-0.2, abs=0.03)


def test_a_metric_that_is_better_when_higher_is_followed_downwards(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = _Lab(LineSystem(change=33, factor=0.7, metric_id="throughput_per_s"), profile, monkeypatch)
    report = _result(lab.search())
    assert (report.last, report.metric_id) == (33, "throughput_per_s")
    assert report.effect is not None
    assert report.effect.low < -0.3 < report.effect.high


def test_versions_with_identical_binaries_are_not_measured_separately(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that changes no byte of the program cannot have introduced the change."""
    lab = _Lab(LineSystem(change=4, last=6, same=frozenset({3})), profile, monkeypatch)
    report = _result(lab.search(bad="v6"))
    assert (report.way, report.last) == (Way.FOUND, 4)
    assert report.chances[2] == 0.0 or 2 not in lab.system.made


def test_with_too_few_runs_the_remaining_range_is_reported(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _Lab(LineSystem(change=23), profile, monkeypatch)
    document = lab.search(most_runs=8)
    report = _result(document)
    assert (report.way, document.verdict.exit_code) == (Way.UNDECIDED, 3)
    assert report.first is not None
    assert report.last is not None
    assert report.first <= 23 <= report.last
    assert report.runs == 8
    again = cm.bisect(resume=report.experiment, most_runs=60, store=lab.store)
    assert _result(again).last == 23
    assert f"--resume {report.experiment} --most-runs 16" in document.text()


@pytest.mark.parametrize("stopped_at", [2, 3, 5, 8, 11])
def test_a_resumed_search_has_the_same_result_as_an_uninterrupted_one(
    stopped_at: int, whole: _Whole, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = _Lab(LineSystem(change=23), profile, monkeypatch)

    def stop(number: int) -> None:
        if number == stopped_at:
            raise KeyboardInterrupt

    lab.system.on_run = stop
    listener = Reported()
    with pytest.raises(KeyboardInterrupt):
        lab.search(progress=listener)
    (folder,) = (lab.store / "experiments").iterdir()
    if stopped_at > 1:
        assert listener.lines[-1] == f"interrupted: the finished runs are kept; continue with `--resume {folder.name}`"
    lab.system.on_run = lambda _: None
    report = _result(cm.bisect(resume=folder.name, store=lab.store))
    assert (report.way, report.last) == (Way.FOUND, 23)
    assert report.runs <= _result(whole.document).runs + 2


def test_progress_shows_the_step_and_the_remaining_range(whole: _Whole) -> None:
    steps = [line for line in whole.messages if line.startswith("step ")]
    assert steps[0].startswith("step 1 · v20: it contains the change with ")
    assert "revisions remaining, about " in steps[0]
    assert steps[-1].endswith("1 revision remaining, about 0 more runs")


def test_repeated_instrument_failures_end_the_search_with_a_hint_how_to_resume(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = _Lab(LineSystem(broken=frozenset({20})), profile, monkeypatch)
    with pytest.raises(InvalidRunError, match="the measurement failed in 3 consecutive runs of v20") as failed:
        lab.search()
    assert failed.value.hint is not None
    assert "--resume line-bisect-quick-" in failed.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"good": "v7", "bad": "v99"}, "Line has no published version `v99`"),
        ({"good": "v30", "bad": "v3"}, "`v30` does not come before `v3` among the versions of Line"),
        ({"metric": "nothing_s"}, "`nothing_s` is not a metric of Line"),
        ({"margins": {"nothing_s": 0.2}}, "nothing_s"),
        ({"repo": "/nowhere/at/all"}, "there is no folder `/nowhere/at/all`"),
    ],
)
def test_an_impossible_search_is_rejected_before_any_run(
    options: dict[str, Any], message: str, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = _Lab(LineSystem(), profile, monkeypatch)
    with pytest.raises(UsageError, match=message):
        lab.search(**options)
    assert lab.system.made == []
    assert not (lab.store / "experiments").exists()


def test_ends_that_do_not_build_or_have_identical_binaries_are_rejected(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="v40 does not build"):
        _Lab(LineSystem(unbuildable=frozenset({40})), profile, monkeypatch).search()
    with pytest.raises(UsageError, match="v6 and v7 give identical binaries"):
        _Lab(LineSystem(same=frozenset({7})), profile, monkeypatch).search("v6", "v7")


def test_a_resumed_search_accepts_no_settings(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _Lab(LineSystem(), profile, monkeypatch)
    with pytest.raises(UsageError, match="`x` already has its settings") as error:
        cm.bisect(resume="x", good="v1", store=lab.store)
    assert error.value.hint == "omit `--good` when you resume"
    with pytest.raises(UsageError, match="requires a profile, a good version and a bad version"):
        cm.bisect(profile, good="v1", store=lab.store)
