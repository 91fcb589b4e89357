"""The last step of a command: its PDFs are set when nothing else of the command is left in memory.

The engine that sets PDFs needs some 200 MB, as does a comparison of two large clusters. So the process that has printed
its result is replaced by another one, with the same identity, which holds only the input of the PDFs. Their charts are
drawn before, by another process, while this one writes the other reports: that is worth its 130 MB.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from chainmark.cli.interrupts import handle_interrupts

# Most commands write no PDF: its modules are loaded only when needed.
if TYPE_CHECKING:
    import subprocess
    from concurrent.futures import Future, ThreadPoolExecutor

    from chainmark.report.typeset import Paper

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from chainmark.cli.last import main; main()"


@dataclass
class LastStep:
    """The remaining work.

    Attributes:
        papers: paths and inputs of the PDFs.
        written: all reports of the command, reported when they are complete.
        is_awaited: the command ends with `end_with`.
    """

    papers: list[tuple[str, Paper]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    is_awaited: bool = False
    _pool: ThreadPoolExecutor | None = None
    _drawings: list[Future[list[str]]] = field(default_factory=list)
    _engine: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Start the engine that draws charts, so that it is ready before the result is."""
        from chainmark.report.drawn import start_engine

        self._engine = start_engine()

    def set(self, paper: Paper, path: Path) -> None:
        """Schedule a PDF for the end of the command, or set it now if the command has no such end."""
        self.papers.append((str(path), paper))
        if self.is_awaited:
            self._draw(paper)
        else:
            self.do()

    def _draw(self, paper: Paper) -> None:
        """Begin to draw the charts of a PDF in another process, after those of the PDFs before it."""
        from concurrent.futures import ThreadPoolExecutor

        from chainmark.report.drawn import svgs_apart

        self._pool = self._pool or ThreadPoolExecutor(1, "drawing")
        engine, self._engine = self._engine, None
        self._drawings.append(self._pool.submit(svgs_apart, paper.drawings, engine))

    def tell(self, written: Sequence[Path]) -> None:
        """Report the written files as soon as all of them are complete."""
        self.written += [str(path) for path in written]
        if not self.papers:
            self.do()

    def do(self) -> None:
        """Do the remaining work."""
        if self.papers:
            from chainmark.report.typeset import typeset
            from chainmark.store.files import write_bytes

            for path, paper in self.papers:
                write_bytes(Path(path), typeset(paper))
        if self.written:
            sys.stderr.write("\nreport  " + "\n        ".join(self.written) + "\n")
        self.papers, self.written = [], []

    def end_with(self, code: int) -> NoReturn:
        """Do the remaining work, in a process that replaces this one if there is a PDF to set, and exit."""
        if self._engine:  # there was nothing to draw
            self._engine.kill()
        if not self.papers:
            sys.exit(code)
        try:
            sys.stdout.flush()
        except SystemExit as ended:  # the output's reader has gone
            code = int(ended.code or 0)
        try:
            self._finish_drawings()
        except KeyboardInterrupt as error:
            from chainmark.cli.failures import report_failure

            sys.exit(report_failure(error))
        _become(self, code)

    def _finish_drawings(self) -> None:
        """Wait for the charts. Those that failed, perhaps for lack of memory, are drawn again when there is more."""
        for number, drawing in enumerate(self._drawings):
            if drawing.exception() is None:
                path, paper = self.papers[number]
                self.papers[number] = path, replace(paper, drawings=(), svgs=drawing.result())


last_step = LastStep()


def _become(step: LastStep, code: int) -> NoReturn:
    import json
    import tempfile

    with tempfile.TemporaryFile() as order:
        task = {"code": code, "written": step.written, "papers": [(path, vars(paper)) for path, paper in step.papers]}
        order.write(json.dumps(task).encode())
        order.seek(0)
        os.dup2(order.fileno(), 0)
    os.execv(sys.executable, [sys.executable, "-P", "-c", _START, json.dumps(sys.path)])


def main() -> NoReturn:
    """Do the work that another command left, described on standard input."""
    import json

    from chainmark.cli.pipes import survive_closed_pipes
    from chainmark.report.typeset import Paper

    survive_closed_pipes()
    handle_interrupts()
    order = json.load(sys.stdin)
    papers = [(path, Paper(**paper)) for path, paper in order["papers"]]
    code = order["code"]
    try:
        LastStep(papers, order["written"]).do()
    except (KeyboardInterrupt, Exception) as error:
        from chainmark.cli.failures import report_failure

        code = report_failure(error)
    sys.exit(code)
