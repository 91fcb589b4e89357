"""The document of a corpus: what a pipeline and a terminal learn about stored and checked requests."""

from __future__ import annotations

from chainmark.core.verdict import Verdict
from chainmark.lab.corpora import WrongRequest
from chainmark.report.corpus_document import CheckedCorpus, StoredCorpus
from chainmark.report.layouts import document_of

WRONG = tuple(WrongRequest("/block", f'{{"index": {index}}}', f"block {index} is absent") for index in range(12))


def checked(*wrong: WrongRequest) -> CheckedCorpus:
    return CheckedCorpus(
        path="corpus.json",
        hash="abc",
        network="Rosetta/Testnet",
        server="http://127.0.0.1:8082",
        requests=30,
        by_endpoint={"/block": 20, "/account/balance": 10},
        wrong=wrong,
    )


def test_a_check_names_the_endpoint_whose_responses_are_wrong() -> None:
    document = document_of(checked(*WRONG))
    assert document.verdict is Verdict.FAIL
    assert document.verdict.exit_code == 1
    assert document.sentence == "18 of 30 requests were answered correctly."
    assert {case.id: case.verdict for case in document.cases} == {
        "/block": Verdict.FAIL,
        "/account/balance": Verdict.PASS,
    }
    assert "block 3 is absent" in document.junit()
    assert "block 11 is absent" in document.html()


def test_a_terminal_shows_the_first_wrong_requests_and_states_that_there_are_more() -> None:
    printed = document_of(checked(*WRONG)).text()
    assert "block 9 is absent" in printed
    assert "block 11 is absent" not in printed
    assert "show 1 more table (12 rows)" in printed


def test_a_check_without_wrong_responses_passes() -> None:
    document = document_of(checked())
    assert document.verdict is Verdict.PASS
    assert "http://127.0.0.1:8082" in document.title


def test_a_stored_corpus_lists_refused_requests_and_missing_endpoints_without_failing() -> None:
    """Refused requests are not in the file, so the corpus can be used."""
    document = document_of(
        StoredCorpus(
            path="corpus.json",
            hash="abc",
            network="Rosetta/Testnet",
            requests={"/block": {"recent/small": 3, "old/large": 2}},
            refused=WRONG[:1],
            skipped={"/search/transactions": "not offered: status 404"},
        )
    )
    assert document.verdict.exit_code == 0
    printed = document.text()
    for part in ("5 requests", "3 recent/small, 2 old/large", "not offered: status 404", "block 0 is absent", "abc"):
        assert part in printed
    assert [case.verdict for case in document.cases] == [Verdict.PASS, Verdict.NOT_RUN]
    assert "<skipped" in document.junit()
