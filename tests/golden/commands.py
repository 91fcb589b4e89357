"""The commands whose complete output is stored, and the workspace that they run in."""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from functools import cache
from pathlib import Path

import chainmark as cm
from chainmark.cli.reference import commands_of
from chainmark.core.times import utc_now

from tests.golden import inputs, made_results
from tests.golden.fixed_store import FixedStore
from tests.golden.typed import Typed, printed
from tests.unit.compare.synthetic_runs import SyntheticRun, sides
from tests.unit.store.trail_runs import Timelines, key_of, sealed, write_logs
from tests.unit.systems.cardano import made_up

_SEALED_LOAD_TEST = Path(__file__).parents[1] / "sealed_runs" / "http-state-v1-20261127T122718-6edc.tar.xz"
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
    "host": Typed(["host", "cardano-import", "--samples", "relay.csv"], "relay"),
    "host-against": Typed(["host", "cardano-import", "--against", "relay.csv"], "relay"),
    "aa-history": Typed(["aa", "--history", "10.6.2"], "releases"),
    "history-margins": Typed(["history", "margins", "10.6.2", "--margin", "learnt:5%,15%"], "releases"),
    "history-list": Typed(["history", "list"], "noted"),
    "publish": Typed(["publish", "mesh", "release:2.1.0,hardware:mid", "--md", "page.md"], "pages", ["page.md"]),
    "request": Typed(["request", "http-state", "--slowest", "3"], "loaded"),
    "request-one": Typed(["request", "http-state", "0-1"], "loaded"),
    "request-unknown": Typed(["request", "http-state", "0-99999"], "loaded"),
}  # fmt: skip
_ONE = "cometbft-demo-v1.0.1-20260101T000000-0006"
_ONLY_TARGET = ("--target", "http://127.0.0.1:1")
# Long or without a table: one width is enough.
ONCE: dict[str, Typed] = {
    "compare-cost": Typed(["compare", "9.9.0", "10.6.2", "--question", "cost"], "releases"),
    "compare-run": Typed(["compare", "9.9.0", "10.6.2", "--baseline", "run", "--anchor", "9.1.0"], "releases"),
    "compare-margins": Typed(["compare", "9.9.0", "10.6.2", "--margin", "learnt:5%,15%"], "releases"),
    "compare-unknown-margin": Typed(["compare", "9.9.0", "10.6.2", "--margin", "nothing=5%"], "releases"),
    "compare-why": Typed(["compare", "v1", "v2", "--why"], "followed"),
    "compare-era-unknown": Typed(["compare", "1.0", "1.1", "--style", "published", "--era", "old"], "published"),
    "history-show": Typed(["history", "show", "10.6.2"], "releases"),
    "history-show-unknown": Typed(["history", "show", "11.0"], "releases"),
    "history-margins-unknown": Typed(["history", "margins", "v1"], "followed"),
    "aa-history-no-re-runs": Typed(["aa", "--history", "v1"], "followed"),
    "aa-history-and-profile": Typed(["aa", "cometbft/demo", "--history", "v1"], "followed"),
    "aa-nothing": Typed(["aa"]),
    "history-note": Typed(["history", "note", "cardano", "2025-08-01", "new hosts", "--metric", "rss_mib"], "notes"),
    "history-note-version": Typed(["history", "note", "cardano", "v1", "a clock was late"], "notes"),
    "history-note-days": Typed(
        ["history", "note", "cardano", "2025-06-01", "links shared", "--until", "2025-06-03"], "notes"),
    "history-note-metric": Typed(["history", "note", "cardano", "v1", "late", "--metric", "rss_mib"], "notes"),
    "history-pin": Typed(["history", "pin", "cardano", "v1"], "notes"),
    "history-pin-unknown": Typed(["history", "pin", "cardano", "v9"], "notes"),
    "history-list-json": Typed(["history", "list", "--json"], "notes"),
    "history-remove": Typed(["history", "remove", "cardano", "2025-08-01"], "notes"),
    "history-remove-again": Typed(["history", "remove", "cardano", "2025-08-01"], "notes"),
    "history-pin-none": Typed(["history", "pin", "cardano"], "notes"),
    "publish-nothing": Typed(["publish", "mesh"]),
    "publish-no-page": Typed(["publish", "cardano"], "releases"),
    "transaction": Typed(["transaction", "v1.0.1", "--slowest", "3"], "samples"),
    "transaction-slowest": Typed(["transaction", "cometbft-demo-v1.0.1-20261127T091712", "--slowest", "3"], "samples"),
    "transaction-one": Typed(["transaction", "cometbft-demo-v1.0.1-20261127T091712", "0-1020"], "samples"),
    "transaction-of-none": Typed(["transaction", "v1", "0-1"], "followed"),
    "request-of-none": Typed(["request", "v1", "0-1"], "followed"),
    "block-slowest": Typed(["block", "v1", "--slowest", "2"], "followed"),
    "host-of-cluster": Typed(["host", "v1"], "followed"),
    "host-samples-unknown": Typed(["host", "cardano-import", "--samples", "relay.txt"], "relay"),
    "runs-export": Typed(["runs", "export", _ONE, "--to", "exported"], "experiment"),
    "runs-export-figures": Typed(["runs", "export", "v1", "--figures", "figures.csv"], "followed", ["figures.csv"]),
    "runs-export-changed": Typed(["runs", "export", "toy", "--to", "exported"], "spoilt"),
    "runs-import": Typed(["runs", "import", f"exported/{_ONE}.tar"], "copies"),
    "runs-import-again": Typed(["runs", "import", f"exported/{_ONE}.tar"], "copies"),
    "runs-import-nothing": Typed(["runs", "import"], "copies"),
    "runs-import-no-file": Typed(["runs", "import", "nowhere.tar"], "copies"),
    "runs-import-samples": Typed(["runs", "import", "--samples"], "copies"),
    "runs-verify-unknown": Typed(["runs", "verify", "nowhere"], "copies"),
    "runs-remove-nothing": Typed(["runs", "remove"], "copies"),
    "runs-remove-unfinished": Typed(["runs", "remove", "--unfinished"], "copies"),
    "runs-show-load": Typed(["runs", "show", "http-state"], "loaded"),
    "runs-list-labels": Typed(["runs", "list", "hardware:mid"], "pages"),
    "run-no-binary": Typed(["run", "cometbft/demo", "--version", "./nowhere"]),
    "run-wrong-key": Typed(["run", "cometbft/demo", "--version", "v1.0.1", "--set", "load.rats=4"]),
    "run-not-launchable": Typed(["run", "cardano/value", "--version", "10.6.2"]),
    "load-no-server": Typed(["load", "mesh/quick", *_ONLY_TARGET]),
    "load-no-target": Typed(["load", "mesh/quick"]),
    "experiment-no-binary": Typed(["experiment", "cometbft/demo", "--baseline", "./a", "--candidate", "./b"]),
    "experiment-nothing": Typed(["experiment"]),
    "experiment-resume-unknown": Typed(["experiment", "--resume", "nowhere"]),
    "saturation-not-swept": Typed(["saturation", "cardano/value", "--version", "10.6.2"]),
    "saturation-no-version": Typed(["saturation", "cometbft/saturation"]),
    "qa-release": Typed(["qa", "cardano", "--candidate", "10.6.2"], "releases"),
    "qa-unknown-version": Typed(["qa", "cardano", "--candidate", "11.0"], "releases"),
    "qa-unknown-plan": Typed(["qa", "cometbft", "--baseline", "./a", "--candidate", "./b", "--plan", "quik"]),
    "qa-nothing": Typed(["qa", "cometbft"]),
    "bisect-nothing": Typed(["bisect", "cometbft/demo"]),
    "bisect-no-checkout": Typed(["bisect", "cometbft/demo", "--good", "a", "--bad", "b", "--repo", "nowhere"]),
    "serve-wrong-port": Typed(["serve", "--port", "70000"]),
    "serve-no-logs": Typed(["serve", "--logs", "nowhere"]),
    "nodes-install-unknown": Typed(["nodes", "install", "cardano", "10.6.2"]),
    "nodes-install-no-binary": Typed(["nodes", "install", "cometbft", "./nowhere"]),
    "cluster-check-nothing": Typed(["cluster", "check"]),
    "corpus-check-no-file": Typed(["corpus", "check", "nowhere.json", *_ONLY_TARGET]),
    "corpus-import-no-file": Typed(["corpus", "import", "nowhere.csv", *_ONLY_TARGET, "--out", "corpus.json"]),
    "corpus-mesh-no-server": Typed(["corpus", "mesh", "http://127.0.0.1:1", "--out", "corpus.json"]),
}  # fmt: skip
NARROW: dict[str, Typed] = ONCE | {f"metrics-{system}": Typed(["metrics", system]) for system in
                            ("cardano", "cometbft", "http", "mesh")} | {
    f"help{path.removeprefix('chainmark').replace(' ', '-')}": Typed([*path.split()[1:], "--help"])
    for path, _ in commands_of()
}  # fmt: skip
BY_WIDTH = {100: TYPED | NARROW, 140: TYPED}


