"""Rules of the project's code: import direction, unused modules, line length, unfinished work."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import chainmark
from chainmark.cli.app import COMMANDS
from chainmark.report.layouts import LAYOUTS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "chainmark"
LINE_LENGTH_MAX = 120

# Allowed direction of imports: cli → serve → api → systems → trails → report, compare, builds → lab → capacity → store,
# stats, network, cluster → core
LAYERS = {
    **{"core": 0, "store": 1, "stats": 1, "network": 1, "cluster": 1, "capacity": 2, "lab": 3},
    **{"compare": 4, "report": 4, "builds": 4, "trails": 5, "systems": 6, "api": 7, "serve": 8, "cli": 9},
}
# Modules that are run by name instead of imported. Commands and the functions of the library are loaded when they are
# used.
ENTRANCES = {
    "chainmark.__main__",
    "chainmark.cli.__main__",
    "chainmark.cli.reference",
    "chainmark.report.typesetting",
    *(f"chainmark.cli.{found.module}" for found in COMMANDS.values()),
    *(getattr(chainmark, name).__module__ for name in chainmark.__all__),
    *(f"chainmark.report.{name}" for name in LAYOUTS.values()),
}


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "chainmark"}


def _package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.split("\n") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize(("module", "path"), list(_modules()), ids=lambda value: str(value).rpartition("/")[2])
def test_imports_have_one_direction(module: str, path: Path) -> None:
    """A single import in the other direction soon becomes a habit."""
    package = _package(module)
    if package not in LAYERS:
        return
    for imported in _imports(path):
        target = _package(imported)
        if target in LAYERS and target != package:
            assert LAYERS[target] < LAYERS[package], f"{module} imports {imported}"


STATISTICS = {
    *("average", "corrcoef", "cov", "cumsum", "fmean", "histogram", "mean", "median", "percentile", "polyfit"),
    *("pstdev", "pvariance", "quantile", "quantiles", "std", "stdev", "var", "variance"),
}


MEAN = re.compile(r"(math\.f)?sum\(.*\) / len\(")


def _is_layout(module: str, path: Path) -> bool:
    """Whether a module is of the reports, or makes their blocks or charts."""
    made = ("chainmark.report.blocks", "chainmark.report.chart")
    return _package(module) == "report" or any(name.startswith(made) for name in _imports(path))


def _computed(path: Path) -> Iterator[str]:
    """Imports and calls of statistical functions, and means of sums."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr.removeprefix("nan") in STATISTICS:
                yield f"{path.name}:{node.lineno} calls {node.func.attr}"
        elif isinstance(node, ast.BinOp) and MEAN.match(ast.unparse(node)):
            yield f"{path.name}:{node.lineno} computes a mean"
        for name in names:
            of_stats = name.startswith("chainmark.stats")
            of_numpy = name.startswith("numpy.") and name.rpartition(".")[2].removeprefix("nan") in STATISTICS
            if of_stats or of_numpy or name.partition(".")[0] in {"statistics", "scipy"}:
                yield f"{path.name} imports {name}"


def test_layouts_compute_no_statistics() -> None:
    """A figure that is computed in a layout is not in the document's JSON, and may contradict the report's others."""
    layouts = [path for module, path in _modules() if _is_layout(module, path)]
    assert len(layouts) > 100
    assert [text for path in layouts for text in _computed(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "from statistics import median", "import statistics", "from numpy import nanquantile", "np.quantile(x, 0.99)",
        "frame.mean()", "sum(row.values) / len(row.values)", "from chainmark.stats.estimable import has_rank",
        "def late():\n    from scipy import stats",
    ],
)  # fmt: skip
def test_statistics_in_a_layout_are_found(code: str, tmp_path: Path) -> None:
    path = tmp_path / "layout.py"
    path.write_text(code, encoding="utf-8")
    assert len(list(_computed(path))) == 1


def test_no_module_is_unused() -> None:
    """A module that nothing imports is not part of the product."""
    used = set(ENTRANCES)
    for _, path in _modules():
        used |= _imports(path)
    dead = [module for module, path in _modules() if module not in used and path.name != "__init__.py"]
    assert dead == []


