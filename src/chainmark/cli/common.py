"""Common parts of several commands: shared options, and the output of results."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import chainmark as cm
from chainmark.cli.console import out, print_json, say
from chainmark.cli.failures import INTERRUPTED
from chainmark.cli.last import last_step
from chainmark.core.verdict import worst
from chainmark.systems.offered import LAUNCH, SystemOption, options_of

Profile = Annotated[str, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write the report as one HTML file that opens offline.")]
Pdf = Annotated[Path | None, typer.Option("--pdf", help="Write the report as PDF.")]
Markdown = Annotated[Path | None, typer.Option("--md", help="Write the report as Markdown for a pull request.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write the verdicts as JUnit XML for a CI pipeline.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json-file", help="Write the result as JSON; every report is rendered from it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a profile key, e.g. `--set load.rate=400`."),
]
Margins = Annotated[
    list[str] | None,
    typer.Option(
        "--margin",
        metavar="METRIC=PERCENT",
        help="Acceptable change of a metric, instead of the catalogue's margin: `--margin latency_s=15%`.",
    ),
]
LearntMargins = Annotated[
    list[str] | None,
    typer.Option(
        "--margin",
        metavar="METRIC=PERCENT",
        help="Acceptable change of a metric, instead of the catalogue's margin: `--margin latency_s=15%`. "
        "`learnt` derives margins from re-runs of one build, `learnt:5%,15%` within these bounds. When single runs "
        "are judged against the release history, margins are widened to the re-run noise, to at most 20 %; "
        "`widened:15%` caps this at 15 %; `catalogue` turns it off.",
    ),
]
SideSettings = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="`--set` for this side only.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed; each run adds its position in the experiment.")]
KeepHomes = Annotated[bool, typer.Option("--keep-homes", help="Keep node home directories in the run for debugging.")]
Profiles = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="KINDS",
        help="Profiles to collect from the nodes during the measurement window: any of "
        "`cpu,heap,goroutine,mutex,block`, or `none`. A profiled run helps to find causes and is not judged.",
    ),
]
Why = Annotated[bool, typer.Option("--why", help="Show the node profiles even if no metric became worse.")]
ServerPids = Annotated[
    list[int] | None,
    typer.Option(
        "--server-pid", metavar="PID", help="Process ID of the server; it and its child processes are monitored."
    ),
]
ServerCgroup = Annotated[
    Path | None,
    typer.Option("--server-cgroup", metavar="PATH", help="Control group (cgroup v2) of the server to monitor."),
]
ServerContainer = Annotated[
    str | None,
    typer.Option(
        "--server-container",
        metavar="NAME",
        help="Container of the server to monitor, run by docker or podman on this machine.",
    ),
]
Scrapes = Annotated[
    list[str] | None,
    typer.Option("--scrape", metavar="[NAME=]URL", help="Prometheus metrics endpoint to scrape during the test."),
]
Postgres = Annotated[
    str | None,
    typer.Option(
        "--postgres",
        metavar="DSN",
        help="PostgreSQL database behind the server, e.g. `dbname=app user=monitor`; pass a password in `PGPASSWORD`.",
    ),
]
CaFile = Annotated[Path | None, typer.Option(metavar="FILE", help="CA certificate to trust.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Skip certificate verification.")]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="NAME: VALUE",
        help="HTTP header to send with every request; `${VARIABLE}` is read from the environment, `NAME: @FILE` "
        "from a file. May be repeated.",
    ),
]
HeaderCommands = Annotated[
    list[str] | None,
    typer.Option(
        "--header-command",
        metavar="NAME: COMMAND",
        help="HTTP header whose value a command prints. The command runs again at the next step after 30 s, and "
        "after a 401.",
    ),
]
User = Annotated[
    str | None,
    typer.Option(metavar="NAME:PASSWORD", help="Basic authentication, e.g. `'tester:${PASSWORD}'`."),
]
ClientCertificate = Annotated[
    Path | None, typer.Option("--cert", metavar="FILE", help="Client certificate with its chain.")
]
ClientKey = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Private key, if it is not in the `--cert` file.")
]
Proxy = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="HTTP proxy for all connections to the server, e.g. `'http://name:${PASSWORD}@10.0.0.1:3128'`. Proxies of "
        "the environment (`HTTP_PROXY`) are not used.",
        show_default="none",
    ),
]
Column = Annotated[
    str | None,
    typer.Option("--version", metavar="V", help="Version (column) of a published report. Default: the last one."),
]
Blocks = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Number of blocks to simulate per network; more blocks give smaller errors."),
]
ModelSeed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Threads = Annotated[
    int, typer.Option(min=0, help="Number of threads; 0 means all cores. The result does not depend on it.")
]


def cluster_option(what: str, show_default: bool | str = True) -> Any:
    """The option that names a cluster, which is ``what``."""
    return typer.Option(
        "--on",
        metavar="ADDRESS",
        # Not as Typer's `envvar`: the environment's cluster is a default, and not a demand of this command.
        help=f"Scheduler of {what}, e.g. `tcp://10.0.0.1:8786`. If omitted: the variable CHAINMARK_CLUSTER, then "
        "`[cluster]` of the profile.",
        show_default=show_default,
    )


On = Annotated[str | None, cluster_option("a Dask cluster whose workers do the work", "this machine")]
NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="Exit with code 5 if another measurement is running on this machine, instead of waiting for it.",
    ),
]
Expose = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Expose the experiment's state to Prometheus while it runs, e.g. at `127.0.0.1:9464`.",
        show_default="off",
    ),
]


@dataclass(frozen=True)
class Output:
    """How to show a result: the files of its renderings, and whether stdout is for machines."""

    html: Path | None = None
    pdf: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    json_file: Path | None = None
    as_json: bool = False

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


@dataclass(frozen=True)
class Launch:
    """How to make and measure networks.

    Attributes:
        settings: changes of the profile; first those of the options that a system adds.
        seed: of all random draws.
        keep_homes: whether the nodes' homes are kept in their run.
        no_wait: fail if another measurement runs on the machine.
        expose: address for Prometheus meanwhile; None: none.
        on: the scheduler of the cluster whose workers run the nodes; None: this machine runs them.
    """

    settings: list[str] | None
    seed: int
    keep_homes: bool
    no_wait: bool
    expose: str | None
    on: str | None

    def arguments(self) -> dict[str, Any]:
        """As arguments of the library's functions."""
        return dict(vars(self))


