"""`chainmark synth` on the command line."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support import Lab, wait_until

FOLDER = "logs"
SMALL = ("--hosts", "4", "--slots", "150", "--set", "chain.active_slots_coefficient=0.1")


def test_logs_are_generated_and_summarised(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    faults = ("--fault", "crash:node-3@100", "--fault", "clock-offset:node-2=+250ms", "--fault", "wrong-host:node-1=x")
    output = lab.run("synth", "cardano", "--out", str(folder), *SMALL, *faults).stdout
    for part in ("hosts", "transactions", "per second and host", "crash", "node-3", "0.25 s", str(folder)):
        assert part in output
    summary = json.loads(lab.run("synth", "cardano", "--out", str(folder), "--force", "--json", *SMALL).stdout)
    lines = sum(path.read_bytes().count(b"\n") for path in folder.glob("node-*/*"))
    assert (summary["lines"], summary["hosts"], summary["faults"]) == (lines, 4, [])
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(FOLDER)) == [FOLDER]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("synth", "cardano"), "`--out` is missing"),
        (("synth", "cardano", "--out", "taken"), "is not empty"),
        (("synth", "cardano", "--out", "taken", "--force"), "holds something else"),
        (("synth", "cardano", "--out", "new", "--fault", "crash:node-3@9999999"), "begins outside the run"),
        (("synth", "cardano", "--out", "new", "--topology", "star"), "the topology `star`"),
        (("synth", "cometbft", "--out", "new"), "cannot generate logs of `cometbft`"),
        (("synth", "cardano", "--out", "/proc/new"), "/proc/new"),
    ],
)
def test_usage_errors_are_reported_in_one_sentence(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious").write_text("x", encoding="utf-8")
    process = lab.run(*arguments, code=None)
    assert process.returncode in (2, 5)
    assert part in process.stderr.replace("\n", " ")
    assert "Traceback" not in process.stderr
    assert (tmp_path / "taken" / "precious").is_file()
    assert not (tmp_path / "new").exists()


def test_all_kinds_of_faults_are_listed_with_an_example(lab: Lab) -> None:
    output = lab.run("synth", "cardano", "--fault", "list").stdout
    for kind, example in (("crash", "crash:node-3@4000"), ("clock-drift", "clock-drift:node-7=+20ppm")):
        assert kind in output
        assert example in output


def test_an_interruption_leaves_no_partial_files(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    started = lab.start("synth", "cardano", "--out", str(folder), "--hosts", "20", "--slots", "500000")
    wait_until((tmp_path / f"{FOLDER}.part" / "node-0" / "stdout").is_file, "the first lines")
    started.process.send_signal(signal.SIGINT)
    ended = started.finish()
    assert ended.returncode == 130
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(FOLDER)]
