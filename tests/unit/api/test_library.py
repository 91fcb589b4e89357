"""chainmark as a library: all public names exist, their examples run, and work can be followed and cancelled."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import chainmark as cm
from chainmark.cli.reference import STUB, library_stub
from chainmark.core.errors import UsageError
from chainmark.lab.loading import LoadTest

from tests import examples
from tests.golden.fixed_store import FixedStore
from tests.unit.compare.synthetic_runs import SyntheticRun, sides
from tests.unit.report.load_samples import report, target
from tests.unit.store.trail_runs import Timelines, sealed
from tests.unit.systems.cardano import made_reports, made_up
from tests.unit.systems.cardano.clusters import SETTINGS, make_cluster
from tests.unit.systems.cometbft.test_published_tables import spaced
from tests.unit.systems.mesh.test_mesh_published import PAGE

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "use-from-a-notebook.md"
ELSEWHERE = {*examples.NEED_NODES, *examples.NEED_A_SERVER, *examples.NEED_A_CLUSTER, "load", "load_plan", "request"}
PROFILE = """
system = "http"
sla = { p99_s = 5.0 }
steps = { duration_s = 1, longest_s = 1, warm_up_s = 0.1, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = ["clients"], clients_first = 1, clients_last = 1, times = 1 }
fixed = { times = 0, duration_s = 1, shares = [0.5] }

[[request]]
endpoint = "work"
path = "/work"
checks = [{ pointer = "/right", is = true }]
"""
_CELL = ("7dfb6c4e-0001-4000-8000-000000000001", "1", "25", "1024", "2225", "0", "136.940262ms", "6.921905501s",
         "599.404362ms", "1.169158915s")  # fmt: skip


def _seal(store: FixedStore, run: SyntheticRun) -> None:
    unfinished = store.create("cometbft", run.manifest.profile_name, run.manifest.subject.version, {})
    for population, frame in run.frames.items():
        unfinished.write_samples(population, frame)
    known = run.manifest.model_copy(update={"run_id": unfinished.run_id})
    unfinished.seal(known, run.catalogue, list(run.summaries().values()))


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with everything that the examples name: a store with an experiment, a followed run, and input files."""
    folder = tmp_path_factory.mktemp("known")
    store = FixedStore(folder / "store")
    for side in sides({"tx_latency_s": 1.37}):
        for run in side:
            _seal(store, run)
    sealed(store, Timelines(6, 8).fill())
    figures = made_up.measured(made_up.profile().scenario(made_up.SEED))
    table = folder / "v9_report_tabbed.txt"
    table.write_text(spaced(_CELL), encoding="utf-8")
    summary = folder / "summary.json"
    summary.write_text(json.dumps({"sumHosts": 3}), encoding="utf-8")
    page = folder / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    return {
        "page": page,
        "summary": summary,
        "releases": made_reports.written(
            folder / "releases.json", made_reports.content(*made_reports.series([0.0] * 4 + [0.1] * 5))
        ),
        "logs": make_cluster(folder / "logs", hosts=3, slots=100),
        "folder": folder / "cluster",
        "report": made_up.write(folder / "release.json", made_up.report({"10.5.4": figures, "10.6.2": figures})),
        "table": table,
    }


@pytest.fixture
def known(paths: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A copy of the folder for each test. Its store is the default store of the commands."""
    folder = paths["folder"].parent
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    return {name: tmp_path / path.relative_to(folder) for name, path in paths.items()}


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a server that responds correctly."""

    class Right(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "15")
            self.end_headers()
            self.wfile.write(b'{"right": true}')

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Right) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_public_name_loads_and_is_listed() -> None:
    for name in cm.__all__:
        assert getattr(cm, name).__module__.startswith("chainmark.")
    assert dir(cm) == sorted(cm.__all__)


def test_type_checkers_know_every_name() -> None:
    """They do not execute the package; `make docs` writes their list."""
    assert STUB.read_text(encoding="utf-8") == library_stub()


