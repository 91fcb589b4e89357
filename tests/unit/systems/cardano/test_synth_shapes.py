"""Synthetic lines look like real ones: the same keys in the same order, the same types, the same severities."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.progress import Silent
from chainmark.lab.synthetic import synthetic
from chainmark.systems.base import load_system

from tests.unit.systems.cardano.clusters import logs_request

pytestmark = pytest.mark.shared_data

Shape = str
SIMPLE = {bool: "flag", int: "number", float: "number", str: "text", type(None): "null"}
# Messages with a different shape, each with the reason.
CONFIGURED = "which parts of a node are traced, and how, differs from configuration to configuration"
EXCEPTIONS = {
    "Reflection.TracerConfigInfo": CONFIGURED,
    "Shutdown.ArmedAt": "the real 10.4 node was not given a time to stop",
}
# Shapes that are older than the version that the legacy format writes.
EXCEPTIONS_1_35 = {
    "cardano.node.ChainSyncClient": "block numbers were objects then",
    "cardano.node.BlockFetchClient": "the estimate of the way was not printed then",
}
# Messages that no real log contains, because no such event occurred there.
NOT_COMPARED = {
    "ChainDB.AddBlockEvent.IgnoreBlockAlreadyInVolatileDB",
    "ChainDB.AddBlockEvent.StoreButDontChange",
    "ChainDB.AddBlockEvent.SwitchedToAFork",
    "ChainDB.AddBlockEvent.TrySwitchToAFork",
    "Mempool.RejectedTx",
}


def shape(value: Any) -> Shape:
    """Keys in order with their values' types. All numbers have one type; a list has the shapes of its elements."""
    if type(value) in SIMPLE:
        return SIMPLE[type(value)]
    if isinstance(value, list):
        return f"[{' | '.join(sorted({shape(item) for item in value}))}]"
    if value.get("kind") in ("GenesisPoint", "BlockPoint"):
        return "point"  # the chain decides which of the two it is
    return "{" + ", ".join(f"{key}: {shape(item)}" for key, item in value.items()) + "}"


def read(path: Path) -> dict[str, dict[Shape, str]]:
    """The shapes of every message, with an example of each. The severity is part of the shape."""
    shapes: dict[str, dict[Shape, str]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            content = json.loads(line)
            named = content["ns"] if isinstance(content["ns"], str) else content["ns"][0]
            data = content["data"]
            name = f"{named} {data.get('val', data).get('kind', '')}"
            shapes[name].setdefault(f"{shape(content)} {content['sev']}", line)
    return shapes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs in all formats, with battles, long enough for a ledger snapshot."""
    path = tmp_path_factory.mktemp("synth") / "logs"
    order = logs_request(
        path,
        slots=500,
        hosts=4,
        formats=("10.7:node-1", "10.4:node-2", "legacy:node-3"),
        settings=(
            "chain.slot_length_s=10.0",
            "chain.active_slots_coefficient=0.2",
            "chain.security_parameter=5",
            "workload.tps=1",
        ),
        faults=("fork@1000", "fork@2000", "fork@3000"),
    )
    synthetic(load_system("cardano")).synthesise(order, Silent())
    return path


def compare(shapes: dict[str, dict[Shape, str]], real: dict[str, dict[Shape, str]], exceptions: dict[str, str]) -> int:
    """Fail if a message of both logs has a shape that the real log lacks; return the number of compared messages."""
    compared = 0
    for name in shapes.keys() & real.keys():
        if name.split(" ", maxsplit=1)[0] in exceptions:
            continue
        compared += 1
        for shape_name, line in shapes[name].items():
            known = "\n  ".join(real[name])
            assert shape_name in real[name], f"{line}\nlooks like\n  {shape_name}\nbut real ones look like\n  {known}"
    return compared


def test_lines_of_10_5_look_real(folder: Path, shared_data: Path) -> None:
    shapes = read(folder / "node-0" / "stdout")
    real = read(shared_data / "cardano" / "logs" / "node-1-10.5.0-benchmark.json")
    assert compare(shapes, real, EXCEPTIONS) > 70
    assert {name.split()[0] for name in shapes.keys() - real.keys()} <= NOT_COMPARED
    # No message that the analysis reads is missing, nor any other message about forging, headers, bodies and chains.
    missing = {name.split()[0] for name in real.keys() - shapes.keys()}
    ours = ("Forge", "Mempool", "TxSubmission", "BlockFetch", "ChainSync", "ChainDB.Add", "LedgerMetrics", "Resources")
    assert not {name for name in missing if name.startswith(ours)}


def test_lines_of_10_4_look_real(folder: Path, shared_data: Path) -> None:
    shapes = read(folder / "node-2" / "stdout")
    real = read(shared_data / "cardano" / "logs" / "producer-10.4-tracer.jsonl")
    assert compare(shapes, real, EXCEPTIONS) > 25
    assert {"Forge.Loop.StartLeadershipCheckPlus TraceStartLeadershipCheck"} <= shapes.keys() & real.keys()
    assert not any(name.startswith("LedgerMetrics") for name in shapes)


def test_legacy_lines_look_real(folder: Path, shared_data: Path) -> None:
    shapes = read(folder / "node-3" / "stdout")
    logs = shared_data / "cardano" / "logs"
    assert compare(shapes, read(logs / "legacy-8.1.1-relay.jsonl"), EXCEPTIONS) >= 12
    assert compare(shapes, read(logs / "legacy-1.35-excerpts.jsonl"), EXCEPTIONS_1_35) >= 4


def test_10_7_differs_from_10_5_only_in_the_selected_chain(folder: Path) -> None:
    older, newer = read(folder / "node-0" / "stdout"), read(folder / "node-1" / "stdout")
    selection = {"ChainDB.AddBlockEvent.AddedToCurrentChain", "ChainDB.AddBlockEvent.SwitchedToAFork"}
    changed = {name.split()[0] for name in older.keys() & newer.keys() if set(newer[name]) - set(older[name])}
    assert "ChainDB.AddBlockEvent.AddedToCurrentChain" in changed
    assert changed <= selection
    line = next(iter(newer["ChainDB.AddBlockEvent.AddedToCurrentChain AddedToCurrentChain"].values()))
    assert list(json.loads(line)["data"]) == ["kind", "newSuffixSelectView", "newtip"]
