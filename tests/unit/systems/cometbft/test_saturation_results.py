"""The verdict of a saturation test, and the sentence on whether a candidate sustains what the baseline sustains."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chainmark.core.verdict import Verdict
from chainmark.systems.cometbft.saturation.document import SaturationReport
from chainmark.systems.cometbft.saturation.evaluation import saturation_report
from chainmark.systems.cometbft.saturation.results import CellRun, Saturation, State, candidate_verdict

from tests.unit.systems.cometbft.saturation_samples import METRICS, run, version, whole_test


def _saturation(state: State, load: int | None, low: int, high: int | None) -> Saturation:
    return Saturation(
        measure="committed", threshold=0.9, state=state, load_per_s=load, low_per_s=low, high_per_s=high,
        connections=2, rate_per_s=200, reason=f"reason of {state}",
    )  # fmt: skip


def _report(*findings: Saturation, published: Sequence[Saturation] = (), interrupted: bool = False) -> SaturationReport:
    """Versions v1, v2 … with these findings that select their loads; by their second measure, nothing is known."""
    all_findings = [*findings, *published]
    versions = [
        version(f"v{number}", [run(1, 200, 1.0)], published=number > len(findings))
        for number in range(1, len(all_findings) + 1)
    ]
    report = saturation_report(whole_test(), versions, METRICS)
    found = [
        item.model_copy(update={"saturations": [finding, _saturation("no data", None, 0, None)]})
        for item, finding in zip(report.versions, all_findings, strict=True)
    ]
    return report.model_copy(update={"versions": found, "interrupted": interrupted})


FOUND = _saturation("found", 800, 800, 1600)
WORSE = _saturation("found", 400, 400, 800)
# 800 tx/s by its values, of which only 400 tx/s are certain.
UNCLEAR = _saturation("unclear", 800, 400, 1600)
ABOVE = _saturation("lower bound", None, 800, None)
NOTHING = _saturation("nothing kept up", None, 0, 200)
NO_DATA = _saturation("no data", None, 0, None)


@pytest.mark.parametrize(
    ("baseline", "candidate", "verdict"),
    [
        (FOUND, FOUND, Verdict.PASS),
        (FOUND, ABOVE, Verdict.PASS),
        (ABOVE, FOUND, Verdict.PASS),
        (UNCLEAR, FOUND, Verdict.PASS),
        (FOUND, WORSE, Verdict.FAIL),  # the load that saturates it is the one that the baseline sustains
        (FOUND, NOTHING, Verdict.FAIL),
        (_saturation("found", 1, 1, 2), _saturation("nothing kept up", None, 0, 1), Verdict.FAIL),
        (FOUND, UNCLEAR, Verdict.INCONCLUSIVE),
        (UNCLEAR, UNCLEAR, Verdict.INCONCLUSIVE),
        (UNCLEAR, WORSE, Verdict.INCONCLUSIVE),  # whether the baseline sustains more than 400 tx/s is not certain
        (NOTHING, FOUND, Verdict.INCONCLUSIVE),  # without a load of the baseline there is nothing to pass
        (NOTHING, NOTHING, Verdict.INCONCLUSIVE),
        (NOTHING, _saturation("nothing kept up", None, 0, 0), Verdict.INCONCLUSIVE),
        (NO_DATA, FOUND, Verdict.INVALID),
        (FOUND, NO_DATA, Verdict.INVALID),
    ],
)
def test_a_candidate_must_sustain_what_the_baseline_sustains(
    baseline: Saturation, candidate: Saturation, verdict: Verdict
) -> None:
    assert candidate_verdict(baseline, candidate) is verdict


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([FOUND], Verdict.PASS),
        ([ABOVE], Verdict.INFORMATIONAL),
        ([UNCLEAR], Verdict.INCONCLUSIVE),
        ([_saturation("contradictory", None, 200, 800)], Verdict.INCONCLUSIVE),
        ([NOTHING], Verdict.INCONCLUSIVE),
        ([NO_DATA], Verdict.INVALID),
        ([FOUND, FOUND], Verdict.PASS),
        ([FOUND, WORSE], Verdict.FAIL),
        ([WORSE, FOUND], Verdict.PASS),
        ([FOUND, WORSE, WORSE], Verdict.FAIL),
        ([WORSE, FOUND, WORSE], Verdict.PASS),  # each is compared with the first
        ([FOUND, NO_DATA], Verdict.INVALID),
    ],
)
def test_the_worst_finding_decides(findings: list[Saturation], verdict: Verdict) -> None:
    assert _report(*findings).verdict is verdict


def test_published_tables_decide_nothing() -> None:
    report = _report(FOUND, published=[WORSE])
    assert report.verdict is Verdict.PASS
    assert [item.verdict for item in report.versions] == [Verdict.PASS, Verdict.INFORMATIONAL]
    assert [item.label for item in report.measured] == ["v1"]
    assert _report(published=[WORSE]).verdict is Verdict.INFORMATIONAL


@pytest.mark.parametrize(("findings", "verdict"), [([FOUND], Verdict.PARTIAL), ([FOUND, WORSE], Verdict.FAIL)])
def test_an_interrupted_test_is_partial_unless_a_version_failed(findings: list[Saturation], verdict: Verdict) -> None:
    assert _report(*findings, interrupted=True).verdict is verdict


@pytest.mark.parametrize(
    ("baseline", "candidate", "verdict", "sentence"),
    [
        (NO_DATA, FOUND, Verdict.INVALID, "A version has no valid run."),
        (FOUND, WORSE, Verdict.FAIL, "v1 sustains 800 per second, which saturate v2."),
        (WORSE, FOUND, Verdict.PASS, "v2 certainly sustains at least 800 per second, as v1 does with 400."),
        (UNCLEAR, FOUND, Verdict.PASS, "v2 certainly sustains at least 800 per second, as v1 probably does with 800."),
        (ABOVE, FOUND, Verdict.PASS, "v2 certainly sustains at least 800 per second, as v1 does with 800."),
        (
            UNCLEAR,
            WORSE,
            Verdict.INCONCLUSIVE,
            "v2 certainly sustains at least 400 per second, v1 800: the loads and runs do not decide whether that is "
            "less.",
        ),
        (
            NOTHING,
            NOTHING,
            Verdict.INCONCLUSIVE,
            "v2 certainly sustains at least 0 per second, v1 0: the loads and runs do not decide whether that is less.",
        ),
    ],
)
def test_the_finding_states_both_loads(
    baseline: Saturation, candidate: Saturation, verdict: Verdict, sentence: str
) -> None:
    finding = _report(baseline, candidate).finding()
    assert (finding.verdict, finding.sentence) == (verdict, sentence)
    assert finding.reasons == [f"v1: {baseline.reason}", f"v2: {candidate.reason}"]


def test_the_runs_at_a_versions_load_are_those_that_count() -> None:
    """Not those at another load, even if it has as many connections or the same rate."""

    def runs(prefix: str) -> list[CellRun]:
        loads = [(2, 200, ""), (2, 200, ""), (2, 200, "a node died"), (2, 400, ""), (1, 200, "")]
        return [
            run(connections, rate, 1.0, excluded=excluded).model_copy(update={"origin": f"{prefix}{number}"})
            for number, (connections, rate, excluded) in enumerate(loads)
        ]

    versions = [
        version("old", runs("o")),
        version("new", runs("n")),
        version("theirs", runs("t"), published=True),
    ]
    report = saturation_report(whole_test(), versions, METRICS)
    chosen = [item.model_copy(update={"saturations": [FOUND]}) for item in report.versions]
    assert report.model_copy(update={"versions": chosen}).sides() == {
        "old at c=2, r=200": ["o0", "o1"],
        "new at c=2, r=200": ["n0", "n1"],
    }


@pytest.mark.parametrize(("offered", "committed", "share"), [(200, 150, 0.75), (1, 1, 1.0), (0, 0, 0.0)])
def test_a_share_is_committed_per_offered(offered: int, committed: int, share: float) -> None:
    assert run(1, 200, 1.0).model_copy(update={"offered": offered, "committed": committed}).efficiency == share


def test_the_load_is_that_of_all_connections() -> None:
    (cell,) = saturation_report(whole_test(), [version("v", [run(2, 300, 1.0)])], METRICS).versions[0].cells
    assert (cell.name, cell.load_per_s) == ("c=2, r=300", 600)
