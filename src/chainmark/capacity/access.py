"""Credentials that every request to a server carries: headers from the environment, files and commands."""

from __future__ import annotations

import base64
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from chainmark.core import units
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.core.secrets import HIDDEN, Secrets, is_secret_name

# A header's command runs again before a step that begins this long after its last run.
RENEWED_AFTER_S = 30.0
COMMAND_LONGEST_S = 30.0
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# They follow from the request and the connection.
_OWN = {"connection", "content-length", "expect", "host", "transfer-encoding", "upgrade"}
_FORM = "for example `--header 'Authorization: Bearer ${TOKEN}'`"


@dataclass
class _Header:
    """One header, and when its command, if any, last ran."""

    name: str
    value: str
    command: str = ""
    made_at_s: float = 0.0


@dataclass(frozen=True)
class Proxy:
    """A proxy: its URL without secrets, and the value of `Proxy-Authorization`, "" without one."""

    url: str
    authorization: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the proxy receives besides the request."""
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}

    def to_engine_request(self) -> dict[str, str | None]:
        """The proxy in the engine's format."""
        return {"url": self.url, "authorization": self.authorization or None}


@dataclass(frozen=True, repr=False)
class Access:
    """Credentials of the client: headers that every request carries, and a certificate.

    A value with ``${NAME}`` takes it from the environment; ``@FILE`` is replaced by the file's text. Such values, and
    those of headers whose name suggests a credential, are secret: they are never written to a file.

    Attributes:
        headers: ``"NAME: VALUE"``.
        commands: ``"NAME: COMMAND"``, whose output is the value; run again before a step that begins
            `RENEWED_AFTER_S` later, or follows one in which the server answered 401.
        user: ``"NAME:PASSWORD"`` of basic authentication, with ``${…}``.
        certificate, key: PEM files by which the server knows the client; the key may be in the same file.
        proxy: ``"http://host:port"`` through which every request goes, with ``user:password@`` before the host where it
            requires authentication, and ``${…}``. None: no proxy, whatever the environment sets.

    Raises:
        UsageError: a header is not one, a variable or a file is missing.
        EnvironmentFailure: a command fails.

    Example:
        >>> access = cm.Access(headers=["X-Network: preprod", "X-Api-Key: 123456"])
        >>> access.described()
        'X-Network: preprod, X-Api-Key: [hidden]'
    """

    headers: Sequence[str] = ()
    commands: Sequence[str] = ()
    user: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)
    _made: list[_Header] = field(default_factory=list, init=False, repr=False, compare=False)
    _secrets: Secrets = field(default_factory=Secrets, init=False, repr=False, compare=False)
    _way: list[Proxy] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise UsageError("`--key` requires `--cert`", "`--cert FILE --key FILE`")
        for path in filter(None, (self.certificate, self.key)):
            if not path.is_file():
                raise UsageError(f"there is no file `{path}`", "a client's certificate and key are PEM files")
        for text in self.headers:
            name, value = _split(text)
            filled = self._filled(value)
            if filled != value or is_secret_name(name):
                self._keep_secret(filled)
            if name.lower() == "cookie":
                for cookie in filled.split(";"):
                    self._secrets.add(cookie.partition("=")[2].strip())
            self._add(_Header(name, filled))
        for text in self.commands:
            name, command = _split(text)
            self._add(_Header(name, "", command, made_at_s=-RENEWED_AFTER_S + self.clock()))
        if self.user is not None:
            self._add(_Header("Authorization", self._basic(self.user)))
        self._way.extend(map(self._proxy, filter(None, [self.proxy])))

    def __repr__(self) -> str:
        return f"Access({self.described()!r})"

    def values(self) -> list[tuple[str, str]]:
        """The headers to send now, in order.

        Raises:
            EnvironmentFailure: a command fails.
        """
        for header in self._made:
            if header.command and self.clock() - header.made_at_s >= RENEWED_AFTER_S:
                header.value, header.made_at_s = self._output(header), self.clock()
        return [(header.name, header.value) for header in self._made]

    def outdate(self) -> None:
        """Run the commands again before the next step, because the server rejects their values."""
        for header in self._made:
            header.made_at_s = self.clock() - RENEWED_AFTER_S

    def files(self) -> dict[str, str]:
        """The client's certificate and key in the engine's format; {} if there is none."""
        if self.certificate is None:
            return {}
        return {"cert_file": str(self.certificate), "key_file": str(self.key or self.certificate)}

    @property
    def way(self) -> Proxy | None:
        """The proxy for every request; None: no proxy."""
        return self._way[0] if self._way else None

    def hide(self, text: str) -> str:
        """The text without secrets."""
        return self._secrets.hide(text)

    def hide_in(self, value: Any) -> Any:
        """A JSON value without secrets."""
        return self._secrets.hide_in(value)

    def described(self) -> str:
        """The headers of every request, for a report; "" if there are none."""
        shown = [
            f"{header.name}: {HIDDEN if header.command or is_secret_name(header.name) else self.hide(header.value)}"
            for header in self._made
        ]
        return ", ".join([*shown, *(["a client's certificate"] if self.certificate else [])])

    def _add(self, header: _Header) -> None:
        if any(item.name.lower() == header.name.lower() for item in self._made):
            raise UsageError(f"the header `{header.name}` was given twice", "a request has each header once")
        self._made.append(header)

    def _filled(self, template: str) -> str:
        if template.startswith("@"):
            return _checked(_read(Path(template[1:])), f"the file `{template[1:]}`")

        def value(match: re.Match[str]) -> str:
            result = self.environment.get(match[1])
            if not result:
                raise UsageError(
                    f"the environment variable `{match[1]}`, which `{template}` uses, is not set", "export it first"
                )
            return result

        return _checked(_VARIABLE.sub(value, template).strip(), "a header's value")

    def _keep_secret(self, value: str) -> None:
        """The whole value, and the part after a scheme's name: `Bearer abc` is recognised by `abc`, too."""
        self._secrets.add(value)
        self._secrets.add(value.partition(" ")[2])

    def _basic(self, user: str) -> str:
        filled = self._filled(user)
        name, separator, password = filled.partition(":")
        if not separator or not name:
            raise UsageError("basic authentication requires a name and a password", "`--user 'name:${PASSWORD}'`")
        encoded = base64.b64encode(filled.encode()).decode()
        # Some APIs expect their key as the name, without a password.
        for secret in (password or name, filled, encoded):
            self._secrets.add(secret)
        return f"Basic {encoded}"

    def _proxy(self, text: str) -> Proxy:
        """Parse a proxy's URL. Errors never repeat its text, which may contain a password."""
        try:
            # A variable's value before the host may contain any character; it is filled in after parsing.
            parts = urlsplit(self._filled(text) if "${" in text and "@" not in text else text)
            host, port = parts.hostname or "", parts.port or 80
        except ValueError:
            host, port = "", 0
        if not host or parts.scheme != "http" or parts.path.strip("/") or parts.query or parts.fragment:
            raise UsageError("`--proxy` is not the URL of a proxy", "for example `--proxy http://127.0.0.1:3128`")
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return Proxy(url, self._basic(user) if parts.username else "")

    def _output(self, header: _Header) -> str:
        subject = f"the command of the header `{header.name}`"
        # The arguments of the program may be secret.
        hint = f"it is `{header.command.split()[0]} …`"
        try:
            status, output, error_output = _run(header.command)
        except subprocess.TimeoutExpired as error:
            longest = units.duration(COMMAND_LONGEST_S)
            raise EnvironmentFailure(f"{subject} did not end within {longest}", hint) from error
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"{subject} cannot be run: {error}", hint) from error
        if status:
            last = self.hide((error_output.strip().splitlines() or ["it says nothing"])[-1])
            raise EnvironmentFailure(f"{subject} ended with {status}: {last}", hint)
        value = _checked(output.strip(), f"the output of {subject}")
        if not value:
            raise EnvironmentFailure(f"{subject} printed nothing", "its output is the header's value")
        self._keep_secret(value)
        return value


