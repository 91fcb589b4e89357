"""`chainmark load` in a pipeline: exit codes, JUnit, comparisons, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import yaml
from junitparser import JUnitXml
from typer.testing import Result

import chainmark.api.loading
from chainmark.core.errors import EnvironmentFailure, ExitCode, UsageError
from chainmark.lab import loading
from chainmark.lab.loading import fixed_levels_of
from chainmark.store.runs import Store
from chainmark.trails.trace import SlowestTraces

from tests.real.load_servers import Behaviour, LoadServer, Reply, always, every, nobody_listens, serving
from tests.real.mesh_servers import MeshServer
from tests.results import result_in
from tests.support import ATTEMPTS, Lab, wait_until
from tests.unit.cli.commands import chainmark as command

PROFILE = """
system = "http"
sla = { p99_s = 1.0 }
steps = { duration_s = 1, longest_s = 1, warm_up_s = 0.1, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = ["clients"], clients_first = 4, clients_last = 4, times = 1 }
fixed = { times = 0, duration_s = 1, shares = [0.5] }

[[request]]
endpoint = "work"
path = "/work"
checks = [{ pointer = "/right", is = true }]
"""
RIGHT = Reply(after_s=0.005)


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile with short steps, and a separate store. Other load on this machine is ignored."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(chainmark.api.loading, "Tester", partial(loading.Tester, watching=None))
    path = tmp_path / "work.toml"
    path.write_text(PROFILE, encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The store that the commands use."""
    return Store(tmp_path / "store")


def _junit(path: Path) -> Xml.Element:
    return Xml.parse(path).getroot()  # noqa: S314 - written by the command itself


def _load(profile: Path, url: str, *more: str) -> Result:
    return command("load", str(profile), "--target", url, *more)


def _decided(profile: Path, url: str, *more: str) -> Result:
    """Run the load test, again if a stall of the machine left too few responses for a decision."""
    for _ in range(ATTEMPTS):
        result = _load(profile, url, *more)
        if result.exit_code not in {ExitCode.INCONCLUSIVE, ExitCode.INVALID}:
            break
    return result


def test_a_met_sla_passes(profile: Path, store: Store, tmp_path: Path) -> None:
    with serving(always(RIGHT)) as server:
        result = _load(profile, server.url, "--junit", str(tmp_path / "load.xml"), "--md", str(tmp_path / "load.md"))
    assert result.exit_code == ExitCode.DONE
    suite = _junit(tmp_path / "load.xml")[0]
    assert (suite.attrib["failures"], suite.attrib["tests"]) == ("0", "1")
    assert "/work" in (tmp_path / "load.md").read_text(encoding="utf-8")
    (run,) = store.sealed()
    assert run.run_id in result.stderr


def test_the_slowest_requests_are_listed_with_the_duration_of_each_stage(
    profile: Path, store: Store, tmp_path: Path
) -> None:
    with serving(every(40, Reply(after_s=0.3))) as server:
        _load(profile, server.url)
    (run,) = store.sealed()
    listed = result_in(command("request", run.run_id, "--json").stdout, SlowestTraces)
    assert listed.total == run.events("steps")["due"].sum()
    slowest = listed.slowest[0]
    due_s, sent_s, first_byte_s, finished_s = slowest.places[0].seconds
    assert due_s == 0.0
    assert sent_s is not None
    assert first_byte_s is not None
    assert finished_s is not None
    assert first_byte_s - sent_s >= 0.3 > finished_s - first_byte_s  # long processing, short response
    facts = {fact.label: fact.value for fact in slowest.facts}
    assert (facts["request"], facts["HTTP status"]) == ("GET /work", "200")
    assert float(facts["median latency of the step, ms"]) < 300.0
    text = " ".join(command("request", run.run_id, slowest.key).stdout.split())
    assert f"Request {slowest.key} was finished" in text
    assert "longest stage was “first byte”" in text


