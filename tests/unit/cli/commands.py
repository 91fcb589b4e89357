"""The command line as typed, in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from chainmark.cli.app import app


def chainmark(*arguments: str) -> Result:
    """Run the command; an error that it would print is raised."""
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
