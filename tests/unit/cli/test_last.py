"""The last step of a command: a process that replaces the command typesets its PDFs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from chainmark.cli.last import LastStep
from chainmark.report.layouts import document_of

from tests.unit.report.samples import sample

ROOT = Path(__file__).resolve().parents[3]
ENDED = """
import sys
from pathlib import Path
from chainmark.cli.output import Output
from chainmark.cli.last import last_step
from chainmark.cli.pipes import survive_closed_pipes
from chainmark.report.layouts import document_of
from tests.unit.report.samples import sample

survive_closed_pipes()
last_step.is_awaited = True
code = 3
try:
    Output(pdf=Path(sys.argv[1])).present(document_of(sample()))
except SystemExit as nobody_reads:
    code = nobody_reads.code
last_step.end_with(code)
"""


NOT_DRAWN = """
from chainmark.core.errors import EnvironmentFailure
from chainmark.report import drawn

def svgs_apart(drawings, engine):
    raise EnvironmentFailure("there is no memory", "")

drawn.svgs_apart = svgs_apart
"""


PREPARED = """
from chainmark.cli.last import last_step

last_step.prepare()
"""


def _ended(path: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", before + ENDED, str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_a_pdf_typeset_last_equals_the_documents_and_the_exit_code_is_that_of_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "last.pdf"
    ended = _ended(path)
    assert (ended.returncode, ended.stderr) == (3, f"\nreport  {path}\n")
    assert path.read_bytes() == document_of(sample()).pdf()
    assert document_of(sample()).word in ended.stdout


def test_charts_that_were_not_drawn_beside_the_command_are_drawn_after_it(tmp_path: Path) -> None:
    path = tmp_path / "last.pdf"
    ended = _ended(path, NOT_DRAWN)
    assert (ended.returncode, ended.stderr) == (3, f"\nreport  {path}\n")
    assert path.read_bytes() == document_of(sample()).pdf()


def test_charts_drawn_by_an_engine_that_was_started_earlier_are_identical(tmp_path: Path) -> None:
    path = tmp_path / "last.pdf"
    ended = _ended(path, PREPARED)
    assert (ended.returncode, ended.stderr) == (3, f"\nreport  {path}\n")
    assert path.read_bytes() == document_of(sample()).pdf()


def test_an_engine_that_has_nothing_to_draw_ends_with_the_command() -> None:
    command = [sys.executable, "-c", f"{PREPARED}print(last_step._engine.pid, flush=True)\nlast_step.end_with(2)"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "")
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(ended.stdout)).wait(timeout=30)


def test_a_pdf_that_cannot_be_written_is_an_error_after_the_output(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = _ended(tmp_path / "file" / "last.pdf")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert "report" not in ended.stderr


def test_the_pdf_is_written_even_if_the_reader_closes_the_output(tmp_path: Path) -> None:
    path = tmp_path / "last.pdf"
    with subprocess.Popen([sys.executable, "-c", ENDED, str(path)], stdout=subprocess.PIPE, cwd=ROOT) as started:
        assert started.stdout
        started.stdout.close()
        assert started.wait() == 141
    assert path.read_bytes().startswith(b"%PDF")


def test_a_pdf_is_typeset_at_once_outside_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "now.pdf"
    step = LastStep()
    step.set(document_of(sample()).paper(), path)
    assert path.read_bytes().startswith(b"%PDF")
    assert step.papers == []
