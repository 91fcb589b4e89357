"""Insert small faults into the code that decides verdicts and check whether the unit tests fail: `make mutants`.

mutmut generates the faults, several hundred per file, all in one copy of the file, where a fault is selected by name.
The tests that `mutants.toml` lists for a file are collected once. Then a process is forked for every fault, as many
concurrently as the machine has processors and memory for. It runs the tests that enter the faulty function until one
fails: first the tests that last failed for a fault of the same function, then the fastest ones. This takes some
hundredths of a second per fault instead of the seconds of a separate pytest. Time and memory of each fault are limited.
"""

from __future__ import annotations

import ast
import difflib
import gc
import json
import math
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

ROOT = Path(__file__).resolve().parents[1]
MEMORY_BYTES = 6_000_000_000
# Limits for faults that make tests endless: this multiple of the processor time without the fault, plus a constant. For
# faults that make a test wait forever there is a limit by the clock, without the time in which it waits for a busy
# processor.
TIMES_LONGER, LONGER_S = 4.0, 5.0
WAIT_TIMES, WAIT_S, LOOK_S = 20.0, 30.0, 5.0
# The number of tests that are tried first, and the duration up to which they count as fast. They failed for other
# faults of the same function.
TRIED_FIRST, QUICKLY_S = 3, 5.0
# Nothing reads the files of tests after they end, so they need not be on a disk.
MEMORY, LEAST_FREE = Path("/dev/shm"), 4_000_000_000  # noqa: S108 - each run has a folder of its own in it
_STRICT = re.compile(r"(strict=\w+)?")


@dataclass(frozen=True, order=True)
class Change:
    """A fault in readable form: the original lines and the lines that replace them."""

    function: str
    was: str
    becomes: str


@dataclass(frozen=True)
class Fault:
    """A fault of one file.

    Attributes:
        name: the name that selects it in the mutated file.
        function: the function that contains it, as named in the mutated file.
    """

    name: str
    function: str
    change: Change


_UNDECORATED = "undecorated_"
# Those that mutmut handles itself, and those with which the function's name or absence matters.
_LEFT_DECORATED = {"staticmethod", "classmethod", "overload", "abstractmethod"}


def undecorated(code: str) -> str:
    """The same code with the body of each decorated function in a function without decorators, which mutmut requires.

    ``@property def x(self): …`` becomes ``def undecorated_x(self): …`` and ``x = property(undecorated_x)``.
    """
    lines = code.splitlines()
    for function in reversed(_decorated(ast.parse(code).body)):
        names = [ast.unparse(decorator) for decorator in function.decorator_list]
        body = lines[function.lineno - 1 : function.end_lineno]
        body[0] = body[0].replace(f"def {function.name}", f"def {_UNDECORATED}{function.name}", 1)
        wrapped = "".join(f"{name}(" for name in names) + _UNDECORATED + function.name + ")" * len(names)
        assignment = f"{' ' * function.col_offset}{function.name} = {wrapped}"
        lines[function.decorator_list[0].lineno - 1 : function.end_lineno] = [*body, assignment]
    return "\n".join([*lines, ""])


def _decorated(body: Sequence[ast.stmt]) -> list[ast.FunctionDef]:
    """The decorated functions of a module and of its classes, without those of protocols, which have no code."""
    functions: list[ast.FunctionDef] = []
    for node in body:
        if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.unparse(base) for base in node.bases):
            functions += _decorated(node.body)
        elif (
            isinstance(node, ast.FunctionDef)
            and node.decorator_list
            and _LEFT_DECORATED.isdisjoint(map(ast.unparse, node.decorator_list))
        ):
            functions.append(node)
    return functions


@dataclass(frozen=True)
class Result:
    """The result of testing the faults of one file."""

    file: str
    faults: int
    survivors: list[Change]


