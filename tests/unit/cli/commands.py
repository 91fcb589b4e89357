"""Runs the command line in this process, with arguments as a user types them."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from chainmark.cli.app import app


def chainmark(*arguments: str) -> Result:
    """Run the command. Errors that it would print are raised."""
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
