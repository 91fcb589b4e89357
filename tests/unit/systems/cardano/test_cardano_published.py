"""Published reports and runs as inputs of the model: the right value for each metric, or a clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.figures import ANNOUNCED, FORGED, FORGING_STAGES, KNOWN, NEEDED, STAGE_METRICS
from chainmark.systems.cardano.published.reader import ReportFigures, run_figures

from tests.unit.systems.cardano.made_up import report, sealed_run, write

FIGURES = {metric: 0.001 * (place + 1) for place, metric in enumerate(sorted(KNOWN))}
FIGURES["block_size_bytes"] = 2996.0


def _report(path: Path, **changed: Any) -> ReportFigures:
    later = {metric: 2.0 * value for metric, value in FIGURES.items()}
    return ReportFigures(write(path / "report.json", report({"10.5": FIGURES, "10.6": later}, **changed)), _CATALOGUE)


_CATALOGUE = SYSTEM.catalogue()


def test_the_last_column_is_the_subject_of_the_report(tmp_path: Path) -> None:
    read = _report(tmp_path)
    assert read.figures().version == "10.6"
    assert read.figures().label == "10.6, value-only"
    assert read.figures().values["forge_ticked_s"] == pytest.approx(2 * FIGURES["forge_ticked_s"])
    assert read.figures("10.5").values == pytest.approx(FIGURES)
    assert (read.figures().hosts, read.figures().blocks) == (52, 2200)


def test_every_stage_is_read_from_its_row(tmp_path: Path) -> None:
    stages = _report(tmp_path).figures("10.5").stages()
    assert stages.ticked_s == pytest.approx(FIGURES["forge_ticked_s"])
    assert stages.snapshot_s == pytest.approx(FIGURES["forge_snapshot_s"])
    assert stages.adopted_s == pytest.approx(FIGURES["peer_adopted_s"])
    assert stages.self_adopted_s == pytest.approx(FIGURES["forge_self_adopted_s"])
    assert stages.request_s == pytest.approx(FIGURES["peer_request_s"])


def test_older_names_of_a_row_are_recognised(tmp_path: Path) -> None:
    content = report({"8.1.2": FIGURES})
    for row in content["tables"]["Everything"]["rows"]:
        row["metric"] = row["metric"].replace("Fetched to adopted", "Fetches to adopted")
        del row["unit"]
    read = ReportFigures(write(tmp_path / "old.json", content), _CATALOGUE)
    assert read.figures().values["peer_adopted_s"] == pytest.approx(FIGURES["peer_adopted_s"])


def test_digits_that_were_not_printed_count_as_error(tmp_path: Path) -> None:
    content = report({"10.6": FIGURES})
    row = content["tables"]["Everything"]["rows"][0]
    for text, value, error in [("0.62", 0.62, 0.01), ("7.7e-2", 0.077, 1e-3), ("1.", 1.0, 1.0)]:
        row["values"] = [text]
        figures = ReportFigures(write(tmp_path / "r.json", content), _CATALOGUE).figures()
        metric = next(iter(FIGURES))
        assert figures.values[metric] == pytest.approx(value)
        assert figures.standard_errors[metric] == pytest.approx(error / 12**0.5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "is not a published report: `its content`"),
        ('{"versions": ["1"]}', "is not a published report: `tables`"),
        ('{"versions": [], "tables": {}}', "it names no versions"),
        ('{"versions": ["1"], "tables": {"T": {"rows": [{"values": []}]}}}', "`tables.T.rows.0.label`"),
    ],
)
def test_an_invalid_report_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        ReportFigures(path, _CATALOGUE)
    assert message in caught.value.message
    assert str(path) in caught.value.message
    assert not SYSTEM.recognises_document(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        ReportFigures(tmp_path / "none.json", _CATALOGUE)
    assert not SYSTEM.recognises_document(tmp_path)


def test_a_report_without_stages_is_recognised_and_its_gaps_are_reported(tmp_path: Path) -> None:
    """Otherwise the user would look for an error in the file's format."""
    assert SYSTEM.recognises_document(write(tmp_path / "a.json", report({"1": FIGURES})))
    empty = write(tmp_path / "b.json", report({"1": {}}))
    assert SYSTEM.recognises_document(empty)
    with pytest.raises(UsageError, match="has no `"):
        ReportFigures(empty, _CATALOGUE).figures()


