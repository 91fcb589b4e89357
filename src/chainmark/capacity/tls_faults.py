"""Why a TLS connection to a server fails, in words: its certificate, or a server without TLS."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

from chainmark.capacity.model import Target
from chainmark.capacity.probing import connected, tls_context

Reason = tuple[str, str]

_TRUST = "if you trust it, give it with `--ca-file FILE`; `--insecure` accepts any certificate"
# OpenSSL's error numbers (X509_V_ERR_…).
_CERTIFICATE_FAULTS: dict[int, Reason] = {
    9: ("is not valid yet", "check the clocks of this machine and of the server"),
    10: ("has expired", "renew it; `--insecure` skips the verification"),
    18: ("is self-signed", _TRUST),
    23: ("has been revoked", "the server needs a new certificate"),
}
_OF_AUTHORITY = (
    "is signed by an authority that is not trusted here",
    "give the authority's certificate with `--ca-file FILE`; `--insecure` accepts any certificate",
)
_AUTHORITY_FAULTS = frozenset({2, 19, 20, 21, 24})
_NAME_FAULTS = frozenset({62, 64})
_NO_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)
_WANTS_CLIENT = ("the server requires a client certificate", "give one with `--cert FILE --key FILE`")
_ENDED = (
    "the server ended the TLS handshake",
    "does it use `http://`, or require a client certificate (`--cert FILE --key FILE`)?",
)


def tls_fault(error: OSError, host: str) -> Reason:
    """The meaning of a failed handshake: a clause, and a hint.

    Args:
        error: the error of the handshake.
        host: the host that the certificate must name.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        fault, hint = _certificate_fault(error, host)
        return f"its certificate {fault}", hint
    if isinstance(error, TimeoutError):
        return "the TLS handshake did not end in time", "does the server use `http://`?"
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if "CERTIFICATE_REQUIRED" in reason:
        return _WANTS_CLIENT
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError) or "HANDSHAKE_FAILURE" in reason:
        return _ENDED
    detail = reason.replace("_", " ").lower() or str(error)
    reason_text = (
        "the server does not respond with TLS" if reason in _NO_TLS else f"the TLS handshake failed ({detail})"
    )
    return reason_text, "does the server use `http://`?"


def _certificate_fault(error: ssl.SSLCertVerificationError, host: str) -> Reason:
    code = error.verify_code
    if code in _NAME_FAULTS:
        return f"is for another host than `{host}`", "use a host that the certificate names, or `--insecure`"
    if code in _AUTHORITY_FAULTS:
        return _OF_AUTHORITY
    return _CERTIFICATE_FAULTS.get(code, (f"is not accepted: {error.verify_message}", _TRUST))


def why_no_tls(target: Target, timeout_s: float) -> Reason | None:
    """Try a handshake; None: it succeeded, or nothing listens.

    Raises:
        UsageError: a certificate or a key cannot be used.
    """
    name = target.tls.server_name or urlsplit(target.url).hostname or ""
    context = tls_context(target)
    try:
        plain = connected(target, timeout_s)
    except OSError:
        return None
    with plain:
        try:
            context.wrap_socket(plain, server_hostname=name).close()
        except OSError as error:
            return tls_fault(error, name)
    return None
