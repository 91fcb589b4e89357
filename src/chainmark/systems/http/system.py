"""The system `http`: requests from a profile, sent once and then under load."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, cast

import blake3
from pydantic import BaseModel

from chainmark.capacity.engine import UNANSWERED, known_failure
from chainmark.capacity.measured import ErrorClass
from chainmark.capacity.metrics import typical_catalogue
from chainmark.capacity.model import Endpoint, LevelKind, LoadLevel, Request, StepRequest, Target
from chainmark.capacity.probing import hint_of_status, proxy_fault
from chainmark.capacity.profile import LoadProfile
from chainmark.capacity.step import run_step
from chainmark.capacity.tls_faults import why_no_tls
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import contradicts
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Fact, Subject
from chainmark.core.progress import Progress
from chainmark.lab.profiles import check_profile
from chainmark.lab.protocols import Service, ServiceRequest
from chainmark.systems.http.profile import Cell, HttpProfile, RequestEntry, filled, filled_value
from chainmark.trails.requests import FollowsRequests

_PRODUCT = re.compile(r"([A-Za-z][\w.-]*)/v?(\d[\w.+-]*)")
PROBE_WINDOW_S = 0.01
PROBE_LOOK_S = 0.002
PROTOCOL = known_failure("protocol")
HTTP_2_REFUSED = "does not agree to HTTP/2"  # crates/chainmark-load/src/http/session.rs


class HttpApi(FollowsRequests):
    """The system `http`, found by its folder."""

    name = "http"
    title = "HTTP API"

    def catalogue(self) -> Catalogue:
        """The metrics of an endpoint called `endpoint`, at one level as an example; a profile names its own."""
        return typical_catalogue(self.name, self.title, [Endpoint("endpoint", "/endpoint", ())])

    def profile(self, content: Mapping[str, object]) -> HttpProfile:
        """Check a profile, and fill in its templates once, so that a missing value is found before any load."""
        profile = check_profile(HttpProfile, content)
        endpoints_of(profile)
        return profile

    def load_profile(self, profile: BaseModel) -> LoadProfile:
        """Always true."""
        return cast(HttpProfile, profile)

    def prepare(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> Service:
        """Send every request once."""
        http = cast(HttpProfile, profile)
        endpoints = chosen(endpoints_of(http), order.endpoints)
        check = Checked(http.timeout_s, http.steps.request_coding)
        header = check_right(order.target, endpoints, progress, check) or "not stated"
        version = order.version or http.version
        return Service(
            subject=Subject(system=self.name, name=http.title, version=version),
            target=order.target,
            endpoints=endpoints,
            strata={},
            skipped={},
            corpus_hash=corpus_hash(endpoints),
            facts=(Fact(label="Server", value=header),),
            contradictions=contradictions(header, http.title, version),
        )


def endpoints_of(profile: HttpProfile) -> tuple[Endpoint, ...]:
    """The profile's endpoints, in the order in which it names them first.

    Raises:
        UsageError: a template or a data file is invalid.
    """
    requests: dict[str, list[Request]] = {}
    labels: dict[str, str] = {}
    for entry in profile.request:
        labels.setdefault(entry.endpoint, entry.label or entry.path)
        requests.setdefault(entry.endpoint, []).extend(_requests(entry))
    pointers = profile.error_pointers
    return tuple(
        Endpoint(id_, labels[id_], tuple(request), pointers, templates=_templates(profile, id_))
        for id_, request in requests.items()
    )


def _templates(profile: HttpProfile, endpoint: str) -> tuple[tuple[str, str], ...]:
    return tuple((entry.method, entry.path) for entry in profile.request if entry.endpoint == endpoint)


def _requests(entry: RequestEntry) -> Iterator[Request]:
    where = f"the request `{entry.method} {entry.path}`"
    checks = [check.to_engine_request() for check in entry.checks]
    for row in _rows(entry) or [{}]:
        expect: dict[str, object] = {"status": entry.status, "json": bool(checks)}
        if checks:
            expect["checks"] = filled_value(checks, row, where)
        if entry.contains is not None:
            expect["contains"] = filled(entry.contains, row, where)
        yield Request(
            method=entry.method,
            path=filled(entry.path, row, where),
            headers=tuple((name, filled(value, row, where)) for name, value in entry.headers.items()),
            body=filled(entry.body, row, where),
            expect=expect,
            repeatable=entry.repeatable,
        )


def _rows(entry: RequestEntry) -> Sequence[dict[str, Cell]]:
    if entry.csv is None:
        return entry.rows
    path = Path(entry.csv)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows: list[dict[str, Cell]] = [_whole(row, path, reader.line_num) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"the data file {path} cannot be read: {error}", "give a CSV file in UTF-8 with a header"
        ) from error
    if not rows:
        raise UsageError(f"the data file {path} has no rows")
    return rows


def _whole(row: Mapping[Any, Any], path: Path, line: int) -> dict[str, Cell]:
    """The reader marks missing and surplus columns with None."""
    if None in row or None in row.values():
        raise UsageError(f"line {line} of {path} does not have as many values as the header has columns")
    return dict(row)


def chosen(endpoints: Sequence[Endpoint], wanted: Sequence[str]) -> tuple[Endpoint, ...]:
    """The selected endpoints, by ID or label; all if none was selected.

    Raises:
        UsageError: there is none of that name.
    """
    for name in wanted:
        if not any(name in {endpoint.id, endpoint.label} for endpoint in endpoints):
            raise UsageError(
                f"there is no endpoint `{name}`", f"endpoints: {', '.join(endpoint.id for endpoint in endpoints)}"
            )
    return tuple(endpoint for endpoint in endpoints if not wanted or {endpoint.id, endpoint.label} & set(wanted))


def corpus_hash(endpoints: Sequence[Endpoint]) -> str:
    """BLAKE3 of the requests and expected responses."""
    requests = [asdict(endpoint) for endpoint in endpoints]
    for item in requests:
        for request in item["requests"]:
            # It does not affect the requests, only their rate.
            del request["repeatable"]
        # Nor do these: the report shows the rate of an endpoint next to the hash.
        del item["parts"], item["templates"]
    text = json.dumps(requests, sort_keys=True, ensure_ascii=False)
    return blake3.blake3(text.encode()).hexdigest()


@dataclass(frozen=True)
class Checked:
    """How requests are sent before the load.

    Attributes:
        timeout_s: response timeout by the endpoint's ID.
        coding: how bodies are compressed.
    """

    timeout_s: Callable[[str], float]
    coding: Literal["gzip", "br"] | None = None


def check_right(target: Target, endpoints: Sequence[Endpoint], progress: Progress, how: Checked) -> str | None:
    """Send every request once, with the same engine as under load.

    Returns:
        The server's name from its responses.

    Raises:
        UsageError: a response is not correct by the profile.
        EnvironmentFailure: the server does not respond.
    """
    progress.stage(f"sending each request once to {target.url}")
    named: str | None = None
    for number, endpoint in enumerate(endpoints):
        progress.update(number / len(endpoints), endpoint.label)
        for request in endpoint.requests:
            item = Endpoint(endpoint.id, endpoint.label, (request,), endpoint.error_pointers)
            named = _ask_once(target, item, how) or named
    return named


def _ask_once(target: Target, endpoint: Endpoint, how: Checked) -> str | None:
    # One request is due within the window, at its begin; a list may have thousands, so the window is short.
    level, timeout_s = LoadLevel(LevelKind.RATE, 1.0 / PROBE_WINDOW_S), how.timeout_s(endpoint.id)
    order = StepRequest(
        target,
        endpoint,
        level,
        0.0,
        PROBE_WINDOW_S,
        timeout_s=timeout_s,
        drain_s=timeout_s,
        request_coding=how.coding,
    )
    result = run_step(order, pause=lambda _: time.sleep(PROBE_LOOK_S))
    if not result.counts.failed:
        return result.server
    error, request = result.errors[0], endpoint.requests[0]
    what = f"`{request.method} {request.path}` of {target.url}"
    way = target.access.way
    if way and (error.kind == "connect" or error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED):
        why, hint = proxy_fault(way, error.detail or str(error.status))
        raise EnvironmentFailure(f"{what} failed: {why}", hint)
    if error.kind in UNANSWERED or error.kind == PROTOCOL:
        why, hint = _why_unanswered(target, error, timeout_s)
        raise EnvironmentFailure(f"{what} failed: {why}", hint)
    reported = f" {dict(error.reported)}" if error.reported else ""
    manner = {
        "status": f"has status {error.status}",
        "answer": "has a body that cannot be read",
        "wrong answer": "has a wrong body",
    }
    hint = "correct the server, or the `checks`, `contains` or `status` of the request in the profile"
    raise UsageError(
        f"the response to {what} {manner.get(error.kind, f'failed ({error.kind})')}, "
        f"which the profile does not accept: {error.detail}{reported}",
        hint_of_status(error.status, error.detail or "") if error.kind == "status" and error.status else hint,
    )


def _why_unanswered(target: Target, error: ErrorClass, timeout_s: float) -> tuple[str, str]:
    """Why no response arrived, and what to do about it."""
    detail = error.detail or error.kind
    if error.kind == "tls" and HTTP_2_REFUSED in detail:
        return detail, "omit `--http2`, or let the server choose: `--set steps.http_version=auto`"
    if error.kind == "tls":
        return why_no_tls(target, timeout_s) or (detail, "does the server require a client certificate (`--cert`)?")
    if error.kind == PROTOCOL:
        spoken = f"does the server support HTTP/{target.http_version}?"
        hint = "does the server require `https://`?" if "TLS" in detail else spoken
        return f"the server does not send a valid HTTP response ({detail})", hint
    if error.kind == "timeout":
        hint = "is the server stuck? `--set steps.timeout_s=SECONDS` raises the timeout"
        return f"{detail} ({units.duration(timeout_s)})", hint
    if error.kind == "connect":
        return f"{error.kind}, {detail}", "is the server running?"
    is_tls = target.url.startswith("https:")
    hint = "check the server's log" + ("; does it require a client certificate (`--cert`)?" if is_tls else "")
    return f"{error.kind}, {detail}", hint


def contradictions(header: str, title: str, version: str) -> tuple[str, ...]:
    """Whether a `Server` header reports another version than the API's label.

    The header may be that of a proxy or a framework, whose version is not the API's. So only a product that the API's
    title names counts: "nginx/1.25.3" against "nginx, small files".

    Args:
        header: products with their versions, as in RFC 9110; others are ignored.
        title: name of the API.
        version: its label.
    """
    words = set(re.findall(r"[\w.-]+", title.lower()))
    return tuple(
        f"the server reports {name} {match}, not {version}"
        for name, match in _PRODUCT.findall(header)
        if name.lower() in words and contradicts(version, match)
    )


SYSTEM = HttpApi()
