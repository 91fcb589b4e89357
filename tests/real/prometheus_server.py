"""Debian's Prometheus: fetched into the cache without root, filled with known samples, or scraping real nodes.

`python -m tests.real.prometheus_server install` fetches it in advance, so that no test waits for it.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from chainmark.network.processes import ProcessGroup
from chainmark.store.paths import cache_directory

from tests.machine import server_address
from tests.support import wait_until

PACKAGE = "prometheus"
PORT = 9090
FETCH_TIMEOUT_S = 300
_FOLDER = "usr/bin"


@functools.cache
def programs() -> dict[str, Path] | None:
    """`prometheus` and `promtool` of the machine, else from the cache; None if neither has them."""
    for folder in (None, cache_directory() / "peers" / PACKAGE / _FOLDER):
        by_name = {name: shutil.which(name, path=folder) for name in (PACKAGE, "promtool")}
        paths = {name: Path(path) for name, path in by_name.items() if path}
        if len(paths) == len(by_name):
            return paths
    return None


def install() -> str | None:
    """Make sure that both programs are available; return the reason if that is impossible."""
    if programs():
        return None
    target = cache_directory() / "peers" / PACKAGE
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as folder:
        try:
            _download(folder)
            package = next(Path(folder).glob("*.deb"))
            _call(["dpkg", "-x", str(package), "content"], folder)
        except (OSError, subprocess.SubprocessError, StopIteration) as error:
            message = getattr(error, "stderr", "") or str(error)
            return f"Debian's package `{PACKAGE}` could not be fetched: {message.strip().splitlines()[-1]}"
        shutil.rmtree(target, ignore_errors=True)
        (Path(folder) / "content").rename(target)
    programs.cache_clear()
    return None


def _download(folder: str) -> None:
    try:
        _call(["apt-get", "download", PACKAGE], folder)
    except subprocess.CalledProcessError:
        if os.geteuid() != 0:
            raise
        # Without a recent `apt-get update`, the package may be unknown, or its listed version may no longer exist.
        _call(["apt-get", "update"], folder)
        _call(["apt-get", "download", PACKAGE], folder)


def _call(command: list[str], folder: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)


@contextmanager
def running(folder: Path, jobs: Mapping[str, str] | None = None, interval: str = "1s") -> Iterator[str]:
    """Run a server on the blocks in ``folder`` and return its URL.

    Args:
        folder: folder of its database, which may already contain blocks.
        jobs: the targets to scrape: `host:port` by the name of the job.
        interval: time between two scrapes.
    """
    paths = programs()
    assert paths is not None
    content = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [place]}]} for name, place in (jobs or {}).items()
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    config = folder.with_suffix(".yml")
    config.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    address = f"{server_address()}:{PORT}"
    command = [
        str(paths[PACKAGE]),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    ]
    with ProcessGroup() as group:
        process = group.start(PACKAGE, command, folder.with_suffix(".log"))
        url = f"http://{address}"
        wait_until(lambda: process.popen.poll() is not None or _is_ready(url), "Prometheus")
        assert process.popen.poll() is None, process.last_log_lines()
        yield url


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=2, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def fill(folder: Path, lines: Iterable[str]) -> None:
    """Write samples with known values and times into a database: OpenMetrics lines with times in s."""
    paths = programs()
    assert paths is not None
    source = folder.with_suffix(".om")
    source.write_text("".join(f"{line}\n" for line in [*lines, "# EOF"]), encoding="utf-8")
    command = [str(paths["promtool"]), "tsdb", "create-blocks-from", "openmetrics", str(source), str(folder)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)


if __name__ == "__main__":
    if sys.argv[1:] != ["install"]:
        sys.exit("usage: python -m tests.real.prometheus_server install")
    if reason := install():
        print(f"{reason}: the tests that need it will be skipped", file=sys.stderr)  # noqa: T201
