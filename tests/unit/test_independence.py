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

ROOT = Path(__file__).resolve().parents[2]
COMMON = ("core", "store", "stats", "network", "cluster", "capacity", "lab", "compare", "report")
SYSTEMS = ("benchmark", "cardano", "cometbft", "http", "mesh")
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
# Terms of a single system, which must not occur in names or strings of the common packages. `http` and `benchmark` have
# none: requests and commands are concepts of every load test and every machine.
CONCEPTS = {
    "cardano": "slot slots forge forged forger forging ledger utxo plutus praos leadership chaindb genesis locli stake "
    "trail trails story stories neighbour",
    "cometbft": "abci validator validators proposer tendermint pbts timeout_commit kvstore mempool rpc saturated "
    "old_rule old_verdict ten_percent_rule ten_percent_verdict mempools",
    "mesh": "rosetta mesh coin coins account_balance construction",
    "http": "",
    "benchmark": "",
}
# Allowed exceptions: (word, file) and the reason.
EXCEPTIONS = {
    ("trail", "api/following.py"): "what is to be followed, passed on unread",
    ("trails", "api/comparing.py"): "asked only whether there are any",
    ("trail", "core/catalogue.py"): "a part of every catalogue, which only the system reads",
    ("trails", "core/catalogue.py"): "a part of every catalogue, which only the system reads",
    ("trails", "compare/decide.py"): "that part, passed on unread",
    ("rpc", "cluster/probe.py"): "Dask's name for a connection to another worker",
    ("slots", "report/blocks.py"): "Python's word for how a class keeps its fields",
    ("stories", "core/comparison.py"): "a name of schema 1, which is read",
    ("old_rule", "core/qa_report.py"): "a name of schema 1, which is read",
    ("old_verdict", "core/qa_report.py"): "a name of schema 1, which is read",
    ("old_rule", "report/qa_document.py"): "a property of the JUnit file, by which pipelines read it",
    ("genesis", "api/measure.py"): "an option of `ingest`, passed on unread",
    ("genesis", "api/tailing.py"): "the same option, passed on unread",
    ("slots", "api/modelling.py"): "an option of `synth`, passed on unread",
    ("genesis", "lab/protocols.py"): "an option of `ingest`, passed on unread",
    ("slots", "lab/synthetic.py"): "an option of `synth`, passed on unread",
    ("genesis", "cli/ingest.py"): "the same option",
    ("slots", "cli/synth.py"): "an option, passed on unread",
    ("slots", "cli/made_logs.py"): "a line of the printed summary",
    ("trail", "cli/app.py"): "the command for the trails of any catalogue",
    ("trail", "cli/block.py"): "the same command",
    ("trail", "serve/site.py"): "a name of the run's catalogue, passed on unread",
    ("trails", "serve/site.py"): "likewise",
    ("mempool", "network/openmetrics.py"): "the name of a published metric, whose figure any system may give",
}
_PYDANTIC = {"BeforeValidator", "AfterValidator", "field_validator", "model_validator"}
_DOTTED = re.compile(r"chainmark(\.\w+)+")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout whose package contains no system."""
    root = tmp_path_factory.mktemp("without-systems")
    package = root / "src" / "chainmark"
    without = shutil.ignore_patterns(*SYSTEMS)  # keeps the compiled modules, which take seconds to build
    shutil.copytree(ROOT / "src" / "chainmark", package, ignore=without)
    assert not any((package / "systems" / system).exists() for system in SYSTEMS)
    shutil.copy(ROOT / "pyproject.toml", root)
    for folder in sorted({name.partition("/")[0] for name in TESTED}):
        shutil.copytree(ROOT / "tests" / "unit" / folder, root / "tests" / "unit" / folder, ignore=without)
    shutil.copy(ROOT / "tests" / "property_examples.py", root / "tests" / "conftest.py")
    shutil.copy(ROOT / "tests" / "results.py", root / "tests")
    return root


def _ran(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


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


@pytest.fixture(scope="module", params=SYSTEMS)
def without_one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A copy of the checkout without one system: no folder, no profiles, no entry point."""
    removed: str = request.param
    root = tmp_path_factory.mktemp(f"without-{removed}")
    ignored = shutil.ignore_patterns(removed)
    shutil.copytree(ROOT / "src" / "chainmark", root / "src" / "chainmark", ignore=ignored, copy_function=os.symlink)
    known = root / "src" / "chainmark-0.1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: chainmark\nVersion: 0.1.0\n", encoding="utf-8")
    left = "".join(f"{name} = chainmark.systems.{name}:SYSTEM\n" for name in SYSTEMS if name != removed)
    (known / "entry_points.txt").write_text(f"[chainmark.systems]\n{left}", encoding="utf-8")
    return removed, root