def test_a_required_capacity_that_is_not_reached_fails(profile: Path, tmp_path: Path) -> None:
    junit = tmp_path / "load.xml"
    with serving(always(RIGHT)) as server:
        wanted = ("--set", "search.clients_first=2", "--set", "search.clients_last=2", "--set", "sla.p99_s=0.003")
        enough = ("--set", "steps.longest_s=10", "--set", "require.work.clients=2")
        result = _decided(profile, server.url, "--junit", str(junit), *enough, *wanted)
    assert result.exit_code == ExitCode.FAIL
    (failure,) = _junit(junit).iter("failure")
    assert failure.attrib["message"]


def test_only_required_endpoints_decide_if_any_is_required(profile: Path, tmp_path: Path) -> None:
    """An endpoint that is slow from the first level on fails a pipeline unless only another endpoint is required."""
    spare = '\n[[request]]\nendpoint = "spare"\npath = "/spare"\n'
    profile.write_text(PROFILE + spare, encoding="utf-8")
    slow = Reply(after_s=0.3)
    with serving(lambda request: slow if request.path == "/spare" else RIGHT) as server:
        limit, page = ("--set", "sla.p99_s=0.2"), tmp_path / "load.md"
        assert _decided(profile, server.url, *limit).exit_code == ExitCode.FAIL
        result = _decided(profile, server.url, *limit, "--set", "require.work.clients=4", "--md", str(page))
    assert result.exit_code == ExitCode.DONE, result.stdout
    assert ", not required" in page.read_text(encoding="utf-8")  # missed, or undecided on a busy machine


def test_missing_servers_and_profiles_are_reported(profile: Path, store: Store) -> None:
    with nobody_listens() as url, pytest.raises(EnvironmentFailure) as caught:
        _load(profile, url)
    assert caught.value.exit_code == ExitCode.ENVIRONMENT
    with serving(always(Reply(status=404))) as server:
        with pytest.raises(UsageError, match="status 404"):
            _load(profile, server.url)
        with pytest.raises(UsageError, match="there is no endpoint `wrok`"):
            _load(profile, server.url, "--endpoint", "wrok")
        with pytest.raises(UsageError, match=r"`steps\.duration` is not a key of a profile"):
            _load(profile, server.url, "--set", "steps.duration=1")
    assert store.sealed() == []
    assert store.unfinished() == []


def test_two_servers_are_compared_at_the_same_levels(profile: Path, store: Store) -> None:
    """The slower one is worse at a level that both sustain, and the exit code reports it."""
    with serving(always(RIGHT)) as old, serving(always(Reply(after_s=0.01))) as new:
        targets = (f"old={old.url}", "--target", f"new={new.url}")
        result = _load(profile, *targets, "--set", "fixed.times=1")
    assert result.exit_code == ExitCode.FAIL, result.stdout
    sides = {place.side: run for run in store.sealed() if (place := run.manifest.experiment)}
    assert sides.keys() == {"old", "new"}
    assert fixed_levels_of(sides["old"]) == fixed_levels_of(sides["new"]) == {"rates": {}, "clients": {"work": [2.0]}}


def test_repetitions_are_one_json_list_with_a_report_file_each(profile: Path, store: Store, tmp_path: Path) -> None:
    page = tmp_path / "load.md"
    with serving(always(RIGHT)) as server:
        result = _load(profile, server.url, "--repeat", "2", "--json", "--md", str(page), "--set", "search.kinds=[]")
    reports = json.loads(result.stdout)
    assert len(reports) == 2
    first, second = (report["targets"][0] for report in reports)
    assert first["run_id"] != second["run_id"]
    assert page.is_file()
    assert (tmp_path / "load-2.md").is_file(), "the second report must not replace the first"


