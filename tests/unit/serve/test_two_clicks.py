"""Twenty questions of a release engineer: each answer is at most two clicks from the first page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.store.runs import Store

from tests.support import wait_until
from tests.unit.serve.clicking import Reader
from tests.unit.serve.serving import Served, served
from tests.unit.serve.stores import damage, filled, unfinished
from tests.unit.store.trail_runs import Timelines, sealed

RELEASES = 20
RUNNING = "cometbft-demo-v9-20260101T000000-0001"
CARD, TOY = "^CometBFT · cometbft/demo", "^Toy · toy/demo"
NOTE = "the machine got new memory"


@dataclass(frozen=True)
class Question:
    """A question, the links or forms to follow (a form is an action and a field), and a pattern for the answer."""

    requested: str
    clicks: tuple[str | tuple[str, str, str], ...]
    answer: str


QUESTIONS = [
    Question("Did the newest release pass?", (), r"v1\.19\.0 · \S+ · 19 versions, 19 runs PASS 7 of 8 gating metrics"),
    Question("Since when is memory growing?", (),
             r"Since v1\.12\.0, resident memory became worse by \+20\.\d % \(90 %"),
    Question("What else changed with that release?", (r"^History$", CARD), r"v1\.12\.0: 1 difference"),
    Question("How much did p99 latency change, and how sure is that?", (CARD,),
             r"tx latency p99, s gating how \S+ \S+ [+−][\d.]+ % −\S+ … \+\S+ %"),
    Question("What changed between the configurations of these two?", (CARD, "^Configuration$"),
             r"Differences set by the profile or on the command line None"),
    Question("Is one host slow?", (TOY, "^fetch"), r"By key .*node-3"),
    Question("Which value did every run have?", ("^tx latency p99$",),
             r"cometbft-demo-v1\.19\.0-\S+ v1\.19\.0 1\.\d+ s"),
    Question("How was this figure computed?", ("^how tx latency p99",), r"samples/transaction\.parquet"),
    Question("How did latency develop within the run?", ("^how tx latency p99", "^Over time$"), r"998 samples in"),
    Question("What does this metric mean?", (r"^Metrics$", "^CometBFT"), r"tx_latency_s gating Time from when"),
    Question("How large is the lab's noise?", (), r"Noise: .*history of \d+ builds"),
    Question("What is being measured now?", (), rf"Now: {RUNNING}"),
    Question("Which version is it, and since when?", (f"^{RUNNING}",), r"running v9"),
    Question("Which runs are damaged?", (),
             r"1 damaged run excluded from all pages except \*Runs\*: cometbft-demo-v1\.0\.0"),
    Question("Which runs are there of a version?", (r"^Runs$", r"^v1\.7\.0$"),
             r"1 of \d+ runs .*cometbft-demo-v1\.7\.0-"),
    Question("Did the run meet its gates?", (r"^Runs$", r"^cometbft-demo-v1\.18\.0-"),
             r"no node lost instrument pass 4 of 4"),
    Question("On which machine was it?", (r"^Runs$", r"^cometbft-demo-v1\.18\.0-"), r"machine AMD EPYC 7B13 · 8 cores"),
    Question("What was noted about it?", (r"^Runs$",), NOTE),
    Question("How much load does the release sustain?", (r"^Capacity$", CARD),
             r"v1\.19\.0 block clients 32 64\.00 ms pass yes"),
    Question("Why was this block late, and on which host?", (TOY, ("/follow", "key", "4")),
             r"the slowest, node-3, .* its longest stage was “fetched”"),
    Question("How does it get from region to region?", (TOY, ("/follow", "key", "4")),
             r"hop, median, ms"),
    Question("What would longer round trips do?", (r"^What if$", "^cardano/value$"), r"rtt 0 % .*adoption"),
    Question("What do I write in the pull request?", (CARD, "^PR comment$"), r"All figures, charts and runs"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store: Path = tmp_path_factory.mktemp("two-clicks") / "store"
    names = filled(store, releases=RELEASES, steps=True)
    damage(store, names[0], "manifest.json", b"")
    for version, factor in (("v1", 1.0), ("v2", 1.2)):
        sealed(Store(store), Timelines(6, 8, factor).fill(), version)
    cm.annotate(names[-2], NOTE, store=store)
    unfinished(store, RUNNING, {"pid": os.getpid(), "version": "v9"})
    with served(store) as server:
        wait_until(lambda: not server.client.get("/", params={"as": "json"}).json()["pending"], "the cards", 60)
        yield server


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.requested)
def test_a_question_is_answered_in_two_clicks(server: Served, question: Question) -> None:
    assert len(question.clicks) <= 2
    reader = Reader(server.client, "/")
    for click in question.clicks:
        if isinstance(click, str):
            reader.click(click)
        else:
            address, field, value = click
            reader.send(address, **{field: value})
    assert re.search(question.answer, reader.text), reader.text[:4000]
