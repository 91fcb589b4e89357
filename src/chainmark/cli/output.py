"""The output of results: the files of a document, what is printed, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer import Option

import chainmark as cm
from chainmark.cli.console import out, print_json, say
from chainmark.cli.failures import INTERRUPTED
from chainmark.cli.groups import Group
from chainmark.cli.last import last_step
from chainmark.cli.options import AsJson
from chainmark.core.errors import UsageError
from chainmark.core.verdict import worst


@dataclass(frozen=True)
class Output(Group):
    """How to show a result: the files of its renderings, and whether stdout is for machines.

    Attributes:
        html: Write the report as one HTML file that opens offline.
        pdf: Write the report as PDF.
        markdown: Write the report as Markdown for a pull request.
        junit: Write the verdicts as JUnit XML for a CI pipeline.
        json_file: Write the result as JSON; every report is rendered from it.
    """

    html: Path | None = None
    pdf: Path | None = None
    markdown: Annotated[Path | None, Option("--md")] = None
    junit: Path | None = None
    json_file: Path | None = None
    as_json: AsJson = False

    def prepare(self) -> None:
        """Prepare the PDF while the result is computed. Next to a measurement, a waiting process would disturb it."""
        if self.pdf:
            last_step.prepare()

    def present(self, document: cm.Document) -> None:
        """Write a result's reports and print it."""
        self.present_all([document])

    def finish(self, document: cm.Document) -> NoReturn:
        """Write a result's reports, print it, and exit by its verdict."""
        self.present(document)
        raise typer.Exit(document.verdict.exit_code)

    def finish_experiment(self, made: cm.Experiment) -> NoReturn:
        """The same for the result of many runs; if it was interrupted, print how to continue.

        An interrupted command that has written a document exits by its verdict, too, so that they agree.
        """
        if made.id:
            say(f"experiment {made.id}")
        if made.document:
            self.present(made.document)
        if made.is_interrupted:
            say(f"interrupted: the finished runs are kept; continue with `--resume {made.id}`")
        raise typer.Exit(made.document.verdict.exit_code if made.document else INTERRUPTED)

    def finish_load(self, made: cm.LoadResult, require: Path | None) -> NoReturn:
        """The same for a load test: write its documents and, to a file of its own, the capacities that it requires."""
        self.present_all([*made.documents, *made.comparisons])
        for run in made.runs:
            say(f"run     {run.id}")
            for warning in run.manifest.warnings:
                say(f"warning {warning}")
        if require is not None:
            try:
                made.write_requirements(require)
                say(f"require {require}")
            except UsageError as error:  # the test did not pass, and its exit code says so
                say(f"warning {require} was not written: {error.message}")
        if made.gone:
            say(f"error: {made.gone}")
            say("hint: the run is stored as a partial run and is never compared; see the log of what is gone")
        elif made.is_interrupted:
            say("interrupted: the measurements are stored as a partial run, which is never compared")
        raise typer.Exit(made.verdict.exit_code)

    def present_all(self, documents: Sequence[cm.Document]) -> None:
        """Write several results, each into files of its own, and print them.

        Machine-readable output of several results is one list.
        """
        written = self._write_all(documents)
        if not self.as_json:
            for document in documents:
                document.print(out())
        elif len(documents) == 1:
            print_json(documents[0].plain())
        else:
            print_json([document.plain() for document in documents])
        last_step.tell(written)

    def finish_all(self, documents: Sequence[cm.Document]) -> NoReturn:
        """Write several results, print them, and exit by the worst verdict."""
        self.present_all(documents)
        raise typer.Exit(worst(document.verdict for document in documents).exit_code)

    def finish_runs(
        self, runs: Sequence[cm.Run], printed: dict[str, Any] | list[dict[str, Any]], remedy: str = ""
    ) -> NoReturn:
        """Write the documents of new runs, print them in short, and exit by the worst verdict.

        Args:
            runs: at least one.
            printed: the JSON for stdout.
            remedy: what to do if a run is not valid.
        """
        from chainmark.report.new_runs import shown_runs

        documents = [run.document() for run in runs]
        existing = {run.id for run in runs if not run.is_new}
        shown = shown_runs(documents, existing, _next_commands(runs), remedy)
        written = self._write_all(documents)
        if self.as_json:
            print_json(printed)
        else:
            shown.print(out())
        last_step.tell(written)
        raise typer.Exit(shown.verdict.exit_code)

    def numbered(self, number: int) -> Output:
        """The same for one of several results, each with files of its own."""

        def own(path: Path | None) -> Path | None:
            return path and numbered(path, number)

        return Output(
            own(self.html), own(self.pdf), own(self.markdown), own(self.junit), own(self.json_file), self.as_json
        )

    def _write_all(self, documents: Sequence[cm.Document]) -> list[Path]:
        """Write the files of each; before anything is printed, because its reader may close the pipe early."""
        return [
            path
            for number, document in enumerate(documents, start=1)
            for path in self.numbered(number)._write(document)
        ]

    def _write(self, document: cm.Document) -> list[Path]:
        """Write the requested files; the PDF, whose charts are drawn meanwhile, at the end; the paths of all."""
        outputs = {".html": self.html, ".pdf": self.pdf, ".md": self.markdown, ".xml": self.junit}
        outputs[".json"] = self.json_file
        paths = {suffix: path for suffix, path in outputs.items() if path is not None}
        for folder in sorted({path.parent for path in paths.values() if not path.parent.exists()}):
            say(f"the folder {folder} does not exist and is created")
        if self.pdf:
            last_step.set(document.paper(), self.pdf)
        document.write_all({suffix: path for suffix, path in paths.items() if suffix != ".pdf"})
        return list(paths.values())


def _next_commands(runs: Sequence[cm.Run]) -> list[tuple[str, str]]:
    """What to do with new runs, by the example of the first one."""
    run = next((run for run in runs if run.is_valid), runs[0])
    commands = [("all counts and metrics", f"chainmark runs show {run.id}")]
    if run.is_valid:
        commands.append(("compare with another run", f"chainmark compare BASELINE {run.id} --html report.html"))
        if run.is_of_one_host:
            commands.append(("how the host performed", f"chainmark host {run.id} --html host.html"))
    return commands


def numbered(path: Path, number: int) -> Path:
    """The path of one of several results: `load.html`, `load-2.html` and so on."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