def test_a_load_test_is_compared_with_an_earlier_run(profile: Path, store: Store, tmp_path: Path) -> None:
    """A pipeline that stores the files must see what the exit code is about: the comparison has files as well."""
    files = ("--junit", str(tmp_path / "load.xml"), "--md", str(tmp_path / "load.md"))
    with serving(always(RIGHT)) as server:
        _load(profile, server.url, "--set", "fixed.times=1", "--as", "1.0")
        (former,) = store.sealed()
        result = _load(profile, server.url, "--set", "fixed.times=1", "--as", "1.1", "--against", "1.0", *files)
    assert "1.1 against 1.0" in result.stdout
    assert "1.1 against 1.0" in (tmp_path / "load-2.md").read_text(encoding="utf-8")
    compared = {case.get("name", "") for case in _junit(tmp_path / "load-2.xml").iter("testcase")}
    assert any("max clients" in name for name in compared), compared
    assert result.exit_code != ExitCode.INVALID, result.stdout
    runs = store.sealed()
    assert len(runs) == 2
    assert {str(fixed_levels_of(run)) for run in runs} == {str(fixed_levels_of(former))}


def test_a_server_that_does_not_report_its_version(profile: Path, store: Store) -> None:
    """Otherwise two releases measured in turn would look like one, and their difference like noise."""
    once = ("--set", "search.kinds=[]", "--set", "fixed.times=1", "--set", "fixed.clients.work=[4]")
    with serving(always(RIGHT)) as server:
        result = _load(profile, server.url, *once)
        assert "warning the server does not report its version" in result.stderr
        assert "`--as`" in result.stderr
        (run,) = store.sealed()
        assert any("does not report its version" in warning for warning in run.manifest.warnings)
        assert "version" not in _load(profile, server.url, *once, "--as", "1.0").stderr


@contextmanager
def _interrupted(lab: Lab, profile: Path, behaviour: Behaviour) -> Iterator[LoadServer]:
    """Interrupt a command with Ctrl-C once it is under load."""
    with serving(behaviour) as server:
        started = lab.start("load", str(profile), "--target", server.url, "--set", "steps.duration_s=60")
        wait_until(lambda: server.requested["/work"] > 500, "the load")
        started.process.send_signal(signal.SIGINT)
        ended = started.finish()
        assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stderr
        assert "partial" in ended.stderr
        yield server


@pytest.mark.quiet
def test_ctrl_c_during_a_step_stores_partial_results(profile: Path, lab: Lab) -> None:
    """Partial results are stored, sealed as partial, and never compared. No process continues in the background."""
    with _interrupted(lab, profile, always(RIGHT)) as server:
        wait_until(lambda: server.transports == set(), "the end of its connections")
    (run,) = lab.store.sealed()
    assert lab.store.unfinished() == []
    assert run.verify() == []
    (step,) = run.events("steps").to_dicts()
    assert step["partial"]
    assert 0 < step["due"] == step["ok"]
    assert run.manifest.status == "invalid"
    with serving(always(RIGHT)) as server:
        lab.run("load", str(profile), "--target", server.url, "--as", "whole")
    compared = lab.run("compare", "whole", run.run_id, code=ExitCode.INVALID)
    assert "interrupted" in compared.stdout


CHAIN_PROFILE = """
system = "mesh"
sla = { p99_s = 2.0 }
steps = { duration_s = 1, longest_s = 10, warm_up_s = 0.1, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = ["clients"], clients_first = 4, clients_last = 4, times = 1 }
fixed = { times = 1, duration_s = 1, shares = [0.5] }
corpus = { settled_blocks = 1, blocks = 6, transactions = 4, accounts = 4, per_stratum = 2 }
"""