def normalised(text: str) -> str:
    """The text without the version of chainmark and the digest in an import's id, which depends on the version.

    The digest of a result's JSON is also removed, and numbers are cut, because their last digits depend on the
    processor.
    """
    text = re.sub(r"\bchainmark \d+\.\d+\.\d+\b", "chainmark VERSION", text)
    text = re.sub(r"(SHA-256 <code>)[0-9a-f]{64}(</code>)", r"\1DIGEST\2", text)
    text = re.sub(r"(\d\.\d{10})\d+", r"\1", text)
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
    for store in ("notes", "noted", "spoilt"):
        sealed(FixedStore(workspace / store), Timelines(3, 2).fill())
    cm.annotate("v1", "the clock of node-2 was late", store=workspace / "noted")
    cm.note("cardano", "2025-08-01", "new hosts", metrics=["rss_mib"], store=workspace / "noted")
    cm.pin("cardano", "v1", store=workspace / "noted")
    (FixedStore(workspace / "spoilt").sealed()[0].path / "metrics.json").write_text("[]", encoding="utf-8")
    (workspace / "releases").mkdir()
    inputs.ingest_releases(workspace / "releases", again=True)
    made_results.fill_load_page(FixedStore(workspace / "pages"), workspace)
    made_results.ingest_relay(workspace / "relay")
    cm.import_samples(workspace / "samples")
    cm.import_run(_SEALED_LOAD_TEST, workspace / "loaded")
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
        days = {utc_now()[:10]}
        texts = printed(Path(folder), width, list(lines.values()))
        days.add(utc_now()[:10])
        texts = [re.sub("|".join(days), "TODAY", text.replace(folder, "WORKSPACE")) for text in texts]
        return {name: normalised(text) for name, text in zip(lines, texts, strict=True)}
