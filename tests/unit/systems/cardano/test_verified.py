"""Files of the published analysis: what is read, what is rejected and how, and which differences are rounding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.errors import UsageError
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.figures import (
    FACTS,
    FACTS_SCHEMA,
    FIGURES,
    FIGURES_SCHEMA,
    Cdf,
    Figure,
    OverHosts,
    PublishedFigures,
    cdf_of,
    figures_of,
)
from chainmark.systems.cardano.verified.document import verification_document
from chainmark.systems.cardano.verified.files import read_theirs
from chainmark.systems.cardano.verified.results import Verification
from chainmark.systems.cardano.verified.statistics import AVERAGE, MEDIAN, Statistic
from chainmark.systems.cardano.verified.verifying import CLOCK_S, verify

from tests.unit.compare.published_runs import run as synthetic

HOSTS = {"node-0": cdf_of([1.0, 2.0, 3.0]), "node-1": cdf_of([4.0, 6.0]), "node-2": cdf_of([])}
STARTED = [0.001, 0.002, 0.004_09]
Json = dict[str, Any]


def _cdf(values: list[float]) -> Json:
    cdf = cdf_of(values)
    return {
        "cdfSize": cdf.n,
        "cdfAverage": cdf.mean,
        "cdfMedian": cdf.median,
        "cdfStddev": cdf.sd,
        "cdfRange": {"low": cdf.low, "high": cdf.high},
        "cdfSamples": [[0.5, cdf.median], [1.0, cdf.high]],
    }


def _retained(store: Path, figures: PublishedFigures) -> SealedRun:
    """A run that stores these figures."""
    unfinished = Store(store).create("cardano", "cardano/value", "1.0", {})
    source = synthetic("1.0")
    for population, frame in source.frames.items():
        unfinished.write_samples(population, frame)
    unfinished.write_figures(FIGURES, figures.frame(), FIGURES_SCHEMA)
    unfinished.write_figures(FACTS, figures.facts_frame(), FACTS_SCHEMA)
    manifest = source.manifest.model_copy(update={"run_id": unfinished.run_id})
    return unfinished.seal(manifest, source.catalogue, list(source.summaries().values()))


@pytest.fixture
def run(tmp_path: Path) -> SealedRun:
    """A run that stores two figures."""
    figures: dict[str, Figure] = {"cdfForgerStart": cdf_of(STARTED), "cdfStarts": OverHosts(HOSTS)}
    return _retained(tmp_path / "store", PublishedFigures(figures, [("Machines", "3")]))


def _verified(run: SealedRun, folder: Path, content: Any, name: str = "blockprop.json") -> Verification:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return verify(run, path, SYSTEM.catalogue(), "test")


def test_stored_figures_are_read_back(run: SealedRun) -> None:
    figures = figures_of(run)
    assert figures is not None
    assert figures.figures == {"cdfForgerStart": cdf_of(STARTED), "cdfStarts": OverHosts(HOSTS)}
    assert (figures.facts, run.verify()) == ([("Machines", "3")], [])


def test_figures_over_hosts_match_hand_computed_values() -> None:
    """A host without samples is all 0, the deviation is the largest, an even number of hosts uses the upper median."""
    figure = OverHosts(HOSTS)
    assert (figure.n, figure.means, figure.low, figure.high) == (5, [0.0, 2.0, 5.0], 0.0, 6.0)
    assert (figure.median, figure.sd) == (2.0, HOSTS["node-1"].sd)
    assert figure.places([1.0, 2.0, 3.0]) == [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0]
    many = OverHosts({f"node-{number:02}": cdf_of([float(number)]) for number in range(31)})
    assert (many.mean, many.mean_of_means) == (14.0, 15.0)
    assert cdf_of([]) == Cdf(0, 0.0, 0.0, (0.0,) * 29)


def test_figures_agree_within_their_rounding(run: SealedRun, tmp_path: Path) -> None:
    content = {"bpVersion": {}, "cdfForgerStart": _cdf(STARTED)}
    content["cdfForgerStart"]["cdfMedian"] += 0.9 * CLOCK_S
    assert _verified(run, tmp_path, content).differing == 0
    content["cdfForgerStart"]["cdfMedian"] += 0.3 * CLOCK_S
    result = _verified(run, tmp_path, content)
    assert [(figure.figure, figure.statistic) for figure in result.figures if figure.agrees is False] == [
        ("cdfForgerStart", "median")
    ]
    document = verification_document(result)
    assert (document.word, document.verdict.exit_code, document.suites[0].cases[0].verdict) == ("FAIL", 1, "fail")


def test_a_size_is_exact(run: SealedRun, tmp_path: Path) -> None:
    content = {"bpVersion": {}, "cdfForgerStart": _cdf(STARTED) | {"cdfSize": 4}}
    assert _verified(run, tmp_path, content).differing == 1


def test_a_deviation_of_zero_agrees_with_one_of_rounding_size(run: SealedRun, tmp_path: Path) -> None:
    """The published mean of equal values may be wrong in its last bit. 10⁻⁹ of 0 would not cover that."""
    equal = cdf_of([0.05] * 31)
    assert (equal.sd, cdf_of([0.1] * 1000).sd) == (0.0, 0.0)
    starts = OverHosts({f"node-{number}": cdf_of([0.1 * 3, 0.1 * 3]) for number in range(3)})
    figures = PublishedFigures({"cdfStarts": starts})
    cdf_content = {
        "cdfSize": 3,
        "cdfAverage": 0.3,
        "cdfMedian": 0.3,
        "cdfStddev": 5.6e-17,
        "cdfRange": {"low": 0.3, "high": 0.3},
    }
    again = _retained(tmp_path / "second", figures)
    content = cdf_content | {
        "cdfSize": 6,
        "cdfAverage": cdf_content | {"cdfSamples": [[0.5, 0.3]] * 3},
        "cdfSamples": [],
    }
    result = _verified(again, tmp_path, content, "cdfStarts.json")
    assert (result.differing, result.compared) == (0, 16)
    off = _verified(again, tmp_path, content | {"cdfStddev": 1e-11}, "cdfStarts.json")
    assert [(figure.group, figure.statistic) for figure in off.figures if figure.agrees is False] == [
        ("", "standard deviation")
    ]


def test_a_missing_median_in_an_older_file_is_not_a_difference(run: SealedRun, tmp_path: Path) -> None:
    older = _cdf(STARTED)
    del older["cdfMedian"]
    result = _verified(run, tmp_path, older, "cdfForgerStart.json")
    assert (result.differing, result.compared) == (0, 7)
    assert not any(figure.statistic == MEDIAN for figure in result.figures)


@pytest.mark.parametrize(
    ("shown", "differing"),
    [("0.50 .00199", 1), ("0.50 .002", 0), ("0.50 .00200", 0), ("1.00 .0040", 0), ("1.00 .0038", 1)],
)
def test_printed_figures_agree_to_their_last_digit(run: SealedRun, tmp_path: Path, shown: str, differing: int) -> None:
    """Printed figures are truncated, not rounded: the last digit is at most one unit too low."""
    assert _verified(run, tmp_path, f"# runs: r\n{shown}\n", "cdfForgerStart.cdf").differing == differing


def _without(name: str) -> Callable[[Json], object]:
    return lambda content: content["cdfForgerStart"].pop(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without("cdfSize"), r"malformed at `cdfForgerStart\.cdfSize`: field required"),
        (lambda c: c["cdfForgerStart"].update(cdfMode=1), r"malformed at `cdfForgerStart\.cdfMode`: extra inputs"),
        (lambda c: c["cdfForgerStart"].update(cdfStddev="1"), r"malformed at `cdfForgerStart\.cdfStddev`"),
        (lambda c: c.update(cdfForgerStart=3), "malformed at `cdfForgerStart`"),
        (lambda c: c.update(bpNovelty=3), "the field `bpNovelty`, which is unknown in all versions"),
        (lambda c: c.update(mpVersion={}), "fields of both blockprop and clusterperf"),
        (lambda c: c.update(bpPropagation=[]), "malformed at `bpPropagation`"),
        (lambda c: c.update(bpDomainSlots={"low": 1}), "malformed at `bpDomainSlots`"),
        (lambda c: c.update(bpDomainSlots={"ddRawCount": "soon"}), "`soon` is not a valid time"),
        (lambda c: c.update(bpDomainSlots={"ddRawCount": True}), "`True` is not a number"),
    ],
)
def test_a_malformed_file_is_refused_with_the_location(
    run: SealedRun, tmp_path: Path, change: Callable[[Json], object], message: str
) -> None:
    content: Json = {"bpVersion": {}, "cdfForgerStart": _cdf(STARTED)}
    change(content)
    with pytest.raises(UsageError, match=message) as error:
        _verified(run, tmp_path, content)
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("{", "blockprop.json", "is not JSON"),
        ('{"cdfSize": NaN}', "blockprop.json", "NaN is not a number"),
        ("[1]", "blockprop.json", "is not a file of the published analysis"),
        ("{}", "blockprop.json", "is not a file of the published analysis"),
        ("# runs\n", "cdfForgerStart.cdf", "contains no centiles"),
        ("# runs\n0.5 1 2\n", "cdfForgerStart.cdf", "each line must be a centile with one value, or with five"),
        ("# runs\n0.5 nan\n", "cdfForgerStart.cdf", "it is not a number"),
    ],
)
def test_unknown_files_are_refused(run: SealedRun, tmp_path: Path, text: str, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _verified(run, tmp_path, text, name)


def test_a_file_that_is_not_text_is_refused(run: SealedRun, tmp_path: Path) -> None:
    path = tmp_path / "blockprop.json"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(UsageError, match="it is not UTF-8"):
        verify(run, path, SYSTEM.catalogue(), "test")


def test_an_analysis_of_several_runs_is_refused(run: SealedRun, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="of several runs"):
        _verified(run, tmp_path, {"sumHosts": _cdf([3.0])}, "summary.json")


def test_a_file_without_any_figure_of_the_run_is_refused(run: SealedRun, tmp_path: Path) -> None:
    """Otherwise an empty comparison would report "all agree"."""
    with pytest.raises(UsageError, match="has no figure in common with the run"):
        _verified(run, tmp_path, _cdf(STARTED), "cdfUnheardOf.json")


def test_an_older_run_without_stored_figures_is_refused(tmp_path: Path) -> None:
    source = synthetic("1.0")
    unfinished = Store(tmp_path / "store").create("cardano", "cardano/value", "1.0", {})
    manifest = source.manifest.model_copy(update={"run_id": unfinished.run_id})
    old = unfinished.seal(manifest, source.catalogue, [])
    with pytest.raises(UsageError, match="has no figures by the published rules") as error:
        _verified(old, tmp_path, {"bpVersion": {}, "cdfForgerStart": _cdf(STARTED)})
    assert "ingest" in str(error.value.hint)


def test_a_figure_over_hosts_is_averaged_as_in_the_reports(tmp_path: Path) -> None:
    """For 31 hosts, the average uses as many of the lowest means as the file has centiles."""
    means = [float(number) for number in range(31)]
    average = _cdf(means) | {"cdfSamples": [[0.5, value] for value in means]}
    content = _cdf(means) | {"cdfAverage": average, "cdfSamples": [[at / 29, _cdf(means)] for at in range(29)]}
    path = tmp_path / "cdfStarts.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert read_theirs(path).figures["cdfStarts"][Statistic("", AVERAGE)] == pytest.approx(14.0)
    assert read_theirs(path).hosts == 31
