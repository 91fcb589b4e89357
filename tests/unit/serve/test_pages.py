"""The dashboard's pages for a real store, requested from a real server."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import httpx
import pytest

import chainmark as cm
from chainmark.core.verdict import Verdict
from chainmark.serve.listing import all_runs
from chainmark.serve.reading import Moment
from chainmark.store.experiments import experiment_folder
from chainmark.store.index import Entry
from chainmark.store.notes import Notes
from chainmark.store.runs import Store

from tests.support import wait_until
from tests.unit.serve.serving import Served, served
from tests.unit.serve.stores import damage, filled, unfinished
from tests.unit.store.trail_runs import Timelines, sealed
from tests.unit.systems.cardano.clusters import make_cluster

RELEASES = 12
SCRIPTED = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dashboard") / "store"
    filled(root, releases=RELEASES, repetitions=2, profiles=2)
    return root


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Served]:
    with served(store) as served_store:
        yield served_store


def _runs(store: Path, version: str) -> list[str]:
    frame = cm.runs(store)
    return frame.filter(frame["version"] == version)["run_id"].to_list()


def _page(server: Served, address: str, **query: str | list[str]) -> str:
    answer = server.client.get(address, params=query or None)
    assert answer.status_code == 200, answer.text[:500]
    return unescape(answer.text).replace("\u00a0", " ")


def _xml(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - what our own server made


def test_home_has_a_card_for_each_workload_with_the_verdict_of_its_newest_release(server: Served) -> None:
    wait_until(lambda: not server.client.get("/", params={"as": "json"}).json()["pending"], "the cards", 60)
    home = server.client.get("/", params={"as": "json"}).json()
    assert [card["profile"] for card in home["cards"]] == ["cometbft/saturation", "cometbft/demo"]
    page = _page(server, "/")
    for card in home["cards"]:
        assert card["newest"] == f"v1.{RELEASES - 1}.0"
        assert card["word"] in {"PASS", "INCONCLUSIVE"}
        assert card["sentence"] in page
        assert len(card["figures"][0]["values"]) == RELEASES
        assert card["sentence"] in _page(server, card["address"])
    drawn = re.compile(rf'<svg [^>]*aria-label="[^"]+ over {RELEASES} releases[";]')
    figures = sum(len(card["figures"]) for card in home["cards"])
    wait_until(lambda: len(drawn.findall(server.client.get("/").text)) == figures, "the figures over the releases", 60)


def test_a_card_judges_the_candidate_although_the_baseline_ran_last(tmp_path: Path) -> None:
    """Otherwise an improvement would be shown as a regression of the earlier release."""
    runs = cm.import_samples(tmp_path)
    assert max(runs, key=lambda run: run.manifest.started_at).manifest.subject.version == "v0.38.17"
    with served(tmp_path) as server:
        (card,) = server.client.get("/", params={"as": "json"}).json()["cards"]
    assert card["newest"] == "v1.0.1"


def test_a_card_shows_the_same_as_the_command(server: Served, store: Path) -> None:
    (card,) = [
        card for card in server.client.get("/", params={"as": "json"}).json()["cards"] if "demo" in card["profile"]
    ]
    sides = [[run_id for run_id in _runs(store, version) if "demo" in run_id] for version in ("v1.10.0", "v1.11.0")]
    assert card["sentence"] == cm.compare(*sides, store=store).sentence


def test_facets_and_search_words_filter_the_runs(server: Served) -> None:
    everything = server.client.get("/runs", params={"as": "json"}).json()
    assert everything["matching"] == everything["total"] == 4 * RELEASES
    some = server.client.get(
        "/runs", params={"profile": "cometbft/demo", "version": ["v1.3.0", "v1.4.0"], "as": "json"}
    )
    assert {(run["profile"], run["version"]) for run in some.json()["runs"]} == {
        ("cometbft/demo", "v1.3.0"), ("cometbft/demo", "v1.4.0"),
    }  # fmt: skip
    page = _page(server, "/runs", q="v1.5.0 saturation")
    assert len(re.findall(r'name="run" value="cometbft-saturation-v1\.5\.0', page)) == 2
    assert "2 of 48 runs" in page


def test_runs_are_compared_as_the_library_compares_them(server: Served, store: Path) -> None:
    sides = [[run_id for run_id in _runs(store, version) if "demo" in run_id] for version in ("v1.2.0", "v1.11.0")]
    chosen = [run for side in sides for run in side]
    page = _page(server, "/compare", run=chosen)
    document = cm.compare(*sides, store=store)
    assert document.sentence in page
    assert document.digest in page
    parameters = {"side": [" ".join(side) for side in sides]}
    shown = server.client.get("/compare", params={**parameters, "as": "json"})
    assert shown.json() == json.loads(document.json)
    three = _page(server, "/compare", side=["v1.2.0", "v1.3.0", "v1.4.0"])
    assert all(version in three for version in ("v1.2.0", "v1.3.0", "v1.4.0"))


def test_charts_are_pictures_for_light_and_dark_mode(server: Served, store: Path) -> None:
    page = _page(server, "/history", run=_runs(store, "v1.11.0")[0])
    pictures = re.findall(r'<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img src="([^"]+)"', page)
    assert len(pictures) > 8
    dark, light = (server.client.get(address) for address in pictures[0])
    for answer in (dark, light):
        assert answer.headers["content-type"] == "image/svg+xml"
        assert _xml(answer.text).tag.endswith("svg")
    assert dark.text != light.text
    narrow = server.client.get(pictures[0][1].replace("look=light", "look=narrow"))
    assert float(_xml(narrow.text).attrib["width"]) < 390
    assert server.client.get(pictures[0][0].replace("chart=", "chart=no-")).status_code == 404


def test_a_history_shows_the_changes_of_each_release(server: Served, store: Path) -> None:
    page = _page(server, "/history", run=_runs(store, "v1.11.0")[0])
    steps = re.findall(r"<summary>(v1\.\d+\.0): 1 difference</summary>", page)
    assert steps == [f"v1.{number}.0" for number in range(RELEASES - 1, 0, -1)]


@pytest.mark.parametrize("suffix", ["html", "json", "pdf", "md"])
def test_any_page_is_exported_as_one_file(server: Served, store: Path, suffix: str) -> None:
    run = _runs(store, "v1.4.0")[0]
    for address in (f"/runs/{run}", "/runs", "/"):
        answer = server.client.get(address, params={"as": suffix})
        assert answer.status_code == 200
        content = answer.content
        assert content.startswith({"html": b"<!doctype", "json": b"{", "pdf": b"%PDF", "md": content[:1]}[suffix])
    assert server.client.get("/runs", params={"as": "exe"}).status_code == 404


def test_the_feed_and_the_badge_show_the_verdict(server: Served) -> None:
    feed = _xml(server.client.get("/feed.atom").text)
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    assert [entry.findtext(f"{atom}title", "").partition(": ")[2] for entry in entries] == [
        f"CometBFT · cometbft/{name} v1.{RELEASES - 1}.0" for name in ("saturation", "demo")
    ]
    badge = server.client.get("/badge/cometbft/cometbft/demo.svg")
    assert f"v1.{RELEASES - 1}.0" in _xml(badge.text).attrib["aria-label"]
    assert server.client.get("/badge/cometbft/cometbft/nothing.svg").status_code == 404


def test_a_workload_with_one_release_is_informational_everywhere(tmp_path: Path) -> None:
    """It is not judged: the card, the list, the feed and the badge must not call that by four names."""
    filled(tmp_path, releases=1)
    with served(tmp_path) as server:
        badge = _xml(server.client.get("/badge/cometbft/cometbft/demo.svg").text)
        assert badge.attrib["aria-label"].endswith(": v1.0.0 informational")
        assert "INFORMATIONAL: CometBFT" in server.client.get("/feed.atom").text
        (card,) = server.client.get("/", params={"as": "json"}).json()["cards"]
        assert (card["word"], card["tone"]) == ("INFORMATIONAL", "neutral")
        assert '<span class="mark neutral">INFORMATIONAL</span>' in _page(server, "/")


def test_a_page_works_without_scripts_and_its_policy_allows_only_its_own_content(server: Served) -> None:
    compared = "/compare?side=v1.2.0&side=v1.3.0"
    for address in (
        "/",
        "/runs",
        "/compare",
        compared,
        "/history",
        "/capacity",
        "/live",
        "/metrics/cometbft",
        "/no-such-page",
    ):
        answer = server.client.get(address)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        for kind, body in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>")):
            (text,) = re.findall(body, answer.text, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy
        rest = re.sub(r"<(script|style)>.*?</\1>", "", answer.text, flags=re.DOTALL)
        assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:", rest)
        assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', answer.text)


def test_a_block_trace_equals_that_of_the_command(tmp_path: Path) -> None:
    run = sealed(Store(tmp_path), Timelines(6, 8).fill())
    with served(tmp_path) as server:
        assert 'action="/follow"' in _page(server, f"/runs/{run.run_id}")
        shown = _page(server, "/follow", run=run.run_id, trail="block", key="3")
        assert cm.block(run.run_id, 3, store=tmp_path).sentence in shown
        assert server.client.get("/follow", params={"run": run.run_id, "key": "no such"}).status_code == 404


def test_only_the_log_lines_of_a_block_are_opened_from_a_named_folder(tmp_path: Path) -> None:
    logs = make_cluster(tmp_path / "logs", hosts=3, slots=60)
    (run,) = cm.ingest("cardano", logs, store=tmp_path / "store", filters=[])
    empty = tmp_path / "empty"
    empty.mkdir()
    where = {"run": run.id, "key": "1", "as": "json"}
    with served(tmp_path / "store", "--logs", str(empty), "--logs", str(logs)) as server:
        shown = server.client.get("/follow", params=where).json()
        assert {line["place"] for line in shown["log_lines"]} == {"node-0", "node-1", "node-2"}
        assert all(shown["key"] in line["text"] for line in shown["log_lines"])
    with served(tmp_path / "store", "--logs", str(empty)) as server:
        assert server.client.get("/follow", params=where).json()["log_lines"] == []


def test_a_run_that_cannot_be_modelled_is_listed_with_the_reason_and_without_a_link(tmp_path: Path) -> None:
    run = sealed(Store(tmp_path), Timelines(6, 8).fill())
    with served(tmp_path) as server:
        shown = _page(server, "/what-if")
        assert f"/what-if?source={run.run_id}" not in shown
        assert re.search(rf"{run.run_id}.*has no value of .*, which the model needs", shown, re.DOTALL)
        assert "/what-if?source=cardano%2Fvalue" in shown


def test_the_curves_of_releases_are_overlaid(tmp_path: Path) -> None:
    names = filled(tmp_path, releases=3, steps=True)
    with served(tmp_path) as server:
        assert f"/capacity?run={names[-1]}" in _page(server, "/capacity")
        shown = server.client.get("/capacity", params={"run": names[-1], "as": "json"}).json()
        assert {step["version"] for step in shown["steps"]} == {"v1.0.0", "v1.1.0", "v1.2.0"}
        page = _page(server, "/capacity", run=names[-1])
        (picture,) = set(re.findall(r'<img src="([^"]+)"', page))
        assert "clients" in server.client.get(picture).text


def test_damaged_and_unfinished_runs_are_shown_as_such_and_break_no_page(tmp_path: Path) -> None:
    """Ten runs damaged in ten ways, including content that would be executed if a page did not escape it."""
    root = tmp_path / "store"
    names = filled(root, releases=8, repetitions=3)
    ways: list[tuple[str, bytes | None]] = [
        ("manifest.json", b""), ("manifest.json", b'{"subject": '), ("manifest.json", None), ("manifest.json", b"[]"),
        ("metrics.json", b""), ("metrics.json", b'{"metrics": [{"metric_id": 1}]}'), ("metrics.json", None),
        ("catalogue.json", b"{}"), ("SEALED", b"\xff\xfe"), ("samples/block.parquet", b"PAR1"),
    ]  # fmt: skip
    for number, (name, content) in enumerate(ways):
        damage(root, names[2 * number], name, content)
    odd = root / "runs" / names[-1] / "manifest.json"
    odd.write_text(odd.read_text(encoding="utf-8").replace("v1.7.0", SCRIPTED), encoding="utf-8")
    unfinished(root, "cometbft-demo-v9-20260101T000000-0001", {"pid": 1, "version": SCRIPTED, "profile": 3})
    unfinished(root, "cometbft-demo-v9-20260101T000000-0002", {})
    with served(root) as server:
        listed = {
            run["run_id"]: run["status"] for run in server.client.get("/runs", params={"as": "json"}).json()["runs"]
        }
        assert len(listed) == len(names) + 2
        assert [listed[names[2 * number]] for number in range(4)] == ["damaged"] * 4
        for address in ("/", "/runs", "/live", "/history", "/compare", "/feed.atom"):
            answer = server.client.get(address)
            assert answer.status_code == 200, address
            assert SCRIPTED not in answer.text
        wait_until(lambda: not server.client.get("/", params={"as": "json"}).json()["pending"], "the cards", 60)
        assert "4 damaged runs excluded" in unescape(server.client.get("/").text)
        for name in names:
            answer = server.client.get(f"/runs/{name}")
            assert answer.status_code in {200, 409, 500}
            assert SCRIPTED not in answer.text
        sound = server.client.get("/compare", params={"side": [names[1], names[5]]})
        assert sound.status_code == 200
        broken = server.client.get("/compare", params={"side": [names[8], names[5]]})
        assert broken.status_code == 409
        assert "damaged" in broken.text


def test_runs_are_filtered_by_the_verdict_of_their_experiment(tmp_path: Path) -> None:
    """As soon as an experiment ends. A run that nothing judged has no verdict, nor has one whose file is damaged."""
    names = filled(tmp_path, releases=4)
    store = Store(tmp_path)

    def found(server: Served, verdict: str) -> list[str]:
        runs = server.client.get("/runs", params={"verdict": verdict, "as": "json"}).json()["runs"]
        return [run["run_id"] for run in runs]

    with served(tmp_path) as server:
        assert "verdict=" not in server.client.get("/runs").text
        for number, verdict in enumerate([Verdict.PASS, Verdict.FAIL]):
            experiment_folder(store, f"demo-{number}").conclude(verdict, "Measured.")
        damaged = tmp_path / "experiments" / "demo-2" / "verdict.json"
        damaged.parent.mkdir()
        damaged.write_bytes(b'{"verdict": "<script>"}')
        wait_until(lambda: "/runs?verdict=fail" in server.client.get("/runs").text, "the verdict as a facet", 20)
        assert (found(server, "pass"), found(server, "fail"), found(server, "<script>")) == ([names[0]], [names[1]], [])
        experiment_folder(store, "demo-1").conclude(Verdict.INCONCLUSIVE, "More runs were made.")
        wait_until(lambda: found(server, "inconclusive") == [names[1]], "the later verdict", 20)
        everything = server.client.get("/runs", params={"as": "json"}).json()["runs"]
        assert [run["verdict"] for run in reversed(everything)] == ["pass", "inconclusive", "", ""]


@pytest.mark.parametrize(
    ("word", "verdict"), [("met", "pass"), ("missed", "fail"), ("server gone", "server gone"), ("gold", "")]
)
def test_a_load_test_has_the_verdict_of_its_service_level(word: str, verdict: str) -> None:
    """Without an experiment that was judged as a whole."""
    entry = Entry("a", status="valid", labels=json.dumps({"sla": [word]}), experiment="load-1")
    moment = Moment(1, [entry], [], [], {}, Notes())
    (run,) = all_runs(moment)
    assert run.verdict == verdict
    (run,) = all_runs(replace(moment, verdicts={"load-1": Verdict.INVALID}))
    assert run.verdict == "invalid"


def test_imported_runs_are_distinguished_from_measured_ones(tmp_path: Path) -> None:
    """The logs of an imported run came from elsewhere; those of a measured run are in the store."""
    (measured,) = filled(tmp_path, releases=1)
    imported = sealed(Store(tmp_path), Timelines(4, 4).fill()).run_id
    shipped = {run.id for run in cm.import_samples(tmp_path)}  # measured elsewhere, and complete with their raw files
    with served(tmp_path) as server:
        for source, expected in (("imported", {imported}), ("measured", {measured, *shipped})):
            runs = server.client.get("/runs", params={"source": source, "as": "json"}).json()["runs"]
            assert {run["run_id"] for run in runs} == expected


def test_a_run_in_progress_is_shown_with_its_experiment(tmp_path: Path) -> None:
    root = tmp_path / "store"
    filled(root, releases=1, repetitions=3)
    state = {"pid": os.getpid(), "version": "v2", "profile": "cometbft/demo", "experiment": "demo-0"}
    unfinished(root, "cometbft-demo-v2-20260101T000000-0001", state)
    unfinished(root, "cometbft-demo-v2-20260101T000000-0002", {"pid": 2**22 + 1, "version": "v2"})
    plan = root / "experiments" / "demo-0" / "experiment.json"
    plan.parent.mkdir(parents=True)
    plan.write_text('{"length": {"most": 6}, "arms": {"baseline": {}, "candidate": {}}}', encoding="utf-8")
    with served(root) as server:
        alive, dead = server.client.get("/live", params={"as": "json"}).json()["runs"]
        assert (alive["is_alive"], alive["done"]) == (True, "3 runs sealed of at most 12")
        assert not dead["is_alive"]
        page = _page(server, "/live")
        assert "aborted" in page
        assert 'data-refresh="2"' in page
        home = _page(server, "/")
        assert "0001" in home.partition("Now:")[2]
        assert 'data-refresh="30"' in home


def test_a_run_that_is_sealed_later_appears(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with served(root) as server:
        first = server.client.get("/").text
        assert "There are no runs yet" in first
        assert 'data-refresh="30"' in first  # the first run appears on its own
        (name,) = filled(root, releases=1)
        wait_until(lambda: name in server.client.get("/runs").text, "the run in the list", 20)


def test_notebooks_and_other_tools_read_the_documented_json(server: Served) -> None:
    """The JSON of a page has a schema version, and its list of runs is the list of the library."""
    shown: httpx.Response = server.client.get("/runs", params={"as": "json"})
    assert shown.json()["schema_version"] == 1
    assert shown.headers["content-type"] == "application/json"


def test_every_figure_links_to_its_computation(server: Served, store: Path) -> None:
    """From every kind of page, a link leads to an existing anchor about that metric and these runs."""
    wait_until(lambda: not server.client.get("/", params={"as": "json"}).json()["pending"], "the cards", 60)
    (run, *_) = _runs(store, "v1.11.0")
    figures = {
        "/": 8,
        f"/runs/{run}": 30,
        f"/history?run={run}": 20,
        "/compare?side=v1.10.0&side=v1.11.0": 20,
        "/compare?side=v1.10.0&side=v1.11.0&metric=tx_latency_s.p99": 1,
        f"/series?run={run}&metric=tx_latency_s": 1,
    }
    anchors: dict[str, set[str]] = {}
    entries: set[str] = set()
    for address, least in figures.items():
        addresses = set(re.findall(r'href="(/metrics/cometbft/[^"]+)"', server.client.get(address).text))
        assert len(addresses) >= least, address
        # Each page takes a second, so only every sixth link and the links of two metrics on all pages are checked.
        links = sorted(map(unescape, addresses))
        for link in {*links[::6], *(link for link in links if re.search(r"/(tx_latency_s|block_interval_s)\b", link))}:
            page, _, anchor = link.partition("#")
            metric = page.removeprefix("/metrics/cometbft/").partition("?")[0]
            if page not in anchors:
                text = server.client.get(page).text
                assert f"· {metric}</p>" in text, page
                assert "source events" in text, page
                assert "Rules" in text, page
                anchors[page] = set(re.findall(r'\bid="([^"]+)"', text))
                entries |= set(re.findall(r'href="/metrics/cometbft#([^"]+)"', text))
            assert anchor in anchors[page] - {""}, link
    assert {"metric-tx_latency_s", "metric-block_interval_s"} <= entries
    assert entries <= set(re.findall(r'\bid="([^"]+)"', server.client.get("/metrics/cometbft").text))