@pytest.mark.quiet  # the chain continues to grow meanwhile
def test_a_live_chain_is_tested_repeatedly_and_against_an_earlier_run(
    profile: Path, store: Store, simd: MeshServer, tmp_path: Path
) -> None:
    """A run made for a comparison sends the requests of the other run, at its levels, to a growing chain."""
    profile.write_text(CHAIN_PROFILE, encoding="utf-8")
    chosen = ("--endpoint", "/block")
    junit = tmp_path / "load.xml"
    first = _load(profile, simd.url, *chosen, "--as", "1.0", "--repeat", "2", "--junit", str(junit))
    assert first.exit_code == ExitCode.DONE, first.stdout
    assert [_read_by_junitparser(path) for path in (junit, tmp_path / "load-2.xml")] == [(1, 0, 0), (1, 0, 0)]
    again = _load(profile, simd.url, *chosen, "--as", "1.1", "--like", "1.0")
    # On a shared machine the search may be undecided, but the result must not be worse or incomparable.
    assert again.exit_code in {ExitCode.DONE, ExitCode.INCONCLUSIVE}, again.stdout
    against = _load(profile, simd.url, *chosen, "--as", "1.2", "--against", "1.0")
    assert "1.2 against 1.0" in against.stdout
    # One test against two of the same server: no change, or too few data to decide.
    assert against.exit_code in {ExitCode.DONE, ExitCode.INCONCLUSIVE}, against.stdout
    runs = store.sealed()
    assert [run.manifest.subject.version for run in sorted(runs, key=lambda run: run.manifest.started_at)] == [
        "1.0", "1.0", "1.1", "1.2",
    ]  # fmt: skip
    assert all(run.verify() == [] and run.manifest.status == "valid" for run in runs)
    assert len({run.manifest.workload["corpus"] for run in runs}) == 1
    levels = {"rates": {}, "clients": {"block": [2.0]}}
    assert [fixed_levels_of(run) for run in runs] == [levels] * 4
    assert {run.manifest.conditions["pruning"] for run in runs} == {"off"}


def _read_by_junitparser(path: Path) -> tuple[int, int, int]:
    """Tests, failures and errors as read by another JUnit implementation."""
    read = JUnitXml.fromfile(str(path))
    return read.tests, read.failures, read.errors


def test_requirements_written_by_a_test_are_met_by_the_next_test_and_missed_by_a_slower_server(
    profile: Path, tmp_path: Path
) -> None:
    """A pipeline pins the current capacity once, and fails if a later release does not reach it."""
    path = tmp_path / "require.toml"
    levels = ("--set", "search.clients_first=2", "--set", "search.clients_last=2")
    too_slow = ("--set", "sla.p99_s=0.003", "--set", "steps.longest_s=10", *levels)
    with serving(always(RIGHT)) as server:
        result = _decided(profile, server.url, *too_slow, "--write-require", str(path))
        assert result.exit_code == ExitCode.FAIL
        assert not path.exists()
        assert "was not written" in result.stderr
        assert _decided(profile, server.url, "--write-require", str(path)).exit_code == ExitCode.DONE
        assert "work = { clients = 3 }" in path.read_text(encoding="utf-8")
        assert _decided(profile, server.url, "--require", str(path)).exit_code == ExitCode.DONE
        assert _decided(profile, server.url, "--require", str(path), *too_slow).exit_code == ExitCode.FAIL


def test_the_script_of_the_action_writes_the_summary_and_reports(profile: Path, tmp_path: Path) -> None:
    """It ends with the exit code of the load test."""
    content = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text(encoding="utf-8"))
    script = next(step["run"] for step in content["runs"]["steps"] if step.get("id") == "load")
    summary, outputs, folder = tmp_path / "summary.md", tmp_path / "outputs", tmp_path / "report"
    with serving(lambda request: RIGHT if "x-key" in request.headers else Reply(b"{}", 401)) as server:
        variables = {
            "PROFILE": str(profile),
            "TARGET": server.url,
            "VERSION": "1.2.3",
            "REQUIRE": "",
            "FOLDER": str(folder),
        }
        environment = {
            **os.environ,
            **variables,
            "KEY": "0123456789",
            "OPTIONS": "--header\nX-Key: ${KEY}\n",
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        # The action's own script, which is part of the project.
        ran = subprocess.run(["bash", "-e", "-c", script], env=environment, check=False, timeout=120)
    assert outputs.read_text(encoding="utf-8").strip() == f"exit-code={ran.returncode}"
    assert ran.returncode in {ExitCode.DONE, ExitCode.INCONCLUSIVE, ExitCode.INVALID}  # depends on other load
    assert "1.2.3" in summary.read_text(encoding="utf-8")
    assert {path.name for path in folder.iterdir()} == {f"load.{suffix}" for suffix in ("html", "md", "xml", "json")}
