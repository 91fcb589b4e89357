"""Without the extra `cluster` all other features work, and requesting a cluster reports the missing package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    ],
)
def test_a_cluster_without_the_extra_is_an_error_that_names_the_package(
    arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    code, _, output = _typed("--store", str(tmp_path), *arguments, absent=True, **environment)
    assert code == 2
    assert "error: a cluster needs the library dask.distributed, which is not installed" in output
    assert "hint: `pip install 'chainmark[cluster]'`" in output
