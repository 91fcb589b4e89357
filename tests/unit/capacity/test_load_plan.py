"""A plan of load tests: one run per cell, one document, and resuming after an interruption."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as Xml

import pytest

import chainmark as cm
import chainmark.api.planned_loads
from chainmark.capacity.verdict import verdict
from chainmark.core.by_workload import ByWorkload
from chainmark.core.errors import ExitCode, UsageError
from chainmark.core.labels import sla_label
from chainmark.core.matrix_report import MatrixReport
from chainmark.core.progress import Silent
from chainmark.core.verdict import Verdict
from chainmark.lab import loading
from chainmark.lab.matrix import read_plan, with_targets
from chainmark.lab.registry import shipped
from chainmark.store.runs import Store

from tests.unit.cli.commands import chainmark as command

PROFILE = """
system = "http"
sla = { p99_s = 5.0 }
steps = { duration_s = 1, longest_s = 1, warm_up_s = 0, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = ["clients"], clients_first = 1, clients_last = 1, times = 1 }
fixed = { times = 0, duration_s = 1 }

[[request]]
endpoint = "work"
path = "/work"
checks = [{ pointer = "/right", is = true }]
"""
PLAN = """
system = "http"
title = "Two machines"
profile = "{profile}"

[[scenario]]
id = "standard"

[[scenario]]
id = "many"
title = "many clients"
settings = ["search.clients_last=2"]
servers = ["large"]
require = {{ work = {{ clients = 2 }} }}

[[server]]
id = "small"
hardware_profile = "entry"
hardware = "2 cores, 4 GB"

[[server]]
id = "large"
hardware_profile = "advanced"
deployment = "Docker Compose"
version = "v2.0.0"

[[server]]
id = "absent"
"""


class _Right(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    seen: ClassVar[deque[Message]] = deque(maxlen=100)

    def do_GET(self) -> None:
        self.seen.append(self.headers)
        self.send_response(200)
        self.send_header("Content-Length", "14")
        self.end_headers()
        self.wfile.write(b'{"right":true}')

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a server that responds correctly."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Right)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan with short steps and a separate store. The use of this machine by other processes is ignored."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(chainmark.api.planned_loads, "Tester", partial(loading.Tester, watching=None))
    (tmp_path / "work.toml").write_text(PROFILE, encoding="utf-8")
    path = tmp_path / "two.toml"
    path.write_text(PLAN.format(profile=tmp_path / "work.toml"), encoding="utf-8")
    return path


class _Stopped(Silent):
    """Interrupts the test when the cell with this number begins."""

    def __init__(self, number: int) -> None:
        self._mark = f"cell {number} of "

    def stage(self, name: str) -> None:
        """Raise at the selected cell."""
        if name.startswith(self._mark):
            raise KeyboardInterrupt


def _report(experiment: cm.Experiment) -> MatrixReport:
    assert experiment.document is not None
    assert isinstance(experiment.document.result, MatrixReport)
    return experiment.document.result


def test_runs_are_listed_and_selected_by_their_sla_result(plan: Path, url: str, tmp_path: Path) -> None:
    """This must hold whatever the result on this machine is: it is the result in the run's own document."""
    experiment = cm.load_plan(plan, {"small": url}, version="v1.0.0")
    (run,) = Store(tmp_path / "store").all_of("system:http")
    load_report = _report(experiment).cells[0].report
    assert load_report is not None
    result = sla_label(verdict(load_report)[0])
    assert run.manifest.labels["sla"] == [result]
    assert run.manifest.cell == {"scenario": "standard", "hardware": "entry"}
    assert re.search(rf"valid +{result} ", command("runs", "list", f"sla:{result}").output)
    with pytest.raises(UsageError, match="no run has the sla `other`"):
        command("runs", "list", "sla:other")


