"""The commands whose complete output is stored, and the workspace that they run in."""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from functools import cache
from pathlib import Path

from chainmark.cli.reference import commands_of

from tests.golden import inputs
from tests.golden.fixed_store import FixedStore
from tests.golden.typed import Typed, printed
from tests.unit.compare.synthetic_runs import SyntheticRun, sides
from tests.unit.store.trail_runs import Timelines, key_of, sealed, write_logs
from tests.unit.systems.cardano import made_up

_CLUSTER = ("--set", "chain.active_slots_coefficient=0.1", "--set", "workload.tps=2.0")
_FEW = ("--blocks", "64")
TYPED: dict[str, Typed] = {
    "version": Typed(["--version"]),
    "nothing": Typed([]),
    "unknown-command": Typed(["compere", "a", "b"]),
    "nodes-list": Typed(["nodes", "list"]),
    "profiles": Typed(["profiles"]),
    "runs-list-empty": Typed(["runs", "list"]),
    "runs-list": Typed(["runs", "list"], "experiment"),
    "runs-list-json": Typed(["runs", "list", "--json"], "versions"),
    "runs-show": Typed(["runs", "show", "cometbft-demo-v1.0.1-20260101T000000-0006"], "experiment"),
    "runs-verify": Typed(["runs", "verify", "cometbft-demo-v1.0.1-20260101T000000-0006"], "experiment"),
    "runs-verify-changed": Typed(["runs", "verify", "toy"], "changed"),
    "runs-remove": Typed(["runs", "remove", "toy"], "changed"),
    "runs-show-unknown": Typed(["runs", "show", "nowhere"], "experiment"),
    "compare": Typed(["compare", "v0.38.17", "v1.0.1", "--md", "compare.md"], "experiment", ["compare.md"]),
    "compare-experiment": Typed(["compare", "experiment-1"], "experiment"),
    "compare-unknown": Typed(["compare", "v0.38.17", "v9"], "experiment"),
    "compare-one-side": Typed(["compare", "v1"], "followed"),
    "compare-era-alone": Typed(["compare", "1.0", "1.1", "--era", "org"], "versions"),
    "compare-followed": Typed(["compare", "v1", "v2"], "followed"),
    "compare-three": Typed(["compare", "1.0", "1.1", "1.2", "--md", "three.md"], "versions", ["three.md"]),
    "published-typst": Typed(["compare", "1.0", "1.1", "1.2", "--style", "published"], "published"),
    "published-org": Typed(["compare", "1.0", "1.1", "--style", "published", "--era", "org"], "published"),
    "published-file": Typed(["compare", "release.json", "--style", "published"]),
    "block": Typed(["block", "v1", "3"], "followed"),
    "block-hash": Typed(["block", "v1", key_of("b4")[:8]], "followed"),
    "block-lines": Typed(["block", "v1", "2", "--lines", "logs", "--host", "node-0"], "followed"),
    "block-unknown": Typed(["block", "v1", "99"], "followed"),
    "trail": Typed(["trail", "v1", "block", "2"], "followed"),
    "predict": Typed(["predict", "cardano/value", *_FEW, "--rtt", "+20%", "--no-pipelining"]),
    "explain": Typed(["explain", "release.json", "--version", "10.6.2", "--blocks", "320"]),
    "synth-faults": Typed(["synth", "cardano", "--fault", "list"]),
    "synth": Typed(["synth", "cardano", "--out", "cluster", "--hosts", "3", "--slots", "100", *_CLUSTER]),
    "ingest": Typed(["ingest", "cardano", "cluster", "--as", "10.6.2", "--filter", "BFullnessGEq=0.9"], "imported"),
    "ingest-again": Typed(["ingest", "cardano", "cluster", "--as", "10.6.2", "--filter", "BFullnessGEq=0.9"],
                          "imported"),
    "ingest-nowhere": Typed(["ingest", "cardano", "nowhere"], "imported"),
    "ingest-block": Typed(["block", "10.6.2", "3"], "imported"),
    "ingest-show": Typed(["runs", "show", "cardano"], "imported"),
    "verify-against": Typed(["verify-against", "cdfBlocksPerHost.json", "10.6.2"], "imported"),
    "verify-against-differs": Typed(["verify-against", "cdfBlockSize.json", "10.6.2"], "imported"),
    "verify-against-unknown": Typed(["verify-against", "release.json", "10.6.2"], "imported"),
    "run-unknown-profile": Typed(["run", "cometbft/dmeo", "--version", "v1.0.1"]),
    "load-unknown-profile": Typed(["load", "mesh/nothing", "--target", "http://127.0.0.1:1"]),
}  # fmt: skip
NARROW: dict[str, Typed] = {f"metrics-{system}": Typed(["metrics", system]) for system in
                            ("cardano", "cometbft", "http", "mesh")} | {
    f"help{path.removeprefix('chainmark').replace(' ', '-')}": Typed([*path.split()[1:], "--help"])
    for path, _ in commands_of()
}  # fmt: skip
BY_WIDTH = {100: TYPED | NARROW, 140: TYPED}


