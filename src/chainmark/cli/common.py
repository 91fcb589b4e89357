"""What several commands need: the store, profiles with their settings, comparisons with their reports."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

import chainmark
from chainmark.cli.console import err, out, print_json
from chainmark.core.errors import ExitCode, UsageError
from chainmark.core.qa_report import QaReport
from chainmark.core.tool import tool_version
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import LaunchableSystem, System, launchable
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.paths import data_directory
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import load_system

_LISTED = 3

Html = Annotated[Path | None, typer.Option("--html", help="Write the report as one HTML file that opens offline.")]
Pdf = Annotated[Path | None, typer.Option("--pdf", help="Write the report as PDF.")]
Markdown = Annotated[Path | None, typer.Option("--md", help="Write the report as Markdown for a pull request.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write what was judged as JUnit XML for a pipeline.")]
JsonFile = Annotated[Path | None, typer.Option("--json-file", help="Write the JSON that every report is made from.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines on stdout.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the profile, e.g. `--set load.rate=400`.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything drawn at random; a run's place is added to it.")]
KeepHomes = Annotated[bool, typer.Option("--keep-homes", help="Keep the nodes' homes in the run, to be looked into.")]


class Output(BaseModel):
    """How a result is shown: where its renderings go, and whether stdout is for machines."""

    html: Path | None = None
    pdf: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    json_file: Path | None = None
    as_json: bool = False

    def present(self, document: BaseModel) -> None:
        """Write a result's reports and print it."""
        self.present_all([document])

    def present_all(self, documents: Sequence[BaseModel], then: Sequence[BaseModel] = ()) -> None:
        """Write several results, each into files of its own, and print them and what follows from them.

        For machines several are one list.
        """
        written = []  # first: a reader who has seen enough may close the pipe
        for number, document in enumerate(documents, start=1):
            written += self.numbered(number)._write(document)
        everything = [*documents, *then]
        if not self.as_json:
            for document in everything:
                chainmark.document_of(document).print(out)
        elif len(everything) == 1:
            print_json(everything[0])
        else:
            print_json([document.model_dump(mode="json") for document in everything])
        if written:
            err.print("\nreport  " + "\n        ".join(str(path) for path in written), markup=False)

    def numbered(self, number: int) -> Output:
        """The same for one of several results, each with files of its own."""
        names = ("html", "pdf", "markdown", "junit", "json_file")
        paths = {name: numbered(path, number) for name in names if (path := getattr(self, name)) is not None}
        return self.model_copy(update=paths)

    def _write(self, document: BaseModel) -> list[Path]:
        """Write what was asked for; the paths written."""
        contents: list[tuple[Path | None, Callable[[], bytes]]] = [
            (self.html, lambda: chainmark.document_of(document).html().encode()),
            (self.pdf, lambda: chainmark.document_of(document).pdf()),
            (self.markdown, lambda: self._page(document).encode()),
            (self.junit, lambda: chainmark.document_of(document).junit().encode()),
            (self.json_file, lambda: json_bytes(document)),
        ]
        written = []
        for path, render in contents:
            if path is not None:
                write_bytes(path, render())
                written.append(path)
        return written

    def _page(self, document: BaseModel) -> str:
        """The Markdown; the figures of a release's page are written beside it."""
        if not isinstance(document, QaReport) or self.markdown is None:
            return chainmark.document_of(document).markdown()
        folder = self.markdown.with_name(f"{self.markdown.stem}-figures")
        text, figures = chainmark.document_of(document).markdown_page(folder.name)
        for name, svg in figures.items():
            write_bytes(folder / name, svg.encode())
        return text


def numbered(path: Path, number: int) -> Path:
    """The path of one of several results: `load.html`, `load-2.html` and so on."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _output(
    html: Html = None,
    pdf: Pdf = None,
    md: Markdown = None,
    junit: Junit = None,
    json_file: JsonFile = None,
    as_json: AsJson = False,
) -> Output:
    return Output(html=html, pdf=pdf, markdown=md, junit=junit, json_file=json_file, as_json=as_json)


def shows_result(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Output` behind its own ones; it gets them as its keyword `output`."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    options = inspect.signature(_output, eval_str=True).parameters

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        command(output=_output(**{name: given.pop(name) for name in options}), **given)

    parameters = [*(parameter for parameter in own if parameter.name != "output"), *options.values()]
    # What typer reads; the annotations are of the same parameters.
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def open_store() -> Store:
    """The store of this invocation."""
    return Store(data_directory())


def only_run(runs: Sequence[SealedRun], reference: str) -> SealedRun:
    """The run that a reference names.

    Raises:
        UsageError: it names several.
    """
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:_LISTED])
        raise UsageError(f"`{reference}` names {len(runs)} runs: {names} …", "give one run's id")
    return runs[0]


def resolve_profile(reference: str, settings: Sequence[str]) -> tuple[System, BaseModel]:
    """A profile with its settings applied, checked by its system."""
    content = read_profile(reference, settings)
    system = load_system(str(content["system"]))
    return system, system.profile(content)


def resolve_launchable(reference: str, settings: Sequence[str]) -> tuple[LaunchableSystem, BaseModel]:
    """The same for a command that runs nodes.

    Raises:
        UsageError: chainmark cannot run nodes of the profile's system.
    """
    system, profile = resolve_profile(reference, settings)
    return launchable(system), profile


def compare_and_report(baseline: Sequence[SealedRun], candidate: Sequence[SealedRun], output: Output) -> ExitCode:
    """Compare two sides, print the result, write the reports; the exit code of the verdict."""
    # Through the public API, which loads scipy and the renderers only when they are needed: 2 s of every other start.
    history = open_store().alike([*baseline, *candidate])
    comparison = chainmark.compare_runs(baseline, candidate, history=history, tool_version=tool_version())
    output.present(comparison)
    return comparison.verdict.exit_code


def compare_side_by_side_and_report(sides: Sequence[Sequence[SealedRun]], output: Output) -> ExitCode:
    """Compare every further version with the first; the exit code of the worst verdict."""
    history = open_store().alike(run for side in sides for run in side)
    result = chainmark.compare_side_by_side(sides, history=history, tool_version=tool_version())
    output.present(result)
    return result.verdict.exit_code
