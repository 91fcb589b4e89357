"""Write access, if the server was started with it: notes on runs. Runs themselves are never changed."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs, quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from chainmark.api.history import annotate, note
from chainmark.core.errors import UsageError
from chainmark.serve.site import Site

_MOST_BYTES = 10_000
_MOST_LETTERS = 500


async def write_note(request: Request, site: Site) -> Response:
    """Store the note of a form: on a run, on its version, or on a change of the set-up before it.

    Raises:
        UsageError: the form is not this server's own, or is empty.
    """
    form = await _form(request)
    if not (_is_same_origin(request) and hmac.compare_digest(form.get("form", "").encode(), site.form_token.encode())):
        raise UsageError(
            "this form does not come from a page of this server", "reload the page and submit the form again"
        )
    run_id, text = form.get("run", ""), " ".join(form.get("text", "").split())
    if not text or len(text) > _MOST_LETTERS:
        raise UsageError("a note must have 1 to 500 characters", "go back and change it")
    await run_in_threadpool(_noted, site, run_id, form.get("reach", ""), text)
    return RedirectResponse(f"/runs/{quote(run_id)}", 303)


async def _form(request: Request) -> dict[str, str]:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _MOST_BYTES:
            raise UsageError("this form is too large", "shorten the note")
    quantiles = parse_qs(content.decode("utf-8", "replace"), max_num_fields=10)
    return {name: values[0] for name, values in quantiles.items()}


def _is_same_origin(request: Request) -> bool:
    return urlsplit(request.headers.get("origin", "")).netloc == request.headers.get("host")


def _noted(site: Site, run_id: str, reach: str, text: str) -> None:
    run = site.sealed(run_id).manifest
    if reach == "set-up":
        note(run.subject.system, run.started_at, text, store=site.store)
    elif reach in {"run", "version"}:
        annotate(run_id if reach == "run" else run.subject.version, text, store=site.store)
    else:
        raise UsageError(f"a note cannot apply to `{reach}`", "it applies to a run, a version or a set-up")
