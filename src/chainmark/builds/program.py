"""The program of a system's nodes, and how a binary is identified as it."""

from __future__ import annotations

import os
import platform
import re
import signal
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from chainmark.builds.golang import BuildInfo, build_info
from chainmark.core import units
from chainmark.core.errors import UsageError

VERSION_TIMEOUT_S = 15
_ELF_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 22: "s390x", 21: "ppc64le"}
_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Program:
    """A node's program, written in Go.

    Attributes:
        name: of the file.
        title: its usual name.
        module: its releases are the versions of the system.
        package: of the command, below the module.
        version_arguments: arguments that print its version.
        version_pattern: of the output; the group ``version`` is the version.
        of_a_chain: it is any package with the name of the file, and may not report a version, like a build without the
            linker's flags: then that of its module is used.
    """

    name: str
    title: str
    module: str
    package: str
    version_arguments: tuple[str, ...] = ("version",)
    version_pattern: str = r"^v?(?P<version>\d+\.\d+\.\d+[0-9A-Za-z.-]*)"
    of_a_chain: bool = False

    def is_built_from(self, info: BuildInfo) -> bool:
        """Whether a binary's package is this one, in this module or in a fork that has another path."""
        if self.of_a_chain:
            return info.package.rpartition("/")[2] == self.name
        return info.package.endswith(f"/{self.package}")


@dataclass(frozen=True)
class Inspected:
    """The build information in a binary."""

    reported: str
    info: BuildInfo | None


def inspect(path: Path, program: Program) -> Inspected:
    """Check that a file is that program and runs here, and find its version.

    Raises:
        UsageError: it is not a file, not executable, for another machine, another program, or without a version.
    """
    _require_executable(path)
    _require_machine(path)
    info = build_info(path)
    if info is not None and not program.is_built_from(info):
        raise UsageError(
            f"{path} is `{info.package}`, not {program.title}",
            f"give a binary that was built from `{program.package or program.name}`",
        )
    output = _version_output(path, program)
    match = re.search(program.version_pattern, output.strip(), re.MULTILINE)
    if match is None and program.of_a_chain:
        return Inspected(_module_version(info), info)
    if match is None:
        raise _not_it(path, program, f"`{output.strip().splitlines()[0][:80]}`" if output.strip() else "nothing")
    return Inspected(match["version"], info)


def _module_version(info: BuildInfo | None) -> str:
    """The version of a binary's own module; empty for sources that are not a release."""
    version = "" if info is None else info.modules.get(info.main_module, "")
    return version.removeprefix("v").partition(" ")[0].strip("()") or "unversioned"


def _require_executable(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"there is no binary `{path}`", "build it first, or give the checkout: `git:PATH`")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a binary", f"for a checkout, write `git:{path}`")
    if not os.access(path, os.X_OK | os.R_OK):
        raise UsageError(f"{path} is not readable and executable", f"if it is a binary, run `chmod +rx {path}`")


def _require_machine(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return  # a script, or for another system: starting it shows
    (number,) = struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])
    machine, own = _ELF_MACHINES.get(number, f"machine {number}"), platform.machine()
    if machine != _SAME_MACHINE.get(own, own):
        raise UsageError(f"{path} is built for {machine}, but this machine is {own}", "build it on or for this machine")


def _version_output(path: Path, program: Program) -> str:
    """Its output of the version."""
    command = " ".join([path.name, *program.version_arguments])
    try:
        process = subprocess.Popen(
            [str(path.absolute()), *program.version_arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        output, errors = process.communicate(timeout=VERSION_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)  # a script may have started a process that would continue
        process.communicate()
        raise UsageError(
            f"`{command}` did not end within {units.duration(VERSION_TIMEOUT_S)}, so {path} is not {program.title}",
            "give the binary of the node",
        ) from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be started here ({error.strerror})", "build it on or for this machine"
        ) from error
    if process.returncode != 0:
        lines = (errors or output).strip().splitlines() or [f"exit status {process.returncode}"]
        raise UsageError(
            f"`{command}` failed, so {path} is not {program.title}: {lines[-1]}", "give the binary of the node"
        )
    return output


def _not_it(path: Path, program: Program, reported: str) -> UsageError:
    command = " ".join(program.version_arguments)
    return UsageError(
        f"{path} reports {reported} as its version, so it is not {program.title}",
        f"a binary of {program.title} prints a version such as 1.0.1 for `{command}`",
    )
