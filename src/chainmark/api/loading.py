"""Load tests of servers, and the requests that they ask."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from chainmark.api.comparing import compared
from chainmark.api.context import Cancellation, Settings, as_settings, relay, resolve_profile, store_at
from chainmark.api.runs import Run, RunReference, runs_of
from chainmark.capacity.model import Target, Tls
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.verdict import Verdict, worst
from chainmark.lab.corpora import CorpusSystem, KeptCorpus, WrongRequest
from chainmark.lab.loading import LoadTest, Tester, fixed_levels_of, kept_corpus
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.profiles import apply_setting
from chainmark.lab.protocols import ServedSystem, ServiceOrder
from chainmark.network.server_watch import BY_ADDRESS, ServerSources
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import served


class LoadResult:
    """What a load test made: a document for each repetition, comparisons with other servers or runs, and the runs.

    Attributes:
        documents: of the tests.
        comparisons: of every further server with the first, or with a former run.
        runs: of all servers and repetitions.
        is_interrupted: whether something was not measured to its end.
        gone: which server went away and when, as a sentence; "" if none did.
    """

    def __init__(self, tests: Sequence[LoadTest], comparisons: Sequence[Document]) -> None:
        self.documents = [document_of(test.report) for test in tests]
        self.comparisons = list(comparisons)
        self.runs = [Run(run) for test in tests for run in test.runs]
        self.is_interrupted = any(test.interrupted for test in tests)
        self.gone = next((test.gone for test in tests if test.gone), "")

    @property
    def verdict(self) -> Verdict:
        """The worst of all documents'."""
        return worst(document.verdict for document in [*self.documents, *self.comparisons])

    def _repr_html_(self) -> str:
        return "\n".join(document._repr_html_() for document in [*self.documents, *self.comparisons])


def load(
    profile: str | Path,
    targets: str | Sequence[str] | Mapping[str, str],
    *,
    version: str | None = None,
    endpoints: Sequence[str] = (),
    corpus: Path | None = None,
    like: RunReference | Sequence[RunReference] | None = None,
    against: RunReference | Sequence[RunReference] | None = None,
    repeat: int = 1,
    ca_file: Path | None = None,
    insecure: bool = False,
    sources: ServerSources = BY_ADDRESS,
    settings: Settings | None = None,
    seed: int = 1,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> LoadResult:
    """Find how much each endpoint of an API takes before its answers are too slow or wrong.

    Args:
        profile: a shipped profile's name, or the path of a TOML file.
        targets: a server's URL, several (``NAME=URL``), or URLs by their names: tested side by side.
        version: what is measured, where the server does not say.
        endpoints: only these, by id or path.
        corpus: requests pinned before.
        like: a run whose requests and levels are asked again; ``against`` the same, compared with it at the end.
        repeat: how many times the whole test is made.
        ca_file, insecure: whose certificate is trusted.
        sources: what is watched of the server meanwhile: processes, metrics, a database.
        settings, seed, store, progress, cancel: as in `run`.

    Raises:
        UsageError: a server is none of the profile's system, or two have one name.
        EnvironmentFailure: a server cannot be reached.

    Example:
        >>> result = cm.load(profile, url)
        >>> result.documents[0].kind, result.documents[0].cases[0].label
        ('load', '/work (clients)')
    """
    kept = store_at(store)
    system, resolved = resolve_profile(profile, settings)
    tester = Tester(kept, served(system), sources=sources)
    tls = Tls(ca_file=str(ca_file) if ca_file else None, verify=not insecure)
    chosen = _targets(targets, tls)
    if sources.is_given and len(chosen) > 1:
        hint = "test one of them at a time, or leave out what is watched"
        raise UsageError("processes, metrics and databases are watched of one server, and several are tested", hint)
    reference = like if against is None else against
    former = runs_of(reference, kept) if reference is not None else []
    if former:
        resolved = at_levels_of(tester.system, resolved, former[0])
    listener = relay(progress, cancel)
    with tempfile.TemporaryDirectory(prefix="chainmark-load-") as folder:
        pinned = Path(folder) / "corpus.json"
        requests = corpus or (kept_corpus(former[0]) if former else None)
        orders = [
            ServiceOrder(
                target=target,
                version=version,
                endpoints=tuple(endpoints),
                corpus=requests if requests or not index else pinned,
                pinned=pinned if not index else None,
                seed=seed,
            )
            for index, target in enumerate(chosen)
        ]
        with machine_to_itself(listener):
            made = _repeated(tester, resolved, orders, repeat=repeat, seed=seed, progress=listener)
    if any(test.interrupted for test in made):
        return LoadResult(made, [])
    return LoadResult(made, _comparisons(made, former if against is not None else [], kept))


def parse_target(text: str, index: int, tls: Tls) -> Target:
    """`NAME=URL`, or a URL, which is then called by its place.

    Raises:
        UsageError: it is no address of a server.
    """
    name, separator, url = text.partition("=")
    if not separator or "/" in name:
        name, url = ("server" if index == 0 else f"server-{index + 1}"), text
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"`--target {text}` is no address of a server", "for example `http://127.0.0.1:8082`")
    return Target(name.strip(), url.rstrip("/"), tls)


