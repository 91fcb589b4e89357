"""The shared history of Cardano's releases: every run once, and re-runs within the noise that other runs show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from chainmark.compare.decide import Past, decide
from chainmark.compare.gates import same_workload
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.noise import build_of
from chainmark.compare.releases import Releases
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.epoch import Epoch
from chainmark.core.question import BaselineKind
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.entries import published_of

pytestmark = pytest.mark.shared_data
# The hosts changed in summer 2025: a node's memory fell by 30 % from one run of 10.5.0 to the next.
MEMORY = ("rss_mib", "heap_mib", "live_mib")
NEW_HOSTS = Epoch(system="cardano", since="2025-08-01T00:00:00Z", text="new hosts", metrics=MEMORY)
WORKLOADS = ("value-only", "plutus")


@pytest.fixture(scope="module")
def runs(history: Path) -> list[SealedRun]:
    """All runs of all reports."""
    return Store(history).sealed()


def of_workload(runs: Sequence[SealedRun], name: str) -> list[SealedRun]:
    """The runs that are comparable with the newest run of a workload."""
    selected = [run for run in runs if run.manifest.workload["workload.name"] == name]
    return [run for run in selected if same_workload(run.manifest, selected[-1].manifest)]


def re_runs(runs: Sequence[SealedRun]) -> Iterator[tuple[SealedRun, SealedRun]]:
    for run, other in combinations(runs, 2):
        if build_of(LoadedRun(run)) == build_of(LoadedRun(other)):
            yield run, other


def gating(run: SealedRun, other: SealedRun, runs: Sequence[SealedRun], past: Past) -> list[Judgement]:
    return [item for item in decide([run], [other], runs, past).judgements if item.gating]


def test_seventy_two_columns_are_fifty_three_runs(runs: list[SealedRun]) -> None:
    """The start time of their cluster identifies them. Three builds were run twice under each workload."""
    identities = Counter(run.manifest.identity for run in runs)
    assert len(identities) == 53
    for workload in WORKLOADS:
        versions = [
            (run.manifest.subject.release or run.manifest.subject.version)
            for run, _ in re_runs(of_workload(runs, workload))
        ]
        assert versions == ["8.9.1", "8.12.0", "10.5.0"]


def test_every_row_of_every_report_is_understood(runs: list[SealedRun]) -> None:
    """A metric with an unknown label would silently not be judged."""
    printed = {
        metric.id for metric in SYSTEM.catalogue().metrics if metric.gating and published_of(metric).width is not None
    }
    assert len(printed) == 10
    for run in runs:
        assert [gate.status.value for gate in run.manifest.gates] == ["pass"], run.run_id
        assert printed - run.summaries().keys() == set(), run.run_id


def test_the_new_hosts_are_found_without_being_declared(runs: list[SealedRun]) -> None:
    for workload in WORKLOADS:
        selected = of_workload(runs, workload)
        changes = Releases([LoadedRun(selected[-1])], selected).setup_changes
        by_metric = {change.metric_id: change for change in changes if change.started.startswith("2025-08")}
        assert by_metric.keys() >= {"rss_mib", "heap_mib"}
        assert -0.40 < by_metric["rss_mib"].change < -0.25


@pytest.mark.parametrize("baseline", list(BaselineKind))
def test_re_runs_are_not_reported_as_moved(runs: list[SealedRun], baseline: BaselineKind) -> None:
    """Each pair is judged with the noise of the other runs: at most 5 % of all metrics change, and one is worse."""
    judged: list[Judgement] = []
    worse: list[str] = []
    moved: list[str] = []
    for workload in WORKLOADS:
        selected = of_workload(runs, workload)
        for run, other in re_runs(selected):
            items = decide([run], [other], selected, Past([NEW_HOSTS], baseline)).judgements
            judgements = [item for item in items if item.outcome is not Outcome.NOT_COMPARABLE]
            judged += judgements
            moved += [item.metric_id for item in judgements if item.moved]
            worse += [item.metric_id for item in judgements if item.gating and item.outcome is Outcome.WORSE]
    assert len(judged) > 250
    assert len(moved) <= 0.05 * len(judged)
    assert worse in ([], ["peer_fetch_s"])  # fetches took 8 % longer two months later, on the same build


@pytest.mark.parametrize(("baseline", "least"), [(BaselineKind.RUN, 0.72), (BaselineKind.HISTORY, 0.77)])
def test_most_gating_metrics_of_neighbouring_releases_are_decided(
    runs: list[SealedRun], baseline: BaselineKind, least: float
) -> None:
    """This holds with one run per side. With an assumed noise it was one in ten."""
    outcomes: Counter[Outcome] = Counter()
    for workload in WORKLOADS:
        selected = of_workload(runs, workload)
        for run, other in pairwise(selected):
            outcomes.update(item.outcome for item in gating(run, other, selected, Past([NEW_HOSTS], baseline)))
    settled = outcomes[Outcome.EQUAL] + outcomes[Outcome.BETTER] + outcomes[Outcome.WORSE]
    comparable = outcomes.total() - outcomes[Outcome.NOT_COMPARABLE]
    assert comparable > 420
    assert settled / comparable > least