@pytest.mark.parametrize(
    ("name", "module", "home"),
    [("compare", "compare.verdict", "chainmark.api.comparing"), ("serve", "serve.site", "chainmark.serve.server")],
)
def test_a_package_does_not_shadow_the_function_of_its_name(name: str, module: str, home: str) -> None:
    """Importing a package sets it as an attribute of its parent, which would replace the function."""
    code = (
        f"import sys, chainmark.{module}; print(chainmark.{name}.__module__, sys.modules['chainmark.{name}'].__name__)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == [home, f"chainmark.{name}"]


@pytest.mark.parametrize("name", [name for name in examples.functions() if name not in ELSEWHERE])
def test_the_example_of_every_function_works(name: str, known: dict[str, Any]) -> None:
    examples.execute(name, **known)


def test_the_example_of_a_load_test_works(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    profile = tmp_path / "work.toml"
    profile.write_text(PROFILE, encoding="utf-8")
    examples.execute("load", profile=profile, url=url)
    examples.execute("request", profile=profile, url=url)
    plan = tmp_path / "plan.toml"
    scenarios = '[[scenario]]\nid = "quick"\n[[scenario]]\nid = "slow"\n'
    plan.write_text(f'system = "http"\nprofile = "{profile}"\n{scenarios}', encoding="utf-8")
    examples.execute("load_plan", plan=plan, url=url)


def test_runs_and_documents_are_shown_in_notebooks(known: dict[str, Any]) -> None:
    assert known
    document = cm.compare("v0.38.17", "v1.0.1")
    for shown in (document._repr_html_(), cm.open_run("v1")._repr_html_()):
        assert "<table" in shown
        assert "<script" not in shown
    assert document.sentence.partition(":")[0] in document._repr_html_()


def test_a_document_is_saved_in_every_format(known: dict[str, Any], tmp_path: Path) -> None:
    assert known
    document = cm.compare("v0.38.17", "v1.0.1")
    begins = {".html": b"<!doctype", ".pdf": b"%PDF", ".md": b"", ".xml": b"<?xml", ".json": b"{"}
    for suffix, begin in begins.items():
        assert document.save(tmp_path / f"report{suffix}").read_bytes().startswith(begin)
    with pytest.raises(cm.ChainmarkError, match="has no known format"):
        document.save(tmp_path / "report.docx")


def test_runs_are_data_frames(known: dict[str, Any]) -> None:
    assert known
    run = cm.open_run("cometbft-demo-v1.0.1-20260101T000000-0004")
    p50 = run.metrics.filter(metric="tx_latency_s", statistic="p50")
    assert p50["value"].item() == run.sealed.summaries()["tx_latency_s"].estimates["p50"].value
    assert run.samples("block").equals(pl.read_parquet(run.path / "samples" / "block.parquet"))
    with pytest.raises(cm.ChainmarkError, match="has no samples of `slot`"):
        run.samples("slot")
    # A mistyped name is not a damaged run.
    followed = cm.open_run("v1")
    with pytest.raises(UsageError, match="has no events `blocs`") as refused:
        followed.events("blocs")
    assert refused.value.hint == f"it has {', '.join(followed.event_kinds)}"
    assert followed.event_kinds
    assert all(followed.events(kind).width for kind in followed.event_kinds)
    assert cm.runs()["run_id"].to_list().count(run.id) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Each of these was accepted: with the other style, a margin of 1500 %, no run, and four runs instead of one.
        (lambda: cm.compare("v0.38.17", "v1.0.1", style="pub"), "`pub` is not a valid style"),
        (lambda: cm.compare("v0.38.17", "v1.0.1", margins={"tx_latency_s": 15}), "margin of `tx_latency_s` is 1500 %"),
        (lambda: cm.compare("v0.38.17", "v1.0.1", margins=["tx_latency_s=1500%"]), "`tx_latency_s` is 1500 %"),
        (lambda: cm.run("cometbft/demo", "v1.0.1", repeat=0), "`repeat` is 0"),
        (lambda: cm.attach("cometbft/demo", ["127.0.0.1:1"], repeat=0), "`repeat` is 0"),
        (lambda: cm.load("mesh/quick", "http://127.0.0.1:1", repeat=0), "`repeat` is 0"),
        (lambda: cm.saturation("cometbft/saturation", "v1.0.1", repeat=0), "`repeat` is 0"),
        (lambda: cm.experiment("cometbft/demo", baseline="a", candidate="b", repeat=0), "`repeat` is 0"),
        (lambda: cm.aa("cometbft/demo", "v1.0.1", repeat=1), "`repeat` is 1"),
    ],
)
@pytest.mark.usefixtures("known")
def test_arguments_that_the_commands_refuse_are_refused_before_the_work(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_changes_of_a_prediction_are_written_like_settings() -> None:
    predictions = [
        cm.predict("cardano/value", changes, blocks=64).json
        for changes in ([("rtt", "+20%")], {"rtt": "+20%"}, ["rtt=+20%"])
    ]
    assert len(set(predictions)) == 1
    assert "rtt +20%" in predictions[0]


def test_the_simulation_of_a_network_without_measurements_can_be_cancelled() -> None:
    """It takes most of the time of a prediction from a profile."""
    cancel = cm.Cancellation()
    heard = Heard(cancel)
    with pytest.raises(KeyboardInterrupt):
        cm.predict("cardano/value", blocks=64, progress=heard, cancel=cancel)
    assert heard.stages == ["simulating the network"]


class Heard:
    """A listener that records stages and cancels the work at the first one if requested."""

    def __init__(self, cancel: cm.Cancellation | None = None) -> None:
        self.stages: list[str] = []
        self._cancel = cancel

    def stage(self, name: str) -> None:
        """Record the stage and cancel if requested."""
        self.stages.append(name)
        if self._cancel:
            self._cancel.cancel()

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore the update."""


def test_work_reports_progress_and_can_be_cancelled(tmp_path: Path) -> None:
    heard = Heard()
    settings = dict(setting.split("=") for setting in SETTINGS)
    cm.synth("cardano", tmp_path / "whole", hosts=3, slots=100, settings=settings, progress=heard)
    assert heard.stages
    cancel = cm.Cancellation()
    with pytest.raises(KeyboardInterrupt):
        cm.ingest("cardano", tmp_path / "whole", store=tmp_path / "store", progress=Heard(cancel), cancel=cancel)
    assert cm.runs(tmp_path / "store").is_empty()


@pytest.mark.usefixtures("known")
def test_the_rows_of_documents_without_judged_figures_are_frames() -> None:
    """Otherwise a notebook gets one row without figures, and no way to the rows that it displays."""
    slowest = cm.block("v1")
    shown = slowest.tables["slowest"]
    assert shown.height == len(slowest.result.slowest)  # type: ignore[attr-defined]
    assert any(kind.is_numeric() for kind in shown.dtypes)
    margins = cm.margins("v1.0.1").tables["margins"]
    assert margins["1 run, %"].dtype == pl.Float64
    assert {"metric", "margin in force", "1 run, % (2)"} <= set(margins.columns)
    alarms = cm.aa_of_history("v1.0.1").tables["alarms"]
    assert alarms["of"].dtype == pl.Float64


def test_load_tests_and_unfinished_experiments_have_frames() -> None:
    tests = [LoadTest(report(target("2.1.0", factor)), [], interrupted=False) for factor in (1.0, 0.9)]
    result = cm.LoadResult(tests, [])
    assert result.frame["document"].unique(maintain_order=True).to_list() == [0, 1]
    assert result.frame.columns[1:] == result.documents[0].frame.columns
    assert result.frame.height == sum(document.frame.height for document in result.documents)
    assert repr(result.documents[0]) in repr(result)
    assert cm.Experiment("", result.documents[0], is_interrupted=False).frame.equals(result.documents[0].frame)
    assert cm.Experiment("", None, is_interrupted=True).frame.is_empty()


def test_omitted_files_are_reported_as_a_warning_without_a_progress_listener(
    known: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "release.json").write_bytes(known["report"].read_bytes())
    (folder / "package.json").write_text("{}", encoding="utf-8")
    with pytest.warns(UserWarning, match="not published reports: `package.json`"):
        cm.explain(folder, blocks=64)


def test_the_examples_of_the_guide_work(
    known: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert known
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)  # noqa: S102 - our own guide
    assert capsys.readouterr().out.startswith("fail v1.0.1 is worse than v0.38.17")
    assert (tmp_path / "report.html").is_file()
    assert names["worse"].height == 2
