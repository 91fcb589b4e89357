"""The shipped profiles judge commits, working trees and files, by the lab and the verdict of every other system."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Status
from chainmark.core.verdict import Verdict
from chainmark.lab.versions import DoesNotBuild
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import launchable

from tests.support import Lab, wait_until

# Other tests run at the same time.
ANYHOW = {"gates.other_work_max": 1}
SMALL = {**ANYHOW, "workload.executions": 2, "workload.warm_up": 0}
COUNT = "import sys\nprint(sum(range(int(sys.argv[1]) * {steps})))\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), "-c", "user.name=T", "-c", "user.email=t@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small tool with a Makefile, at the tag `v1`; its next commit is a hundred times slower."""
    folder = tmp_path / "tool"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "Makefile").write_text(
        f"bin/count: count.py\n\tmkdir -p bin && (echo '#!{sys.executable}'; cat $<) > $@ && chmod +x $@\n"
    )
    (folder / "count.py").write_text(COUNT.format(steps=1))
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "-m", "Count")
    _git(folder, "tag", "v1")
    (folder / "count.py").write_text(COUNT.format(steps=100))
    _git(folder, "commit", "--quiet", "-a", "-m", "Count further")
    return folder


OF_CHECKOUT = {
    "command.build": ["make --silent"],
    "command.program": "bin/count",
    "command.arguments": ["200000"],
}


@pytest.mark.quiet
def test_a_slower_commit_fails_and_the_same_commit_does_not(checkout: Path, tmp_path: Path) -> None:
    """The complete workflow: two commits are built, executed in turn and judged, and the report names the commit."""
    document = cm.experiment(
        "benchmark/command",
        baseline=f"git:{checkout}@v1",
        candidate=f"git:{checkout}",
        repeat=2,
        settings={**OF_CHECKOUT, **SMALL},
        store=tmp_path / "store",
    )
    verdicts = {row["id"]: row["verdict"] for row in document.frame.iter_rows(named=True)}
    assert document.verdict is Verdict.FAIL
    assert verdicts["wall_time_s.p50"] == verdicts["cpu_time_s.mean"] == "fail"
    commit = _git(checkout, "rev-parse", "--short=7", "HEAD")
    assert f"main@{commit}" in document.markdown()
    assert "Count further" in document.html()
    run = Store(tmp_path / "store").sealed()[-1]
    assert run.manifest.subject.revision is not None
    assert run.manifest.counts == {"executions": {"measured": 2, "failed or not made": 0}}
    assert run.verify() == []


def test_uncommitted_changes_are_measured_and_stored(checkout: Path, tmp_path: Path) -> None:
    """A build that was interrupted or failed is not a version: the next attempt builds it again."""
    settings = {**OF_CHECKOUT, **SMALL, "command.arguments": ["1"]}
    (checkout / "count.py").write_text("syntax error\n")
    (checkout / "Makefile").write_text("all:\n\t@echo no compiler here; exit 7\n")
    with pytest.raises(DoesNotBuild, match="`make --silent` ended with exit code 2") as failed:
        cm.run("benchmark/command", f"git:{checkout}", settings=settings, store=tmp_path / "store")
    assert "no compiler here" in str(failed.value.hint)
    _git(checkout, "checkout", "--quiet", "Makefile")
    (run,) = cm.run("benchmark/command", f"git:{checkout}", settings=settings, store=tmp_path / "store")
    assert "+dirty-" in run.manifest.subject.version
    assert run.manifest.status is Status.FAILED
    assert "ended with exit code 1" in next(gate.measured for gate in run.manifest.gates if gate.id == "ended_well")
    assert "SyntaxError" in (run.path / "raw" / "stderr.txt").read_text()
    assert "+syntax error" in (run.path / "raw" / "build" / "changes.diff").read_text()


def test_a_file_is_a_version_that_does_not_change(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\npwd; ls -A\n")
    tool.chmod(0o755)
    store = tmp_path / "store"
    (first,) = cm.run("benchmark/command", str(tool), settings=SMALL, store=store)
    tool.write_text("#!/bin/sh\nexit 3\n")
    (again,) = cm.run("benchmark/command", first.manifest.subject.version, settings=SMALL, store=store)
    assert again.is_valid
    assert len((again.path / "raw" / "stdout.txt").read_text().splitlines()) == 1, "each execution has an empty folder"
    assert again.manifest.warnings[0].startswith("peak memory has no data")
    assert {subject.name for subject, _ in launchable(load_system("benchmark")).installed()} == {"tool"}


def test_an_invalid_version_is_refused_with_a_hint(checkout: Path, tmp_path: Path) -> None:
    for version, settings, message, hint in (
        (f"git:{checkout}", {}, "does not state which program", "command.program"),
        (f"git:{checkout}", {"command.program": "bin/other"}, "`bin/other` of main@", "command.build"),
        ("v1.0.0", {}, "`v1.0.0` is not a version of a command", "git:PATH@REF"),
        (str(tmp_path / "absent"), {}, "there is no file", "write `./path/to/program`"),
        (str(checkout / "count.py"), {}, "may not be read and executed", "chmod"),
        (f"git:{checkout}", {"command.environment.API_TOKEN": "x"}, "sets the variable `API_TOKEN`", "environment"),
    ):
        with pytest.raises(UsageError) as refused:
            cm.run("benchmark/command", version, settings=settings, store=tmp_path / "store")
        assert message in refused.value.message
        assert hint in (refused.value.hint or "")


def test_a_killed_chainmark_leaves_no_running_command(lab: Lab, tmp_path: Path) -> None:
    """It would continue to run during the next measurement."""
    written = tmp_path / "pid"
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\necho $$ > {written}.part; mv {written}.part {written}; sleep 87654\n")
    tool.chmod(0o755)
    started = lab.start("run", "benchmark/command", "--version", str(tool), "--set", "workload.timeout_s=86400")
    wait_until(written.exists, "the command")
    command = psutil.Process(int(written.read_text()))
    os.kill(started.process.pid, signal.SIGKILL)
    started.finish()
    wait_until(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE, "the command's end")


def test_chainmarks_own_profile_measures_the_start_of_this_checkout(tmp_path: Path) -> None:
    """Its build takes minutes and is omitted: the sources of the checkout run with any Python."""
    source = tmp_path / "source"
    package = source / "src" / "chainmark" / "cli"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys, chainmark\nprint(chainmark.__file__, *sys.argv[1:])\n")
    _git(source, "init", "--quiet", "--initial-branch=main")
    _git(source, "add", "--all")
    _git(source, "commit", "--quiet", "-m", "A package")
    settings = {**SMALL, "command.build": []}
    (run,) = cm.run("benchmark/chainmark-start", f"git:{source}@main", settings=settings, store=tmp_path / "store")
    assert run.is_valid
    printed = (run.path / "raw" / "stdout.txt").read_text()
    assert printed.startswith(str(tmp_path / "cache"))
    assert printed.endswith("--help\n")
    assert json.loads((run.path / "documents" / "build.json").read_text())["commit"] == _git(
        source, "rev-parse", "HEAD"
    )