def faults_of(mutated: MutatedFile) -> list[Fault]:
    """The faults of a mutated file and their changes."""
    lines = mutated.code.splitlines()

    def body(name: str) -> list[str]:
        span = mutated.line_span_by_function_name[name]
        return [line.strip().replace(name, "") for line in lines[span.start - 1 : span.end]]

    faults = []
    for name in mutated.mutant_names:
        function = name.partition("__mutmut_")[0]
        delta = list(difflib.ndiff(body(f"{function}__mutmut_orig"), body(name)))
        was, becomes = (" ".join(line[2:] for line in delta if line.startswith(sign)) for sign in ("- ", "+ "))
        shown = function.removeprefix("x").lstrip("_ǁ").replace("ǁ", ".") if "ǁ" in function else function[2:]
        shown = shown.replace(_UNDECORATED, "")
        # "strict" of a zip only asserts that both have the same length: without an error, nothing changes. A test that
        # does not detect XX around a text does not detect capitals either.
        if _STRICT.sub("", was).lower() != _STRICT.sub("", becomes).lower():
            faults.append(Fault(name, function, Change(shown, was, becomes)))
    return faults


class Trial:
    """Runs the tests that pytest has collected for each fault of one file, in place of pytest's own loop.

    Args:
        module: the file's module, as Python names it.
        faults: the faults of the file.
        folder: folder for files of the tests, with a subfolder per fault.
    """

    def __init__(self, module: str, faults: Sequence[Fault], folder: Path) -> None:
        self.module, self.faults, self.folder = module, faults, folder
        self.survivors: list[Change] = []
        self._failed: list[str] = []
        self._seen_by: defaultdict[str, list[str]] = defaultdict(list)  # function → tests, last failed first

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failure."""
        if report.failed:
            self._failed = [report.nodeid, report.longreprtext]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Test all faults."""
        entered, seconds = self._look(session.items)
        gc.freeze()  # a garbage collection in a child would copy all memory that it shares with its parent
        every = {function for functions in entered.values() for function in functions}
        self.survivors += [fault.change for fault in self.faults if fault.function not in every]
        left = [fault for fault in reversed(self.faults) if fault.function in every]
        tried, most = dict[Forked, Fault](), at_a_time()
        while left or tried:
            while left and len(tried) < most:
                fault = left.pop()
                items = [item for item in session.items if fault.function in entered[item.nodeid]]
                items.sort(key=partial(self._place, fault.function, seconds))
                usual_s = [seconds[item.nodeid] for item in items]
                tried[Forked(partial(self._notices, items, fault), usual_s, self.folder / fault.name)] = fault
            for process in ended(tried):
                self._note(tried.pop(process), process.end())
        return True

    def _place(self, function: str, seconds: Mapping[str, float], item: pytest.Item) -> tuple[int, float]:
        """The position of a test among those that enter a function."""
        first = self._seen_by[function][:TRIED_FIRST]
        return first.index(item.nodeid) if item.nodeid in first else TRIED_FIRST, seconds[item.nodeid]

    def _note(self, fault: Fault, message: str | None) -> None:
        if message == "":
            self.survivors.append(fault.change)
        elif message is None:
            self._seen_by.pop(fault.function, None)
        else:
            (test, _), took_s = json.loads(message)
            others = [name for name in self._seen_by[fault.function] if name != test]
            self._seen_by[fault.function] = [test, *others] if took_s < QUICKLY_S else others

    def _look(self, items: Sequence[pytest.Item]) -> tuple[dict[str, list[str]], dict[str, float]]:
        """Run the tests without a fault to find the functions that each enters, and its duration."""

        def run(_begins: Callable[[], None]) -> str:
            entered, seconds = {}, {}
            set_mutant_under_test("stats")
            for item in items:
                began = time.process_time()
                state()._stats.clear()
                # No next test: shared fixtures are created for each test, so each is known to enter the functions that
                # created them.
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                seconds[item.nodeid] = time.process_time() - began
                entered[item.nodeid] = sorted(name.rpartition(".")[2] for name in state()._stats)
            return json.dumps([self._failed, entered, seconds])

        message = Forked(run, [600.0], self.folder / "without a fault").end()
        failed, entered, seconds = json.loads(message or '[["they did not end"], {}, {}]')
        if failed:
            pytest.exit("\n".join(["the tests fail without any fault:", *failed]), returncode=2)
        return entered, seconds

    def _notices(self, items: Sequence[pytest.Item], fault: Fault, begins: Callable[[], None]) -> str:
        """The test that fails, the reason, and its duration; "" if none fails."""
        set_mutant_under_test(f"{self.module}.{fault.name}")
        for item, following in zip(items, [*items[1:], None], strict=True):
            begins()
            began = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return json.dumps([self._failed, time.monotonic() - began])
        return ""


