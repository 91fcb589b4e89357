"""The `chainmark` command: its sub-commands, its errors and its exit codes."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from typer.exceptions import TyperException

from chainmark.cli import (
    block,
    compare,
    corpus,
    experiment,
    explain,
    ingest,
    load,
    metrics,
    nodes,
    predict,
    profiles,
    qa,
    run,
    runs,
    saturation,
    synth,
)
from chainmark.cli.console import err, print_error
from chainmark.core.errors import ChainmarkError, ExitCode, UsageError
from chainmark.core.tool import tool_version

INTERRUPTED = 130

app = typer.Typer(
    name="chainmark",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Run a release of a blockchain node on a real network, measure it, compare it with the release before.",
    epilog="Example: `chainmark experiment cometbft/demo --baseline v0.38.17 --candidate v1.0.1 --html report.html`\n\n"
    "Exit codes: 0 pass or done · 1 fail · 2 usage or bad input · 3 inconclusive · 4 invalid run · "
    "5 environment or internal failure",
)
app.command("run")(run.run)
app.command("experiment")(experiment.experiment)
app.command("qa")(qa.qa)
app.command("ingest")(ingest.ingest)
app.command("load")(load.load)
app.command("saturation")(saturation.saturation)
app.command("compare")(compare.compare_command)
app.command("block")(block.block)
app.command("trail")(block.trail)
app.command("predict", cls=predict.WrittenOrder)(predict.predict)
app.command("explain")(explain.explain)
app.command("synth")(synth.synth)
app.command("metrics")(metrics.metrics)
app.command("profiles")(profiles.profiles)
app.add_typer(corpus.app, name="corpus")
app.add_typer(nodes.app, name="nodes")
app.add_typer(runs.app, name="runs")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chainmark {tool_version()}")
        raise typer.Exit


@app.callback()
def options(
    store: Annotated[
        Path | None, typer.Option("--store", help="Where runs are kept.", show_default="~/.local/share/chainmark")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    if store is not None:
        os.environ["CHAINMARK_STORE"] = str(store.resolve())
    if debug:
        os.environ["CHAINMARK_DEBUG"] = "1"


def _terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a command as Ctrl-C does: in order, leaving nothing behind."""
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line and exit with its code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    try:
        code = app(standalone_mode=False)
    except ChainmarkError as error:
        if os.environ.get("CHAINMARK_DEBUG"):
            raise
        print_error(error)
        code = error.exit_code
    except TyperException as error:
        print_error(
            UsageError(
                error.format_message().rstrip("."), "`chainmark COMMAND --help` shows the options and an example"
            )
        )
        code = ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        err.print("interrupted: every process was stopped")
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = ExitCode.DONE
    except Exception as error:
        if os.environ.get("CHAINMARK_DEBUG"):
            raise
        err.print(f"error: chainmark failed: {type(error).__name__}: {error}", markup=False)
        err.print("hint: `chainmark --debug …` shows where; please report it")
        code = ExitCode.ENVIRONMENT
    sys.exit(int(code or 0))