@pytest.mark.parametrize("metric", NEEDED)
def test_a_missing_stage_is_reported(tmp_path: Path, metric: str) -> None:
    # Without the time to announcement and the last of its stages, the duration of forging is unknown.
    figures = {name: value for name, value in FIGURES.items() if name not in {metric, FORGED}}
    read = ReportFigures(write(tmp_path / "r.json", report({"10.6": figures})), _CATALOGUE)
    with pytest.raises(UsageError) as caught:
        read.figures()
    assert f"has no `{_CATALOGUE.metric(metric).label}` for 10.6" in caught.value.message


def test_nodes_that_log_no_announcement_are_modelled_by_their_stages(tmp_path: Path) -> None:
    """A tracing configuration without `ChainSync.ServerHeader.Update` ended `explain` with an error."""
    gone = {ANNOUNCED, "forge_announced_s"}
    figures = run_figures(sealed_run(tmp_path, {name: value for name, value in FIGURES.items() if name not in gone}))
    forging = sum(FIGURES[STAGE_METRICS[stage]] for stage in FORGING_STAGES if stage != "announced_s")
    assert figures.values[ANNOUNCED] == pytest.approx(forging)
    assert figures.stages().announced_s == 0.0
    assert figures.unreported == ["forge_announced_s"]


def test_an_unknown_version_is_refused_with_the_known_versions(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no version `10\.4`") as caught:
        _report(tmp_path).figures("10.4")
    assert caught.value.hint == "its versions are 10.5, 10.6"


@given(text=st.text(max_size=12))
def test_any_text_is_a_number_or_is_refused_clearly(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    content = report({"10.6": FIGURES})
    content["tables"]["Everything"]["rows"][5]["values"] = [text]
    read = ReportFigures(write(tmp_path_factory.mktemp("r") / "r.json", content), _CATALOGUE)
    try:
        figures = read.figures()
    except UsageError as error:
        refusal = error
    else:
        assert float(text) in figures.values.values()
        return
    assert refusal.hint


@pytest.mark.parametrize(
    ("metric", "text", "message"),
    [
        ("forge_ticked_s", "fast", "has `fast` for `Ledger ticking` of 10.6, which is not a number"),
        ("forge_ticked_s", "nan", "has `nan`"),
        ("forge_ticked_s", "-0.1", "has a `forge_ticked_s` of \u22120.1 s, which is not plausible"),
        ("adoption_p50_s", "0", "has a `adoption_p50_s` of 0 s, which is not plausible"),
        ("block_size_bytes", "0", "has a `block_size_bytes` of 0 bytes"),
        ("peer_fetch_s", "1e99", "has a `peer_fetch_s` of 1.00e99 s"),
    ],
)
def test_an_impossible_figure_is_reported(tmp_path: Path, metric: str, text: str, message: str) -> None:
    content = report({"10.6": FIGURES})
    content["tables"]["Everything"]["rows"][list(FIGURES).index(metric)]["values"] = [text]
    with pytest.raises(UsageError) as caught:
        ReportFigures(write(tmp_path / "r.json", content), _CATALOGUE).figures()
    assert message in caught.value.message
    assert caught.value.hint


def test_a_negative_mean_between_two_threads_counts_as_zero(tmp_path: Path) -> None:
    figures = ReportFigures(
        write(tmp_path / "r.json", report({"1": {**FIGURES, "peer_announced_s": -1e-5}})), _CATALOGUE
    ).figures()
    assert figures.stages().fetched_to_announced_s == 0.0


def test_the_means_of_a_run_are_read(tmp_path: Path) -> None:
    figures = run_figures(sealed_run(tmp_path, FIGURES))
    assert figures.values == pytest.approx(FIGURES)
    assert figures.standard_errors["peer_fetch_s"] == pytest.approx(FIGURES["peer_fetch_s"] / 1000)
    assert (figures.label, figures.blocks, figures.sampling_known) == ("10.6.2, value-only", 2200, True)


def test_a_run_with_a_missing_metric_or_of_another_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no value of `peer_adopted_s`, which the model needs"):
        run_figures(sealed_run(tmp_path, {name: value for name, value in FIGURES.items() if name != "peer_adopted_s"}))
    with pytest.raises(UsageError, match="is of `cometbft`, but the model is of `cardano`"):
        run_figures(sealed_run(tmp_path, FIGURES, system="cometbft"))


@pytest.mark.parametrize(
    ("version", "release"), [("10.6.2", (10, 6, 2)), ("v11.0.1-pre", (11, 0, 1)), ("10.5-baseline", (10, 5)), ("x", ())]
)
def test_the_release_is_derived_from_the_version(tmp_path: Path, version: str, release: tuple[int, ...]) -> None:
    read = ReportFigures(write(tmp_path / "r.json", report({version: FIGURES})), _CATALOGUE)
    assert read.figures().release == release
