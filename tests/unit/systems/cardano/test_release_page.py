"""The page of a release: one verdict over all workloads, and text in which every sentence has its interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import chainmark as cm
from chainmark.compare.narrative import CONCLUSION, OBSERVATIONS
from chainmark.core.errors import UsageError
from chainmark.core.release_page import Chapter, ReleasePage, Sentence
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Table
from chainmark.report.chart import Chart
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.document import figure_blocks
from chainmark.systems.cardano.published.part import CardanoPart, cardano_part
from chainmark.systems.cardano.published.results import PublishedFigure, PublishedLine

from tests.results import result_in
from tests.support import Lab
from tests.unit.systems.cardano import made_reports as reports
from tests.unit.systems.cardano.clusters import ingest as ingest_logs
from tests.unit.systems.cardano.clusters import make_cluster

STARTS = {"value-only": "18:52:16", "Plutus countdown loop": "20:00:00"}
DEVIATIONS = (0.004, -0.003, 0.002, -0.004, 0.003, -0.002, 0.004, -0.003, 0.002, -0.001)
SLOW = {"Fetch duration": "0.41"}


def ingested(tmp_path: Path, columns: Sequence[dict[str, Any]], workload: str) -> Path:
    """A store with the runs of several columns under a workload."""
    for column in columns:
        column["facts"]["Cluster system start time"] = STARTS[workload]
    report = reports.written(tmp_path / f"{workload}-{len(columns)}.json", reports.content(*columns, workload=workload))
    cm.ingest("cardano", report, store=tmp_path / "store")
    return tmp_path / "store"


def page(document: cm.Document) -> ReleasePage:
    assert isinstance(document.result, ReleasePage)
    return document.result


def sentences(release_page: ReleasePage, part: str) -> list[Sentence]:
    return [sentence for chapter in release_page.text if chapter.part == part for sentence in chapter.sentences]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten releases, two workloads. 10.6.2 is like the others, 10.6.3 fetches slower under one, 10.7.0 has a third."""
    folder = tmp_path_factory.mktemp("releases")
    for workload in STARTS:
        ingested(folder, reports.series(DEVIATIONS), workload)
        slow = SLOW if workload == "value-only" else {}
        last = [
            reports.column("10.6.2", "2026-02-12", "0d697f1", 1.001),
            reports.column("10.6.3", "2026-03-12", "1d697f1", 1.001, **slow),
            reports.column("10.7.0", "2026-04-12", "2d697f1"),
        ]
        ingested(folder, last, workload)
    other = reports.content(reports.column("10.7.0", "2026-04-20", "2d697f1"), workload="Plutus SECP loop")
    cm.ingest("cardano", reports.written(folder / "secp.json", other), store=folder / "store")
    return folder / "store"


