"""Load tests of servers, and their requests."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import polars as pl
from pydantic import BaseModel

from chainmark.api.charting import charted
from chainmark.api.clusters import cluster_address, generators_at, machines_at, requested_cluster
from chainmark.api.comparing import compared
from chainmark.api.context import (
    Cancellation,
    Relay,
    Settings,
    as_settings,
    check_repeat,
    measuring,
    resolve_profile,
    store_at,
)
from chainmark.api.runs import Run, RunReference, runs_of
from chainmark.capacity.access import NOBODY, Access, hidden_in_errors
from chainmark.capacity.model import HTTP_1, UNIX, Target, Tls
from chainmark.capacity.protocol import WantedVersion, speaking
from chainmark.capacity.requirements import read_requirements, requirements, requirements_text
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.secrets import without_password
from chainmark.core.storage import storage_errors
from chainmark.core.verdict import Verdict, worst
from chainmark.lab.corpora import CorpusSystem
from chainmark.lab.loading import LoadTest, Tester, at_levels_of, recorded_corpus
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.profiles import apply_setting
from chainmark.lab.protocols import ServedSystem, ServiceRequest
from chainmark.network.server_watch import BY_ADDRESS, ServerSources
from chainmark.report.corpus_document import CheckedCorpus, StoredCorpus, corpus_document
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.report.load_text import names_of
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import load_testable

__all__ = ["LoadResult", "check_corpus", "corpus", "load"]

# Timeout for a server that may choose its version of HTTP, outside of a load test.
_CHOICE_TIMEOUT_S = 10.0
# Other tools write a socket's path percent-encoded, as the host of a URL.
_UNIX_URL = "http+unix://"


class LoadResult:
    """The results of a load test: a document per repetition, comparisons with other servers or runs, and the runs.

    Attributes:
        documents: of the tests.
        comparisons: of every further server with the first, or with an earlier run.
        runs: of all servers and repetitions.
        is_interrupted: whether a measurement is incomplete.
        gone: which server went away and when, as a sentence; "" if none did.
    """

    def __init__(self, tests: Sequence[LoadTest], comparisons: Sequence[Document]) -> None:
        self._reports = [test.report for test in tests]
        self.documents = [_document(test) for test in tests]
        self.comparisons = list(comparisons)
        self.runs = [Run(run) for test in tests for run in test.runs]
        self.is_interrupted = any(test.interrupted for test in tests)
        self.gone = next((test.gone for test in tests if test.gone), "")

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all documents."""
        return worst(document.verdict for document in [*self.documents, *self.comparisons])

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The cases of all repetitions as a table: the number of the document from 0, then its columns."""
        frames = [
            document.frame.select(pl.lit(number).alias("document"), pl.all())
            for number, document in enumerate(self.documents)
            if document.cases
        ]
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()

    def requirements(self) -> dict[str, dict[str, float]]:
        """Capacities that an unchanged server reaches with 95 % probability, by endpoint and kind.

        Raises:
            UsageError: these tests cannot serve as a reference, because they did not pass.

        Example:
            >>> result = cm.load(profile, url)
            >>> sorted(result.requirements()["work"])
            ['clients']
        """
        if self.verdict is not Verdict.PASS:
            raise UsageError(
                f"requirements cannot be written, because the verdict of this test is {self.verdict}",
                "only a passed test can set requirements",
            )
        return requirements(self._reports)

    def write_requirements(self, path: Path) -> None:
        """Write them as the section of a profile that `load` reads as ``require``.

        Raises:
            UsageError: as `requirements`.
            EnvironmentFailure: the file cannot be written.
        """
        text = requirements_text(self.requirements(), (run.id for run in self.runs))
        with storage_errors(path):
            path.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return "\n".join(map(repr, [*self.documents, *self.comparisons]))

    def _repr_html_(self) -> str:
        return "\n".join(document._repr_html_() for document in [*self.documents, *self.comparisons])


def _document(test: LoadTest) -> Document:
    """The document of a test, with the charts of the metrics of its servers' runs."""
    targets, runs = test.report.targets, {run.run_id: [run] for run in test.runs}
    sides = {name: runs.get(target.run_id, []) for name, target in zip(names_of(targets), targets, strict=True)}
    return charted(document_of(test.report), sides)


