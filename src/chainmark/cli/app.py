"""The `chainmark` command: its sub-commands, its errors and its exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from chainmark.cli.failures import report_failure
from chainmark.cli.interrupts import handle_interrupts
from chainmark.cli.quick import Quick, QuickGroup

# Every command with the first sentence of its help. Only the module of the chosen one is loaded.
COMMANDS = {
    "run": "Run a profile on a real network of one version and store the measurements.",
    "experiment": "Run two versions alternately (A B B A A B …) until the verdict is decided.",
    "bisect": "Find the first commit or release that changes the verdict, with an error rate of at most 5 %.",
    "aa": "Run one version repeatedly to measure the noise of its metrics and the false-alarm rate of the verdict.",
    "qa": "Qualify a release: run every scenario of a plan with both versions, judge them, and write the QA report.",
    "ingest": "Import cluster logs, metrics of a Prometheus server, or published reports as sealed runs.",
    "load": "Find the highest load that each endpoint of an API sustains within its SLA.",
    "saturation": "Raise the load step by step to find the saturation point of a version.",
    "compare": "Compare candidates with a baseline. The verdict is pass, fail, inconclusive or invalid.",
    "publish": "Write the load-test page of a system: every release, machine and scenario, "
    "measured or published earlier.",
    "block": "Show the timeline of one block: when each host processed it, with the log lines.",
    "transaction": "Show the timeline of one transaction (due, sent, answered, in a block), or list the slowest ones.",
    "request": "Show the timeline of a slow request of a load test (due, sent, first byte, finished), or list them.",
    "trail": "Show the timeline of any object that the run's catalogue can trace, "
    "as `chainmark block` does for blocks.",
    "host": "Analyse the log of one node: block delays, peers, and resource use.",
    "predict": "Predict metrics of a network, and the effect of changes, "
    "with a model fitted to a report, run or profile.",
    "explain": "Check whether the model, fitted to the measured stages, "
    "reproduces the end-to-end figures of one or many reports.",
    "verify-against": "Compare the figures of a run with those of another analysis of the same logs.",
    "synth": "Generate the logs of a simulated cluster, with the ground truth, as the folder of a benchmark run.",
    "metrics": "Print every metric of a system: definition, judging rule and source.",
    "profiles": "List the shipped profiles.",
    "corpus": "Corpora of requests for API load tests: sample, import, check.",
    "nodes": "Node binaries: install, list.",
    "cluster": "Other machines: check the workers that `--on` uses.",
    "history": "History: show a workload over its releases, add notes, pin an anchor release, choose margins.",
    "runs": "Runs: list, show, verify, export, import, remove.",
    "serve": "Show the store in a browser: verdicts, runs, comparisons, histories and running measurements.",
}
# Those that are not in a module of their own name.
_MODULES = dict.fromkeys(["transaction", "request", "trail"], "block")


def module_of(name: str) -> str:
    """The module of a command."""
    return f"chainmark.cli.{_MODULES.get(name, name.replace('-', '_'))}"


def _load(name: str) -> Any:
    """A command, or a group of them: the function of its name, which its ``command_class`` parses, or the ``app``."""
    from chainmark.systems.offered import full_help

    module = import_module(module_of(name))
    around = typer.Typer(rich_markup_mode=None)
    around.callback()(lambda: None)
    if group := getattr(module, "app", None):
        for command in group.registered_commands:
            function: Any = command.callback
            command.cls, command.name = Quick, command.name or function.__name__
            command.help = full_help(f"{name} {command.name}", function.__doc__)
        around.add_typer(group, name=name, cls=QuickGroup)
    else:
        function = getattr(module, name.replace("-", "_"))
        kind = getattr(function, "command_class", Quick)
        around.command(name, cls=kind, help=full_help(name, function.__doc__))(function)
    return typer.main.get_group(around).commands[name]


class Commands(QuickGroup):
    """Shows the commands by their lines in the table, and loads the chosen one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The chosen command, and the arguments after its name."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name), rest


app = typer.Typer(
    name="chainmark",
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
    help="Measure a release of a blockchain node on a real network and compare it with the previous release.",
    epilog="Example: `chainmark experiment PROFILE --baseline v1.0 --candidate v1.1 --html report.html`\n\n"
    "Exit codes: 0 pass or done · 1 fail · 2 usage or bad input · 3 inconclusive · 4 invalid run · "
    "5 environment or internal failure",
)


def all_commands() -> TyperGroup:
    """The whole command line with every command loaded, for documentation."""
    group = typer.main.get_group(app)
    group.commands = {name: _load(name) for name in COMMANDS}
    return group


def _print_version(wanted: bool) -> None:
    if wanted:
        from chainmark.core.tool import tool_version

        typer.echo(f"chainmark {tool_version()}")
        raise typer.Exit


@app.callback()
def options(
    store: Annotated[
        Path | None,
        typer.Option("--store", help="Directory of the run store.", show_default="~/.local/share/chainmark"),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    if store is not None:
        os.environ["CHAINMARK_STORE"] = str(Path(store).resolve())
    if debug:
        os.environ["CHAINMARK_DEBUG"] = "1"


def main() -> None:
    """Run the command line and exit with its code."""
    from chainmark.cli.last import last_step

    handle_interrupts()
    last_step.is_awaited = True
    try:
        code = int(app(standalone_mode=False) or 0)
    except SystemExit as ended:  # the output's reader has gone
        code = int(ended.code or 0)
    except (KeyboardInterrupt, typer.Abort) as error:
        sys.exit(report_failure(error))
    except Exception as error:
        code = report_failure(error)
    last_step.end_with(code)
