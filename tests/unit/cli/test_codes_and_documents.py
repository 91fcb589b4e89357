"""A pipeline reads either the exit code of a command or its documents: they must not contradict each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as Xml

import pytest
import typer

import chainmark as cm
from chainmark.cli.failures import INTERRUPTED
from chainmark.cli.output import Output
from chainmark.core.errors import ExitCode
from chainmark.core.load_report import TargetEntry
from chainmark.core.verdict import Verdict
from chainmark.lab.loading import LoadTest
from chainmark.report.document import Document
from chainmark.report.layouts import document_of

from tests.unit.cli.commands import chainmark
from tests.unit.report.load_samples import bare, endpoint, report, target, with_answer
from tests.unit.report.samples import sample

MISSED = with_answer(bare("nothing passed", capacity=0.0, low=0.0, high=1.0, condition="p99"))


@pytest.mark.parametrize(
    ("targets", "code", "failures"),
    [
        ([target(endpoints=[endpoint("/block", 64)], interrupted=True)], ExitCode.INCONCLUSIVE, "0"),
        ([MISSED.targets[0].model_copy(update={"interrupted": True})], ExitCode.FAIL, "1"),
    ],
)
def test_an_interrupted_load_test_exits_by_the_verdict_of_its_report(
    targets: list[TargetEntry], code: ExitCode, failures: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What failed before the interruption has failed: the pipeline must not take it for undecided."""
    result = cm.LoadResult([LoadTest(report(*targets), [], interrupted=True)], [])
    monkeypatch.setattr(cm, "load", lambda *_, **__: result)
    junit = tmp_path / "load.xml"
    ended = chainmark("load", "mesh/quick", "--target", "http://127.0.0.1:1", "--junit", str(junit))
    assert ended.exit_code == code
    assert "partial run" in ended.stderr
    assert Xml.parse(junit).getroot()[0].attrib["failures"] == failures  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (replace(document_of(sample()), verdict=Verdict.FAIL), ExitCode.FAIL),
        (replace(document_of(sample()), verdict=Verdict.PARTIAL), ExitCode.INCONCLUSIVE),
        (None, INTERRUPTED),
    ],
)
def test_an_interrupted_experiment_exits_by_its_document_if_it_has_one(document: Document | None, code: int) -> None:
    with pytest.raises(typer.Exit) as ended:
        Output().finish_experiment(cm.Experiment("load-1", document, is_interrupted=True))
    assert ended.value.exit_code == code


def test_a_failed_run_outweighs_an_invalid_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of the codes are not their order: `compare` of the same runs exits with 1."""
    documents = [
        replace(document_of(sample()), verdict=verdict) for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.INVALID)
    ]
    runs = [SimpleNamespace(path=Path("run"), document=lambda shown=shown: shown) for shown in documents]
    monkeypatch.setattr(cm, "open_runs", lambda _: runs)
    assert chainmark("runs", "show", "v1").exit_code == ExitCode.FAIL


def test_a_pipeline_reads_the_same_verdict_and_cases_on_stdout_and_in_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A load test judges while it is laid out: its result alone has no verdict."""
    result = cm.LoadResult([LoadTest(MISSED, [], interrupted=False)], [])
    monkeypatch.setattr(cm, "load", lambda *_, **__: result)
    file = tmp_path / "load.json"
    shown = chainmark("load", "mesh/quick", "--target", "http://127.0.0.1:1", "--json", "--json-file", str(file))
    content = json.loads(shown.stdout)
    assert json.loads(file.read_text(encoding="utf-8")) == content
    assert content["verdict"] == "fail"
    (case,) = (case for suite in content["suites"] for case in suite["cases"] if case["verdict"] == "fail")
    assert (case["gates"], case["figures"]["low"]) == (True, 0.0)
    assert "clearly missed the SLA" in case["reason"]