def test_no_two_public_classes_share_a_name() -> None:
    """Otherwise a reader of `Row` or `Server` must look up which class is meant."""
    places: dict[str, list[str]] = {}
    for module, path in _modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_line_is_too_long() -> None:
    for path in _tracked("*.py", "*.pyi", "*.rs", "*.toml", "Makefile", "*.css", "*.js", "*.typ"):
        if path.name == "Cargo.lock":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert len(line) <= LINE_LENGTH_MAX, f"{path.relative_to(ROOT)}:{number} has {len(line)} characters"


def test_no_unfinished_code_is_left() -> None:
    pattern = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|unimplemented!|todo!)")
    for path in _tracked("*.py", "*.rs"):
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not pattern.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


# Files that may format numbers themselves, for machine-readable output or to match the digits of another tool.
OWN_NUMBERS = {
    "core/units.py": "it is the module",
    "capacity/metrics.py": "a level as a part of a metric's id, which stored runs hold",
    "network/netem.py": "arguments of tc",
    "report/junit.py": "attributes and properties, which pipelines parse",
    "systems/cardano/published/values.py": "digit for digit the figures of published reports",
}
NUMERIC = re.compile(r"[,_%]|[bcdeEfFgGn]$")
NUMERIC_FIELD = re.compile(r"\{[^{}]*:[^{}]*([,_%]|[eEfFgG])\}")


def _formats_a_number(node: ast.AST) -> bool:
    """Whether a node formats a number: an f-string field with a numeric format or a call of `format`.

    A width or leading zeros do not count.
    """
    if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
        fixed = (str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant))
        spec = "".join(fixed)
        return bool(NUMERIC.search(spec)) and not re.fullmatch(r"0\d*d", spec)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "format"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(NUMERIC_FIELD.search(node.value))


def test_only_one_module_formats_numbers() -> None:
    """Otherwise a figure could have different digits in a table, a sentence and an error."""
    places = {
        path.relative_to(PACKAGE).as_posix(): getattr(node, "lineno", 0)
        for _, path in _modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _formats_a_number(node)
    }
    assert {name: line for name, line in places.items() if name not in OWN_NUMBERS} == {}
    assert OWN_NUMBERS.keys() <= places.keys(), "no longer needs an exemption"


def _uses(source: Path) -> dict[str, set[str]]:
    """The files of a crate and the files that each of them uses. Files that only declare modules are omitted."""
    gathering = {"mod", "lib"}
    paths = {path.relative_to(source).with_suffix("").parts: path for path in sorted(source.rglob("*.rs"))}
    files = {parts: path for parts, path in paths.items() if parts[-1] not in gathering}
    uses: dict[str, set[str]] = {}
    for parts, path in files.items():
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        used = set()
        for begin, rest in re.findall(r"\b(crate|super)::((?:\w+::)*\w+)", code):
            named = ((*parts[:-1],) if begin == "super" else ()) + tuple(rest.split("::"))
            target = next((named[:n] for n in range(len(named), 0, -1) if named[:n] in files), parts)
            # Files below a file belong to it.
            if target[: len(parts)] != parts:
                used.add("/".join(target))
        uses["/".join(parts)] = used
    return uses


@pytest.mark.parametrize("crate", sorted(ROOT.glob("crates/*/src")), ids=lambda path: path.parent.name)
def test_no_file_of_a_crate_is_in_a_cycle_of_uses(crate: Path) -> None:
    """Files that use each other can only be read, tested and changed together."""
    try:
        TopologicalSorter(_uses(crate)).prepare()
    except CycleError as error:
        pytest.fail(f"{crate.parent.name}: {' → '.join(error.args[1])}")


def test_no_module_is_in_an_import_cycle() -> None:
    """This applies to Python, including imports within functions and for type checkers."""
    modules = dict(_modules())
    files = {name for name, path in modules.items() if path.name != "__init__.py"}
    try:
        TopologicalSorter({name: _imports(modules[name]) & files - {name} for name in files}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_accepted_faults_are_of_existing_lines() -> None:
    """Otherwise a renamed variable would make `make mutants` report faults that were already reviewed."""
    accepted = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["accepted"]
    lines = {
        file: {re.sub(r"^def \w+", "def ", line.strip()) for line in (ROOT / file).read_text().splitlines()}
        for file in {entry["file"] for entry in accepted}
    }
    gone = [(entry["file"], entry["was"]) for entry in accepted if entry["was"] not in lines[entry["file"]]]
    assert not gone
