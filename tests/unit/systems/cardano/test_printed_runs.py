"""Published reports as runs: each run once, its content, and the runs that it can be compared with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.by_workload import ByWorkload
from chainmark.core.comparison import Comparison
from chainmark.core.errors import UsageError
from chainmark.core.verdict import Verdict
from chainmark.systems.cardano.printed.rounding import unit_of
from chainmark.systems.cardano.published.results import ReportStyle

from tests.support import Lab
from tests.unit.systems.cardano import made_reports as reports

OLD = reports.column("10.5.4", "2026-02-05", "b0a1259")
NEW = reports.column("10.6.2", "2026-02-12", "0d697f1", 1.01)
NEXT = reports.column("10.7.1", "2026-05-12", "1d697f1", 1.02)


def ingest(source: Path, store: Path, **options: object) -> list[cm.Run]:
    return cm.ingest("cardano", source, store=store, **options)  # type: ignore[arg-type]


def result(document: cm.Document) -> Comparison:
    """The result that the document of a comparison was made from."""
    assert isinstance(document.result, Comparison)
    return document.result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two reports: the candidate of the first is the baseline of the second, under another name."""
    reports.written(tmp_path / "release-10.6.2.json", reports.content(OLD, {**NEW, "name": "10.6.2-pre"}))
    reports.written(tmp_path / "release-10.7.1.txt", reports.content(NEW, NEXT))
    (tmp_path / "notes.txt").write_text("nothing of the kind", encoding="utf-8")
    return tmp_path


def test_every_run_of_a_folder_is_imported_once_under_all_its_names(folder: Path) -> None:
    """A baseline is the candidate of the previous report: counted twice, it would look like a run without noise."""
    store = folder / "store"
    runs = ingest(folder, store)
    assert [(run.manifest.subject.version, run.manifest.subject.aliases) for run in runs] == [
        ("10.5.4", []),
        ("10.6.2-pre", ["10.6.2"]),
        ("10.7.1", []),
    ]
    assert all(run.is_new and run.is_valid for run in runs)
    assert cm.open_run("10.6.2", store).id == runs[1].id
    again = ingest(folder / "release-10.7.1.txt", store)
    assert [(run.id, run.is_new) for run in again] == [(run.id, False) for run in runs[1:]]


def test_a_run_contains_the_content_of_its_report(folder: Path) -> None:
    """Values with their rounding errors, the workload, the build: all that a comparison needs from a run."""
    run = ingest(folder / "release-10.6.2.json", folder / "store")[0]
    manifest = run.manifest
    assert (manifest.started_at, manifest.ended_at) == ("2026-02-05T18:52:16Z", "2026-02-06T12:37:17Z")
    assert (manifest.subject.revision, manifest.subject.build) == ("b0a1259", "ghc 9.6.5")
    assert manifest.printed
    workload = {
        key: manifest.workload[key] for key in ("workload.name", "workload.tps", "network.hosts", "analysis.rules")
    }
    assert list(workload.values()) == ["value-only", 12.0, 52, "published"]
    summaries = run.sealed.summaries()
    assert summaries.keys() == {metric.id for metric in run.catalogue.metrics}
    fetch = summaries["peer_fetch_s"].estimates["mean"]
    assert fetch.value == 0.36
    assert fetch.standard_error == pytest.approx(1e-5 / math.sqrt(12.0))
    assert fetch.log_standard_error == pytest.approx(1e-5 / math.sqrt(12.0) / 0.36)
    assert summaries["block_battles"].n == 2327
    assert summaries["block_battles"].total == pytest.approx(0.005 * 2327)
    assert run.verify() == []


@pytest.mark.parametrize(
    ("printed", "width", "style", "unit"),
    [
        ("0.36", 4, ReportStyle.TYPST, 1e-5),  # superfluous zeros are omitted
        ("8735.4", 5, ReportStyle.TYPST, 0.1),
        ("5.4359", 3, ReportStyle.TYPST, 1e-4),
        ("7.7e-5", 4, ReportStyle.TYPST, 1e-6),
        ("0.9989", None, ReportStyle.ORG, 1e-5),
        ("10.77", None, ReportStyle.ORG, 1e-3),
        ("5e-05", None, ReportStyle.ORG, 1e-5),
        ("2996.0", None, ReportStyle.ORG, 0.1),
        ("88951", None, ReportStyle.ORG, 1.0),
    ],
)
def test_the_rounding_unit_of_printed_digits(printed: str, width: int | None, style: ReportStyle, unit: float) -> None:
    assert unit_of(printed, width, style) == pytest.approx(unit)


def test_a_report_without_history_is_judged_inconclusive_with_the_reason(folder: Path) -> None:
    """There is one run per side and no estimate of the noise. The verdict is neither a pass nor an error."""
    report = folder / "release-10.6.2.json"
    document = cm.compare(str(report), store=folder / "store")
    assert document.verdict is Verdict.INCONCLUSIVE
    assert document.caveats.badges == ("PRINTED",)
    assert any("noise between runs is assumed" in text for text in result(document).advice)
    judged = document.frame.filter(document.frame["gates"])
    assert judged.filter(judged["id"] == "peer_fetch_s.mean")["verdict"].to_list() == ["inconclusive"]
    alone = cm.compare(f"{report}@10.5.4", f"{report}@10.6.2-pre", store=folder / "store")
    assert alone.result == document.result
    with pytest.raises(UsageError, match="is only one version"):
        cm.compare(f"{report}@10.5.4", store=folder / "store")


