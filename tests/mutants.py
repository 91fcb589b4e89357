"""Small faults put into the code that decides verdicts, and whether the unit tests notice: `make mutants`.

mutmut makes the faults, several hundred a file, all in one copy of the file that takes a fault by its name. Here the
tests that `mutants.toml` names for a file are collected once; then a process is forked for every fault, which runs
those tests that enter the faulty function, the quickest first, until one fails. A fault takes some hundredths of a
second so, where a pytest of its own would take seconds, and none takes longer than a limit of time and memory allows.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pytest
from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

ROOT = Path(__file__).resolve().parents[1]
MEMORY_BYTES = 6_000_000_000
# Of a fault that makes the tests endless: so many times the processor time that they take without it, and this more;
# and for one that makes them wait for ever, by the clock, without the time for which they wait for a busy processor.
TIMES_LONGER, LONGER_S = 4.0, 5.0
WAIT_TIMES, WAIT_S = 20.0, 60.0
_STRICT = re.compile(r"(strict=\w+)?")


@dataclass(frozen=True, order=True)
class Change:
    """A fault as a person reads it: the line, or lines, that it replaces and what stands there instead."""

    function: str
    was: str
    becomes: str


@dataclass(frozen=True)
class Fault:
    """A fault of one file.

    Attributes:
        name: by which the mutated file takes it.
        function: that it is in, as the mutated file names it.
    """

    name: str
    function: str
    change: Change


@dataclass(frozen=True)
class Result:
    """What the tests said of the faults of one file."""

    file: str
    faults: int
    survivors: list[Change]


def faults_of(mutated: MutatedFile) -> list[Fault]:
    """The faults of a mutated file with what they change."""
    lines = mutated.code.splitlines()

    def body(name: str) -> list[str]:
        span = mutated.line_span_by_function_name[name]
        return [line.strip().replace(name, "") for line in lines[span.start - 1 : span.end]]

    found = []
    for name in mutated.mutant_names:
        function = name.partition("__mutmut_")[0]
        delta = list(difflib.ndiff(body(f"{function}__mutmut_orig"), body(name)))
        was, becomes = (" ".join(line[2:] for line in delta if line.startswith(sign)) for sign in ("- ", "+ "))
        shown = function.removeprefix("x").lstrip("_ǁ").replace("ǁ", ".") if "ǁ" in function else function[2:]
        # "strict" of a zip only says that both are as long: where they are, nothing changes. And who does not see a
        # text with XX around it does not see it in capitals either.
        if _STRICT.sub("", was).lower() != _STRICT.sub("", becomes).lower():
            found.append(Fault(name, function, Change(shown, was, becomes)))
    return found


class Trial:
    """Tries the faults of one file on the tests that pytest has collected, in place of pytest's own loop.

    Args:
        module: of the file, as Python names it.
        faults: of the file.
        notes: a file that may be written.
    """

    def __init__(self, module: str, faults: Sequence[Fault], notes: Path) -> None:
        self.module, self.faults, self.notes = module, faults, notes
        self.survivors: list[Change] = []
        self._failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self._failed = f"{report.nodeid}\n{report.longreprtext}"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all faults."""
        entered, seconds = self._look(session.items)
        gc.freeze()  # a collection in a child would copy all that it shares with its parent
        for fault in self.faults:
            items = sorted(
                (item for item in session.items if fault.function in entered[item.nodeid]),
                key=lambda item: seconds[item.nodeid],
            )
            taken_s = sum(seconds[item.nodeid] for item in items)
            name = f"{self.module}.{fault.name}"
            if not items or _forked(partial(self._passes, items, name), taken_s) == 0:
                self.survivors.append(fault.change)
        return True

    def _look(self, items: Sequence[pytest.Item]) -> tuple[dict[str, list[str]], dict[str, float]]:
        """Run the tests without a fault: which functions each enters, and how long it takes."""

        def run() -> int:
            entered, seconds = {}, {}
            set_mutant_under_test("stats")
            for item in items:
                began = time.process_time()
                state()._stats.clear()
                # Nothing follows: what tests share is made for each, so that each is known to enter what made it.
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                seconds[item.nodeid] = time.process_time() - began
                entered[item.nodeid] = sorted(name.rpartition(".")[2] for name in state()._stats)
            self.notes.write_text(self._failed or json.dumps([entered, seconds]))
            return 1 if self._failed else 0

        if _forked(run, 600.0) != 0:
            reason = self.notes.read_text() if self.notes.exists() else "they did not end"
            pytest.exit(f"the tests fail without any fault: {reason}", returncode=2)
        entered, seconds = json.loads(self.notes.read_text())
        return entered, seconds

    def _passes(self, items: Sequence[pytest.Item], name: str) -> int:
        set_mutant_under_test(name)
        for item, following in _with_next(items):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return 1
        return 0


