"""Mixes of endpoints, and clients with think time, on a real server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.errors import UsageError
from chainmark.lab.loading import LoadTest
from chainmark.report.blocks import Table
from chainmark.report.layouts import document_of
from chainmark.store.runs import Store

from tests.real.load_servers import Asked, Reply, known_test, serving

RIGHT = [{"pointer": "/right", "is": True}]
REQUESTS = [
    {"endpoint": "often", "path": "/often/{n}", "checks": RIGHT, "rows": [{"n": 1}, {"n": 2}]},
    {"endpoint": "seldom", "path": "/seldom", "checks": RIGHT},
]


def _test(folder: Path, behaviour: Any, **sections: Any) -> LoadTest:
    search = {"clients_first": 8, "clients_last": 8, "times": 1}
    with serving(behaviour) as server:
        return known_test(Store(folder), server, request=REQUESTS, **{"search": search, **sections})


def test_an_endpoint_that_fails_within_a_mix_fails_the_mix(tmp_path: Path) -> None:
    """The mix as a whole has fewer errors than allowed, since most requests go to the other endpoint."""
    counter: Counter[str] = Counter()

    def behaviour(request: Asked) -> Reply:
        counter[request.path] += 1
        wrong = request.path == "/seldom" and counter[request.path] % 12 == 2
        return Reply(status=500 if wrong else 200, after_s=0.002)

    fixed = {"times": 1, "duration_s": 1, "clients": {"mix": [4]}}
    test = _test(tmp_path, behaviour, mix={"often": 9, "seldom": 1}, fixed=fixed)
    (endpoint,) = test.report.targets[0].endpoints
    (capacity,) = endpoint.capacities
    assert (endpoint.id, capacity.capacity, capacity.condition, capacity.condition_part) == (
        "mix",
        0.0,
        "errors",
        "/seldom",
    )
    often, seldom = endpoint.steps[0].parts
    assert often.due + seldom.due == endpoint.steps[0].due
    assert 0.05 < (seldom.share or 0.0) < 0.15
    assert (often.outcome != "fail", often.error_share) == (True, 0.0)
    assert seldom.outcome == "fail"
    assert 0.5 < counter["/often/1"] / counter["/often/2"] < 2.0
    (run,) = test.runs
    samples = [run.samples(f"mix{part}_at_4_clients") for part in ("", "_often", "_seldom")]
    whole, *parts = map(len, samples)
    assert whole == sum(parts)
    assert parts[0] > 4 * parts[1] > 0
    assert run.manifest.workload["mix.often"] == 0.9
    blocks = [block for section in document_of(test.report).sections for block in section.blocks]
    (table,) = [block for block in blocks if isinstance(block, Table) and block.id == "mix-0"]
    texts = [row.cells[-1].text for row in table.rows]
    # On a busy machine there may be too few requests for a pass.
    assert (texts[0] != "fail", texts[1]) == (True, "fail")


def test_a_mix_is_derived_from_an_access_log(tmp_path: Path) -> None:
    """Users' real request mix is in the access log; a hand-written one would only be a guess."""
    line = '127.0.0.1 - - [24/Nov/2026:03:01:35 +0000] "GET {} HTTP/1.1" 200 12 "-" "-"\n'
    log = tmp_path / "access.log"
    log.write_text("".join(map(line.format, ["/often/77"] * 3 + ["/seldom"] + ["/robots.txt"])), encoding="utf-8")
    test = _test(tmp_path, lambda _: Reply(after_s=0.002), mix_from=str(log))
    (target,) = test.report.targets
    assert [part.label for part in target.endpoints[0].steps[0].parts] == ["/often/{n}", "/seldom"]
    assert 0.2 < (target.endpoints[0].steps[0].parts[1].share or 0.0) < 0.3
    assert any("1 of 5 requests are of no endpoint: GET /robots.txt (1)" in warning for warning in target.warnings)
    assert next(fact.value for fact in target.facts if fact.label == "Mix") == "/often/{n} 75 %, /seldom 25 %"
    with pytest.raises(UsageError, match="`mix` names the endpoint `other`"):
        _test(tmp_path, lambda _: Reply(), mix={"other": 1})


def test_clients_with_think_time_send_fewer_requests(tmp_path: Path) -> None:
    """Ten clients with 0.1 s of think time send a server that responds at once a hundred requests per second."""
    fixed = {"times": 1, "duration_s": 3, "clients": {"work": [10]}}
    with serving(lambda _: Reply()) as server:
        steps = {"think_s": 0.1, "warm_up_s": 0.5}
        test = known_test(Store(tmp_path), server, search={"kinds": []}, fixed=fixed, steps=steps)
    (step,) = test.report.targets[0].endpoints[0].steps
    # The lower limit allows four standard deviations. A busy machine can only reduce the count.
    assert 230 <= step.ok <= 370
    assert step.failed == 0
    assert test.runs[0].manifest.workload["steps.think_s"] == 0.1
