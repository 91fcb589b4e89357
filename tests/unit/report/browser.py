"""A page in a real browser, asked what it made of itself."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chainmark.store.paths import cache_directory

AXE = "axe-core@4.14.1"
INSTALL_TIMEOUT_S = 300
# The page reports on itself, because the browser's own log mixes in the machine's troubles.
_PROBE = (
    "const tell = (text) => { document.title += text; };"
    "document.addEventListener('securitypolicyviolation', (e) => tell(' VIOLATION ' + e.blockedURI));"
    "window.addEventListener('error', (e) => tell(' ERROR ' + e.message));"
    # Dumping a page paints no frame, so nothing would ever scroll into view.
    "window.IntersectionObserver = class { constructor(f) { this.f = f; } unobserve() {}"
    " observe(target) { setTimeout(() => this.f([{ isIntersecting: true, target }])); } };"
)


def _allowed(script: str) -> str:
    """What a page, which allows its own scripts alone, must say to allow this one."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def page_without_complaints(html: str, folder: Path, *scripts: str) -> str:
    """The page as its scripts leave it; fails where one of them failed or asked for something that is not inside.

    Args:
        html: the page.
        folder: where the browser may write.
        scripts: what else is run, before the page is read.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    page = folder / "report.html"
    assert "script-src " in html
    added = [_PROBE, *scripts]
    allowed = " ".join(["script-src", *map(_allowed, added)])
    run = "".join(f"<script>{script}</script>" for script in added)
    probed = html.replace("script-src", allowed, 1).replace("<style>", f"{run}<style>", 1)
    page.write_text(probed, encoding="utf-8")
    arguments = [
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder / 'profile'}", "--window-size=1280,9000", "--virtual-time-budget=20000",
        "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None, done.stderr[-2000:]
    assert "ERROR" not in title[1]
    assert "VIOLATION" not in title[1]
    assert "could not be drawn" not in done.stdout.split("<script type=", 1)[0]
    return done.stdout


def axe_script(folder: Path) -> str:
    """The field's checker of accessibility, from npm and then from the cache.

    Args:
        folder: where npm may write.
    """
    script = cache_directory() / "peers" / f"{AXE.replace('@', '-')}.js"
    if not script.is_file():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        command = ["npm", "install", "--silent", "--no-save", "--prefix", str(folder), AXE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
        if done.returncode != 0:
            pytest.skip(f"npm does not install {AXE}: {done.stderr.strip()[-200:]}")
        # Whole at once: other processes of the tests look for it, too.
        script.parent.mkdir(parents=True, exist_ok=True)
        own = script.with_name(f"{script.name}.{os.getpid()}")
        shutil.copyfile(folder / "node_modules" / "axe-core" / "axe.min.js", own)
        own.replace(script)
    return script.read_text(encoding="utf-8")