@dataclass(frozen=True)
class Connection:
    """How to connect to servers.

    Attributes:
        ca_file, insecure: whose certificate is trusted.
        access: the credentials of the requests.
    """

    ca_file: Path | None
    insecure: bool
    access: cm.Access

    def arguments(self) -> dict[str, Any]:
        """As arguments of the library's functions."""
        return {"ca_file": self.ca_file, "insecure": self.insecure, "access": self.access}


def _connection(
    headers: Headers = None,
    header_commands: HeaderCommands = None,
    user: User = None,
    cert: ClientCertificate = None,
    key: ClientKey = None,
    ca_file: CaFile = None,
    insecure: Insecure = False,
    proxy: Proxy = None,
) -> Connection:
    access = cm.Access(headers or (), header_commands or (), user, cert, key, proxy)
    return Connection(ca_file, insecure, access)


_KINDS: dict[str, type] = {"text": str, "number": int, "file": Path, "time": datetime}


def _offered_options(command: str) -> list[inspect.Parameter]:
    """The options that systems add to a command."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=_annotation(option, systems)
        )
        for name, (option, systems) in options_of(command).items()
    ]


def _annotation(option: SystemOption, systems: Sequence[str]) -> Any:
    kind: Any = _KINDS[option.kind]
    declared = typer.Option(
        f"--{option.name}",
        metavar=option.amount,
        help=option.help,
        min=option.minimum,
        show_default=option.chosen or (False if option.default is None else str(option.default)),
        rich_help_panel=f"Options for {', '.join(systems)}",
    )
    return Annotated[list[kind] | None if option.repeated else kind | None, declared]


def _given(command: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's offered options that are given, by their keys."""
    options = options_of(command)
    return {options[name][0].target: value for name, value in values.items() if value is not None}


def _launch(
    settings: Settings = None,
    seed: Seed = 1,
    keep_homes: KeepHomes = False,
    no_wait: NoWait = False,
    expose: Expose = None,
    on: On = None,
    **offered: Any,
) -> Launch:
    given = [f"{key}={json.dumps(value)}" for key, value in _given(LAUNCH, offered).items()]
    return Launch([*given, *(settings or [])] or None, seed, keep_homes, no_wait, expose, on)


def _sources(
    server_pids: ServerPids = None,
    server_cgroup: ServerCgroup = None,
    server_container: ServerContainer = None,
    scrapes: Scrapes = None,
    postgres: Postgres = None,
) -> cm.ServerSources:
    return cm.ServerSources(server_pids or (), server_cgroup, scrapes or (), postgres, server_container)


def _output(
    html: Html = None,
    pdf: Pdf = None,
    md: Markdown = None,
    junit: Junit = None,
    json_file: JsonFile = None,
    as_json: AsJson = False,
) -> Output:
    return Output(html=html, pdf=pdf, markdown=md, junit=junit, json_file=json_file, as_json=as_json)


def _with_options(
    command: Callable[..., None],
    keyword: str,
    made: Callable[..., object],
    further: Sequence[inspect.Parameter] = (),
) -> Callable[..., None]:
    """Add the options that ``made`` has, and ``further`` ones that it accepts, to those of a command.

    The command receives the result of ``made`` as a keyword.
    """
    own_parameters = inspect.signature(command, eval_str=True).parameters.values()
    accepted = inspect.signature(made, eval_str=True).parameters.values()
    options = [*further, *(option for option in accepted if option.kind is not inspect.Parameter.VAR_KEYWORD)]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        command(**{keyword: made(**{option.name: given.pop(option.name) for option in options})}, **given)

    parameters = [*(parameter for parameter in own_parameters if parameter.name != keyword), *options]
    return declared(with_options, parameters)


def declared(command: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """Make typer read these parameters of a command instead of its own."""
    ordered = sorted(parameters, key=lambda parameter: parameter.kind)
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
    return command


def shows_result(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `Output` to a command, which receives it as its keyword `output`."""
    return _with_options(command, "output", _output)


def launches(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `Launch` to a command, which receives it as its keyword `launch`."""
    return _with_options(command, "launch", _launch, _offered_options(LAUNCH))


def passes_options(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that systems offer for a command, which receives the given ones as its keyword `options`."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        def made(**offered: Any) -> dict[str, Any]:
            return _given(name, offered)

        return _with_options(command, "options", made, _offered_options(name))

    return decorated


def connects(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `Connection` to a command, which receives it as its keyword `connection`."""
    return _with_options(command, "connection", _connection)


def watches_server(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `ServerSources` to a command, which receives it as its keyword `sources`."""
    return _with_options(command, "sources", _sources)
