"""A corpus of requests as a document: what was stored, or whether a server still answers it correctly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import first_sentence
from chainmark.lab.corpora import WrongRequest
from chainmark.report.blocks import (
    ON_PAGES,
    TERMINAL,
    Block,
    Column,
    Remark,
    Remarks,
    Section,
    Table,
    one_line,
    row_of,
    words,
)
from chainmark.report.document import Document

_LISTED = 10  # requests on a terminal


class StoredCorpus(BaseModel):
    """The result of sampling or importing requests, with the fields of `chainmark.lab.corpora.CorpusRecord`.

    Attributes:
        path: the file with the requests.
    """

    path: str
    hash: str
    network: str
    requests: Mapping[str, Mapping[str, int]]
    refused: tuple[WrongRequest, ...]
    skipped: Mapping[str, str]


class CheckedCorpus(BaseModel):
    """The result of sending every request of a corpus once.

    Attributes:
        server: its address, without credentials.
        requests: their number; ``by_endpoint``: of each endpoint.
        wrong: those without a correct response.
    """

    path: str
    hash: str
    network: str
    requests: int
    by_endpoint: Mapping[str, int]
    wrong: tuple[WrongRequest, ...]
    server: str


def corpus_document(result: StoredCorpus | CheckedCorpus) -> Document:
    """Lay out either result."""
    if isinstance(result, StoredCorpus):
        return _stored(result)
    wrong = Counter(item.endpoint for item in result.wrong)
    correct = units.count(result.requests - len(result.wrong))
    cases = [
        Case(
            endpoint,
            endpoint,
            Verdict.FAIL if wrong[endpoint] else Verdict.PASS,
            _reason(endpoint, result.wrong),
            figures={"requests": count, "wrong": wrong[endpoint]},
        )
        for endpoint, count in result.by_endpoint.items()
    ]
    rows = [
        row_of(
            endpoint, units.count(count), units.count(wrong[endpoint]), emphasis="worse" if wrong[endpoint] else "plain"
        )
        for endpoint, count in result.by_endpoint.items()
    ]
    endpoints = Table("endpoints", "", [*words("endpoint"), Column("requests"), Column("wrong")], rows)
    return _laid_out(
        result,
        f"Corpus of {result.network} at {result.server}",
        verdict=Verdict.FAIL if wrong else Verdict.PASS,
        sentence=f"{correct} of {units.count(result.requests)} requests were answered correctly.",
        cases=cases,
        blocks=[endpoints, *_listed(result.wrong, "Requests without a correct response")],
    )


def _stored(result: StoredCorpus) -> Document:
    counts = {endpoint: sum(kinds.values()) for endpoint, kinds in result.requests.items()}
    cases = [
        Case(endpoint, endpoint, Verdict.PASS, _reason(endpoint, result.refused), figures={"requests": count})
        for endpoint, count in counts.items()
    ]
    absent = {endpoint: reason for endpoint, reason in result.skipped.items() if endpoint not in counts}
    cases += [Case(endpoint, endpoint, Verdict.NOT_RUN, reason, gates=False) for endpoint, reason in absent.items()]
    rows = [
        row_of(
            endpoint,
            units.count(counts[endpoint]),
            ", ".join(f"{n} {kind}" for kind, n in kinds.items() if len(kinds) > 1),
        )
        for endpoint, kinds in result.requests.items()
    ]
    rows += [row_of(endpoint, units.UNSET, reason) for endpoint, reason in result.skipped.items()]
    columns = [*words("endpoint"), Column("requests"), Column("kinds", kind="words", if_any=True)]
    omitted = len(result.refused)
    refusals = (
        f"{units.plural(omitted, 'request')} without a correct response {'is' if omitted == 1 else 'are'} omitted"
    )
    return _laid_out(
        result,
        f"Corpus of {result.network}",
        verdict=Verdict.PASS,
        sentence=first_sentence(
            f"The corpus has {units.plural(sum(counts.values()), 'request')} to "
            f"{units.plural(len(counts), 'endpoint')}",
            refusals if omitted else "",
        ),
        cases=cases,
        blocks=[Table("endpoints", "", columns, rows), *_listed(result.refused, "Requests that are not in the corpus")],
    )


def _laid_out(
    result: StoredCorpus | CheckedCorpus,
    title: str,
    *,
    verdict: Verdict,
    sentence: str,
    cases: list[Case],
    blocks: list[Block],
) -> Document:
    return Document(
        kind="corpus",
        title=title,
        subtitle=one_line([result.path, f"hash {result.hash}"]),
        verdict=verdict,
        sentence=sentence,
        suites=[Suite(title, cases)],
        sections=[Section("requests", "Requests", blocks)],
        notes=[],
        result=result,
        tool_version=tool_version(),
    )


def _reason(endpoint: str, wrong: Sequence[WrongRequest]) -> str:
    """Why requests to an endpoint had no correct response: each reason once."""
    own = [item.reason for item in wrong if item.endpoint == endpoint]
    if not own:
        return ""
    return f"{units.plural(len(own), 'request')} without a correct response: {'; '.join(dict.fromkeys(own))}"


def _listed(wrong: Sequence[WrongRequest], title: str) -> list[Block]:
    """All of them on pages, and the first ones on a terminal."""
    if not wrong:
        return []
    first = [Remark(f"{item.endpoint}: {item.reason}", "✗", "worse") for item in wrong[:_LISTED]]
    rows = [row_of(item.endpoint, item.reason, item.body) for item in wrong]
    columns = [*words("endpoint", "reason"), Column("body", kind="code")]
    return [
        Remarks("first-wrong", title, first, media=TERMINAL),
        Table("wrong", title, columns, rows, media=ON_PAGES),
    ]
