"""Common packages work without any system. A system can be added or removed as a single folder."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainmark.core.catalogue import Catalogue
from chainmark.systems.base import load_system

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "chainmark"
OUTSIDE = ROOT / "tests" / "outside" / "chainmark-hyperfine"
SYSTEMS = sorted(path.parent.name for path in (PACKAGE / "systems").glob("*/__init__.py"))
COMMON = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "systems")
# The packages below the systems, which are imported and tested where there is no system at all.
BELOW = [name for name in COMMON if name not in {"api", "serve", "cli"}]
# A sample of the tests of each common package: manifests, catalogues, the store, sessions, schedules, comparisons with
# every chart, tails and timelines, side-by-side reports, and renderings. Slow tests are omitted.
TESTED = (
    "core/test_catalogue.py",
    "core/test_manifest.py",
    "store/test_runs.py",
    "lab/test_schedules.py",
    "lab/test_session.py",
    "compare/test_side_by_side.py",
    "compare/test_breakdowns.py",
    "compare/test_worked_example.py",
    "compare/test_compare.py::test_an_equal_release_passes_with_its_margins_stated",
    "compare/test_compare.py::test_every_chart_that_a_metric_defines_exists",
    "compare/test_compare.py::test_charts_are_well_formed",
    "compare/test_compare.py::test_conditions_that_differ_warn_with_the_catalogues_words",
    "report/test_renderings.py",
)
# Words of a single system, which must not occur in names, texts or helps of common code. `http` and `benchmark` have
# none: requests and commands are concepts of every load test and every machine.
CONCEPTS = {
    "cardano": "cardano slot slots forge forged forger forgers forging ledger utxo plutus praos leadership chaindb "
    "genesis locli stake story stories adopt adopts adopted adoption blockperf openblockperf blockprop clusterperf "
    "workbench ouroboros ghc rts haskell nix shelley byron babbage conway cbor torus forked orphaned battle battles",
    "cometbft": "cometbft comet abci validator validators proposer proposers tendermint pbts timeout_commit kvstore "
    "mempool mempools rpc consensus prevote precommit cosmos sdk loadtime saturated old_rule old_verdict "
    "ten_percent_rule ten_percent_verdict connection_count report_tabbed",
    "mesh": "mesh rosetta coin coins account_balance construction yaci",
    "http": "",
    "benchmark": "hyperfine",
}
# Allowed exceptions: (word, file) and the reason.
EXCEPTIONS = {
    ("rpc", "cluster/probe.py"): "Dask's name for a connection to another worker",
    ("slots", "report/blocks.py"): "Python's word for how a class keeps its fields",
    ("stories", "core/comparison.py"): "a name of schema 1, which is read",
    ("stories", "trails/followed.py"): "a name of schema 1, which is read",
    ("story", "trails/results.py"): "a name of schema 1, which is read",
    ("old_rule", "core/qa_report.py"): "a name of schema 1, which is read",
    ("old_verdict", "core/qa_report.py"): "a name of schema 1, which is read",
    ("old_rule", "report/qa_document.py"): "a property of the JUnit file, by which pipelines read it",
    ("construction", "stats/intervals.py"): "the title of an article",
    ("adopt", "serve/templates/site.js"): "the browser's name for moving an element",
    ("mempool", "network/openmetrics.py"): "the name of a published metric, whose figure any system may give",
    ("mempool", "dashboards/grafana.json"): "that metric",
    ("node_mempool_transactions", "network/openmetrics.py"): "that metric",
    ("cometbft", "network/zones/aws.toml"): "the source of the data",
    ("comet", "network/zones/aws.toml"): "the source of the data",
}
_PYDANTIC = {"BeforeValidator", "AfterValidator", "field_validator", "model_validator"}
_DOTTED = re.compile(r"chainmark(\.\w+)+")
_TEMPLATES = {".css", ".j2", ".js", ".json", ".toml", ".typ"}


def _words_of(system: str) -> set[str]:
    """The words of a system, with the identifiers that only its catalogue has."""
    own = _identifiers(system)
    others = set[str]().union(*(_identifiers(name) for name in SYSTEMS if name != system))
    return {*CONCEPTS[system].split(), *(name for name in own - others if "_" in name)}


@functools.cache
def _identifiers(system: str) -> set[str]:
    catalogue: Catalogue = load_system(system).catalogue()
    populations = {name for population in catalogue.populations for name in (population.id, *population.keys)}
    return {*populations, *(metric.id for metric in catalogue.metrics), *(table.id for table in catalogue.tables)}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout whose package contains no system."""
    root = tmp_path_factory.mktemp("without-systems")
    package = root / "src" / "chainmark"
    without = shutil.ignore_patterns(*SYSTEMS)  # keeps the compiled modules, which take seconds to build
    shutil.copytree(PACKAGE, package, ignore=without)
    assert not any((package / "systems" / system).exists() for system in SYSTEMS)
    shutil.copy(ROOT / "pyproject.toml", root)
    for folder in sorted({name.partition("/")[0] for name in TESTED}):
        shutil.copytree(ROOT / "tests" / "unit" / folder, root / "tests" / "unit" / folder, ignore=without)
    shutil.copy(ROOT / "tests" / "property_examples.py", root / "tests" / "conftest.py")
    shutil.copy(ROOT / "tests" / "results.py", root / "tests")
    return root


