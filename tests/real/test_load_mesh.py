"""Load tests of real Mesh servers: all offered endpoints, without errors, comparable with the next release."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import chainmark
import chainmark.api.planned_loads
from chainmark.capacity.model import Target
from chainmark.compare import compare
from chainmark.core.load_report import EndpointEntry
from chainmark.core.progress import Silent
from chainmark.core.verdict import Verdict
from chainmark.lab import loading
from chainmark.lab.loading import LoadTest, at_levels_of, fixed_levels_of, recorded_corpus
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import ServiceRequest
from chainmark.report.layouts import document_of
from chainmark.store.runs import Store
from chainmark.systems.mesh import SYSTEM

from tests.real.load_servers import load_test
from tests.real.mesh_servers import NETWORK, MeshServer
from tests.unit.cli.commands import chainmark as command
from tests.unit.systems.mesh.scripted_server import chain, serving

PROFILE: dict[str, Any] = {
    "system": "mesh",
    "name": "short",
    "steps": {"duration_s": 1, "longest_s": 1, "warm_up_s": 0.1, "cool_down_s": 0, "recovery_longest_s": 0},
    "search": {"kinds": []},
    "fixed": {"times": 1, "duration_s": 1},
    "corpus": {"settled_blocks": 0, "blocks": 10, "transactions": 10, "accounts": 10, "per_stratum": 3},
}


def _errors(endpoint: EndpointEntry) -> list[tuple[str, int | None, str]]:
    return [(error.kind, error.status, error.detail) for step in endpoint.steps for error in step.errors]


@pytest.mark.quiet  # the chain continues to grow meanwhile
def test_every_endpoint_of_a_live_chain_is_loaded(simd: MeshServer, tmp_path: Path) -> None:
    """Under load every response is still checked: a correct status with another block in the body is an error."""
    offered = ["network_status", "account_balance", "block", "block_transaction"]
    offered += ["network_list", "network_options", "mempool"]
    fixed = {**PROFILE["fixed"], "clients": {endpoint: [2] for endpoint in offered}}
    profile = SYSTEM.profile({**PROFILE, "fixed": fixed})
    test = load_test(Store(tmp_path), SYSTEM, profile, ServiceRequest(Target("simd", simd.url)))
    (target,) = test.report.targets
    assert [endpoint.id for endpoint in target.endpoints] == offered
    for endpoint in target.endpoints:
        assert _errors(endpoint) == []
        (step,) = endpoint.steps
        assert step.ok == step.due > 0
        assert sum(endpoint.strata.values()) == endpoint.requests > 0
    assert target.skipped["/account/coins"].startswith("refused: ")
    (run,) = test.runs
    assert run.verify() == []
    # The server reports its version as "<appd>/unknown". The run is still found.
    assert [run.run_id for run in Store(tmp_path).sealed()] == [run.run_id]
    assert run.manifest.status == "valid"
    assert run.manifest.conditions["network"] == "/".join(NETWORK.values())
    assert run.manifest.workload["corpus"] == test.report.corpus_hash


CHOSEN = ("block",)


SEARCH = {"kinds": ["clients"], "clients_first": 4, "clients_last": 4, "times": 1}


def _searched(store: Store, server: MeshServer) -> LoadTest:
    profile = SYSTEM.profile({**PROFILE, "search": SEARCH, "fixed": {**PROFILE["fixed"], "shares": [0.5]}})
    pinned = store.root / "pinned.json"
    return load_test(
        store, SYSTEM, profile, ServiceRequest(Target("first", server.url), endpoints=CHOSEN, pinned=pinned)
    )


def test_the_next_release_gets_the_same_requests_and_is_compared(rosetta_example: MeshServer, tmp_path: Path) -> None:
    """The previous release was measured weeks ago. Its run records which requests were sent, and how often."""
    store = Store(tmp_path)
    first = _searched(store, rosetta_example)
    (former,) = first.runs
    levels = fixed_levels_of(former)
    assert levels == {"rates": {}, "clients": {"block": [2.0]}}
    profile = at_levels_of(SYSTEM, SYSTEM.profile({**PROFILE, "search": {**SEARCH, "kinds": []}}), former)
    corpus = recorded_corpus(former)
    second = load_test(
        store, SYSTEM, profile, ServiceRequest(Target("second", rosetta_example.url), "next", CHOSEN, corpus)
    )
    assert second.report.corpus_hash == first.report.corpus_hash
    assert fixed_levels_of(second.runs[0]) == levels
    comparison = compare([former], second.runs, history=store.sealed(), tool_version="test")
    judged = {judgement.metric_id for judgement in comparison.judgements}
    assert judged >= {"block_at_2_clients_latency_s", "block_at_2_clients_error_share"}
    assert comparison.verdict is not Verdict.INVALID, comparison.reasons


@pytest.mark.quiet  # the chain continues to grow meanwhile
def test_the_heaviest_accounts_of_a_live_chain_are_loaded(simd: MeshServer, tmp_path: Path) -> None:
    """The shipped profile with short steps: the report must state the requests, their sizes, and the kind of server."""
    short = [f"steps.{key}={value}" for key, value in PROFILE["steps"].items()]
    fixed = ["search.kinds=[]", "fixed.clients.account_balance=[2]", "fixed.duration_s=1"]
    drawn = ["corpus.settled_blocks=0", "corpus.blocks=10", "corpus.largest=2"]
    profile = SYSTEM.profile(read_profile("mesh/huge-address", [*short, *fixed, *drawn]))
    test = load_test(Store(tmp_path), SYSTEM, profile, ServiceRequest(Target("simd", simd.url)))
    (target,) = test.report.targets
    (endpoint,) = target.endpoints
    assert (endpoint.id, endpoint.requests, endpoint.sla.p99_s) == ("account_balance", 2, 10.0)
    assert endpoint.sizes["balances"] == (1, 1)
    assert 100 < endpoint.sizes["bytes"][0] <= endpoint.sizes["bytes"][1] < 400
    assert set(target.skipped) == {"/account/coins", "/search/transactions (by address)"}
    assert test.report.scenario == "huge address"
    facts = {fact.label: fact.value for fact in target.facts}
    assert facts["Pruning of blocks"].startswith("off (")
    assert facts["Hardware"].startswith("the machine that made the load")
    assert "balances 1, " in document_of(test.report).markdown()
    conditions = test.runs[0].manifest.conditions
    assert (conditions["pruning"], conditions["scenario"]) == ("off", "huge address")


def test_a_server_pruned_between_two_runs_is_compared_with_a_warning(tmp_path: Path) -> None:
    """The same requests are less work for the pruned server, although its configuration is unchanged."""
    store, levels = Store(tmp_path), {"clients": {"network_status": [1]}}
    profile = SYSTEM.profile({**PROFILE, "fixed": {**PROFILE["fixed"], **levels}})
    runs = []
    for pruned_below in (0, 80):
        with serving(chain(pruned_below=pruned_below)) as url:
            order = ServiceRequest(Target("one", url), endpoints=("network_status",))
            runs.append(load_test(store, SYSTEM, profile, order).runs[0])
    comparison = compare(runs[:1], runs[1:], history=store.sealed(), tool_version="test")
    (difference,) = [difference for difference in comparison.condition_differences if difference.id == "pruning"]
    assert (difference.baseline, difference.candidate) == ("off", "on, about 20 newest blocks")
    assert difference.explanation


def test_a_corpus_is_created_by_command(rosetta_example: MeshServer, tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    few = [f"--set=corpus.{key}={value}" for key, value in {"settled_blocks": 0, "blocks": 6, "per_stratum": 2}.items()]
    result = command("corpus", "mesh", rosetta_example.url, "--out", str(path), "--seed", "5", "--json", *few)
    summary = json.loads(result.stdout)
    assert summary["network"] == "Rosetta/Testnet"
    assert json.loads(path.read_text())["order"]["seed"] == 5
    assert sum(summary["requests"]["/block"].values()) > 1
    again = tmp_path / "again.json"
    command("corpus", "mesh", rosetta_example.url, "--out", str(again), "--seed", "5", "--network", "Testnet", *few)
    assert again.read_bytes() == path.read_bytes()
    checked = command("corpus", "check", str(path), "--target", rosetta_example.url)
    assert checked.exit_code == 0
    assert "requests were answered correctly" in " ".join(checked.stdout.split())


@pytest.mark.quiet  # the chain continues to grow meanwhile
def test_a_corpus_of_another_server_is_rejected(rosetta_example: MeshServer, simd: MeshServer, tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    few = ["--set=corpus.settled_blocks=0", "--set=corpus.blocks=4"]
    command("corpus", "mesh", rosetta_example.url, "--out", str(path), *few)
    with pytest.raises(chainmark.ChainmarkError, match="has no network `Rosetta/Testnet`"):
        command("corpus", "check", str(path), "--target", simd.url)


def test_rows_of_a_file_are_used_if_the_server_answers_them(rosetta_example: MeshServer, tmp_path: Path) -> None:
    rows, path = tmp_path / "rows.csv", tmp_path / "corpus.json"
    heading = "address,block_index,block_hash,transaction_size,relative_ttl,transaction_hash"
    right, wrong = "a,1000,block 1000,300,100,transaction 1", "b,7,no such block,300,100,transaction 1"
    rows.write_text(f"{heading}\n{right}\n{wrong}\n", encoding="utf-8")
    result = command("corpus", "import", str(rows), "--target", rosetta_example.url, "--out", str(path), "--json")
    summary = json.loads(result.stdout)
    assert summary["requests"]["/block"] == {"rows": 1}
    assert {refusal["endpoint"] for refusal in summary["refused"]} >= {"/block", "/account/balance"}
    service = SYSTEM.prepare(
        SYSTEM.profile(PROFILE), ServiceRequest(Target("t", rosetta_example.url), corpus=path), Silent()
    )
    assert service.corpus_hash == summary["hash"]
    with pytest.raises(chainmark.ChainmarkError, match="there is no file or folder"):
        command("corpus", "import", "absent.csv", "--target", rosetta_example.url, "--out", str(path))


PLAN = """
system = "mesh"
title = "The SDK's example on two machines"
profile = "{profile}"

