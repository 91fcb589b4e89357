"""The error messages for mistyped commands."""

from __future__ import annotations

import sys

import pytest
from typer.exceptions import TyperException

from chainmark.cli.app import app
from chainmark.cli.failures import report_failure
from chainmark.core.errors import ExitCode

TOKEN = "tok3n-0123456789"  # noqa: S105 - of nobody


@pytest.mark.parametrize("option", ["--header", "--header-command", "--user", "--proxy"])
def test_a_secret_without_quotes_is_not_repeated(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell splits the secret into several arguments, and many people read the log of a pipeline."""
    arguments = ["load", "mesh/quick", "--target", "http://127.0.0.1:1", option, "Authorization:", "Bearer", TOKEN]
    _, error = _failed(arguments, monkeypatch, capsys)
    assert TOKEN not in error
    assert "unexpected arguments" in error
    assert "quote" in error


def test_other_arguments_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = _failed(["load", "mesh/quick", "mesh/standard"], monkeypatch, capsys)
    assert code == ExitCode.USAGE
    assert "mesh/standard" in error


def _failed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["chainmark", *arguments])
    with pytest.raises(TyperException) as raised:
        app(arguments, standalone_mode=False)
    return report_failure(raised.value), capsys.readouterr().err


def test_an_interruption_names_what_it_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the note, nobody finds the log that was followed for a day."""
    error = KeyboardInterrupt()
    error.add_note("the followed log is not lost")
    report_failure(error)
    assert "hint: the followed log is not lost" in capsys.readouterr().err
