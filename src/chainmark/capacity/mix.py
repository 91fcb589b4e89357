"""Several endpoints as one load: their frequencies, given or taken from an access log."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

from chainmark.capacity.model import Endpoint, MixPart
from chainmark.capacity.service_level import Sla
from chainmark.core import units
from chainmark.core.errors import UsageError

# The ID of a mix among endpoints: SLAs, levels and required capacities use it.
MIX = "mix"
_MOST_STATED = 3
# "GET /block/5?full=1 HTTP/1.1", anywhere in a line.
_REQUEST = re.compile(r'"?(?P<method>[A-Z]{3,7}) (?P<path>/\S*) HTTP/[\d.]+"?')
# Names of fields, as servers and their documentation use them.
_METHODS = ("method", "request_method", "verb")
_PATHS = ("path", "uri", "request_uri", "url", "request_path")
_REQUESTS = ("request", "request_line")


def mixed(endpoints: Sequence[Endpoint], weights: Mapping[str, float], endpoint_sla: Callable[[str], Sla]) -> Endpoint:
    """One endpoint that receives all of their requests, each endpoint according to its weight.

    Args:
        endpoints: of a server.
        weights: by the endpoint's id; endpoints without one are omitted.
        endpoint_sla: the SLA of each within the mix.

    Raises:
        UsageError: a weight names an unknown endpoint.
    """
    by_id = {endpoint.id: endpoint for endpoint in endpoints}
    unknown = next((name for name in weights if name not in by_id), None)
    if unknown is not None:
        raise UsageError(
            f"the mix contains `{unknown}`, which is not an endpoint of this test",
            f"endpoints: {', '.join(sorted(by_id))}",
        )
    chosen = [by_id[name] for name in weights]
    parts = [
        MixPart(endpoint.id, endpoint.label, weights[endpoint.id], len(endpoint.requests), endpoint_sla(endpoint.id))
        for endpoint in chosen
    ]
    return Endpoint(
        id=MIX,
        label=f"mix of {units.plural(len(parts), 'endpoint')}",
        requests=tuple(request for endpoint in chosen for request in endpoint.requests),
        error_pointers=tuple(dict.fromkeys(pointer for endpoint in chosen for pointer in endpoint.error_pointers)),
        # For a single endpoint the whole suffices.
        parts=tuple(parts) if len(parts) > 1 else (),
    )


def loosest(parts: Iterable[MixPart]) -> Sla:
    """The SLA of a mix as a whole: no stricter than those of its endpoints, each of which is judged by itself."""
    slas = [part.sla for part in parts]
    if not slas:
        return Sla()
    return Sla(
        p99_s=max(sla.p99_s for sla in slas),
        error_share=max(sla.error_share for sla in slas),
        achieved_share=min(sla.achieved_share for sla in slas),
        min_requests=max(sla.min_requests for sla in slas),
    )


@dataclass(frozen=True)
class Learnt:
    """The mix in an access log.

    Attributes:
        weights: requests by the endpoint's id, in the endpoints' order; only of endpoints that were requested.
        requests: requests in the log.
        others: those to no endpoint, by method and path.
        unread: lines without a request.
    """

    weights: dict[str, float]
    requests: int
    others: Counter[str]
    unread: int

    def in_words(self) -> str:
        """The requests and lines that were omitted, as a sentence; "" if there are none."""
        other_requests = sum(self.others.values())
        text = ", ".join(f"{path} ({count})" for path, count in self.others.most_common(_MOST_STATED))
        parts = [
            f"{units.count(other_requests)} of {units.plural(self.requests, 'request')} are of no endpoint: {text}"
        ] * bool(other_requests)
        parts += [f"{units.plural(self.unread, 'line')} without a request"] * bool(self.unread)
        return "; ".join(parts)


def learnt(path: Path, endpoints: Sequence[Endpoint]) -> Learnt:
    """How often an access log requests each endpoint: combined format of nginx and Apache, or JSON lines; also gzip.

    Raises:
        UsageError: it cannot be read, or has no request to any of them.
    """
    endpoint_of = _by_path(endpoints)
    counts: Counter[str] = Counter()
    others: Counter[str] = Counter()
    unread = 0
    try:
        with _opened(path) as file:
            for line in filter(str.strip, file):
                request = _request_of(line)
                if request is None:
                    unread += 1
                elif (id_ := endpoint_of(*request)) is not None:
                    counts[id_] += 1
                else:
                    others[f"{request[0]} {_bare(request[1])}"] += 1
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"the access log {path} cannot be read: {error}", "text or gzip, in UTF-8") from error
    if not counts:
        reported = ", ".join(name for name, _ in others.most_common(_MOST_STATED)) or "no request at all"
        raise UsageError(
            f"the access log {path} has no request to an endpoint: it has {reported}",
            f"endpoints: {', '.join(endpoint.label for endpoint in endpoints)}",
        )
    weights = {endpoint.id: float(counts[endpoint.id]) for endpoint in endpoints if counts[endpoint.id]}
    return Learnt(weights, counts.total() + others.total(), others, unread)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8"))
    return path.open(encoding="utf-8")


def _request_of(line: str) -> tuple[str, str] | None:
    """Method and path of the request in a line."""
    if not line.lstrip().startswith("{"):
        return _of_text(line)
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    whole, path = _field(entry, _REQUESTS), _field(entry, _PATHS)
    if path is None:
        return _of_text(whole) if whole else None
    parts = urlsplit(path)
    return (_field(entry, _METHODS) or "GET").upper(), f"{parts.path}?{parts.query}"


def _of_text(text: str) -> tuple[str, str] | None:
    match = _REQUEST.search(text)
    return (match["method"], match["path"]) if match else None


def _field(entry: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := entry.get(name), str) and value), None)


def _bare(path: str) -> str:
    return path.partition("?")[0]


def _by_path(endpoints: Sequence[Endpoint]) -> Callable[[str, str], str | None]:
    """The endpoint of a request: exact matches come first, then a path without its query, then templates."""
    exact: dict[tuple[str, str], str] = {}
    for path_of in (str, _bare):
        for endpoint in endpoints:
            for request in endpoint.requests:
                exact.setdefault((request.method, path_of(request.path)), endpoint.id)
    templates = [(method, re.compile(pattern), item.id) for item in endpoints for method, pattern in _patterns(item)]

    def known(method: str, path: str) -> str | None:
        for form in (path, _bare(path)):
            if (id_ := exact.get((method, form))) is not None:
                return id_
        return next(
            (
                id_
                for template_method, form, id_ in templates
                if template_method == method and form.fullmatch(_bare(path))
            ),
            None,
        )

    return known


def _patterns(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """A template as a regular expression: each of its values is a part of the path."""
    for method, template in endpoint.templates:
        pieces = re.split(r"\{[A-Za-z_]\w*\}", _bare(template))
        yield method, "[^/]+".join(map(re.escape, pieces))
