"""Answers to a release engineer's questions about a comparison, a figure and a running load, from a real server."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.progress import LiveFigures, Silent
from chainmark.lab.recording import RunRecorder
from chainmark.store.live import LiveSearch, LiveStep, read_live, write_live
from chainmark.store.runs import Store

from tests.support import wait_until
from tests.unit.serve.serving import Served, served
from tests.unit.serve.stores import filled, unfinished

SIDES = ["v1.0.0", "v1.1.0", "v1.2.0"]
GATES = "tx_latency_s.p99"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("questions") / "store"
    filled(root, releases=3, repetitions=2)
    return root


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Served]:
    with served(store) as served_store:
        yield served_store


def _page(server: Served, address: str, **query: str | list[str]) -> str:
    answer = server.client.get(address, params=query or None)
    assert answer.status_code == 200, answer.text[:500]
    return unescape(answer.text).replace("\u00a0", " ")


def test_every_metric_is_shown_for_every_side_and_can_be_filtered_by_relevance(server: Served, store: Path) -> None:
    document = cm.compare(*SIDES, store=store)
    judged = json.loads(document.json)["comparisons"][0]["judgements"]
    page = _page(server, "/compare", side=SIDES)
    assert page.count("<tbody data-relevance=") == len(judged)
    few = _page(server, "/compare", side=SIDES, relevance="99")
    assert few.count("<tbody data-relevance=") == sum(judgement["gating"] for judgement in judged)


def test_every_link_of_a_tab_resolves(server: Served) -> None:
    for tab in ("", "metrics", "configuration", "more", "all"):
        page = _page(server, "/compare", side=SIDES[:2], tab=tab)
        here = set(re.findall(r'\bid="([^"]+)"', page))
        assert {link for link in re.findall(r'href="#([^"]+)"', page) if link not in here} == set()
    whole = set(re.findall(r'\bid="([^"]+)"', page))
    led = re.findall(r'tab=all#([^"]+)"', _page(server, "/compare", side=SIDES[:2], tab="metrics"))
    assert led
    assert set(led) <= whole


def test_a_metric_opens_with_every_run(server: Served, store: Path) -> None:
    answer = server.client.get("/compare", params={"side": SIDES, "metric": GATES, "as": "json"}).json()
    assert [side["label"] for side in answer["sides"]] == SIDES
    for side in answer["sides"]:
        known = {run.id: run for run in cm.open_runs(side["label"], store)}
        for run, value in zip(side["runs"], side["values"], strict=True):
            assert value == known[run].sealed.summaries()["tx_latency_s"].estimates["p99"].value
    page = _page(server, "/compare", side=SIDES, metric=GATES)
    for side in answer["sides"]:
        assert all(f'data-key="{run}"' in page and f'id="key-{run}"' in page for run in side["runs"])
    assert server.client.get("/compare", params={"side": SIDES, "metric": "no.p99"}).status_code == 404


def test_a_figure_shows_how_it_was_computed(server: Served, store: Path) -> None:
    run = cm.open_runs("v1.1.0", store)[0]
    links = re.findall(r'href="(/metrics/cometbft/tx_latency_s\?[^"#]+)', _page(server, f"/runs/{run.id}"))
    address = next(link for link in map(unescape, links) if "statistic=p99" in link)
    (shown,) = server.client.get(f"{address}&as=json").json()["runs"]
    estimate = run.sealed.summaries()["tx_latency_s"].estimates["p99"]
    assert (shown["run"], shown["value"], shown["method"]) == (run.id, estimate.value, estimate.method)
    assert f"samples/{run.catalogue.metric('tx_latency_s').population}.parquet" in _page(server, address)
    assert server.client.get("/metrics/cometbft/no_metric").status_code == 404
    assert server.client.get("/metrics/cometbft/tx_latency_s", params={"run": "../../etc"}).status_code == 404


def test_a_pull_request_comment_has_the_deciding_metrics_and_a_link_to_the_rest(server: Served, store: Path) -> None:
    text = server.client.get("/compare", params={"side": SIDES[:2], "as": "comment"}).text
    assert cm.compare(*SIDES[:2], store=store).sentence in text.replace("\u00a0", " ")
    (link,) = re.findall(r"\[All figures, charts and runs\]\((\S+)\)", text)
    assert server.client.get(link).status_code == 200
    assert len(text) < 20_000


def test_a_load_that_falls_behind_turns_amber_while_it_runs(tmp_path: Path) -> None:
    filled(tmp_path, releases=1)
    unfinished(tmp_path, "cometbft-demo-v2-20260101T000000-0001", {"pid": os.getpid(), "version": "v2"})
    folder = tmp_path / "runs" / "cometbft-demo-v2-20260101T000000-0001"
    looked = threading.Event()

    def figures() -> LiveFigures:
        looked.set()
        return LiveFigures(offered=1000, sent=800, accepted=790, failed=0, committed=700, schedule_lag_s=4.0)

    with RunRecorder(Silent(), folder, every_s=0.02) as recorder, served(tmp_path) as server:
        recorder.stage("offering 100 tx/s")
        with recorder.live(figures):
            assert looked.wait(10)
            wait_until(lambda: (state := read_live(folder)) and state.points, "the figures", 10)
            (run,) = server.client.get("/live", params={"as": "json"}).json()["runs"]
            signs = {sign["label"]: sign["is_amber"] for sign in run["signs"]}
            assert signs["schedule lag"]
            assert not signs["refused or failed"]
            page = _page(server, "/live")
            assert "offering 100 tx/s" in page
            assert "amber" in page
    assert read_live(folder) is None
    assert [path.name for path in folder.iterdir()] == ["unfinished.json"]


def test_a_drifting_soak_and_a_search_show_their_progress(tmp_path: Path) -> None:
    """Growing memory is reported as such with an interval, a steady latency is not, and a search shows its path."""
    unfinished(tmp_path, "http-soak-v2-20260101T000000-0001", {"pid": os.getpid(), "version": "v2"})
    folder = tmp_path / "runs" / "http-soak-v2-20260101T000000-0001"
    looks = iter(range(100_000))
    steps = [LiveStep(place=3, revision="abc (less work)", outcome="bad", chance=0.99, left=2, pairs=1)]
    search = LiveSearch(experiment="e", pid=os.getpid(), good="a", bad="z", revisions=9, most_runs=120,
                        followed="wall time p50", trying="def (more work)", runs=6, left=2, steps=steps)  # fmt: skip
    (tmp_path / "experiments" / "e").mkdir(parents=True)
    write_live(tmp_path / "experiments" / "e", search)
    (tmp_path / "experiments" / "dead").mkdir()
    write_live(tmp_path / "experiments" / "dead", search.model_copy(update={"experiment": "dead", "pid": 2**22 + 1}))

    def figures() -> LiveFigures:
        return LiveFigures(p50_s=0.02 + 0.001 * (next(looks) % 2), p99_s=0.05)

    recorder = RunRecorder(Silent(), folder, every_s=0.005, memory=lambda: 1e8 + 1e6 * next(looks))
    with served(tmp_path) as server, recorder, recorder.live(figures):
        wait_until(lambda: (state := read_live(folder)) and len(state.stretches) >= 40, "the stretches", 20)
        page = _page(server, "/live")
        rows = dict(re.findall(r'<th scope="row"[^>]*>(latency, p50|memory)</th>(.*?)</tr>', page, re.DOTALL))
        assert "rises" in rows["memory"]
        assert "rises" not in rows["latency, p50"]
        assert "95 % interval" in page
        assert "def (more work)" in page
        assert "2 of 8" in page
        assert "abc (less work)" in page
        assert "Search dead" not in page


def test_live_figures_of_a_run_are_not_sealed_into_it(tmp_path: Path) -> None:
    run = Store(tmp_path).create("cometbft", "cometbft/demo", "v1", {})
    with RunRecorder(Silent(), run.path) as recorder:
        recorder.stage("starting 4 nodes")
        assert read_live(run.path) is not None
        assert run.is_empty()
    assert read_live(run.path) is None


def test_the_network_of_a_model_is_changed_by_sliders(server: Served) -> None:
    parameters = {"source": "cardano/value", "rtt": "20"}
    assert 'type="range" name="rtt"' in _page(server, "/what-if", **parameters)
    shown = server.client.get("/what-if", params={**parameters, "as": "json"}).json()
    assert len(shown["scenarios"]) == 2
    neutral = server.client.get("/what-if", params={"source": "cardano/value", "rtt": "0", "as": "json"}).json()
    assert len(neutral["scenarios"]) == 1
    assert server.client.get("/what-if", params={"source": "cardano/value", "rtt": "5000"}).status_code == 404


def test_a_long_series_is_shown_at_the_level_of_detail_that_fits(store: Path, server: Served) -> None:
    """A one-sample spike among very many samples is visible, and zooming in shows every sample."""
    run = cm.open_runs("v1.2.0", store)[0]
    population = run.catalogue.population(run.catalogue.metric("tx_latency_s").population)
    time = str(population.time_key)
    samples = run.sealed.samples(population.id).select(time, "tx_latency_s").drop_nulls()
    parameters = {"run": run.id, "metric": "tx_latency_s", "as": "json"}
    whole = server.client.get("/series", params=parameters).json()
    assert len(whole["n"]) <= 600 < samples.height == whole["samples"] == sum(whole["n"])
    assert max(whole["high"]) == samples["tx_latency_s"].max()
    assert min(whole["low"]) == samples["tx_latency_s"].min()
    begin, end = whole["time_s"][100], whole["time_s"][110]
    closer = server.client.get("/series", params={**parameters, "from": begin, "to": end}).json()
    assert closer["samples"] == samples.filter(samples[time].is_between(begin, end)).height
    assert "<img" in _page(server, "/series", run=run.id, metric="tx_latency_s")
    assert server.client.get("/series", params={**parameters, "from": 1e9}).status_code == 404
    assert server.client.get("/series", params={**parameters, "metric": "no"}).status_code == 404