class Forked:
    """Work in a separate process, whose temporary files are in a separate folder.

    Args:
        work: the function to run; it returns the result and calls its argument whenever a part of it begins.
        usual_s: expected processor time of each part.
        folder: the folder, which is removed afterwards.
    """

    def __init__(self, work: Callable[[Callable[[], None]], str], usual_s: Sequence[float], folder: Path) -> None:
        self._folder, self._message, self._part = folder, folder / "said", folder / "part"
        folder.mkdir()
        self._part.touch()
        self._most_s = WAIT_TIMES * max(usual_s, default=0.0) + WAIT_S
        self._seen, self._since_s, self._began = 0, 0.0, time.monotonic()
        self._queued_ns: dict[str, int] = {}  # by thread
        self._id = os.fork()
        if self._id == 0:
            self._become(work, math.ceil(TIMES_LONGER * sum(usual_s) + LONGER_S))
        self._handle = os.pidfd_open(self._id)

    def _become(self, work: Callable[[Callable[[], None]], str], processor_s: int) -> NoReturn:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s + 1))
            tempfile.tempdir = os.environ["TMPDIR"] = str(self._folder)
            os.environ["XDG_DATA_HOME"] = str(self._folder)  # a fault may use the default store
            self._message.write_text(work(self._part.touch))
            code = 0
        finally:
            os._exit(code)

    def fileno(self) -> int:
        """Readable when the process has ended."""
        return self._handle

    def left_s(self) -> float:
        """The remaining time of its current part."""
        waited_s, seen = time.monotonic() - self._began - self._queued_s(), self._part.stat().st_mtime_ns
        if seen != self._seen:
            self._seen, self._since_s = seen, waited_s
        return self._most_s - (waited_s - self._since_s)

    def _queued_s(self) -> float:
        """The time for which its threads were ready to run while others used the processors."""
        for path in Path(f"/proc/{self._id}/task").glob("*/schedstat"):
            with suppress(OSError):  # the thread has ended meanwhile
                self._queued_ns[path.parent.name] = int(path.read_text().split()[1])
        return sum(self._queued_ns.values()) / 1e9

    def end(self) -> str | None:
        """The result of the work; None if it took much longer than usual, or crashed."""
        ended([self])
        if not select.select([self], [], [], 0.0)[0]:
            os.kill(self._id, signal.SIGKILL)
        code = os.waitpid(self._id, 0)[1]
        os.close(self._handle)
        message = self._message.read_text() if code == 0 else None
        shutil.rmtree(self._folder, ignore_errors=True)
        return message