[[scenario]]
id = "standard"
endpoints = ["block", "network_status"]

[[scenario]]
id = "huge-accounts"
title = "huge address"
settings = ["mesh.endpoints=['account_coins']"]
optional = true

[[server]]
id = "pruned"
hardware_profile = "mid"
hardware = "8 cores, 47GB RAM"
settings = ['mesh.pruning="enabled, 7 days"']

[[server]]
id = "whole"
hardware_profile = "mid"
hardware = "8 cores, 47GB RAM"
settings = ['mesh.pruning="disabled"']
"""


def test_a_matrix_is_run_and_published(
    rosetta_example: MeshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cell is a run. An optional endpoint that a server does not offer decides nothing. All cells are shown."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(chainmark.api.planned_loads, "Tester", partial(loading.Tester, watching=None))
    profile, plan, page = tmp_path / "short.toml", tmp_path / "plan.toml", tmp_path / "page.md"
    steps = ", ".join(f"{key} = {value}" for key, value in PROFILE["steps"].items())
    search = 'search = { kinds = ["clients"], clients_first = 2, clients_last = 2, times = 1 }'
    corpus = "corpus = { settled_blocks = 0, blocks = 10, transactions = 10, accounts = 10, per_stratum = 3 }"
    lines = [
        'system = "mesh"',
        "sla = { p99_s = 5.0 }",
        f"steps = {{ {steps} }}",
        search,
        "fixed = { times = 0 }",
        corpus,
    ]
    profile.write_text("\n".join(lines), encoding="utf-8")
    plan.write_text(PLAN.format(profile=profile), encoding="utf-8")
    both = [f"--target={name}={rosetta_example.url}" for name in ("pruned", "whole")]
    result = command("load", "--plan", str(plan), *both, "--as", "v1.3.0", "--json-file", str(tmp_path / "plan.json"))
    assert result.exit_code == 0, result.output
    cells = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["cells"]
    assert [(cell["server"], cell["scenario"], cell["report"] is not None, cell["gates"]) for cell in cells] == [
        ("pruned", "standard", True, True),
        ("whole", "standard", True, True),
        ("pruned", "huge address", False, False),
        ("whole", "huge address", False, False),
    ]
    corpora = {cell["report"]["corpus_hash"] for cell in cells if cell["report"]}
    assert len(corpora) == 1
    assert command("publish", "mesh", "release:v1.3.0", "--md", str(page)).exit_code == 0
    markdown = page.read_text(encoding="utf-8")
    assert "**Pruning enabled, 7 days**" in markdown
    assert "**Pruning disabled**" in markdown
    assert markdown.count("mid-level hardware\n") == 1
    assert len(list((tmp_path / "page-stages").glob("*.csv"))) == 2
