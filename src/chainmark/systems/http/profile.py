"""The profile of a load test of any HTTP API: a list of requests, with templates and expectations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.capacity.mix import MIX
from chainmark.capacity.profile import LoadProfile
from chainmark.core.errors import UsageError
from chainmark.core.secrets import is_secret_name
from chainmark.lab.protocols import UNVERSIONED

_SECTION = ConfigDict(extra="forbid", frozen=True)
_ID = r"^[a-z][a-z0-9_]*$"
Cell = str | int | float | bool


class Check(BaseModel):
    """One value that must be correct in a JSON response. Exactly one of `is`, `type`, `absent`, `each` is given.

    Attributes:
        pointer: JSON pointer to the checked value, such as "/result/height".
        is_: required value, with the same templates as `path`.
        type: required type; "integer_text" is a text such as "42".
        absent: there must be no such value.
        each: check of every element of the array.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    pointer: Annotated[str, Field(pattern=r"^(/.*)?$")]
    is_: Annotated[Any, Field(alias="is")] = None
    type: Literal["object", "array", "string", "number", "boolean", "integer_text"] | None = None
    absent: bool = False
    each: Check | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Check:
        given = [name for name in ("is_", "type", "absent", "each") if name in self.model_fields_set]
        if len(given) != 1:
            raise UsageError(
                f"the check of `{self.pointer or '(the whole response)'}` has {len(given)} conditions, not one",
                'for example `{ pointer = "/result/ok", is = true }`; others: `type`, `absent`, `each`',
            )
        return self

    def to_engine_request(self) -> dict[str, Any]:
        """As the load engine reads it."""
        if self.each is not None:
            return {"pointer": self.pointer, "each": self.each.to_engine_request()}
        if self.absent:
            return {"pointer": self.pointer, "absent": True}
        return {"pointer": self.pointer, **({"type": self.type} if self.type else {"is": self.is_})}


class RequestEntry(BaseModel):
    """Requests to one endpoint: one for every row of the data, or one.

    Attributes:
        endpoint: endpoint ID under which the requests are measured; several entries may share one.
        path: path and query; `{height}` is replaced by the row's value, `{{` by a brace.
        body: body, with the same templates as `path`.
        headers: headers, with the same templates as `path`.
        status: status codes of a correct response.
        checks: further checks of a response.
        contains: text that a correct response contains.
        repeatable: whether a request may be sent again if the server closed an idle connection while it was on its
            way; omitted: as HTTP defines for the method (not for POST).
        rows: data of the templates, as tables.
        label: name of the endpoint in reports; empty: its ID.
        method: HTTP method.
        csv: path of a CSV file with a heading that holds the rows.
    """

    model_config = _SECTION

    endpoint: Annotated[str, Field(pattern=_ID)]
    label: str = ""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    path: Annotated[str, Field(pattern=r"^/[^\s]*$")]
    headers: dict[str, str] = {}
    body: str = ""
    status: list[Annotated[int, Field(ge=200, le=599)]] = [200]
    checks: list[Check] = []
    contains: str | None = None
    repeatable: bool | None = None
    rows: list[dict[str, Cell]] = []
    csv: str | None = None

    @model_validator(mode="after")
    def _headers_are_no_secrets(self) -> RequestEntry:
        name = next((name for name in self.headers if is_secret_name(name)), None)
        if name is not None:
            raise UsageError(
                f"the profile contains the header `{name}`, which would be stored with every run",
                f"give it on the command line: `--header '{name}: ${{VARIABLE}}'`",
            )
        return self


class HttpProfile(LoadProfile):
    """The whole profile.

    Attributes:
        title: name of the API in reports.
        version: version of the server; `--as` overrides it.
        error_pointers: JSON pointers to the members of an error response by which errors are distinguished.
    """

    title: str = "HTTP API"
    version: str = UNVERSIONED
    error_pointers: tuple[Annotated[str, Field(pattern=r"^/")], ...] = ()
    request: Annotated[list[RequestEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _settings_are_of_endpoints(self) -> HttpProfile:
        known = {entry.endpoint for entry in self.request}
        unknown = next((name for name in self.mix if name not in known), None)
        if unknown is not None:
            raise UsageError(
                f"`mix` names the endpoint `{unknown}`, which no request has", f"endpoints: {_list(known)}"
            )
        if self.mix or self.mix_from:
            known.add(MIX)
        named: dict[str, Mapping[str, object]] = {
            "sla_of": self.sla_of,
            "require": self.require,
            "fixed.rates": self.fixed.rates,
            "fixed.clients": self.fixed.clients,
            "ramp.rates": self.ramp.rates,
            "ramp.clients": self.ramp.clients,
            "spike.rates": self.spike.rates,
            "spike.clients": self.spike.clients,
        }
        for section, names in named.items():
            unknown = next((name for name in names if name not in known), None)
            if unknown is not None:
                raise UsageError(
                    f"`{section}` names the endpoint `{unknown}`, which no request has", f"endpoints: {_list(known)}"
                )
        return self


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))


_TEMPLATE = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")


def filled(template: str, row: dict[str, Cell], where: str) -> str:
    """A template with a row's values.

    Raises:
        UsageError: it names a value that the row does not have.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()[0]
        if name not in row:
            raise UsageError(f"{where} uses `{{{name}}}`, which is missing from its data", f"it has: {_list(set(row))}")
        result = row[name]
        return str(result).lower() if isinstance(result, bool) else str(result)

    return _TEMPLATE.sub(value, template)


def filled_value(template: Any, row: dict[str, Cell], where: str) -> Any:
    """The same for a value: a text that is one template takes the row's value as it is, of its type."""
    if isinstance(template, str):
        whole = _TEMPLATE.fullmatch(template)
        if whole and whole.group(1) in row:
            return row[whole.group(1)]
        return filled(template, row, where)
    if isinstance(template, list):
        return [filled_value(item, row, where) for item in template]
    if isinstance(template, dict):
        return {key: filled_value(item, row, where) for key, item in template.items()}
    return template
