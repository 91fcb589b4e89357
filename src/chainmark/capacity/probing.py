"""Single requests to a server that is to be loaded, as the load engine will make them: no proxy, no redirect."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx

from chainmark.capacity.model import Target
from chainmark.core.errors import UsageError


def http_client(target: Target, timeout_s: float) -> httpx.Client:
    """A client of the target; its paths are relative. Answers are asked for uncompressed.

    Args:
        timeout_s: for connecting, and again for each wait for bytes.

    Raises:
        UsageError: a certificate or a key cannot be used.
    """
    transport = httpx.HTTPTransport(verify=_tls(target), uds=target.socket_path or None, trust_env=False)
    return httpx.Client(
        base_url=target.base_url,
        transport=transport,
        timeout=timeout_s,
        trust_env=False,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
    )


def headers_of(target: Target) -> dict[str, str]:
    """What lets a request in."""
    return {name: value for name, value in target.access.values() if name.lower() != "accept-encoding"}


def server_header(target: Target, timeout_s: float) -> str:
    """What the server says of itself in any answer's head; the body is not waited for."""
    with http_client(target, timeout_s) as client:
        try:
            with client.stream("GET", "/", headers=headers_of(target)) as answer:
                return target.access.hide(str(answer.headers.get("server", "not stated")))
        except httpx.HTTPError:
            return "not stated"


def _tls(target: Target) -> ssl.SSLContext | bool:
    """Loading a machine's certificates takes 35 ms, and on plain HTTP there is nothing to verify."""
    access, tls = target.access, target.tls
    if not target.url.startswith("https:") or (not tls.verify and access.certificate is None):
        return False
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except OSError as error:
        raise UsageError(f"{tls.ca_file} holds no certificates ({error})", "a PEM file is wanted") from error
    if not tls.verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if access.certificate is not None:
        _identify(context, access.certificate, access.key)
    return context


def _identify(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    try:
        # An encrypted key would be asked for on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise UsageError(
            f"the client's certificate {certificate} and its key cannot be used ({error})",
            "PEM files: the certificate with its chain, and its key without a password",
        ) from error