def at_a_time() -> int:
    """The number of concurrent faults for which the machine has enough processors and memory."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory_bytes // MEMORY_BYTES))


def ended(processes: Collection[Forked]) -> list[Forked]:
    """Processes that have ended or exceeded their limit; waits until there is one."""
    while True:
        forks = select.select(processes, [], [], LOOK_S)[0] or [
            process for process in processes if process.left_s() <= 0.0
        ]
        if forks:
            return forks


def _try_file(file: str, functions: Collection[str], tests: Sequence[str], folder: Path) -> int:
    """Test the faults of one file, in this process and its children."""
    mutated = mutate_file_contents(file, undecorated((ROOT / file).read_text()))
    (folder / file).write_text(mutated.code)
    os.environ["MUTANT_UNDER_TEST"] = ""
    sys.path.insert(0, str(folder / "src"))
    faults = [fault for fault in faults_of(mutated) if not functions or fault.change.function in functions]
    module = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    with tempfile.TemporaryDirectory(dir=MEMORY if _holds_files(MEMORY) else folder) as written:
        trial = Trial(module, faults, Path(written))
        arguments = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        code = int(pytest.main(arguments, plugins=[trial]))
    if code == 0:
        (folder / "result.json").write_text(json.dumps(asdict(Result(file, len(faults), sorted(trial.survivors)))))
    return code


def _holds_files(folder: Path) -> bool:
    """Whether tests can write to this folder and execute files in it."""
    if not os.access(folder, os.W_OK):
        return False
    return shutil.disk_usage(folder).free >= LEAST_FREE and not os.statvfs(folder).f_flag & os.ST_NOEXEC


def _tried(file: str, functions: Sequence[str], tests: Sequence[str]) -> Result:
    """Test the faults in a process that has not yet imported the project."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        environment = os.environ | {"PYTHONPATH": f"{folder / 'src'}:{ROOT}", "HYPOTHESIS_PROFILE": "mutants"}
        command = [sys.executable, "-m", "tests.mutants", "--one", file, ",".join(functions), name, *tests]
        process = subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=subprocess.PIPE, text=True)
        if process.returncode != 0:
            sys.exit(f"error: {file}: the faults could not be tried\n{process.stdout}")
        value = json.loads((folder / "result.json").read_text())
    return Result(value["file"], value["faults"], [Change(**change) for change in value["survivors"]])


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(only: Sequence[str]) -> int:
    """Test the files, or `FILE` and `FILE::FUNCTION`, and print a table.

    Returns:
        1 if a fault survives that `mutants.toml` does not accept.
    """
    configuration = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
    accepted = {
        (accepted["file"], accepted["was"], accepted["becomes"]) for accepted in configuration.get("accepted", [])
    }
    wanted: dict[str, list[str]] = {}
    for path in only:
        file, _, function = path.partition("::")
        wanted.setdefault(file, []).extend([function] if function else [])
    if strangers := sorted(wanted.keys() - configuration["files"].keys()):
        sys.exit(
            f"error: {strangers[0]} has no entry in tests/mutants.toml\nhint: name the unit tests that must notice"
        )
    survived = 0
    _say(f"{'file':<50}{'faults':>8}{'killed':>8}{'accepted':>10}{'survived':>10}")
    for file, tests in configuration["files"].items():
        if wanted and file not in wanted:
            continue
        functions = wanted.get(file, [])
        result = _tried(file, functions, [f"tests/unit/{test}" for test in tests])
        new = [change for change in result.survivors if (file, change.was, change.becomes) not in accepted]
        killed, known = result.faults - len(result.survivors), len(result.survivors) - len(new)
        _say(f"{file:<50}{result.faults:>8}{killed:>8}{known:>10}{len(new):>10}")
        for change in new:
            _say(f"  {change.function}\n    - {change.was}\n    + {change.becomes}")
        seen = {(change.was, change.becomes) for change in result.survivors}
        for was, becomes in sorted((was, becomes) for name, was, becomes in accepted if name == file):
            if not functions and (was, becomes) not in seen:
                _say(f"  accepted, and killed: take it from mutants.toml\n    - {was}\n    + {becomes}")
        survived += len(new)
    return 1 if survived else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        of, only_of, copy, *names = sys.argv[2:]
        sys.exit(_try_file(of, list(filter(None, only_of.split(","))), names, Path(copy)))
    sys.exit(main(sys.argv[1:]))
