"""The metrics of a running experiment, as a scraper receives them."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import LiveFigures, Silent, live_figures
from chainmark.network.openmetrics import ExperimentState, exposed, parse_place

from tests.real import prometheus_server
from tests.support import wait_until

OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
FIGURES = LiveFigures(
    offered=120,
    sent=110,
    accepted=100,
    failed=4,
    in_flight=6,
    schedule_lag_s=0.25,
    committed=80,
    heights={"node0": 12, "node1": 11},
    waiting={"node0": 30},
)


@pytest.fixture
def state() -> ExperimentState:
    experiment = ExperimentState("1.2.3")
    experiment.begin("v1.0.1", "candidate", 2, 6)
    experiment.end("valid", {"pass": 9, "warn": 1})
    experiment.stage('offering "400" tx/s')
    experiment.update(0.5)
    return experiment


@pytest.fixture
def url(state: ExperimentState) -> Iterator[str]:
    with exposed(state, "127.0.0.1:0") as url:
        yield url


def _scraped(url: str) -> dict[tuple[str, str], float]:
    """All samples of a page that the OpenMetrics parser accepts, by name and value of the first label."""
    response = httpx.get(url, headers=OPENMETRICS, trust_env=False)
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")
    families = text_string_to_metric_families(response.text)  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, next(iter(sample.labels.values()), "")): sample.value for sample in samples}


def test_the_state_is_exposed(url: str) -> None:
    metrics = _scraped(url)
    assert metrics["chainmark_stage_info", 'offering "400" tx/s'] == 1
    assert metrics["chainmark_stage_progress_ratio", ""] == 0.5
    assert metrics["chainmark_run_position", ""] == 2
    assert metrics["chainmark_runs_planned", ""] == 6
    assert metrics["chainmark_runs_finished_total", "valid"] == 1
    # An alert for failed runs needs the counter before the first one: its increase from nothing is not seen.
    assert metrics["chainmark_runs_finished_total", "failed"] == 0
    assert metrics["chainmark_gates_total", "pass"] == 9
    assert metrics["chainmark_gates_total", "fail"] == 0
    assert metrics["chainmark_build_info", "1.2.3"] == 1
    assert metrics["process_cpu_seconds_total", ""] > 0


def test_figures_are_collected_on_each_scrape(url: str, state: ExperimentState) -> None:
    scrapes = []

    def source() -> LiveFigures:
        scrapes.append(threading.get_ident())
        return FIGURES

    assert ("chainmark_load_sent_total", "") not in _scraped(url), "an unknown value was exposed"
    with state.live(source):
        assert scrapes == [], "the source was read before the first scrape"
        metrics = _scraped(url)
        assert len(scrapes) == 1
    assert metrics["chainmark_load_offered_total", ""] == 120
    assert metrics["chainmark_load_sent_total", ""] == 110
    assert metrics["chainmark_load_accepted_total", ""] == 100
    assert metrics["chainmark_load_failed_total", ""] == 4
    assert metrics["chainmark_load_in_flight", ""] == 6
    assert metrics["chainmark_load_schedule_lag_seconds", ""] == 0.25
    assert metrics["chainmark_committed_transactions_total", ""] == 80
    assert metrics["chainmark_node_height_blocks", "node1"] == 11
    assert metrics["chainmark_node_mempool_transactions", "node0"] == 30
    # The load has ended. Its last figures are exposed until the next run starts.
    assert _scraped(url)["chainmark_load_sent_total", ""] == 110
    state.begin("v1.0.1", "candidate", 3, 6)
    assert ("chainmark_load_sent_total", "") not in _scraped(url)


def test_the_older_format_is_returned_on_request(url: str) -> None:
    response = httpx.get(url, headers={"Accept": "text/plain"}, trust_env=False)
    assert response.headers["content-type"].startswith("text/plain")
    names = {metric.name for metric in text_families(response.text)}
    assert "chainmark_runs_planned" in names


def test_a_port_in_use_is_reported_and_freed_ports_can_be_reused(state: ExperimentState) -> None:
    with exposed(state, "127.0.0.1:0") as url:
        place = url.removeprefix("http://").removesuffix("/metrics")
        with pytest.raises(EnvironmentFailure, match=f"cannot be exposed on {place}"), exposed(state, place):
            pass
    before = set(threading.enumerate())
    with exposed(state, place) as again:
        assert _scraped(again)
    wait_until(lambda: set(threading.enumerate()) <= before, "the end of the server's threads")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),  # noqa: S104 - parsed, not bound
    ],
)
def test_listen_addresses_are_parsed(text: str, place: tuple[str, int]) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "here", "127.0.0.1", "127.0.0.1:65536", "::1:9464", "a:b:1", "9464/metrics"])
def test_an_invalid_listen_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid address to listen on"):
        parse_place(text)


def test_listeners_without_live_figures_are_not_called() -> None:
    with live_figures(Silent(), lambda: pytest.fail("nobody asked")):
        pass


def test_names_and_help_texts_pass_promtool(url: str, state: ExperimentState) -> None:
    programs = prometheus_server.programs()
    if programs is None:
        pytest.skip("no `promtool` here: `make servers` fetches Debian's package")
    with state.live(lambda: FIGURES):
        page = httpx.get(url, headers={"Accept": "text/plain"}, trust_env=False).content
    checked = subprocess.run(
        [str(programs["promtool"]), "check", "metrics"], input=page, capture_output=True, check=False, timeout=60
    )
    messages = (checked.stdout + checked.stderr).decode()
    assert checked.returncode == 0, messages
    assert "chainmark" not in messages


def _panels() -> list[dict[str, Any]]:
    dashboard = json.loads(files("chainmark").joinpath("dashboards/grafana.json").read_text(encoding="utf-8"))
    return list(dashboard["panels"])


def _expressions() -> list[str]:
    return [target["expr"] for panel in _panels() for target in panel.get("targets", [])]


def test_dashboard_expressions_use_exactly_the_exposed_metrics(url: str, state: ExperimentState) -> None:
    with state.live(lambda: FIGURES):
        exposed_names = {name for name, _ in _scraped(url)}
    expressions = _expressions()
    named = {name for text in expressions for name in re.findall(r"\b(?:chainmark|process|node)_[a-z0-9_]+", text)}
    assert len(expressions) > 10
    assert named - exposed_names == set()
    # Every exposed metric of the experiment is on the dashboard.
    assert {name for name in exposed_names if name.startswith("chainmark_")} - named == set()


def test_every_expression_of_the_dashboard_is_valid_promql(tmp_path: Path) -> None:
    programs = prometheus_server.programs()
    if programs is None:
        pytest.skip("no `promtool` here: `make servers` fetches Debian's package")
    expressions = _expressions()
    rules = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "1m").replace("$job", ".*")}
        for number, text in enumerate(expressions)
    ]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    checked = subprocess.run(
        [str(programs["promtool"]), "check", "rules", str(path)], capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(expressions)} rules found" in checked.stdout


def test_the_dashboard_can_be_imported_by_grafana() -> None:
    """It uses a variable for the data source, and its panels do not overlap."""
    dashboard = json.loads(files("chainmark").joinpath("dashboards/grafana.json").read_text(encoding="utf-8"))
    assert dashboard["schemaVersion"] >= 39
    assert dashboard["id"] is None
    assert dashboard["uid"]
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"] == variables["datasource"] | {"type": "datasource", "query": "prometheus"}
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