def normalised(text: str) -> str:
    """The text without the version of chainmark and the digest in an import's id, which depends on the version.

    The digest of a result's JSON is also removed, because its last digits depend on the processor.
    """
    text = re.sub(r"\bchainmark \d+\.\d+\.\d+\b", "chainmark VERSION", text)
    text = re.sub(r"(SHA-256 <code>)[0-9a-f]{64}(</code>)", r"\1DIGEST\2", text)
    return re.sub(r"(\d{8}T\d{6})-[0-9a-f]{8}\b", r"\1-IMPORTED", text)


def _seal(store: FixedStore, run: SyntheticRun, system: str = "cometbft") -> None:
    manifest = run.manifest
    unfinished = store.create(system, manifest.profile_name, manifest.subject.version, {})
    for population, frame in run.frames.items():
        unfinished.write_samples(population, frame)
    subject = manifest.subject.model_copy(update={"system": system})
    known = manifest.model_copy(update={"run_id": unfinished.run_id, "subject": subject})
    unfinished.seal(known, run.catalogue, list(run.summaries().values()))


def fill(workspace: Path) -> None:
    """Fill stores, logs and a published report. Each family has its own store: its other runs are used as history."""
    baseline, candidate = sides(inputs.WORSE)
    for run in (*baseline, *candidate):
        _seal(FixedStore(workspace / "experiment"), run)
    for run in (run for version in inputs.versions() for run in version):
        _seal(FixedStore(workspace / "versions"), run)
        _seal(FixedStore(workspace / "published"), run, "cardano")
    timelines = Timelines(6, 8).fill()
    sealed(FixedStore(workspace / "followed"), timelines)
    sealed(FixedStore(workspace / "followed"), Timelines(6, 8, factor=1.2).fill(), "v2")
    write_logs(timelines, workspace / "logs")
    changed = sealed(FixedStore(workspace / "changed"), Timelines(3, 2).fill())
    (changed.path / "metrics.json").write_text("[]", encoding="utf-8")
    _write_theirs(workspace / "cdfBlocksPerHost.json", [1.0, 2.0, 5.0])
    _write_theirs(workspace / "cdfBlockSize.json", [88_963.0] * 6 + [80_000.0])
    figures = made_up.measured(made_up.profile().scenario(made_up.SEED))
    made_up.write(workspace / "release.json", made_up.report({"10.5.4": figures, "10.6.2": figures}))


def _write_theirs(path: Path, values: list[float]) -> None:
    """Write a distribution in the format of the published analysis, with only one of its centiles."""
    middle = sorted(values)[len(values) // 2]
    content = {"cdfSize": len(values), "cdfAverage": statistics.mean(values), "cdfMedian": middle,
               "cdfStddev": statistics.stdev(values), "cdfRange": {"low": min(values), "high": max(values)},
               "cdfSamples": [[0.5, middle]]}  # fmt: skip
    path.write_text(json.dumps(content), encoding="utf-8")


@cache
def all_printed(width: int) -> dict[str, str]:
    """The output of every command at this width, by the name of its file."""
    lines = BY_WIDTH[width]
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        fill(Path(folder))
        return dict(zip(lines, map(normalised, printed(Path(folder), width, list(lines.values()))), strict=True))
