"""The last step of a command: its PDFs are set when nothing else of the command is left in memory.

The engines that draw charts and set PDFs need some 200 MB, as does a comparison of two large clusters. So the process
that has printed its result is replaced by another one, with the same identity, which holds only the input of the PDFs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from chainmark.cli.interrupts import handle_interrupts

# Most commands write no PDF: its module is loaded only when needed.
if TYPE_CHECKING:
    from chainmark.report.typeset import Paper

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from chainmark.cli.last import main; main()"


@dataclass
class LastStep:
    """The remaining work.

    Attributes:
        papers: inputs and paths of the PDFs.
        written: all reports of the command, reported when they are complete.
        is_awaited: the command ends with `end_with`.
    """

    papers: list[tuple[str, Paper]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    is_awaited: bool = False

    def set(self, paper: Paper, path: Path) -> None:
        """Schedule a PDF for the end of the command, or set it now if the command has no such end."""
        self.papers.append((str(path), paper))
        if not self.is_awaited:
            self.do()

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
        if not self.papers:
            sys.exit(code)
        try:
            sys.stdout.flush()
        except SystemExit as ended:  # the output's reader has gone
            code = int(ended.code or 0)
        _become(self, code)


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