def test_a_system_is_removed_with_its_folder(without_one: tuple[str, Path]) -> None:
    """The other modules can be imported, the other systems have their metrics, and the removed system is unknown."""
    removed, root = without_one
    source = root / "src"
    paths = [path for path in sorted((source / "chainmark").rglob("*.py")) if path.name not in {"__main__.py"}]
    names = [".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    everything = f"""
import sys, importlib
[importlib.import_module(name) for name in sys.argv[1:]]
from chainmark.core.errors import UsageError
from chainmark.systems.base import load_system, system_names
print(*(f"{{name}}:{{len(load_system(name).catalogue().metrics)}}" for name in system_names()))
try:
    load_system({removed!r})
except UsageError as error:
    print(error.message)
"""
    process = _ran(root, "-c", everything, *names)
    assert process.returncode == 0, process.stderr[-2000:]
    metrics, refused = process.stdout.splitlines()
    assert [metric_name.partition(":")[0] for metric_name in metrics.split()] == [
        name for name in SYSTEMS if name != removed
    ]
    assert refused == f"there is no system `{removed}`"


def _texts(path: Path) -> Iterator[str]:
    """All names and string literals of a module, without its docstrings."""
    code = ast.parse(path.read_text(encoding="utf-8"))
    explaining = {id(node.value) for node in ast.walk(code) if isinstance(node, ast.Expr)}
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explaining:
            yield node.value
        for field in ("id", "attr", "arg", "name"):
            if isinstance(text := getattr(node, field, None), str) and text not in _PYDANTIC:
                yield text


@functools.cache
def _words(text: str) -> set[str]:
    """The words of a name (CamelCase is split) or of a sentence, and the whole text."""
    return {text.lower(), *(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text))}


def test_the_help_of_commands_works_without_a_system_and_omits_its_options(without_one: tuple[str, Path]) -> None:
    """Otherwise the help would offer options that no installed system implements."""
    removed, root = without_one
    shown = "".join(
        process.stdout
        for command in (
            ["--help"],
            ["predict", "--help"],
            ["corpus", "--help"],
            ["corpus", "import", "--help"],
            ["run", "--help"],
        )
        if (process := _ran(root, "-m", "chainmark.cli", *command)).returncode == 0
    )
    assert shown.count("Usage: ") == 5
    of_system = {
        "cardano": ["--fetch-concurrency", "--lose-region"],
        "cometbft": ["--application"],
        "mesh": ["Mesh", "rosetta"],
    }
    for system, words in of_system.items():
        for word in words:
            assert (word in shown) == (system != removed), word


def test_common_packages_have_no_concepts_of_one_system() -> None:
    """Otherwise every system would have to support a concept that only one of them has."""
    concepts = {concept for system in SYSTEMS for concept in CONCEPTS[system].split()}
    package = ROOT / "src" / "chainmark"
    met = {
        (word, path.relative_to(package).as_posix())
        for folder in (*COMMON, "api", "serve", "cli")
        for path in sorted((package / folder).rglob("*.py"))
        for text in _texts(path)
        for word in _words(text) & concepts
    }
    assert met <= EXCEPTIONS.keys()


def test_common_packages_import_nothing_of_a_system(copy: Path) -> None:
    """Checks every module of the common packages and every module that they import lazily."""
    source = copy / "src"
    paths = [path for folder in COMMON for path in sorted((source / "chainmark" / folder).rglob("*.py"))]
    own = {".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths}
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
