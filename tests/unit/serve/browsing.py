"""Open the dashboard in a real browser, which tests control by key presses."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright


@contextmanager
def started_browser() -> Iterator[Browser]:
    """The system's Chromium. The test is skipped if Chromium is not installed."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, address: str, *, width: int = 1440, dark: bool = False, scripts: bool = True
) -> Iterator[Page]:
    """A page at an address. Fails if a script failed or violated the page's content security policy."""
    look: Literal["dark", "light"] = "dark" if dark else "light"
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=look, java_script_enabled=scripts
    )  # fmt: skip
    complaints: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(address)
    yield page
    context.close()
    assert complaints == []
