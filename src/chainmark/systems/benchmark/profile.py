"""The profile of a benchmark: which command is executed, how it is built from a checkout, and how often it is run."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from chainmark.core.errors import UsageError
from chainmark.core.manifest import Scalar
from chainmark.core.secrets import is_secret_name

_SECTION = ConfigDict(extra="forbid", frozen=True)


class Command(BaseModel):
    """What is executed. Arguments, environment and folder may contain `{folder}`, the folder of the built checkout.

    Attributes:
        program: path of the program in a built checkout; `{python}` is the Python that runs chainmark. A version that
            is a file is itself the program.
        arguments: arguments of the program.
        build: lines for `sh` that build a copy of a checkout, in this order; empty: nothing needs to be built.
        environment: environment variables of the command, in addition to those of chainmark.
        folder: folder in which the command runs; empty: a new, empty folder for each execution.
        exit_codes: exit codes of a successful execution.
    """

    model_config = _SECTION

    program: str = ""
    arguments: list[str] = []
    build: list[Annotated[str, Field(min_length=1)]] = []
    environment: dict[str, str] = {}
    folder: str = ""
    exit_codes: Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=1)] = [0]

    @field_validator("environment")
    @classmethod
    def _has_no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        name = next((name for name in value if is_secret_name(name)), None)
        if name is not None:
            raise UsageError(
                f"the profile sets the variable `{name}`, but every run stores its profile",
                f"set `{name}` in the environment of chainmark, which the command inherits",
            )
        return value


class CommandWorkload(BaseModel):
    """How often the command is executed in one run.

    Attributes:
        executions: number of measured executions.
        warm_up: number of executions before these that are not measured; they fill the caches of the disk.
        timeout_s: time (seconds) after which an execution is ended and counts as failed.
    """

    model_config = _SECTION

    executions: Annotated[int, Field(ge=1, le=10_000)] = 10
    warm_up: Annotated[int, Field(ge=0, le=1_000)] = 1
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0


class CommandGates(BaseModel):
    """Preconditions of valid figures.

    Attributes:
        other_work_max: largest share of all processors that other programs may use during the measurement.
    """

    model_config = _SECTION

    other_work_max: Annotated[float, Field(ge=0, le=1)] = 0.25


class BenchmarkProfile(BaseModel):
    """The whole profile.

    Attributes:
        system: `benchmark`.
        name: name of the profile, which reports show.
        description: a sentence for `chainmark profiles`.
        title: name of the command in reports; empty: the file name of its program.
    """

    model_config = _SECTION

    system: str
    name: str = "benchmark"
    description: str = ""
    title: str = ""
    command: Command = Command()
    workload: CommandWorkload = CommandWorkload()
    gates: CommandGates = CommandGates()

    def shared(self) -> dict[str, Scalar | list[Scalar]]:
        """The properties that two runs must share to be comparable."""
        command, work = self.command, self.workload
        return {
            "command.arguments": list(command.arguments),
            "command.exit_codes": list(command.exit_codes),
            **{f"command.environment.{name}": value for name, value in sorted(command.environment.items())},
            "workload.executions": work.executions,
            "workload.warm_up": work.warm_up,
        }