def test_every_cell_is_a_run_with_its_stated_properties(plan: Path, url: str, tmp_path: Path) -> None:
    """A run contains the stated properties of its server. A server without an address is listed but decides nothing."""
    experiment = cm.load_plan(plan, {"small": url, "large": url}, version="v1.0.0")
    cells = [(cell.server, cell.scenario, cell.words, cell.ended) for cell in _report(experiment).cells]
    small = {"scenario": "standard", "hardware": "entry"}
    large = {"hardware": "advanced", "deployment": "Docker Compose"}
    assert cells == [
        ("small", "standard", small, None),
        ("large", "standard", {"scenario": "standard", **large}, None),
        ("absent", "standard", {}, Verdict.NOT_RUN),
        ("large", "many clients", {"scenario": "many clients", **large}, None),
    ]
    assert experiment.document is not None
    # A cell that this machine had no time for is inconclusive, which precedes a missing one.
    assert experiment.verdict in {Verdict.NOT_RUN, Verdict.INCONCLUSIVE}
    assert experiment.verdict.exit_code is ExitCode.INCONCLUSIVE
    assert [suite.name for suite in experiment.document.suites] == [
        "standard on small", "standard on large", "standard on absent", "many clients on large"
    ]  # fmt: skip
    cases = [(case.label, case.verdict) for suite in experiment.document.suites for case in suite.cases]
    assert cases[3][0] == "/work (clients)"
    assert cases[2] == ("standard on absent", Verdict.NOT_RUN)
    assert _report(experiment).cells[2].missing == "no `--target absent=URL` was given"
    summary = experiment.document.markdown()
    assert "standard on absent: no" in summary
    assert summary.index("| absent |") < summary.index("| small |"), "the summary begins with missed cells"
    store = Store(tmp_path / "store")
    versions = {run.manifest.labels["scenario"][0]: run.manifest.subject.version for run in store.select(experiment.id)}
    assert versions == {"standard": "v2.0.0", "many clients": "v2.0.0"}
    assert [run.manifest.subject.version for run in store.all_of("hardware:entry")] == ["v1.0.0"]
    assert [run.manifest.cell["scenario"] for run in store.all_of("hardware:advanced,endpoint:/work")] == [
        "standard", "many clients"
    ]  # fmt: skip
    junit = experiment.document.save(tmp_path / "plan.xml")
    names = [suite.get("name") for suite in Xml.parse(junit).getroot().iter("testsuite")]  # noqa: S314 - our own
    assert "many clients on large" in names


def test_an_interrupted_plan_resumes_where_it_stopped(plan: Path, url: str, tmp_path: Path) -> None:
    text = plan.read_text(encoding="utf-8").rpartition("[[server]]")[0]
    plan.write_text(text, encoding="utf-8")
    targets = {"small": url, "large": url}
    broken = cm.load_plan(plan, targets, progress=_Stopped(2))
    assert broken.is_interrupted
    assert [cell.run_id != "" for cell in _report(broken).cells] == [True, False, False]
    assert broken.verdict is Verdict.PARTIAL
    run_id = _report(broken).cells[0].run_id
    again = command("load", "--resume", broken.id, "--json-file", str(tmp_path / "plan.json"))
    assert again.exit_code == ExitCode.DONE
    report = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    runs = [cell["run_id"] for cell in report["cells"]]
    assert runs[0] == run_id
    assert all(runs)
    assert len(Store(tmp_path / "store").sealed()) == 3
    with pytest.raises(UsageError, match="already has its settings"):
        cm.load_plan(plan, targets, resume=broken.id)