def test_a_release_has_one_verdict_over_its_workloads(store: Path) -> None:
    """The baseline is the highest lower version with runs under both. A slower result under one workload is a fail."""
    passed, failed = (cm.release("cardano", version, store=store) for version in ("10.6.2", "10.6.3"))
    assert (passed.verdict, failed.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert [by_workload.comparisons[0].labels for by_workload in page(passed).against] == [("9.10.0", "10.6.2")]
    assert page(failed).against[0].comparisons[0].labels == ("10.6.2", "10.6.3")
    assert page(failed).against[0].labels == ["value-only", "plutus"], "the tables must have the order of the runs"
    assert page(failed).sentence.startswith("10.6.3 fails under value-only and passes under plutus. Value-only: ")
    assert {suite.name for suite in failed.suites} == {"value-only, against 10.6.2", "plutus, against 10.6.2"}


def test_a_workload_without_a_baseline_does_not_pass(store: Path) -> None:
    """The page reports a third workload that is new in the release. The verdict is inconclusive."""
    document = cm.release("cardano", "10.7.0", ["10.6.2"], store=store)
    assert document.verdict is Verdict.INCONCLUSIVE
    assert "No baseline was run under cardano/published-plutus-secp." in page(document).sentence
    assert any("only 10.7.0 was run under" in text for text in page(document).against[0].unmatched)


def test_every_observation_shows_its_interval(store: Path) -> None:
    """A statement without an interval is an opinion. A difference between re-runs is not called a change."""
    release_page = page(cm.release("cardano", "10.6.3", store=store))
    for sentence in sentences(release_page, OBSERVATIONS):
        assert sentence.evidence, sentence.text
        assert " … " in sentence.text
        assert "(" in sentence.text
    fetch = next(
        sentence for sentence in sentences(release_page, OBSERVATIONS) if sentence.text.startswith("Fetch duration")
    )
    assert "under value-only it rises from 360.1 to 410.0 ms" in fetch.text
    assert "a cost beyond the margin of 5 %; under plutus it stays within re-run noise" in fetch.text
    slow, equal = fetch.evidence
    assert slow.low > 0.05
    assert equal.low < 0.0 < equal.high
    end = next(chapter for chapter in release_page.text if chapter.title == "End-to-end propagation")
    assert [sentence.text.partition(";")[0] for sentence in end.sentences] == [
        f"Under {workload}, all 4 metrics stay within re-run noise" for workload in ("value-only", "plutus")
    ]
    for evidence in (item for sentence in end.sentences for item in sentence.evidence):
        assert evidence.low <= 0.0 <= evidence.high


def test_the_conclusion_names_the_deciding_metrics(store: Path) -> None:
    release_page = page(cm.release("cardano", "10.6.3", store=store))
    texts = [sentence.text for sentence in sentences(release_page, CONCLUSION)]
    assert texts[0].startswith("Against 10.6.2, 10.6.3 fails under value-only and passes under plutus. Value-only: ")
    assert "fetching a block takes 1" in texts[0]
    assert texts[1].startswith("Worse than the margin allows: Fetch duration under value-only, +1")
    equal = page(cm.release("cardano", "10.6.2", store=store))
    assert any("none of these is worse" in sentence.text for sentence in sentences(equal, CONCLUSION))


def test_the_parts_have_the_published_order(store: Path) -> None:
    """Set-up, observations by table, conclusion; then evidence, tables, parameters, dictionary."""
    signature = cm.Signature("Ada Lovelace", "The first release with a new mempool.", "2026-02-16")
    document = cm.release("cardano", "10.6.2", signature=signature, store=store)
    titles = [section.title for section in document.sections]
    assert titles == [
        *("Set-up", "Observations", "Conclusion", "Verdict"),
        *("Analysis: value-only workload", "Analysis: plutus workload"),
        *("Manifest: value-only workload", "Manifest: plutus workload"),
        "Appendix B: data dictionary",
    ]
    chapter_titles = [chapter.title for chapter in page(document).text if chapter.part == OBSERVATIONS]
    tables = [table.title for table in page(document).against[0].comparisons[0].catalogue.tables]
    assert chapter_titles == [title for title in tables if title in chapter_titles]
    assert len(chapter_titles) == 5
    for medium in (document.html(), document.markdown(), document.text()):
        for text in ("Ada Lovelace · 2026-02-16", "The first release with a new mempool.", "Forging", "PRINTED"):
            assert text in medium
    assert document.pdf() == cm.release("cardano", "10.6.2", signature=signature, store=store).pdf()
    again = result_in(document.json, ReleasePage)
    assert [chapter.model_dump() for chapter in again.text] == [chapter.model_dump() for chapter in page(document).text]


def test_several_baselines_are_shown_on_one_page(store: Path) -> None:
    document = cm.release("cardano", "10.6.3", ["10.6.2", "9.10.0"], store=store)
    release_page = page(document)
    assert document.title == "Cardano 10.6.3 against 10.6.2 and 9.10.0"
    assert document.verdict is Verdict.FAIL
    assert {f"{OBSERVATIONS} against 10.6.2", f"{OBSERVATIONS} against 9.10.0"} < {
        chapter.part for chapter in release_page.text
    }
    first = release_page.published[0]
    assert isinstance(first, CardanoPart)
    assert [column.label for column in first.report.columns] == ["10.6.2", "9.10.0", "10.6.3"]
    assert len({block.id for block in document.blocks()}) == len(document.blocks())


def test_rows_that_are_zero_everywhere_are_omitted(tmp_path: Path) -> None:
    zero = {"Height & slot battles": "0.0"}
    days = (("10.5.4", "2026-02-05", "b0a1259"), ("10.6.2", "2026-02-12", "0d697f1"))
    columns = [reports.column(*day, 1.0, **zero) for day in days]
    document = cm.release("cardano", "10.6.2", store=ingested(tmp_path, columns, "value-only"))
    part = page(document).published[0]
    assert isinstance(part, CardanoPart)
    rows = [row.label for table in part.report.tables for row in table.rows]
    assert "Height & slot battles" not in rows
    assert "Chained to forged blocks" in rows
    assert not any(
        "Height & slot battles" in sentence.text for chapter in page(document).text for sentence in chapter.sentences
    )


def test_the_date_of_the_analysis_is_not_the_date_of_the_last_log_line(tmp_path: Path) -> None:
    """Logs of February, analysed later. The time of rendering does not appear either."""
    runs = []
    for seed, version in ((1, "10.5.4"), (2, "10.6.2")):
        logs = make_cluster(tmp_path / version, seed=seed)
        runs.append(ingest_logs(tmp_path / "store", logs, version=version, filters=[]).run)
    document = cm.release("cardano", "10.6.2", signature=cm.Signature(date="2026-03-01"), store=tmp_path / "store")
    part = page(document).published[0]
    assert isinstance(part, CardanoPart)
    dates = next(fact.values for fact in part.report.facts if fact.label == "Analysis date")
    assert dates == [runs[0].sealed_on, "2026-03-01"]
    assert page(cm.release("cardano", "10.6.2", store=tmp_path / "store")).date == runs[1].sealed_on
    hosts = next(block for block in part.parameters() if isinstance(block, Table) and block.title == "Hosts")
    assert sorted(name for row in hosts.rows for name in row.cells[2].text.split(", ")) == [
        f"node-{number}" for number in range(4) for _ in range(2)
    ]
    assert any(chart.title.startswith("Figure 1: ") for chart in document.charts())
    cm.annotate("10.5.4", "a disk was full", store=tmp_path / "store")
    charts = cm.release("cardano", "10.6.2", store=tmp_path / "store").charts()
    figures = [chart for chart in charts if chart.title.startswith("Figure ")]
    assert figures
    assert all(chart.note.endswith("note on 10.5.4: a disk was full") for chart in figures)


def figure(metric: str, *values: float) -> PublishedFigure:
    fractions = [0.01, 0.5, 0.9, 0.98, 1.0]
    lines = [PublishedLine(label="10.6.2", values=list(values), fractions=fractions)] if values else []
    return PublishedFigure(
        metric_id=metric, published_id=metric, label=metric, unit="s", description="", logarithmic=False, lines=lines
    )


def test_figures_keep_their_numbers_and_show_the_range_of_the_samples(store: Path) -> None:
    """A chart without data does not renumber the others; one late block of 4.7 s does not squeeze the axis."""
    runs = [[cm.open_run(version, store).sealed] for version in ("10.6.2", "10.6.3")]
    report = cardano_part(runs, {}, SYSTEM.catalogue(), "0").report
    assert len(report.figures) == 29, "every chart keeps its number, although printed runs have no samples"
    assert report.figures[25].label == "0.50 adoption"
    report.figures = [figure("a"), figure("b", 0.5, 0.6, 1.0, 1.1, 4.7), figure("c", 0.6, 0.7, 1.0, 1.1, 1.2)]
    charts = [block for block in figure_blocks(report) if isinstance(block, Chart)]
    assert [chart.title for chart in charts] == ["Figure 2: b", "Figure 3: c"]
    tail, whole = charts
    assert tail.x.domain == pytest.approx((0.55, 1.13), abs=0.06)
    assert "10.6.2 from 0.5 to 4.7 s" in tail.note
    assert whole.x.domain is None
    assert not whole.note.startswith("The axis")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plan": "quick"}, "`--plan` applies only to nodes that chainmark runs"),
        ({"resume": "x"}, "`--resume` applies only to nodes"),
        ({"candidate": None}, "requires a candidate"),
        ({"candidate": "9.1.0"}, "no earlier release than 9.1.0"),
        ({"baseline": "8.0"}, "no run matches `8.0`"),
        ({"signature": cm.Signature(date="yesterday")}, "`yesterday` is not a valid date"),
    ],
)
def test_unsupported_options_for_imported_runs_are_refused(store: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        cm.qualify("cardano", **{"candidate": "10.6.2", "store": store, **options})
    assert caught.value.hint


def test_additions_to_a_page_are_read_from_a_file(tmp_path: Path, lab: Lab) -> None:
    """A statement of several paragraphs cannot be typed at a prompt; options override the file."""
    reports.written(tmp_path / "all.json", reports.content(*reports.series(DEVIATIONS)))
    lab.run("ingest", "cardano", str(tmp_path / "all.json"))
    path = tmp_path / "page.toml"
    path.write_text('author = "Ada Lovelace"\nstatement = """\nTwo\nlines.\n"""\ndate = 2026-03-20\n', encoding="utf-8")
    arguments = ("qa", "cardano", "--candidate", "9.10.0", "--page", str(path))
    done = lab.run(*arguments, "--author", "Grace Hopper")
    assert "Grace Hopper · 2026-03-20" in done.stdout
    assert "Two lines." in " ".join(done.stdout.split())
    assert cm.Signature.read(path) == cm.Signature("Ada Lovelace", "Two\nlines.", "2026-03-20")


@pytest.mark.parametrize("text", ["autor = 'Ada'", "author = 3", "author = 'Ada"])
def test_an_invalid_page_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "page.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="the page's file"):
        cm.Signature.read(path)


def test_page_options_are_refused_for_nodes_run_by_chainmark() -> None:
    with pytest.raises(UsageError, match="applies only to imported runs"):
        cm.qualify("cometbft", baseline="v1", candidate="v2", signature=cm.Signature("Ada Lovelace"))
    with pytest.raises(UsageError, match="one baseline"):
        cm.qualify("cometbft", baseline=["v1", "v2"], candidate="v3")


def test_three_commands_make_a_page(tmp_path: Path, lab: Lab) -> None:
    """The input is a folder of reports, the output a page."""
    columns = [*reports.series(DEVIATIONS), reports.column("10.6.3", "2026-03-12", "1d697f1", 1.001, **SLOW)]
    (tmp_path / "reports").mkdir()
    reports.written(tmp_path / "reports" / "all.json", reports.content(*columns))
    lab.run("ingest", "cardano", str(tmp_path / "reports"))
    out = tmp_path / "page"
    done = lab.run(
        *("qa", "cardano", "--candidate", "10.6.3", "--author", "Ada Lovelace", "--date", "2026-03-20"),
        *("--pdf", f"{out}.pdf", "--junit", f"{out}.xml"),
        code=1,
    )
    assert "Worse than the margin allows: Fetch duration under value-only" in " ".join(done.stdout.split())
    assert Path(f"{out}.pdf").read_bytes().startswith(b"%PDF")
    assert "peer_fetch_s.mean" in Path(f"{out}.xml").read_text(encoding="utf-8")


def test_the_json_contains_the_chapters() -> None:
    """A program can read each sentence together with its values."""
    chapter = Chapter(part="Set-up", title="", sentences=[Sentence(text="Made once.")])
    assert Chapter.model_validate_json(chapter.model_dump_json()) == chapter
