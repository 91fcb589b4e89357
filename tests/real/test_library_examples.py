"""Examples in the library's docstrings that need real nodes or a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import examples
from tests.real.mesh_servers import MeshServer
from tests.real.test_cometbft_qa import ANYHOW, PLAN

# The examples set no addresses. Use addresses that no concurrent test uses.


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate store for each test."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))


@pytest.mark.parametrize("name", examples.NEED_NODES)
def test_the_examples_that_run_nodes_work(name: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    anyhow = dict(setting.split("=") for setting in (*ANYHOW, "network.validators=1"))
    examples.execute(name, anyhow=anyhow, plan=plan, small=anyhow)


def test_the_examples_that_require_a_server_work(rosetta_example: MeshServer, tmp_path: Path) -> None:
    for name in examples.NEED_A_SERVER:
        examples.execute(name, url=rosetta_example.url, folder=tmp_path)
