"""The newest metrics pages are read while other threads fetch more of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from chainmark.network.sampling import Scraper


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a page."""
    (tmp_path / "metrics").write_text("up 1\n")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()
        thread.join()


def test_pages_that_arrive_do_not_disturb_a_reader_of_the_earlier_ones(url: str, tmp_path: Path) -> None:
    """With two hundred slow nodes, some pages arrive after the watch has begun to look, which ended the run."""
    scraper = Scraper({"node0": url, "node1": url}, tmp_path / "scrapes")
    scraper.expect_silence("node1")
    scraper.scrape()
    seen = []
    for name in scraper.last_pages:
        scraper.expect_answers("node1")
        scraper.scrape()
        seen.append(name)
    assert seen == ["node0"]
    assert scraper.last_pages == dict.fromkeys(["node0", "node1"], b"up 1\n")
    scraper.close()
