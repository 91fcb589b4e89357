"""Fixtures of tests without networks."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

from tests import forked
from tests.support import COMMAND_TIMEOUT_S, Lab


class ForkedLab(Lab):
    """A lab whose commands are forks of one process."""

    def ended(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever it is."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            command = forked.start(arguments, self.environment(), output=output.fileno(), errors=errors.fileno())
            code = command.wait(COMMAND_TIMEOUT_S)
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(arguments, code, output.read(), errors.read())


@pytest.fixture
def lab_type() -> type[Lab]:
    """The way in which commands are started."""
    return ForkedLab
