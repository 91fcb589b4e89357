"""Chains with other applications than CometBFT's example: the SDK's application with bank sends, and own transactions.

The machine may be busy: these tests check no performance figures.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.store.sealed import SealedRun

from tests.real.mesh_servers import SIMD_PACKAGE, build
from tests.support import Lab, changed

SHORT = changed(
    "load.warm_up_s=1",
    "load.duration_s=6",
    "node.config.consensus.timeout_commit=500ms",
    "gates.waited_share_max=1",
    "gates.generator_cpu_max_cores=100",
    "gates.schedule_lag_p99_max_s=600",
    "gates.blocks_min=1",
    "load.send_grace_s=60",
    "load.answer_timeout_s=60",
    "network.start_timeout_s=120",
)
OFFERED = 7 * 50
GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "test-your-chain.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def simd() -> str:
    """The path of the SDK's program."""
    return str(build("simd", SIMD_PACKAGE))


def sdk_run(lab: Lab, simd: str, *settings: str, code: int = 0) -> SealedRun:
    (run,) = lab.runs("cometbft/cosmos-sdk", "--version", simd, *SHORT, *changed(*settings), code=code)
    return run


def gate_of(run: SealedRun, gate_id: str) -> Gate:
    return next(gate for gate in run.manifest.gates if gate.id == gate_id)


def account(run: SealedRun) -> dict[str, int]:
    counts = run.manifest.counts["transactions"]
    assert counts["offered"] == counts["unsent"] + counts["rejected"] + counts["accepted"]
    assert counts["accepted"] == counts["committed"] + counts["failed"] + counts["pending"] + counts["lost"]
    return counts


def test_all_bank_sends_of_many_accounts_are_committed(
    shared_lab: Lab, simd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guide's first command. On two connections, each account's transactions must stay in order or be rejected."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "simd").symlink_to(simd)
    monkeypatch.chdir(tmp_path)
    program, command, *options = shlex.split(re.findall(r"(?m)^\$ (.*)$", GUIDE)[0])
    assert (program, command) == ("chainmark", "run")
    settings = ("load.connections=2", "load.rate=25", "application.adapter.accounts.per_connection=20")
    (run,) = shared_lab.runs(*options, *SHORT, *changed(*settings))
    assert run.manifest.status is Status.VALID
    counts = account(run)
    assert (counts["offered"], counts["committed"], counts["failed"]) == (OFFERED, OFFERED, 0)
    assert run.manifest.subject.name == "Cosmos SDK's simd"
    assert run.manifest.conditions["application"] == "Cosmos SDK"
    sizes = run.events("transactions")["size_bytes"]
    assert set(sizes) <= {510, 511, 512}
    assert (run.path / "raw" / "configuration" / "genesis.json.zst").is_file()


def test_a_fee_that_is_too_small_is_rejected_with_the_chains_reason(shared_lab: Lab, simd: str) -> None:
    run = sdk_run(shared_lab, simd, "application.adapter.transaction.fee=1", code=1)
    counts = account(run)
    assert (counts["rejected"], counts["accepted"]) == (OFFERED, 0)
    warnings = [
        warning for warning in run.manifest.warnings if "refused with code 13 of sdk: insufficient fees" in warning
    ]
    assert len(warnings) == 1, run.manifest.warnings
    assert warnings[0].startswith(f"{OFFERED} × ")


def test_transactions_in_a_block_that_were_not_executed_count_as_failed(shared_lab: Lab, simd: str) -> None:
    """The accounts can pay the fee, which is checked first, but have nothing left to send."""
    run = sdk_run(shared_lab, simd, "application.adapter.accounts.balance=20", code=1)
    counts = account(run)
    assert (counts["failed"], counts["committed"], counts["rejected"]) == (OFFERED, 0, 0)
    assert gate_of(run, "accounting").status is GateStatus.PASS
    assert [
        warning
        for warning in run.manifest.warnings
        if warning.startswith(f"{counts['failed']} × failed in a block with code 5 of sdk")
    ]
    assert run.events("failed").height == counts["failed"]


def test_transactions_of_a_function_are_sent_to_cometbfts_own_application(shared_lab: Lab, tmp_path: Path) -> None:
    """It creates fewer transactions than are due. The missing ones are reported as unsent."""
    (tmp_path / "mine.py").write_text(
        "def make(order):\n    return [[b'k%d=v' % n for n in range(100)]]\n", encoding="utf-8"
    )
    adapter = tmp_path / "mine.toml"
    adapter.write_text('name = "mine"\n[transaction]\nkind = "python"\nmake = "mine.py:make"\n', encoding="utf-8")
    options = ["cometbft/demo", "--version", "v1.0.1", "--application", str(adapter), "--set", "load.rate=50"]
    (run,) = shared_lab.runs(*options, *SHORT, code=None)
    counts = account(run)
    assert (counts["unsent"], counts["committed"]) == (OFFERED - 100, 100)
    assert run.manifest.status is not Status.VALID


def test_a_binary_of_another_program_is_rejected(lab: Lab, simd: str) -> None:
    ended = lab.run("run", "cometbft/demo", "--version", simd, code=2)
    assert "simapp/simd`, not CometBFT" in ended.stderr
    other = str(build("rosetta-example"))
    ended = lab.run("run", "cometbft/cosmos-sdk", "--version", other, code=2)
    assert ", not Cosmos SDK's simd" in ended.stderr
    assert not list(lab.store_path.glob("runs/*"))


def test_a_failing_genesis_command_is_reported_and_leaves_nothing_behind(lab: Lab, simd: str) -> None:
    wrong = json.dumps(["{group}", "gentx", "nobody", "{stake}", "--home", "{home}", "--keyring-backend", "test"])
    ended = lab.run(
        "run", "cometbft/cosmos-sdk", "--version", simd, *changed(f"application.adapter.validator.join={wrong}"), code=5
    )
    assert "`simd gentx nobody" in ended.stderr
    assert "failed for node0: " in ended.stderr
    assert "its last lines:" in ended.stderr