NOBODY = Access()


@contextmanager
def hidden_in_errors(accesses: Iterable[Access]) -> Iterator[None]:
    """Errors that leave this context contain none of the secrets, and have no cause that might."""
    try:
        yield
    except ChainmarkError as error:
        shown = [error.message, error.hint or ""]
        for access in accesses:
            shown = [access.hide(text) for text in shown]
        if shown == [error.message, error.hint or ""]:
            raise
        error.message, error.hint = shown[0], shown[1] or None
        error.args = (error.message,)
        raise error from None


def _run(command: str) -> tuple[int, str, str]:
    """Run the user's own command with the user's own rights: its status, output and errors.

    Raises:
        OSError, ValueError: it cannot be run, or its output is not text.
        subprocess.TimeoutExpired: it does not end.
    """
    pipe = subprocess.PIPE
    words = shlex.split(command)
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            output, error_output = process.communicate(timeout=COMMAND_LONGEST_S)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a script may have started something that would keep running
            raise
    return process.returncode, output, error_output


def _split(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not separator or not _NAME.fullmatch(name) or not value:
        shown = f"{name}: …" if separator and is_secret_name(name) else text
        raise UsageError(f"`{shown}` is not a header", _FORM)
    if name.lower() in _OWN:
        raise UsageError(f"the header `{name}` is derived from the request and cannot be set", _FORM)
    return name, value


def _checked(value: str, what: str) -> str:
    """Raises UsageError for characters that would end the header; the message does not repeat the value."""
    if any((ord(character) < ord(" ") and character != "\t") or ord(character) == 0x7F for character in value):
        raise UsageError(f"{what} holds a line break or another control character", "a header must be a single line")
    if not value.isascii():
        raise UsageError(f"{what} holds characters that are not ASCII", "a header takes ASCII only")
    return value


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{path}` cannot be read: {error}", "a header's value from a file is `@FILE`") from error