def test_with_history_the_verdict_is_decided_and_states_its_basis(tmp_path: Path) -> None:
    """With ten similar releases and one run per side, an equal release passes and one with a slower fetch fails."""
    store = tmp_path / "store"
    past = reports.series([0.004, -0.003, 0.002, -0.004, 0.003, -0.002, 0.004, -0.003, 0.002, -0.001])
    ingest(reports.written(tmp_path / "past.json", reports.content(*past)), store)
    good = reports.column("10.6.2", "2026-02-12", "0d697f1", 1.002)
    bad = reports.column("10.6.3", "2026-03-12", "1d697f1", 1.002, **{"Fetch duration": "0.41"})
    ingest(reports.written(tmp_path / "new.json", reports.content(good, bad)), store)
    passed, failed = (cm.compare("9.10.0", version, store=store) for version in ("10.6.2", "10.6.3"))
    assert (passed.verdict, failed.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert [item.metric_id for item in result(failed).judgements if item.outcome == "worse"] == ["peer_fetch_s"]
    noise = next(text for text in result(passed).reasons if text.startswith("noise between runs"))
    assert "history of 10 builds (0 re-runs, 9 release-to-release changes)" in noise
    fetch = next(item for item in result(passed).judgements if item.metric_id == "peer_fetch_s")
    assert "the baseline is the level of 10 releases" in fetch.noise
    alone = cm.compare("9.10.0", "10.6.2", against="run", store=store)
    wider = next(item for item in result(alone).judgements if item.metric_id == "peer_fetch_s")
    assert (wider.high or 0.0) - (wider.low or 0.0) > (fetch.high or 0.0) - (fetch.low or 0.0)


def test_two_workloads_give_two_comparisons_and_one_verdict(tmp_path: Path) -> None:
    """A version selects runs of both workloads. Choosing one silently would judge the release by half of its runs."""
    store = tmp_path / "store"
    for workload, start in (("value-only", "18:52:16"), ("Plutus countdown loop", "20:00:00")):
        days = [
            (version["name"], version["facts"]["Analysis date"], version["facts"]["cardano-node git"])
            for version in (OLD, NEW)
        ]
        columns = [reports.column(*day, 1.0, **{"Cluster system start time": start}) for day in days]
        ingest(reports.written(tmp_path / f"{start[:2]}.json", reports.content(*columns, workload=workload)), store)
    document = cm.compare("10.5.4", "10.6.2", store=store)
    assert document.kind == "by-workload"
    assert isinstance(document.result, ByWorkload)
    assert document.result.labels == ["published-plutus", "published-value-only"]
    assert len({suite.name for suite in document.suites}) == 2
    for medium in (document.html(), document.markdown(), document.text()):
        assert "published-plutus" in medium
        assert "PRINTED" in medium


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filters": ["value"]}, "`--filter` has no effect"),
        ({"settings": ["genesis.system_start=2026-02-05T18:52:16Z"]}, "`--set` has no effect"),
        ({"version": "11.0"}, "has no column `11.0`"),
    ],
)
def test_unsupported_options_for_a_report_are_refused(folder: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        ingest(folder / "release-10.6.2.json", folder / "store", **options)
    assert caught.value.hint


def test_the_command_marks_printed_runs(folder: Path, lab: Lab) -> None:
    """The mark appears in the list of runs, on the page of a run and in the output of the import."""
    done = lab.run("ingest", "cardano", str(folder))
    assert done.returncode == 0, done.stderr
    assert " PASS   3 runs, 3 of them new; all are valid." in done.stdout
    assert "PRINTED" in done.stdout
    assert lab.run("runs", "list").stdout.count("PRINTED") == 3
    assert "PRINTED" in lab.run("runs", "show", "10.7.1").stdout
    compared = lab.run("compare", str(folder / "release-10.6.2.json"), code=3)
    assert "PRINTED" in compared.stdout


def test_logs_next_to_reports_are_not_omitted_silently(folder: Path, tmp_path: Path, lab: Lab) -> None:
    """A user who passes one folder with everything expects the logs to be imported."""
    mixed = tmp_path / "mixed"
    (mixed / "value" / "node-0").mkdir(parents=True)
    (mixed / "value" / "node-0" / "stdout").write_text("{}\n", encoding="utf-8")
    (mixed / "notes.md").write_text("not a log", encoding="utf-8")
    (mixed / "release.json").write_bytes((folder / "release-10.6.2.json").read_bytes())
    done = lab.run("ingest", "cardano", str(mixed))
    error_output = " ".join(done.stderr.split())
    assert "not read, because" in error_output
    assert "value/node-0/stdout; import a folder of logs separately" in error_output
    assert "notes.md" not in error_output
    assert "not read, because" not in lab.run("ingest", "cardano", str(mixed / "release.json")).stderr
