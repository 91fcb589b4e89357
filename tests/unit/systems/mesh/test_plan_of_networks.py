"""A plan for servers of several networks: all servers of a network receive the same requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

import chainmark as cm
import chainmark.api.planned_loads
from chainmark.core.matrix_report import MatrixReport
from chainmark.lab import loading
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.systems.mesh.scripted_server import Script, answer, chain, serving

PROFILE = """
system = "mesh"
sla = { p99_s = 5.0 }
steps = { duration_s = 1, longest_s = 1, warm_up_s = 0, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = ["clients"], clients_first = 1, clients_last = 1, times = 1 }
fixed = { times = 0, duration_s = 1 }
corpus = { settled_blocks = 0, blocks = 5, transactions = 5, accounts = 5, per_stratum = 3 }
mesh = { endpoints = ["block"] }
"""
PLAN = """
system = "mesh"
profile = "{profile}"

[[scenario]]
id = "standard"
"""


def _of_network(name: str, height: int) -> Script:
    listing = {"network_identifiers": [{"blockchain": "cardano", "network": name}]}
    return {**chain(height=height), "/network/list": lambda _: answer(listing)}


def _corpora(runs: Sequence[SealedRun]) -> dict[str, str]:
    """The hash of the requests, per server."""
    places = [(run.manifest.experiment, run.manifest.workload["corpus"]) for run in runs]
    return {place.side.removesuffix("-standard"): str(corpus) for place, corpus in places if place}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan with short steps, and a store for this test. Other load on this machine does not matter."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(chainmark.api.planned_loads, "Tester", partial(loading.Tester, watching=None))
    (tmp_path / "short.toml").write_text(PROFILE, encoding="utf-8")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(profile=tmp_path / "short.toml"), encoding="utf-8")
    return path


def test_servers_of_one_network_receive_the_same_requests(plan: Path, tmp_path: Path) -> None:
    """Another network gets its own corpus, as does a repetition of the plan with `like`."""
    with (
        serving(_of_network("preprod", 100)) as first,
        serving(_of_network("mainnet", 300)) as second,
        serving(_of_network("preprod", 140)) as third,
        serving(_of_network("mainnet", 340)) as fourth,
    ):
        targets = {"first": first, "second": second, "third": third, "fourth": fourth}
        experiments = [cm.load_plan(plan, targets, version="v1")]
        experiments.append(cm.load_plan(plan, targets, version="v2", like=experiments[0].id))
    store = Store(tmp_path / "store")
    for experiment in experiments:
        assert experiment.document is not None
        assert isinstance(experiment.document.result, MatrixReport)
        assert [entry.missing for entry in experiment.document.result.cells] == [""] * 4
    hashes = [_corpora(store.select(experiment.id or "")) for experiment in experiments]
    assert hashes[0] == hashes[1]
    assert hashes[0]["first"] == hashes[0]["third"] != hashes[0]["second"] == hashes[0]["fourth"]


def test_an_endpoint_is_selected_by_its_path_or_its_id(plan: Path, tmp_path: Path) -> None:
    with serving(chain()) as url:
        cm.load_plan(plan, {"only": url}, version="v1")
    store = Store(tmp_path / "store")
    for reference in ("endpoint:/block", "endpoint:block"):
        assert len(store.all_of(reference)) == 1
