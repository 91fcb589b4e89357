"""The dashboard as an ASGI application: routes, formats, and error responses."""

from __future__ import annotations

import sys
import tempfile
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from chainmark.core.errors import ChainmarkError, ExitCode, UsageError
from chainmark.report.document import FORMATS, Document
from chainmark.serve.badge import badge
from chainmark.serve.charts import Query
from chainmark.serve.comment import comment
from chainmark.serve.feed import atom
from chainmark.serve.pages import Page, links_document
from chainmark.serve.rendering import content_security_policy, html_of
from chainmark.serve.safety import Guard
from chainmark.serve.site import QueryValues, Site
from chainmark.serve.writing import write_note

_MEDIA = {
    ".html": "text/html", ".json": "application/json", ".pdf": "application/pdf", ".md": "text/markdown",
    ".xml": "application/xml",
}  # fmt: skip
_STATUS = {ExitCode.USAGE: 404, ExitCode.INVALID: 409}
_SVG = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
_OF_FORM = {"chart", "part", "look", "as"}
_MOST_QUERY = 8000


def application(site: Site, names: frozenset[str], token: str) -> Starlette:
    """The application.

    Args:
        site: the pages.
        names: host names under which the server may be accessed.
        token: token required for access; "" if only this machine can reach the server.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        threading.Thread(target=site.prepare, name="preparing", daemon=True).start()
        yield
        site.close()

    def at(path: str, make: Callable[..., Page]) -> Route:
        return Route(path, lambda request: _answer(request, site, make), methods=["GET"])

    def runs(request: Request) -> Response:
        if request.headers.get("if-none-match") == f'"{site.state()}"' and "as" not in request.query_params:
            return Response(status_code=304)
        return _answer(request, site, site.runs)

    routes = [
        at("/", site.home),
        Route("/runs", runs, methods=["GET"]),
        at("/runs/{run_id}", site.run),
        at("/compare", site.compare),
        at("/history", site.history),
        at("/capacity", site.capacity),
        at("/follow", site.follow),
        at("/series", site.series),
        at("/what-if", site.what_if),
        at("/live", site.live),
        at("/metrics", site.metrics),
        at("/metrics/{system}", site.dictionary),
        at("/metrics/{system}/{metric}", site.computed),
        Route("/feed.atom", lambda request: _feed(request, site), methods=["GET"]),
        Route("/badge/{system}/{profile:path}.svg", lambda request: _badge(request, site), methods=["GET"]),
    ]
    if site.form_token:

        async def written(request: Request) -> Response:
            return await _written(request, site)

        routes.append(Route("/notes", written, methods=["POST"]))
    middleware = [Middleware(Guard, names=names, token=token), Middleware(GZipMiddleware, minimum_size=2000)]
    handlers = {HTTPException: _refused}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)


def _answer(request: Request, site: Site, make: Callable[..., Page]) -> Response:
    """The page in the requested format, or the error; runs in a thread."""
    if len(request.url.query) > _MOST_QUERY:
        return _trouble(request, "this address is too long", "select fewer items", 414)
    try:
        query = [(key, value) for key, value in request.query_params.multi_items() if key not in _OF_FORM]
        page = make(_query_values(query), **request.path_params)
        return _formatted(request, site, page, query)
    except ChainmarkError as error:
        return _trouble(request, error.message, error.hint or "", _STATUS.get(error.exit_code, 503))
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        message = f"this page could not be generated ({type(error).__name__})"
        return _trouble(request, message, "see the output of the server; other runs may be readable", 500)


def _query_values(query: Query) -> QueryValues:
    results: dict[str, list[str]] = {}
    for key, value in query:
        if value:
            results.setdefault(key, []).append(value)
    return results


def _formatted(request: Request, site: Site, page: Page, query: Query) -> Response:
    parameters = request.query_params
    if chart := parameters.get("chart"):
        number = parameters.get("part", "0")
        place = int(number) if number.isdecimal() and len(number) < 4 else -1
        svg = site.painter.svg(page.document, chart, place, parameters.get("look", "light"))
        return Response(svg, media_type="image/svg+xml", headers=_SVG | {"cache-control": "private, max-age=60"})
    if parameters.get("as") == "comment":
        return Response(comment(page.document, str(request.url.remove_query_params("as"))), media_type="text/markdown")
    if wanted := parameters.get("as"):
        return _exported(page.document, f".{wanted}")
    return _page(page, request.url.path, query)


def _page(page: Page, path: str, query: Query) -> Response:
    policy = {"content-security-policy": content_security_policy()}
    return Response(html_of(page, path, query), page.status, media_type="text/html", headers=policy)


def _exported(document: Document, suffix: str) -> Response:
    """The document as a file, as a command writes it."""
    if suffix not in FORMATS:
        raise UsageError(
            f"a page has no format `{suffix[1:]}`", f"known formats: {', '.join(item[1:] for item in FORMATS)}"
        )
    name = f"{document.kind}{suffix}"
    if suffix == ".json":
        return Response(document.json, media_type="application/json")
    with tempfile.TemporaryDirectory(prefix="chainmark-") as folder:
        content = document.write(Path(folder) / name, suffix).read_bytes()
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=_MEDIA[suffix], headers=disposition)


async def _written(request: Request, site: Site) -> Response:
    try:
        return await write_note(request, site)
    except ChainmarkError as error:
        return _trouble(request, error.message, error.hint or "", 400)


def _feed(request: Request, site: Site) -> Response:
    base = f"{request.url.scheme}://{request.url.netloc}"
    cards, _ = site.cards(wait=True)
    return Response(atom(cards, base), media_type="application/atom+xml")


def _badge(request: Request, site: Site) -> Response:
    system, profile = request.path_params["system"], request.path_params["profile"]
    cards, _ = site.cards(wait=True)
    card = next((card for card in cards if card.system == system and card.profile == profile), None)
    if card is None:
        return Response(badge(profile, "unknown", ""), 404, media_type="image/svg+xml", headers=_SVG)
    text = f"{card.newest} {card.word.lower() or 'unknown'}"
    return Response(badge(card.profile, text, card.tone), media_type="image/svg+xml", headers=_SVG)


def _trouble(request: Request, message: str, hint: str, status: int) -> Response:
    """A page with the error that prevents the requested one."""
    sentence = message[:1].upper() + message[1:]
    links = [("Home", "/", "all workloads at a glance"), ("Runs", "/runs", "all runs")]
    document = links_document(sentence, hint, links, "", heading="Other pages")
    return _page(Page(document, status=status), request.url.path, [])


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _trouble(request, "page not found", "", status)
    return _trouble(request, "this request is not supported", "", status)
