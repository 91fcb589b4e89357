"""A search among commits with runs in memory. Seeds determine the runs, and the product's rule selects the next one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from chainmark.compare import compare
from chainmark.compare.bisect import Known, followed_of, steps_of
from chainmark.compare.bisect_result import Searched, bisect_report
from chainmark.compare.decide import decide
from chainmark.core.bisect_report import BisectReport, Revision, Way
from chainmark.core.manifest import ExperimentPlace
from chainmark.lab.bisecting import Bisection, BisectRecord, BisectRequest, Visit
from chainmark.lab.running import Lab, RunSeries
from chainmark.stats.change_place import pair_of
from chainmark.store.experiments import ExperimentFolder
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.compare.synthetic_runs import SyntheticRun, manifest
from tests.unit.lab.line_system import CATALOGUE, LineProfile, LineSystem
from tests.unit.lab.stand_in import Followed

CHANGE, LAST = 8, 12
REPORTED = {5: "repo@commit5 does not build", 7: "repo@commit7 does not build"}
_ENDS = 3  # in rounds


def _revision(place: int) -> Revision:
    subject = "Let writers settle before a block is executed" if place == CHANGE else f"Change number {place}"
    return Revision(
        version=f"v{place}",
        label=f"commit{place}",
        subject=subject,
        commit=f"{place:040d}",
        author="Ada Lovelace",
        date=f"2026-01-{place + 1:02d}T12:00:00+00:00",
    )


class InMemory:
    """A search whose runs take no time."""

    def __init__(self, system: LineSystem, skipped: dict[int, str], most_runs: int = 120) -> None:
        record = BisectRecord(
            system="line",
            profile=LineProfile().model_dump(mode="json"),
            order=BisectRequest(repo="repo", most_runs=most_runs),
            revisions=[_revision(place) for place in range(LAST + 1)],
            listed="commits of the main line (first parents)",
            started_at="2026-01-20T08:00:00Z",
            skipped=skipped,
        )
        folder = ExperimentFolder(Path("line-bisect-quick-20260120T080000-0001"))
        self.system = system
        lab = Lab(Store(Path("nowhere")), system)
        series = RunSeries(lab, folder.experiment_id, seed=1, keep_homes=False, listener=Followed())
        self.made = Bisection(series, folder, record, LineProfile())

    def run(self, place: int) -> None:
        """Make one run of the revision."""
        position = self.made.series.next_position
        label = self.made.record.revisions[place].label
        stands = ExperimentPlace(id=self.made.id, side=label, repetition=1, position=position)
        started = f"2026-01-20T{8 + position // 60:02d}:{position % 60:02d}:00Z"
        described = manifest(label, 1, seed=position, run_id=f"line-{label}-{position:04d}", experiment=stands)
        described = described.model_copy(
            update={"started_at": started, "configuration": type(described.configuration)()}
        )
        run = SyntheticRun(described, CATALOGUE, {"block": self.system.blocks(place, position)})
        self.made.runs[position] = cast(SealedRun, run)

    def visit(self, place: int, runs: list[int]) -> None:
        """Make these runs in one visit, one after the other."""
        if not self.made.record.visits or self.made.record.visits[-1].place != place:
            self.made.record.visits.append(Visit(place=place, position=len(self.made.runs)))
        for run in runs:
            self.run(run)

    def report(self) -> BisectReport:
        """Run the complete search and return its report."""
        bisection = self.made
        self.visit(LAST, [place for turn in range(_ENDS) for place in ((0, LAST), (LAST, 0))[turn % 2]])
        sides = bisection.of(0), bisection.of(LAST)
        ends, followed = compare(*sides, tool_version="0.0.0"), followed_of(decide(*sides), None)
        if followed is None:
            return bisect_report(Searched(bisection, ends, Way.NO_CHANGE), "0.0.0")
        known = Known.of(bisection, followed, None)
        while (place := known.turn()) is not None and len(bisection.runs) < bisection.record.order.most_runs:
            turn = (
                len(bisection.of(place, len(bisection.record.visits) - 1))
                if bisection.record.visits[-1].place == place
                else 0
            )
            self.visit(place, pair_of(place, known.seen.places.tolist(), LAST, turn))
            known = Known.of(bisection, followed, None)
        answer = known.row.answer(known.chances)
        way = Way.UNDECIDED if answer is None else Way.FOUND if answer.at - answer.before == 1 else Way.RANGE
        around = None if answer is None else (bisection.of(answer.before), bisection.of(answer.at))
        across = None if around is None else compare(*around, tool_version="0.0.0")
        stat = [" state/execution.go | 7 +++++++", " 1 file changed, 7 insertions(+)"] if way is Way.FOUND else []
        return bisect_report(
            Searched(bisection, ends, way, known, steps_of(bisection, followed, None), across, stat), "0.0.0"
        )


def searched(skipped: dict[int, str] | None = None, **settings: float) -> BisectReport:
    """The report of a search with skipped revisions. ``settings`` configure the system."""
    most_runs = int(settings.pop("most_runs", 120))
    system = LineSystem(change=CHANGE, last=LAST, noise=settings.get("noise", 0.04), factor=settings.get("factor", 1.3))
    return InMemory(system, skipped or {}, most_runs).report()