def _with_next(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _forked(work: Callable[[], int], usual_s: float) -> int:
    """The exit code of ``work`` in a process of its own; 1 if it took much longer than usual or died."""
    processor_s = math.ceil(TIMES_LONGER * usual_s + LONGER_S)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s + 1))
            code = work()
        finally:
            os._exit(code)
    handle = os.pidfd_open(child)
    began, left_s = time.monotonic(), WAIT_TIMES * usual_s + WAIT_S
    try:
        while not select.select([handle], [], [], left_s)[0]:
            left_s = WAIT_TIMES * usual_s + WAIT_S + _queued_s(child) - (time.monotonic() - began)
            if left_s <= 0.0:
                os.kill(child, signal.SIGKILL)
                break
        return 0 if os.waitpid(child, 0)[1] == 0 else 1
    finally:
        os.close(handle)


def _queued_s(process_id: int) -> float:
    """How long a process was ready to run while others had the processors."""
    return int(Path(f"/proc/{process_id}/schedstat").read_text().split()[1]) / 1e9


def _try_file(file: str, tests: Sequence[str], folder: Path) -> int:
    """Try the faults of one file, in this process and its children."""
    mutated = mutate_file_contents(file, (ROOT / file).read_text())
    (folder / file).write_text(mutated.code)
    os.environ["MUTANT_UNDER_TEST"] = ""
    sys.path.insert(0, str(folder / "src"))
    faults = faults_of(mutated)
    module = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    trial = Trial(module, faults, folder / "tests.json")
    arguments = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    code = int(pytest.main(arguments, plugins=[trial]))
    if code == 0:
        (folder / "result.json").write_text(json.dumps(asdict(Result(file, len(faults), sorted(trial.survivors)))))
    return code


def _tried(file: str, tests: Sequence[str]) -> Result:
    """The same in a process that has imported nothing of the project yet."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        environment = os.environ | {"PYTHONPATH": f"{folder / 'src'}:{ROOT}", "HYPOTHESIS_PROFILE": "mutants"}
        command = [sys.executable, "-m", "tests.mutants", "--one", file, name, *tests]
        process = subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=subprocess.PIPE, text=True)
        if process.returncode != 0:
            sys.exit(f"error: {file}: the faults could not be tried\n{process.stdout}")
        value = json.loads((folder / "result.json").read_text())
    return Result(value["file"], value["faults"], [Change(**change) for change in value["survivors"]])


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(only: Sequence[str]) -> int:
    """Try the files, print a table; 1 if a fault survives that `mutants.toml` does not accept."""
    told = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
    accepted = {(one["file"], one["was"], one["becomes"]) for one in told.get("accepted", [])}
    if strangers := sorted(set(only) - told["files"].keys()):
        sys.exit(
            f"error: {strangers[0]} has no entry in tests/mutants.toml\nhint: name the unit tests that must notice"
        )
    survived = 0
    _say(f"{'file':<50}{'faults':>8}{'killed':>8}{'accepted':>10}{'survived':>10}")
    for file, tests in told["files"].items():
        if only and file not in only:
            continue
        result = _tried(file, [f"tests/unit/{test}" for test in tests])
        new = [change for change in result.survivors if (file, change.was, change.becomes) not in accepted]
        killed, known = result.faults - len(result.survivors), len(result.survivors) - len(new)
        _say(f"{file:<50}{result.faults:>8}{killed:>8}{known:>10}{len(new):>10}")
        for change in new:
            _say(f"  {change.function}\n    - {change.was}\n    + {change.becomes}")
        seen = {(change.was, change.becomes) for change in result.survivors}
        for was, becomes in sorted((was, becomes) for name, was, becomes in accepted if name == file):
            if (was, becomes) not in seen:
                _say(f"  accepted, and killed: take it from mutants.toml\n    - {was}\n    + {becomes}")
        survived += len(new)
    return 1 if survived else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        sys.exit(_try_file(sys.argv[2], sys.argv[4:], Path(sys.argv[3])))
    sys.exit(main(sys.argv[1:]))