def _ran(copy: Path, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "CHAINMARK_STORE": str(copy / "store")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder or copy, env=environment, capture_output=True, text=True, check=False)


def _linked_package(root: Path, *without: str) -> Path:
    """A copy of the package without some folders of `systems`: its links are to the files of this checkout."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {"__pycache__", *(without if Path(folder) == PACKAGE / "systems" else [])} & {*names}

    return shutil.copytree(PACKAGE, root / "src" / "chainmark", ignore=ignored, copy_function=os.symlink)


def _named(path: Path) -> Iterator[str]:
    """Every module that a module may import, including imports in function bodies and module names in strings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            yield node.value


def _is_module(name: str) -> bool:
    path = ROOT / "src" / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _module(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("removed", SYSTEMS)
def test_a_system_is_removed_with_its_folder(removed: str, tmp_path: Path) -> None:
    """The rest works: every module, the metrics and profiles of the others, and the help, which omits the system."""
    package = _linked_package(tmp_path, removed)
    assert {path.name for path in (PACKAGE / "systems").iterdir()} - {
        path.name for path in (package / "systems").iterdir()
    } <= {removed, "__pycache__"}
    source = tmp_path / "src"
    names = [_module(path, source) for path in sorted(package.rglob("*.py")) if path.name != "__main__.py"]
    everything = f"""
import sys, importlib
[importlib.import_module(name) for name in sys.argv[1:]]
import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.cli.reference import commands_page
from chainmark.systems.base import load_system, system_names
print(*(f"{{name}}:{{len(load_system(name).catalogue().metrics)}}" for name in system_names()))
print(*cm.profiles())
try:
    load_system({removed!r})
except UsageError as error:
    print(error.message)
print(commands_page())
"""
    process = _ran(tmp_path, "-c", everything, *names)
    assert process.returncode == 0, process.stderr[-2000:]
    metrics, profiles, refused, help_text = process.stdout.split("\n", 3)
    rest = [name for name in SYSTEMS if name != removed]
    assert [entry.partition(":")[0] for entry in metrics.split()] == rest
    assert {name.partition("/")[0] for name in profiles.split()} == set(rest)
    assert refused == f"there is no system `{removed}`"
    assert "## `chainmark synth`" in help_text
    of_others = set[str]().union(*(_words(_additions(name)) for name in rest))
    assert _words(help_text) & _words_of(removed) <= of_others


def _additions(system: str) -> str:
    path = PACKAGE / "systems" / system / "commands.toml"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@pytest.mark.parametrize(
    ("system", "shown"),
    [
        ("cardano", ["--fetch-concurrency", "--lose-region", "--slots", "--genesis", "blockprop.json"]),
        ("cometbft", ["--application", "cometbft/demo"]),
        ("mesh", ["mesh/quick", "rosetta"]),
    ],
)
def test_the_help_shows_what_the_installed_systems_add(system: str, shown: list[str]) -> None:
    """Otherwise the options and examples of a system could not be found."""
    text = _ran(ROOT, "-c", "from chainmark.cli.reference import commands_page; print(commands_page())").stdout
    assert [part for part in shown if part not in text] == []
    assert _words(_additions(system)) & _words_of(system)


def _texts(path: Path) -> Iterator[str]:
    """All names, texts and descriptions of a file. Executed examples in descriptions may use a system."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield content
        return
    code = ast.parse(content)
    explaining = {id(node.value) for node in ast.walk(code) if isinstance(node, ast.Expr)}
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition("Example:\n")[0] if id(node) in explaining else node.value
        for field in ("id", "attr", "arg", "name"):
            if isinstance(text := getattr(node, field, None), str) and text not in _PYDANTIC:
                yield text


@functools.cache
def _words(text: str) -> set[str]:
    """The words of a name (CamelCase is split) or of a sentence, its identifiers, and the whole text."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
    return {text.lower(), *(word.lower() for word in parts), *map(str.lower, re.findall(r"\w+", text))}


def test_common_code_has_no_concepts_of_one_system() -> None:
    """Otherwise every system would have to support a concept that only one of them has."""
    concepts = set[str]().union(*map(_words_of, SYSTEMS))
    folders = [path for path in PACKAGE.iterdir() if path.is_dir() and path.name not in {"systems", "__pycache__"}]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", *_TEMPLATES}]
    paths += [*PACKAGE.glob("*.py"), *(PACKAGE / "systems").glob("*.py")]
    met = {
        (word, path.relative_to(PACKAGE).as_posix())
        for path in paths
        for text in _texts(path)
        for word in _words(text) & concepts
    }
    assert met == EXCEPTIONS.keys()


def test_common_packages_import_nothing_of_a_system(copy: Path) -> None:
    """Checks every module of the common packages and every module that they import lazily."""
    source = copy / "src"
    paths = [path for folder in BELOW for path in sorted((source / "chainmark" / folder).rglob("*.py"))]
    own = {_module(path, source) for path in paths}
    named = {name for path in paths for name in _named(path) if _DOTTED.fullmatch(name) and _is_module(name)}
    assert len(own) > 50
    assert len(named) > 30
    everything = "import sys, importlib, chainmark; [importlib.import_module(name) for name in sys.argv[1:]]"
    process = _ran(copy, "-c", f"{everything}; print(chainmark.__file__)", *sorted(own | named))
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.startswith(str(copy))


def test_common_packages_pass_their_tests_without_a_system(copy: Path) -> None:
    """If this fails, common code depends on a system."""
    tests = [f"tests/unit/{name}" for name in TESTED]
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(copy),
        "-k",
        "not console_errors and not every_rendering and not same_comparison",
    ]
    outcome = _ran(copy, "-m", "pytest", *options, *tests)
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]