def load(
    profile: str | Path,
    targets: str | Sequence[str] | Mapping[str, str],
    *,
    version: str | None = None,
    endpoints: Sequence[str] = (),
    corpus: Path | None = None,
    like: RunReference | Sequence[RunReference] | None = None,
    against: RunReference | Sequence[RunReference] | None = None,
    require: Path | None = None,
    repeat: int = 1,
    ca_file: Path | None = None,
    insecure: bool = False,
    access: Access = NOBODY,
    sources: ServerSources = BY_ADDRESS,
    on: str | None = None,
    settings: Settings | None = None,
    seed: int = 1,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> LoadResult:
    """Find how much load each endpoint of an API sustains before its responses are too slow or wrong.

    Args:
        profile: a shipped profile's name, or the path of a TOML file.
        targets: a server's URL, several (``NAME=URL``), or URLs by their names: tested side by side.
        version: the measured version, if the server does not report it.
        endpoints: only these, by id or path.
        corpus: a file of fixed requests.
        like: a run whose requests and levels are repeated; ``against``: the same, compared with it at the end.
        require: a file of required capacities, in addition to those of the profile.
        repeat: number of repetitions of the whole test.
        ca_file, insecure: whose certificate is trusted.
        access: headers, a user, a client's certificate: the credentials of the requests.
        sources: data sources about the server meanwhile: processes, metrics, a database.
        on: the scheduler of a Dask cluster whose workers generate the load: ``steps.generators`` of them, or one on
            every machine. `CHAINMARK_CLUSTER` if omitted; without that, this machine.
        settings, seed, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: a server is not of the profile's system, or two have one name.
        EnvironmentFailure: a server cannot be reached.

    Example:
        >>> result = cm.load(profile, url)
        >>> result.documents[0].kind, result.documents[0].cases[0].label
        ('load', '/work (clients)')
    """
    check_repeat(repeat)
    run_store = store_at(store)
    system, resolved = resolve_profile(profile, settings)
    if require is not None:
        resolved = _requiring(load_testable(system), resolved, require)
    tester = Tester(run_store, load_testable(system), sources=sources)
    tls = Tls(ca_file=str(ca_file) if ca_file else None, verify=not insecure)
    chosen = targets_of(targets, tls, access)
    if sources.is_given and len(chosen) > 1:
        hint = "test one server at a time, or omit the monitoring options"
        raise UsageError(
            "processes, metrics and databases can be monitored for one server only, but several are tested", hint
        )
    reference = like if against is None else against
    former = runs_of(reference, run_store) if reference is not None else []
    if former:
        resolved = at_levels_of(tester.system, resolved, former[0])
    with (
        measuring(progress, cancel, expose, no_wait) as listener,
        tempfile.TemporaryDirectory(prefix="chainmark-load-") as folder,
    ):
        pinned = Path(folder) / "corpus.json"
        requests = corpus or (recorded_corpus(former[0]) if former else None)
        orders = [
            ServiceRequest(
                target=target,
                version=version,
                endpoints=tuple(endpoints),
                corpus=requests if requests or not index else pinned,
                pinned=pinned if not index else None,
                seed=seed,
            )
            for index, target in enumerate(chosen)
        ]
        with (
            hidden_in_errors(target.access for target in chosen),
            machine_to_itself(listener),
            generators_at(requested_cluster(on, profile, settings), listener) as generators,
        ):
            tester = replace(tester, generators=generators)
            load_tests = _repeated(tester, resolved, orders, repeat=repeat, seed=seed, progress=listener)
    if any(test.interrupted for test in load_tests):
        return LoadResult(load_tests, [])
    return LoadResult(load_tests, _comparisons(load_tests, former if against is not None else [], run_store))


def parse_target(text: str, index: int, tls: Tls, access: Access = NOBODY) -> Target:
    """`NAME=URL`, or a URL, which is then named by its index. User and password of a URL go to the headers.

    Raises:
        UsageError: it is not a valid server URL.
    """
    name, separator, url = text.partition("=")
    if not separator or "/" in name:
        name, url = ("server" if index == 0 else f"server-{index + 1}"), text
    if not url.startswith(("http://", "https://", f"{UNIX}/", _UNIX_URL)):
        shown = without_password(text)
        raise UsageError(f"`--target {shown}` is not a valid server URL", "for example `http://127.0.0.1:8082`")
    return _target(name.strip(), url, tls, access)


def _target(name: str, url: str, tls: Tls, access: Access) -> Target:
    if url.startswith(_UNIX_URL):
        url = UNIX + unquote(url.removeprefix(_UNIX_URL))
    if url.startswith(UNIX):
        return Target(name, f"{UNIX}/{url.removeprefix(UNIX).lstrip('/')}", tls, access)
    scheme, separator, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    if not at and "@" in rest and not re.fullmatch(r"[^:]*|\[.*\]|.*:\d*", authority):
        # It may contain a password, so the message does not repeat it.
        hint = "write `/`, `?` and `#` of a password as `%2F`, `%3F` and `%23`, or use `--user`"
        raise UsageError(f"the port of `{name}` is not a number", hint)
    if at:
        url = f"{scheme}{separator}{host}{rest.removeprefix(authority)}"
        access = replace(access, user=unquote(user))
    return Target(name, url.rstrip("/"), tls, access)


def targets_of(targets: str | Sequence[str] | Mapping[str, str], tls: Tls, access: Access) -> list[Target]:
    """The servers by name.

    Raises:
        UsageError: one has no address, or two have one name.
    """
    if isinstance(targets, Mapping):
        texts = [f"{name}={url}" for name, url in targets.items()]
    else:
        texts = [targets] if isinstance(targets, str) else list(targets)
    chosen = [parse_target(text, index, tls, access) for index, text in enumerate(texts)]
    names = [target.name for target in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two targets are called `{twice}`", "for example `--target old=http://… --target new=http://…`"
        )
    return chosen


def _requiring(system: ServedSystem, profile: BaseModel, path: Path) -> BaseModel:
    """The profile with a file's required capacities."""
    content = profile.model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["require"] = {**content.get("require", {}), **read_requirements(path)}
    return system.profile(content)


def _repeated(
    tester: Tester, profile: BaseModel, orders: Sequence[ServiceRequest], *, repeat: int, seed: int, progress: Progress
) -> list[LoadTest]:
    load_tests: list[LoadTest] = []
    for repetition in range(repeat):
        ordered = list(orders)
        if load_tests:
            # Every repetition uses the same requests at the same levels.
            first = load_tests[0].runs[0]
            profile = at_levels_of(tester.system, profile, first)
            path = recorded_corpus(first)
            ordered = [replace(order, corpus=path or order.corpus, pinned=None) for order in orders]
        load_tests.append(tester.make(profile, ordered, seed + repetition, progress, repetition=repetition + 1))
        if load_tests[-1].interrupted:
            break
    return load_tests


def _comparisons(made: Sequence[LoadTest], former: Sequence[SealedRun], store: Store) -> list[Document]:
    """Comparisons with an earlier run, or of every further server with the first."""
    if former:
        pairs = [[list(former), [test.runs[0] for test in made]]]
    else:
        sides = [list(side) for side in zip(*(test.runs for test in made), strict=True)]
        pairs = [[sides[0], side] for side in sides[1:]]
    return [compared(pair, store) for pair in pairs]


def corpus(
    system: str,
    url: str,
    path: Path | str,
    *,
    source: Path | None = None,
    network: str | None = None,
    settings: Settings | None = None,
    seed: int | None = None,
    ca_file: Path | None = None,
    insecure: bool = False,
    access: Access = NOBODY,
    http_version: WantedVersion = HTTP_1,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Store requests that a server answers correctly in a file, for future load tests.

    Args:
        system: the system of the requests.
        url: the server.
        path: the file of the corpus.
        source: requests of another load tool to import; None: they are sampled from the server.
        network: the network, if the server has several.
        settings: of the sampling.
        seed: seed of the sampling.
        ca_file, insecure, access: as in `load`.
        http_version: "2" uses HTTP/2, like `steps.http_version` of a load test; "auto" lets the server choose.
        progress, cancel: as in `run`.

    Raises:
        UsageError: the system does not support corpora, or the source cannot be used.
        EnvironmentFailure: the server cannot be reached.

    Example:
        >>> small = {"corpus.settled_blocks": 0, "corpus.blocks": 4}
        >>> kept = cm.corpus("mesh", url, folder / "corpus.json", settings=small)
        >>> "/block" in kept.result.requests
        True
    """
    if source is not None and not source.exists():
        raise UsageError(f"there is no file or folder `{source}`", "give a CSV file, or a folder of CSV files")
    keeper = corpus_system(system)
    content: dict[str, object] = {"system": system, "name": "corpus"}
    chosen = [f"corpus.seed={seed}"] if seed is not None else []
    chosen += [f'{system}.network="{network}"'] if network else []
    for setting in [*chosen, *as_settings(settings)]:
        content = apply_setting(content, setting)
    order = ServiceRequest(_server(url, ca_file, insecure, access, http_version), corpus=source, pinned=Path(path))
    with hidden_in_errors([order.target.access]):
        record = keeper.keep_corpus(keeper.profile(content), order, Relay(progress, cancel))
    return corpus_document(StoredCorpus(path=str(path), **vars(record)))


def check_corpus(
    system: str,
    path: Path | str,
    url: str,
    *,
    ca_file: Path | None = None,
    insecure: bool = False,
    access: Access = NOBODY,
    http_version: WantedVersion = HTTP_1,
    on: str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Send every request of a corpus once to a server; the verdict is whether all responses are correct.

    Args:
        system: the system of the requests.
        path: the file of the corpus.
        url: the server.
        ca_file, insecure, access: as in `load`.
        http_version: as in `corpus`.
        on: the scheduler of a Dask cluster whose workers send the requests, several at a time, "tcp://10.0.0.1:8786".
            `CHAINMARK_CLUSTER` if omitted; without that, this machine sends one at a time.
        progress, cancel: as in `run`.

    Raises:
        UsageError: there is no such file, or it belongs to another network.
        EnvironmentFailure: the server or the cluster cannot be reached.

    Example:
        >>> checked = cm.check_corpus("mesh", folder / "corpus.json", url)
        >>> print(checked.verdict, checked.result.wrong)
        pass ()
    """
    server = _server(url, ca_file, insecure, access, http_version)
    with hidden_in_errors([server.access]):
        keeper, listener = corpus_system(system), Relay(progress, cancel)
        with machines_at(cluster_address(on), listener) as machines:
            record, wrong = keeper.check_corpus(Path(path), server, listener, machines)
    counts = {endpoint: sum(kinds.values()) for endpoint, kinds in record.requests.items()}
    return corpus_document(
        CheckedCorpus(
            path=str(path),
            hash=record.hash,
            network=record.network,
            server=server.url,
            requests=sum(counts.values()),
            by_endpoint=counts,
            wrong=tuple(wrong),
        )
    )


def corpus_system(name: str) -> CorpusSystem:
    """The system of that name with support for corpora.

    Raises:
        UsageError: it has none.
    """
    system = load_system(name)
    if not isinstance(system, CorpusSystem):
        raise UsageError(
            f"corpora are not supported for `{name}`", "`chainmark corpus --help` lists the supported systems"
        )
    return system


def _server(url: str, ca_file: Path | None, insecure: bool, access: Access, http_version: WantedVersion) -> Target:
    tls = Tls(ca_file=str(ca_file) if ca_file else None, verify=not insecure)
    return speaking(_target("server", url, tls, access), http_version, _CHOICE_TIMEOUT_S)
