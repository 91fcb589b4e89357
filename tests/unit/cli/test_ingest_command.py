"""`chainmark ingest` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Lab
from tests.unit.systems.cardano.clusters import make_cluster

# Runs the command line. At the end it prints the thread count of the largest pool and of the pool of polars.
POOLS = """
import atexit, concurrent.futures, json
pools = []
class Kept(concurrent.futures.ThreadPoolExecutor):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        pools.append(self)
concurrent.futures.ThreadPoolExecutor = Kept
def tell():
    import polars
    print(json.dumps([max(len(pool._threads) for pool in pools), polars.thread_pool_size()]))
atexit.register(tell)
from chainmark.cli import main
main()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", hosts=3, slots=100)


@pytest.fixture
def folders(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, which contains a folder of logs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").symlink_to(cluster)


def test_logs_become_a_run_that_other_commands_accept(lab: Lab, cluster: Path) -> None:
    output = lab.run("ingest", "cardano", str(cluster), "--as", "10.6.2", "--filter", "BFullnessGEq=0.9").stdout
    run_id = lab.store.sealed()[0].run_id
    for part in (run_id, "Cardano 10.6.2", "blocks of the chain", "none of 9 gates failed", f"BASELINE {run_id}"):
        assert part in output
    assert "statistic" not in output, "a terminal shows no metrics here: `runs show` lists hundreds of rows"
    assert run_id in lab.run("runs", "list").stdout
    assert "matches its seal" in lab.run("runs", "verify", run_id).stdout
    again = lab.run("ingest", "cardano", str(cluster), "--as", "10.6.2", "--filter", "BFullnessGEq=0.9").stdout
    assert "already imported, unchanged" in again
    assert [run.run_id for run in lab.store.sealed()] == [run_id]


def test_a_run_without_blocks_is_reported_and_exits_with_4(lab: Lab, cluster: Path) -> None:
    ended = lab.run("ingest", "cardano", str(cluster), "--filter", "epoch5+", "--json", code=4)
    document = json.loads(ended.stdout)
    assert (document["status"], document["is_new"]) == ("invalid", True)
    again = lab.run("ingest", "cardano", str(cluster), "--filter", "epoch5+", code=4)
    output = " ".join(again.stdout.split())
    assert "blocks analysed: 0 of 7 blocks; required: at least 1 (rejected by: EpochGEq 4 7)" in output
    assert "Add the data that a failed gate requires" in output


def test_an_import_writes_the_reports_of_its_run(lab: Lab, cluster: Path, tmp_path: Path) -> None:
    """A pipeline sees the failed gate of an import in its list of tests, as it does for `runs show`."""
    paths = {option: tmp_path / f"report{option[2:]}" for option in ("--junit", "--md", "--html", "--json-file")}
    options = [part for option, path in paths.items() for part in (option, str(path))]
    lab.run("ingest", "cardano", str(cluster), "--filter", "epoch5+", *options, code=4)
    assert 'name="blocks analysed"' in paths["--junit"].read_text(encoding="utf-8")
    assert "hosts log until the end" in paths["--md"].read_text(encoding="utf-8")
    shown = tmp_path / "shown"
    lab.run(
        "runs", "show", lab.store.sealed()[0].run_id, *[part.replace("report", "shown-") for part in options], code=4
    )
    for path in paths.values():
        assert path.read_bytes() == path.with_name(path.name.replace("report", f"{shown.name}-")).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (
            ("cardano", "logs", "--from", "2026-01-01T10:00:00Z", "--duration", "9s"),
            "apply only to a server, and `logs` is not one",
        ),
        (("cardano", "nowhere"), "there is no folder or file `nowhere`"),
        (("http", "logs"), "chainmark cannot read logs of `http`"),
        (("cometbft", "logs"), "`logs` has an unrecognised format"),
        (("cometbft", "nowhere"), "there is no folder or file `nowhere`"),
        (
            ("cardano", "http://localhost:9090"),
            "`http://localhost:9090` is a server, but this system can only read files",
        ),
        (("cardano", "logs", "--filter", "value", "--no-filters"), "contradict each other"),
        (("cardano", "logs", "--filter", "valu"), "`valu` is neither a set of filters nor a condition"),
        (("cardano", "logs", "--set", "analysis.filter=1"), "did you mean `analysis.filters`"),
    ],
)
@pytest.mark.usefixtures("folders")
def test_mistakes_are_reported_in_one_sentence(lab: Lab, arguments: tuple[str, ...], part: str) -> None:
    process = lab.run("ingest", *arguments, code=2)
    assert part in process.stderr.replace("\n", " ")
    assert "hint: " in process.stderr
    assert "Traceback" not in process.stderr
    assert lab.store.sealed() == []
    assert lab.store.unfinished() == []


def test_one_thread_limits_every_pool(lab: Lab, cluster: Path) -> None:
    """`--threads 1` on a shared machine must leave its other CPUs free."""
    ended = subprocess.run(
        [sys.executable, "-c", POOLS, "ingest", "cardano", str(cluster), "--threads", "1"],
        env={name: value for name, value in lab.environment().items() if name != "POLARS_MAX_THREADS"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ended.stdout.splitlines()[-1]) == [1, 1], ended.stderr