def test_a_system_is_added_with_its_folder(tmp_path: Path) -> None:
    """A copied folder is a system for every command, with its profiles, examples and options, without installing it."""
    added = _linked_package(tmp_path) / "systems" / "hyperfine"
    shutil.copytree(OUTSIDE / "src" / "chainmark_hyperfine", added)
    (added / "profiles").mkdir()
    (added / "profiles" / "sort.toml").write_text('system = "hyperfine"\ncommand = "sort words.txt"\n', "utf-8")
    (added / "commands.toml").write_text(
        '[ingest]\nexamples = ["chainmark ingest hyperfine before.json --as 1.0"]\n'
        '[[ingest.option]]\nname = "shell"\nhelp = "Shell that started the command."\n',
        "utf-8",
    )

    printed = functools.partial(_printed, tmp_path)
    assert "hyperfine/sort" in printed("profiles")
    assert "wall_time_s" in printed("metrics", "hyperfine")
    for part in ("Example: chainmark ingest hyperfine before.json --as 1.0", "--shell", "Options for hyperfine"):
        assert part in printed("ingest", "--help")
    printed("ingest", "hyperfine", "before.json", "--as", "1.0")
    printed("ingest", "hyperfine", "after.json", "--as", "1.1")
    assert "wall time mean" in printed("compare", "1.0", "1.1", code=3)
    refused = printed("ingest", "hyperfine", "after.json", "--as", "1.1", "--shell", "sh", code=2)
    assert "`--shell` has no effect" in refused


def test_a_system_needs_no_other_one(tmp_path: Path) -> None:
    """A user may install only a system of their own: then no system adds options to a command."""
    added = _linked_package(tmp_path, *SYSTEMS) / "systems" / "hyperfine"
    shutil.copytree(OUTSIDE / "src" / "chainmark_hyperfine", added)
    printed = functools.partial(_printed, tmp_path)
    printed("ingest", "hyperfine", "before.json", "--as", "1.0")
    printed("ingest", "hyperfine", "after.json", "--as", "1.1")
    assert "wall time mean" in printed("compare", "1.0", "1.1", code=3)
    assert "cannot generate logs of `hyperfine`" in printed("synth", "hyperfine", "--out", "logs", code=2)


def _printed(copy: Path, *arguments: str, code: int = 0) -> str:
    done = _ran(copy, "-m", "chainmark.cli", *arguments, folder=OUTSIDE / "examples")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr
