"""Load a page in a real browser and read the result."""

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
# The page collects its own errors, because the browser's log also contains errors of the machine.
_PROBE = (
    "const tell = (text) => { document.title += text; };"
    "document.addEventListener('securitypolicyviolation', (e) => tell(' VIOLATION ' + e.blockedURI));"
    "window.addEventListener('error', (e) => tell(' ERROR ' + e.message));"
    # A dumped page is never painted, so no element would ever scroll into view.
    "window.IntersectionObserver = class { constructor(f) { this.f = f; } unobserve() {}"
    " observe(target) { setTimeout(() => this.f([{ isIntersecting: true, target }])); } };"
)


def _allowed(script: str) -> str:
    """The entry that the page's content security policy needs to allow this script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def page_without_complaints(html: str, folder: Path, *scripts: str) -> str:
    """The page after its scripts ran. Fails if a script failed or requested anything outside the page.

    Args:
        html: the page.
        folder: where the browser may write.
        scripts: further scripts to run before the page is read.
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
    """The accessibility checker axe, from npm or from the cache.

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
        # Written atomically, because other test processes look for the same file.
        script.parent.mkdir(parents=True, exist_ok=True)
        own = script.with_name(f"{script.name}.{os.getpid()}")
        shutil.copyfile(folder / "node_modules" / "axe-core" / "axe.min.js", own)
        own.replace(script)
    return script.read_text(encoding="utf-8")
