"""The dashboard in a real browser: used without a mouse, and while runs are added and removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from chainmark.store.runs import Store

from tests.unit.report.browser import axe_script
from tests.unit.serve.browsing import opened, started_browser
from tests.unit.serve.serving import Served, served
from tests.unit.serve.stores import filled, unfinished
from tests.unit.store.trail_runs import Timelines, sealed


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("browsed") / "store"
    filled(root, releases=3, repetitions=2)
    return root


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server, and the address of a block's page on it."""
    root = tmp_path_factory.mktemp("followed") / "store"
    run = sealed(Store(root), Timelines(8, 4).fill(), trips={("region-0", "region-1"): 0.08})
    with served(root) as server:
        yield server, _at(server, f"/follow?run={run.run_id}&key=4")


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Served]:
    with served(store) as server:
        yield server


def _at(server: Served, address: str) -> str:
    return f"http://127.0.0.1:{server.port}{address}"


def _focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.closest('tbody')?.dataset.run ?? ''"))


def test_runs_are_marked_and_compared_by_keys_except_in_an_input_field(server: Served, browser: Browser) -> None:
    with opened(browser, _at(server, "/runs")) as page:
        runs = page.eval_on_selector_all("table.list tbody", "all => all.map((one) => one.dataset.run)")
        page.keyboard.press("c")
        expect(page.get_by_role("status")).to_contain_text("No run is marked")
        for key in ("j", "ArrowDown", "j", "k"):
            page.keyboard.press(key)
        assert _focused(page) == runs[1]
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
        page.keyboard.press("Space")
        page.keyboard.press("j")
        page.keyboard.press("x")
        expect(page.get_by_role("status")).to_have_text("2 marked")
        page.keyboard.press("/")
        page.keyboard.type("jxc?gh")
        assert page.get_by_label("Find").input_value() == "jxc?gh"
        assert page.evaluate("document.querySelectorAll('table.list :checked').length") == 2
        page.keyboard.press("Tab")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("compare the marked runs")
        page.keyboard.press("Escape")
        page.keyboard.press("c")
        page.wait_for_url("**/compare?**")
        expect(page.locator("#matrix")).to_be_visible()


def test_a_run_that_starts_or_ends_is_shown_and_marks_are_preserved(
    server: Served, browser: Browser, store: Path
) -> None:
    name = "cometbft-demo-v9-20260101T000000-0001"
    with opened(browser, _at(server, "/runs")) as page:
        page.get_by_role("columnheader", name="run", exact=True).click()
        page.keyboard.press("Tab")
        page.keyboard.press("j")
        page.keyboard.press("x")
        marked = _focused(page)
        unfinished(store, name, {"pid": os.getpid(), "version": "v9"})
        expect(page.locator(f'tbody[data-run="{name}"]')).to_contain_text("unfinished", timeout=20_000)
        expect(page.locator("#found")).to_have_text("7 of 7")
        shown = page.eval_on_selector_all("table.list tbody", "all => all.map((one) => one.dataset.run)")
        assert shown == sorted(shown)
        assert _focused(page) == marked
        assert page.locator(f'tbody[data-run="{marked}"] input').is_checked()
        shutil.rmtree(store / "runs" / name)
        expect(page.locator(f'tbody[data-run="{name}"]')).to_have_count(0, timeout=20_000)


def test_a_block_is_replayed_event_by_event(followed: tuple[Served, str], browser: Browser) -> None:
    with opened(browser, followed[1]) as page:
        events = page.locator("#replay [data-key]")
        lit = page.locator("#replay [data-key].lit")
        expect(page.locator("#replay svg")).to_have_count(0)
        page.get_by_role("button", name="Replay").click()
        expect(lit).not_to_have_count(0, timeout=20_000)
        expect(lit).to_have_count(events.count(), timeout=20_000)
        expect(page.get_by_role("button", name="Replay")).to_have_attribute("aria-pressed", "false")
        expect(page.locator("#replay output")).to_contain_text("node-3: adopted")
        page.get_by_label("position").press("Home")
        expect(lit).to_have_count(0)
    with opened(browser, followed[1], scripts=False) as page:
        expect(page.locator("#replay")).to_be_hidden()
        expect(page.get_by_role("img", name="Timeline")).to_be_visible()


def test_runs_whose_dots_are_dragged_over_are_marked_wherever_they_are_shown(server: Served, browser: Browser) -> None:
    with opened(browser, _at(server, "/compare?side=v1.0.0&side=v1.1.0&metric=tx_latency_s.p99")) as page:
        dot = page.locator("#strips figure").first.locator("[data-key]").first
        run = dot.get_attribute("data-key")
        box = dot.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] - 2, box["y"])
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] + 2, box["y"], steps=4)
        page.mouse.up()
        marked = page.locator(f'#strips [data-key="{run}"]')
        expect(marked).not_to_have_count(0)
        expect(page.locator(f'#strips [data-key="{run}"].marked')).to_have_count(marked.count())
        expect(page.locator(f'[id="key-{run}"].marked')).to_be_visible()
        expect(page.locator("tbody tr.marked")).not_to_have_count(page.locator("#runs tbody tr").count())


def test_an_unchanged_list_is_not_sent_again(server: Served) -> None:
    page = server.client.get("/runs").text
    state = page.partition('data-live="')[2].partition('"')[0]
    assert server.client.get("/runs", headers={"if-none-match": f'"{state}"'}).status_code == 304
    assert server.client.get("/runs", headers={"if-none-match": '"another"'}).status_code == 200


def test_on_a_phone_the_first_runs_are_visible_and_the_facets_are_one_tap_away(
    server: Served, browser: Browser
) -> None:
    address = _at(server, "/runs?version=v1.0.0")
    with opened(browser, address, width=390, scripts=False) as page:
        expect(page.locator("table.list tbody a").first).to_be_in_viewport()
        facets = page.get_by_role("complementary", name="Facets")
        expect(facets).to_be_hidden()
        page.get_by_text("Facets · v1.0.0").click()
        expect(facets).to_be_visible()
    with opened(browser, address, scripts=False) as page:
        expect(page.get_by_role("complementary", name="Facets")).to_be_visible()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_script(tmp_path_factory.mktemp("npm"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_page_has_accessibility_violations(
    followed: tuple[Served, str], server: Served, browser: Browser, axe: str, width: int, *, dark: bool
) -> None:
    """By the rules of axe: the list with a focused and marked row, the keys, a comparison, a block during replay."""
    pages = {
        _at(server, "/runs"): ("j", "x", "j"),
        _at(server, "/compare"): ("?",),
        _at(server, "/compare?side=v1.0.0&side=v1.1.0"): (),
        _at(server, "/compare?side=v1.0.0&side=v1.1.0&metric=tx_latency_s.p99"): (),
        followed[1]: ("replay",),
    }
    for address, keys in pages.items():
        with opened(browser, address, width=width, dark=dark) as page:
            for key in keys:
                if key == "replay":
                    page.get_by_label("position").press("End")
                    expect(page.locator("#replay .lit")).not_to_have_count(0, timeout=20_000)
                else:
                    page.keyboard.press(key)
            page.evaluate(axe)
            wrong = page.evaluate(
                "axe.run(document).then(({ violations }) => violations.map((rule) =>"
                " [rule.id, rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]))"
            )
            assert wrong == [], address