def test_a_resumed_plan_has_the_access_that_it_started_with(
    plan: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret is stored. Values that the environment no longer provides are requested before any measurement."""
    monkeypatch.setenv("PASSWORD", "opensesame")
    headers = ["X-Api-Key: 9f8e7d6c", "X-Network: preprod", "Authorization: Bearer ${PASSWORD}"]
    targets = {"small": url, "large": url.replace("http://", "http://me:${PASSWORD}@")}
    text = plan.read_text(encoding="utf-8").rpartition("[[server]]")[0]
    plan.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="was given twice"):
        cm.load_plan(plan, targets, access=cm.Access(headers))
    broken = cm.load_plan(plan, targets, access=cm.Access(headers[:2]), progress=_Stopped(2))
    stored = [path.read_text(encoding="utf-8") for path in (tmp_path / "store").rglob("*.json")]
    assert stored
    assert not [text for text in stored if "9f8e7d6c" in text or "opensesame" in text]
    with pytest.raises(UsageError, match=r"started with `--header 'X-Api-Key: …'`, which is not stored because"):
        command("load", "--resume", broken.id)
    with pytest.raises(UsageError, match="is not one of the plan's servers"):
        cm.load_plan(None, {"large": "http://127.0.0.1:9"}, resume=broken.id)
    _Right.seen.clear()
    again = command("load", "--resume", broken.id, "--header", "X-Api-Key: 9f8e7d6c")
    assert again.exit_code == ExitCode.DONE
    basic = "Basic bWU6b3BlbnNlc2FtZQ=="
    assert {(message["X-Api-Key"], message["X-Network"], message["Authorization"]) for message in _Right.seen} == {
        ("9f8e7d6c", "preprod", basic)
    }
    assert command("load", "--resume", broken.id).exit_code == ExitCode.DONE  # no value is left to request


def test_an_unreachable_cell_does_not_end_the_plan(plan: Path, url: str) -> None:
    """The other server is measured, and the exit code is the worst of all cells."""
    experiment = cm.load_plan(plan, {"small": "http://127.0.0.1:9", "large": url}, settings={"search.clients_last": 1})
    ended = [(cell.server, cell.ended) for cell in _report(experiment).cells]
    assert ended[0] == ("small", Verdict.GONE)
    assert experiment.verdict.exit_code is ExitCode.ENVIRONMENT
    assert _report(experiment).cells[1].report is not None


def test_a_required_capacity_of_one_cell_decides(plan: Path, url: str) -> None:
    text = plan.read_text(encoding="utf-8").rpartition("[[server]]")[0]
    own = '[[cell]]\nscenario = "standard"\nserver = "small"\nrequire = { work = { clients = 5 } }\n'
    skipped = '[[cell]]\nscenario = "many"\nserver = "large"\nskip = "is being rebuilt"\n'
    plan.write_text(text + own + skipped, encoding="utf-8")
    experiment = cm.load_plan(plan, {"small": url, "large": url})
    assert experiment.document is not None
    small, large, left = experiment.document.suites
    assert [case.verdict for case in small.cases if case.gates] == [Verdict.INCONCLUSIVE]
    assert [case.verdict for case in large.cases if case.gates] == [Verdict.PASS]
    assert [(case.verdict, case.gates, case.reason) for case in left.cases] == [
        (Verdict.NOT_RUN, False, "is being rebuilt")
    ]
    assert experiment.verdict is Verdict.INCONCLUSIVE


def test_two_releases_are_compared_cell_by_cell(plan: Path, url: str) -> None:
    """Cells that only one release has are named, and runs outside the plan are excluded."""
    text = plan.read_text(encoding="utf-8").rpartition("[[server]]")[0].replace('version = "v2.0.0"\n', "")
    plan.write_text(text, encoding="utf-8")
    targets = {"small": url, "large": url}
    steps: dict[str, object] = {"search.kinds": "[]", "fixed.times": 1}
    former = cm.load_plan(plan, targets, version="v1.2.7", settings={**steps, "fixed.clients.work": "[3]"})
    skipped = '[[cell]]\nscenario = "many"\nserver = "large"\nskip = "is being rebuilt"\n'
    plan.write_text(text + skipped, encoding="utf-8")
    cm.load_plan(plan, targets, version="v1.2.9", like=former.id, settings=steps)
    comparison_report = cm.compare("v1.2.7", "v1.2.9").result
    assert isinstance(comparison_report, ByWorkload)
    assert sorted(comparison_report.labels) == ["advanced · standard · Docker Compose", "entry · standard"]
    assert comparison_report.unmatched == ["only v1.2.7 was run under advanced · many clients · Docker Compose"]
    for label, comparison in zip(comparison_report.labels, comparison_report.comparisons, strict=True):
        assert len(comparison.baseline.runs) == len(comparison.candidate.runs) == 1
        assert label.split(" ")[0] in {"advanced", "entry"}
        judged = {item.metric_id for item in comparison.judgements}
        assert judged >= {"work_at_3_clients_latency_s", "work_at_3_clients_error_share"}
    with pytest.raises(UsageError, match="have no workload and machine in common") as caught:
        cm.compare("release:v1.2.7,hardware:advanced", "release:v1.2.9,hardware:entry")
    assert "only v1.2.9 was run under" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('id = "many"', 'id = "standard"', "two scenarios are called `standard`"),
        ('servers = ["large"]', 'servers = ["huge"]', "`huge` is not one of the plan's servers"),
        ("hardware = ", "hardwear = ", "`server.0.hardwear`"),
        ("[[scenario]]", "[[scene]]", "`scenario`"),
        ('title = "Two machines"', "title = ", "is not valid TOML"),
    ],
)
def test_an_unusable_plan_is_rejected(plan: Path, old: str, new: str, what: str) -> None:
    text = plan.read_text(encoding="utf-8")
    assert old in text
    plan.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_plan(str(plan))
    assert what in caught.value.message


def test_an_invalid_setting_of_the_last_cell_is_found_before_the_first_cell_runs(
    plan: Path, url: str, tmp_path: Path
) -> None:
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace("search.clients_last=2", "search.clients_lost=2"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"`search\.clients_lost` is not a key of a profile"):
        cm.load_plan(plan, {"small": url, "large": url})
    assert Store(tmp_path / "store").sealed() == []


def test_targets_are_those_of_the_plan(plan: Path) -> None:
    read = read_plan(str(plan))
    with pytest.raises(UsageError, match="`other` is not one of the plan's servers"):
        with_targets(read, {"other": "http://127.0.0.1:1"})
    with pytest.raises(UsageError, match="no server of the plan has an address"):
        with_targets(read, {})
    with pytest.raises(UsageError, match="there is no plan `nowhere`"):
        read_plan("nowhere")


@pytest.mark.parametrize("name", shipped("plans"))
def test_a_shipped_plan_can_be_used(name: str) -> None:
    """Every cell has a profile that its system accepts."""
    read = with_targets(read_plan(name), {"server": "http://127.0.0.1:1"})
    assert read.places()
    for scenario, _ in read.places():
        settings = [*read.settings, *scenario.settings]
        system, profile = cm.api.context.resolve_profile(scenario.profile or read.profile, settings)
        assert system.name == read.system
        assert profile is not None


def test_the_plan_command_rejects_options_of_a_single_load_test() -> None:
    with pytest.raises(UsageError, match="`--repeat` applies to a single load test"):
        command("load", "--plan", "mesh/matrix", "--target", "http://127.0.0.1:1", "--repeat", "2")
    with pytest.raises(UsageError, match="`PROFILE` is missing"):
        command("load", "--target", "http://127.0.0.1:1")
