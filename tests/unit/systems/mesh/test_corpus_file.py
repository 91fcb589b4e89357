"""A pinned corpus: the same content gives the same bytes, and other content is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.systems.mesh.client import MeshClient
from chainmark.systems.mesh.corpus import CorpusRequest, sample
from chainmark.systems.mesh.discovery import Offering, discover
from chainmark.systems.mesh.pinned import Corpus, CorpusEndpoint, Item, Stratum
from chainmark.systems.mesh.strata import Levels, draw

from tests.unit.systems.mesh.scripted_server import NETWORK, answer, chain, serving


def _sampled(url: str, **order: Any) -> Corpus:
    with MeshClient(url) as client:
        return sample(discover(client), client, CorpusRequest.model_validate({"blocks": 20, **order}), Silent())


@pytest.fixture
def corpus() -> Corpus:
    with serving(chain()) as url:
        return _sampled(url)


def test_a_saved_corpus_is_loaded_unchanged(corpus: Corpus, tmp_path: Path) -> None:
    path, other = tmp_path / "one.json", tmp_path / "other.json"
    corpus.save(path)
    loaded = Corpus.load(path)
    loaded.save(other)
    assert (loaded, loaded.hash) == (corpus, corpus.hash)
    assert path.read_bytes() == other.read_bytes()


def test_the_corpus_depends_only_on_the_seed() -> None:
    with serving(chain()) as url, serving(chain()) as other:
        first = _sampled(url)
        assert _sampled(other).hash == first.hash
        assert _sampled(other, seed=2).endpoint("block") != first.endpoint("block")


def test_a_changed_corpus_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    """Figures of a shortened corpus must not be compared with figures of the complete one."""
    path = tmp_path / "corpus.json"
    corpus.save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"index": 0', '"index": 1', 1), encoding="utf-8")
    with pytest.raises(UsageError, match="was changed after it was written"):
        Corpus.load(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not a corpus"),
        ('{"kind": "mesh corpus", "schema_version": 2}', "has the schema 2"),
        ('{"kind": "mesh corpus", "schema_version": 1}', "origin Field required"),
    ],
)
def test_a_file_that_is_not_a_corpus_is_refused(content: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=what):
        Corpus.load(path)
    with pytest.raises(UsageError, match="cannot be read"):
        Corpus.load(tmp_path / "absent.json")


def test_counts_that_do_not_add_up_are_refused() -> None:
    item = Item(body={}, expect={}, stratum="all")
    with pytest.raises(ValidationError, match="counts of `block` do not add up"):
        CorpusEndpoint(id="block", strata=[Stratum(name="all", description="")], items=[item], candidates=2)


def test_the_requests_passed_to_the_load_test(corpus: Corpus) -> None:
    (block,) = corpus.load_endpoints(["block"])
    assert (block.id, block.label, block.error_pointers) == ("block", "/block", ("/code", "/message", "/retriable"))
    request = block.requests[0]
    assert (request.method, request.path) == ("POST", "/block")
    assert ("Content-Type", "application/json") in request.headers
    assert json.loads(request.body)["network_identifier"] == NETWORK
    parts = corpus.load_endpoints(["block"], by_stratum=True)
    assert sum(len(part.requests) for part in parts) == len(block.requests)
    assert {"block__old_small", "block__recent_small"} <= {part.id for part in parts}
    assert corpus.load_endpoints(["/block"]) == (block,)
    counts = corpus.strata_counts()
    assert {endpoint.id: sum(counts[endpoint.id].values()) for endpoint in corpus.endpoints} == {
        endpoint.id: len(endpoint.requests) for endpoint in corpus.load_endpoints()
    }
    assert corpus.skipped()["/account/coins"] == "not offered: 404 text/plain “404 page not found”"
    (only,) = corpus.load_endpoints(["block"], strata=["old/small"])
    assert 0 < len(only.requests) < len(block.requests)


def test_a_missing_endpoint_is_reported_with_the_reason(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="no endpoint `account_coins`") as caught:
        corpus.load_endpoints(["account_coins"])
    assert caught.value.hint == "it was not offered when the corpus was created: 404 text/plain “404 page not found”"
    with pytest.raises(UsageError, match="the corpus has no request in the stratum `huge`"):
        corpus.load_endpoints(["block"], strata=["huge"])


def test_another_network_is_refused_and_a_reset_chain_is_detected(corpus: Corpus) -> None:
    other_network = {"network_identifiers": [{"blockchain": "cardano", "network": "mainnet"}]}
    with serving({**chain(), "/network/list": lambda _: answer(other_network)}) as url, MeshClient(url) as client:
        server = discover(client)
        with pytest.raises(UsageError, match=r"for the network `cardano/preprod`, but .* serves `cardano/mainnet`"):
            corpus.check_against(server, client, Silent())
    with serving(chain(pruned_below=50)) as url, MeshClient(url) as client:
        server = discover(client)
        wrong = corpus.check_against(server, client, Silent())
        left = corpus.validated_by(server, client, Silent())
    block, before = left.endpoint("block"), corpus.endpoint("block")
    assert block is not None
    assert before is not None
    assert wrong
    assert {refusal.reason for refusal in wrong} == {"500 code 4001 “Block not found”"}
    assert (block.refused, len(block.items)) == (len(wrong), len(before.items) - len(wrong))
    assert all(item.body["block_identifier"]["index"] >= 50 for item in block.items)
    assert left.hash != corpus.hash


def test_an_endpoint_without_correct_responses_is_removed(corpus: Corpus) -> None:
    with serving({**chain(), "/block": lambda _: answer({})}) as url, MeshClient(url) as client:
        left = corpus.validated_by(discover(client), client, Silent())
    assert left.endpoint("block") is None
    (why,) = [unmeasured for unmeasured in left.unmeasured if unmeasured.endpoint == "block"]
    assert (why.state, why.reason) == (Offering.REFUSED, "/block/block_identifier/index is missing")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=80))
def test_levels_partition_the_sampled_values(values: list[int]) -> None:
    levels = Levels.of(values, ("few", "some", "many"), "operations")
    low = sum(levels.name(value) == "few" for value in values)
    high = sum(levels.name(value) == "many" for value in values)
    assert low >= len(values) / 2
    assert high <= len(values) / 10
    ranked = [levels.names.index(levels.name(value)) for value in sorted(values)]
    assert ranked == sorted(ranked)


@given(st.lists(st.integers(), unique=True, max_size=40), st.integers(0, 45), st.integers())
def test_a_draw_is_bounded_and_preserves_the_order(items: list[int], count: int, seed: int) -> None:
    drawn = draw(items, count, random.Random(seed))
    assert len(drawn) == min(count, len(items))
    assert drawn == [item for item in items if item in set(drawn)]
