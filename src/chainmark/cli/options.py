"""The options of several commands, each with its help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from typer import Argument, Option

import chainmark as cm
from chainmark.cli.groups import Group

AsJson = Annotated[bool, Option("--json", help="Print JSON on stdout.")]

# Arguments
Profile = Annotated[str, Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.")]
ResumableProfile = Annotated[
    str | None, Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.", show_default=False)
]
OneRun = Annotated[str, Argument(metavar="RUN", help="A run ID or a prefix of it, or a version that has one run.")]

# How to run
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Override a profile key, e.g. `--set load.rate=400`."),
]
Seed = Annotated[int, Option(min=0, help="Random seed; each run adds its position in the experiment.")]
NoWait = Annotated[
    bool,
    Option(
        "--no-wait",
        help="Exit with code 5 if another measurement is running on this machine, instead of waiting for it.",
    ),
]
Expose = Annotated[
    str | None,
    Option(
        metavar="[HOST:]PORT",
        help="Expose the experiment's state to Prometheus while it runs, e.g. at `127.0.0.1:9464`.",
        show_default="off",
    ),
]
Http2 = Annotated[bool, Option("--http2", help="Use HTTP/2: negotiated with TLS, otherwise by prior knowledge.")]


def cluster_option(what: str, show_default: bool | str = True) -> Any:
    """The option that names a cluster, which is ``what``."""
    return Option(
        "--on",
        metavar="ADDRESS",
        # Not as Typer's `envvar`: the environment's cluster is a default, and not a demand of this command.
        help=f"Scheduler of {what}, e.g. `tcp://10.0.0.1:8786`. If omitted: the variable CHAINMARK_CLUSTER, then "
        "`[cluster]` of the profile.",
        show_default=show_default,
    )


On = Annotated[str | None, cluster_option("a Dask cluster whose workers do the work", "this machine")]

# How to judge
_MARGIN = (
    "Acceptable change of a metric, e.g. `15%`, instead of the catalogue's margin. `chainmark metrics` lists the "
    "metrics of a system."
)
Margins = Annotated[list[str] | None, Option("--margin", metavar="METRIC=PERCENT", help=_MARGIN)]
LearntMargins = Annotated[
    list[str] | None,
    Option(
        "--margin",
        metavar="METRIC=PERCENT",
        help=f"{_MARGIN} `learnt` derives margins from re-runs of one build, `learnt:5%,15%` within these bounds. When "
        "single runs are judged against the release history, margins are widened to the re-run noise, to at most "
        "20 %; `widened:15%` caps this at 15 %; `catalogue` turns it off.",
    ),
]
Why = Annotated[bool, Option(help="Show the node profiles even if no metric became worse.")]

# How to read
Column = Annotated[
    str | None,
    Option("--version", metavar="V", help="Version (column) of a published report. Default: the last one."),
]
Blocks = Annotated[
    int | None,
    Option(min=1, metavar="N", help="Number of blocks to simulate per network; more blocks give smaller errors."),
]
ModelSeed = Annotated[int, Option(min=0, help="Random seed.")]
Threads = Annotated[int, Option(min=0, help="Number of threads; 0 means all cores. The result does not depend on it.")]


class SideOptions(TypedDict, total=False):
    """The sides of an experiment, and how far they may differ.

    Attributes:
        baseline_settings: `--set` for this side only.
        candidate_settings: `--set` for this side only.
    """

    baseline_settings: Annotated[list[str], Option("--set-baseline", metavar="KEY=VALUE")]
    candidate_settings: Annotated[list[str], Option("--set-candidate", metavar="KEY=VALUE")]
    margins: LearntMargins


class SourceOptions(TypedDict, total=False):
    """What to monitor of a server, besides the processes that are found by its address.

    Attributes:
        pids: Process ID of the server; it and its child processes are monitored.
        cgroup: Control group (cgroup v2) of the server to monitor.
        container: Container of the server to monitor, run by docker or podman on this machine.
        scrapes: Prometheus metrics endpoint to scrape during the test.
        postgres: PostgreSQL database behind the server, e.g. `dbname=app user=monitor`; pass a password in
            `PGPASSWORD`.
    """

    pids: Annotated[list[int], Option("--server-pid", metavar="PID")]
    cgroup: Annotated[Path, Option("--server-cgroup", metavar="PATH")]
    container: Annotated[str, Option("--server-container", metavar="NAME")]
    scrapes: Annotated[list[str], Option("--scrape", metavar="[NAME=]URL")]
    postgres: Annotated[str, Option(metavar="DSN")]


@dataclass(frozen=True)
class Connection(Group):
    """How to connect to servers.

    Attributes:
        headers: HTTP header to send with every request; `${VARIABLE}` is read from the environment, `NAME: @FILE` from
            a file. May be repeated.
        header_commands: HTTP header whose value a command prints. The command runs again at the next step after 30 s,
            and after a 401.
        user: Basic authentication, e.g. `'tester:${PASSWORD}'`.
        cert: Client certificate with its chain.
        key: Private key, if it is not in the `--cert` file.
        ca_file: CA certificate to trust.
        insecure: Skip certificate verification.
        proxy: HTTP proxy for all connections to the server, e.g. `'http://name:${PASSWORD}@10.0.0.1:3128'`. Proxies of
            the environment (`HTTP_PROXY`) are not used.
    """

    headers: Annotated[list[str] | None, Option("--header", metavar="NAME: VALUE")] = None
    header_commands: Annotated[list[str] | None, Option("--header-command", metavar="NAME: COMMAND")] = None
    user: Annotated[str | None, Option(metavar="NAME:PASSWORD")] = None
    cert: Annotated[Path | None, Option(metavar="FILE")] = None
    key: Annotated[Path | None, Option(metavar="FILE")] = None
    ca_file: Annotated[Path | None, Option(metavar="FILE")] = None
    insecure: bool = False
    proxy: Annotated[str | None, Option(metavar="URL", show_default="none")] = None

    def arguments(self) -> dict[str, Any]:
        """As arguments of the library's functions."""
        access = cm.Access(self.headers or (), self.header_commands or (), self.user, self.cert, self.key, self.proxy)
        return {"ca_file": self.ca_file, "insecure": self.insecure, "access": access}
