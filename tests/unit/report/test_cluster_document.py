"""The document of a cluster check."""

from __future__ import annotations

from chainmark.report.blocks import Table
from chainmark.report.cluster_document import cluster_document

from tests.golden.made_results import cluster_ready


def test_a_worker_with_many_builds_names_some_of_them() -> None:
    """A search for a commit leaves dozens in the cache, which would push the other columns off the page."""
    ready = cluster_ready()
    worker = ready.workers[0].model_copy(update={"nodes": [f"CometBFT build {number}" for number in range(24)]})
    document = cluster_document(ready.model_copy(update={"workers": [worker]}))
    table = next(block for block in document.blocks() if isinstance(block, Table))
    assert table.rows[0].cells[-1].text == (
        "CometBFT build 0, CometBFT build 1, CometBFT build 2, CometBFT build 3 and 20 more"
    )
