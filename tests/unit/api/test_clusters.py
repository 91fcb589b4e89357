"""Without the extra `cluster` all other features work, and requesting a cluster reports the missing package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chainmark.api.clusters import VARIABLE, cluster_address, machines_for_nodes, requested_cluster
from chainmark.api.context import Relay
from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.lab.profiles import read_profile
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import launchable

from tests.unit.systems.cardano.clusters import make_cluster

ENGINE = {"distributed", "dask", "tornado", "cloudpickle", "msgpack"}
# If an entry of `sys.modules` is None, its import fails as if the package were not installed.
TYPED = """
import json, sys
sys.argv = ["chainmark", *json.loads(sys.argv[1])]
if {absent}:
    sys.modules["distributed"] = None
from chainmark.cli import main
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted(name for name in sys.modules if "." not in name)]))
"""


def _typed(*arguments: str, absent: bool, **environment: str) -> tuple[int, set[str], str]:
    """The exit code of a command, the packages that it loaded, and its stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", TYPED.format(absent=absent), json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    code, modules = json.loads(ended.stdout.splitlines()[-1])
    return code, set(modules), ended.stderr


def test_an_import_on_this_machine_loads_nothing_of_the_engine(tmp_path: Path) -> None:
    logs = make_cluster(tmp_path / "cluster", hosts=2, slots=120)
    code, loaded, _ = _typed("--store", str(tmp_path / "store"), "ingest", "cardano", str(logs), absent=False)
    assert code == 0
    assert "polars" in loaded
    assert loaded.isdisjoint(ENGINE)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["ingest", "cardano", "/nowhere", "--on", "tcp://127.0.0.1:1"], {}),
        (["cluster", "check"], {"CHAINMARK_CLUSTER": "tcp://127.0.0.1:1"}),
        (["predict", "cardano/value", "--blocks", "64"], {"CHAINMARK_CLUSTER": "tcp://127.0.0.1:1"}),
    ],
)
def test_a_cluster_without_the_extra_is_an_error_that_names_the_package(
    arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    code, _, output = _typed("--store", str(tmp_path), *arguments, absent=True, **environment)
    assert code == 2
    assert "error: a cluster needs the library dask.distributed, which is not installed" in output
    assert "hint: `pip install 'chainmark[cluster]'`" in output


def _profile(folder: Path, section: str) -> Path:
    path = folder / "own.toml"
    path.write_text(f'system = "cometbft"\n{section}\n[load]\nrate = 50\n', encoding="utf-8")
    return path


def test_the_option_counts_before_the_environment_and_that_before_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    profile = _profile(tmp_path, '[cluster]\nscheduler = "tcp://10.0.0.1:1"')
    assert requested_cluster(None, profile, None) == "tcp://10.0.0.1:1"
    assert requested_cluster(None, profile, {"cluster.scheduler": "tcp://10.0.0.2:1"}) == "tcp://10.0.0.2:1"
    assert requested_cluster("tcp://10.0.0.3:1", profile, None) == "tcp://10.0.0.3:1"
    assert requested_cluster(None, _profile(tmp_path, ""), None) is requested_cluster(None, None, None) is None
    monkeypatch.setenv(VARIABLE, "tcp://10.0.0.4:1")
    assert cluster_address(requested_cluster(None, profile, None)) == "tcp://10.0.0.4:1"


def test_where_a_profile_runs_is_no_part_of_it(tmp_path: Path) -> None:
    """Otherwise a release that ran on other machines would be of another profile, and not comparable."""
    plain = read_profile(str(_profile(tmp_path, "")))
    assert read_profile(str(_profile(tmp_path, '[cluster]\nscheduler = "tcp://10.0.0.1:1"'))) == plain


@pytest.mark.parametrize(
    "section", ["[cluster]", "cluster = 1", "[cluster]\nscheduler = 1", "[cluster]\naddress = '1'"]
)
def test_a_wrong_section_is_named(tmp_path: Path, section: str) -> None:
    with pytest.raises(UsageError, match=r"the section `\[cluster\]` of the profile `.*own\.toml` is invalid"):
        requested_cluster(None, _profile(tmp_path, section), None)


def test_a_cluster_of_the_environment_is_no_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Benchmarks of commands run only here, and a variable of the shell does not change that."""
    monkeypatch.setenv(VARIABLE, "tcp://127.0.0.1:1")
    system = launchable(load_system("benchmark"))
    said: list[str] = []
    listener = Relay(Silent(), None)
    monkeypatch.setattr(listener, "say", said.append)
    with machines_for_nodes(system, requested_cluster(None, None, None), listener) as machines:
        assert machines is None
    assert said == ["`benchmark` runs on this machine: the cluster at tcp://127.0.0.1:1 is not used"]
    with pytest.raises(UsageError, match="only on this machine"), machines_for_nodes(system, "tcp://a:1", listener):
        pass