def _targets(targets: str | Sequence[str] | Mapping[str, str], tls: Tls) -> list[Target]:
    if isinstance(targets, Mapping):
        texts = [f"{name}={url}" for name, url in targets.items()]
    else:
        texts = [targets] if isinstance(targets, str) else list(targets)
    chosen = [parse_target(text, index, tls) for index, text in enumerate(texts)]
    names = [target.name for target in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two targets are called `{twice}`", "`--target old=http://… --target new=http://…`")
    return chosen


def at_levels_of(system: ServedSystem, profile: BaseModel, run: SealedRun) -> BaseModel:
    """The same profile with the fixed levels of a former run."""
    content = profile.model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["fixed"] = {**content.get("fixed", {}), **fixed_levels_of(run)}
    return system.profile(content)


def _repeated(
    tester: Tester, profile: BaseModel, orders: Sequence[ServiceOrder], *, repeat: int, seed: int, progress: Progress
) -> list[LoadTest]:
    made: list[LoadTest] = []
    for repetition in range(repeat):
        asked = list(orders)
        if made:
            # Every repetition asks the same, at the same levels.
            first = made[0].runs[0]
            profile = at_levels_of(tester.system, profile, first)
            kept = kept_corpus(first)
            asked = [replace(order, corpus=kept or order.corpus, pinned=None) for order in orders]
        made.append(tester.make(profile, asked, seed + repetition, progress, repetition + 1))
        if made[-1].interrupted:
            break
    return made


def _comparisons(made: Sequence[LoadTest], former: Sequence[SealedRun], store: Store) -> list[Document]:
    """With a former run, or of every further server with the first."""
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
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> KeptCorpus:
    """Keep requests that a server answers rightly in a file, for load tests to come.

    Args:
        system: whose requests these are.
        url: the server that is asked.
        path: where the corpus goes.
        source: requests of another load tool to take over; None: they are sampled from the server.
        network: which one, where the server has several.
        settings: of the sampling.
        seed: of what is drawn.
        ca_file, insecure: whose certificate is trusted.
        progress, cancel: as in `run`.

    Raises:
        UsageError: no corpus can be kept for the system, or the source cannot be used.
        EnvironmentFailure: the server cannot be reached.

    Example:
        >>> small = {"corpus.settled_blocks": 0, "corpus.blocks": 4}
        >>> kept = cm.corpus("mesh", url, folder / "corpus.json", settings=small)
        >>> "/block" in kept.requests
        True
    """
    if source is not None and not source.exists():
        raise UsageError(f"there is no file or folder `{source}`", "wanted: a CSV file, or a folder of such files")
    keeper = corpus_system(system)
    content: dict[str, object] = {"system": system, "name": "corpus"}
    chosen = [f"corpus.seed={seed}"] if seed is not None else []
    chosen += [f'{system}.network="{network}"'] if network else []
    for setting in [*chosen, *as_settings(settings)]:
        content = apply_setting(content, setting)
    order = ServiceOrder(_server(url, ca_file, insecure), corpus=source, pinned=Path(path))
    return keeper.keep_corpus(keeper.profile(content), order, relay(progress, cancel))


def check_corpus(
    system: str,
    path: Path | str,
    url: str,
    *,
    ca_file: Path | None = None,
    insecure: bool = False,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> tuple[KeptCorpus, list[WrongRequest]]:
    """Ask a server every request of a corpus once: the corpus, and what was not answered rightly.

    Raises:
        UsageError: there is no such file, or it belongs to another network.
        EnvironmentFailure: the server cannot be reached.

    Example:
        >>> kept, wrong = cm.check_corpus("mesh", folder / "corpus.json", url)
        >>> wrong
        []
    """
    server = _server(url, ca_file, insecure)
    return corpus_system(system).check_corpus(Path(path), server, relay(progress, cancel))


def corpus_system(name: str) -> CorpusSystem:
    """The system of that name as one that keeps corpora.

    Raises:
        UsageError: it does not.
    """
    system = load_system(name)
    if not isinstance(system, CorpusSystem):
        raise UsageError(f"no corpus can be kept for `{name}`", "`chainmark corpus --help` shows for which it can")
    return system


def _server(url: str, ca_file: Path | None, insecure: bool) -> Target:
    return Target("server", url.rstrip("/"), Tls(ca_file=str(ca_file) if ca_file else None, verify=not insecure))
