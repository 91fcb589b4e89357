"""The parts of an `Access` that may be stored with a plan, so that resuming it does not need all of them again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from chainmark.capacity.access import Access
from chainmark.core.errors import UsageError
from chainmark.core.secrets import is_secret_name

_VARIABLE = r"\$\{[A-Za-z_]\w*\}"
# A scheme's name may precede a variable; any other text next to it may be part of a secret.
_FROM_ELSEWHERE = re.compile(rf"(?:[A-Za-z]+ )?{_VARIABLE}|@.+")
_USER = re.compile(rf"(?:[^:@$]*|{_VARIABLE}):{_VARIABLE}|{_VARIABLE}")
_PROXY = re.compile(rf"http://(?:(?P<user>.*)@)?[^@$]*|{_VARIABLE}")
_AUTHORIZATION = "authorization"


class StoredAccess(BaseModel):
    """The form stored in a plan's `experiment.json`: it contains no secrets.

    Attributes:
        headers, user, proxy: with `${VARIABLE}` and `@FILE`, as they were given.
        missing: options that contain a secret, each by what it sets: a header's name in lower case, or `proxy`.
    """

    model_config = ConfigDict(extra="forbid")

    headers: list[str] = []
    user: str | None = None
    certificate: str | None = None
    key: str | None = None
    proxy: str | None = None
    missing: dict[str, str] = {}


def stored_access(access: Access) -> StoredAccess:
    """The parts without a secret, and the options that contain one."""
    headers = {_name(text): _with_whole_path(text) for text in access.headers}
    open_ = {name: text for name, text in headers.items() if not _is_secret(text, access)}
    missing = {name: f"--header '{_shown(text)}: …'" for name, text in headers.items() if name not in open_}
    missing |= {_name(text): f"--header-command '{_shown(text)}: …'" for text in access.commands}
    user, proxy = access.user, access.proxy
    if user and not _USER.fullmatch(user):
        user, missing[_AUTHORIZATION] = None, "--user 'NAME:…'"
    if proxy and not _is_open_proxy(proxy):
        proxy, missing["proxy"] = None, "--proxy 'http://NAME:…'"
    certificate, key = (str(path.resolve()) if path else None for path in (access.certificate, access.key))
    return StoredAccess(
        headers=list(open_.values()), user=user, certificate=certificate, key=key, proxy=proxy, missing=missing
    )


def restored(retained: StoredAccess, given: Access, experiment: str) -> Access:
    """The access that a plan began with; options given now take precedence.

    Raises:
        UsageError: something that was not stored is not given, or a stored variable is not set.
    """
    filled = set(_filled(given))
    if missing := [option for name, option in retained.missing.items() if name not in filled]:
        options = " and ".join(f"`{option}`" for option in missing)
        raise UsageError(
            f"the plan was started with {options}, which is not stored because it is secret",
            f"give it again with `chainmark load --resume {experiment}`; values such as `${{TOKEN}}` are remembered",
        )
    return replace(
        given,
        headers=[*given.headers, *(text for text in retained.headers if _name(text) not in filled)],
        user=given.user or (None if _AUTHORIZATION in filled else retained.user),
        certificate=given.certificate or _path(retained.certificate),
        key=given.key or (None if given.certificate else _path(retained.key)),
        proxy=given.proxy or retained.proxy,
    )


def _filled(access: Access) -> Iterator[str]:
    yield from map(_name, [*access.headers, *access.commands])
    yield from [_AUTHORIZATION] if access.user else []
    yield from ["proxy"] if access.proxy else []


def _is_secret(header: str, access: Access) -> bool:
    value = header.partition(":")[2].strip()
    if value.startswith("@") or "${" in value:
        return not _FROM_ELSEWHERE.fullmatch(value)
    return is_secret_name(_shown(header)) or access.hide(header) != header


def _is_open_proxy(text: str) -> bool:
    match = _PROXY.fullmatch(text)
    return bool(match and (match["user"] is None or _USER.fullmatch(match["user"])))


def _with_whole_path(header: str) -> str:
    name, _, value = header.partition(":")
    value = value.strip()
    return f"{name}: @{Path(value[1:]).resolve()}" if value.startswith("@") else header


def _shown(header: str) -> str:
    return header.partition(":")[0].strip()


def _name(header: str) -> str:
    return _shown(header).lower()


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
