"""What chainmark must know about an application to run and load its nodes: a checked TOML file, or a shipped one.

An installed package offers adapters by entry points: each refers to a table with the content of such a TOML file, or to
a function that returns one.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chainmark.core.errors import UsageError
from chainmark.core.manifest import Scalar

_SECTION = ConfigDict(extra="forbid", frozen=True)
EXTENDS = "extends"
ENTRY_POINT_GROUP = "chainmark.cometbft.applications"
# After this time since its last transaction an account may send again without waiting for a block.
REUSE_S = 10.0
Words = list[str]


class ProgramOf(BaseModel):
    """Which program a binary must be.

    Attributes:
        name: file name of the program.
        module: Go module whose releases are the versions, built from the module proxy; empty: none.
        package: package of the command below the module.
        version: arguments that print the version; where nothing is printed, the module's version is used.
    """

    model_config = _SECTION

    name: Annotated[str, Field(min_length=1)]
    module: str = ""
    package: str = ""
    version: Annotated[Words, Field(min_length=1)] = ["version"]


class ChainNames(BaseModel):
    """The chain's names.

    Attributes:
        id: chain ID.
        prefix: prefix of addresses.
        denom: denomination of the staking token.
    """

    model_config = _SECTION

    id: str = "chainmark-1"
    prefix: str = ""
    denom: str = ""


class HomeLayout(BaseModel):
    """How a node's home is made.

    Attributes:
        init: command that writes `config/config.toml`, `config/genesis.json` and the node's keys below
            `{home}`.
    """

    model_config = _SECTION

    init: Annotated[Words, Field(min_length=1)]


class Validator(BaseModel):
    """How a validator comes into the genesis. Each command is run on the home of each validator.

    Attributes:
        group: word that newer versions need before these commands (`genesis`); omitted if the program does
            not know it.
        key: command that makes the operator's key.
        address: command that prints the operator's address, the value of `{operator}` in the commands
            below.
        fund: command that gives the operator an account with `{balance}`; also run on the first home for each
            operator.
        join: command that writes the transaction that makes it a validator with `{stake}`.
        joined: folder below the home that contains that transaction.
        collect: command that is run once on the first home, when the transactions of all validators lie in its
            folder.
        stake: amount per unit of voting power, in the chain's denomination.
    """

    model_config = _SECTION

    group: str = ""
    key: Words = []
    address: Words = []
    fund: Words = []
    join: Words = []
    joined: str = "config/gentx"
    collect: Words = []
    stake: Annotated[int, Field(ge=1)] = 1_000_000


class Start(BaseModel):
    """How a node is started.

    Attributes:
        command: command that starts a node.
        environment: environment variables of the node.
        ports: ports besides CometBFT's own that must be free at each node's address.
        height: height at which a node counts as started.
    """

    model_config = _SECTION

    command: Annotated[Words, Field(min_length=1)]
    environment: dict[str, str] = {}
    ports: list[Annotated[int, Field(ge=1, le=65_535)]] = []
    height: Annotated[int, Field(ge=1)] = 2


class Accounts(BaseModel):
    """The accounts that the transactions are sent from, and how the genesis holds them.

    Attributes:
        genesis: "cosmos-sdk": the accounts are added to the genesis of the Cosmos SDK; "none": there are no
            accounts.
        balance: balance of each account, in the chain's denomination.
        per_connection: accounts per connection; 0: enough that none sends twice within 10 s.
    """

    model_config = _SECTION

    genesis: Literal["none", "cosmos-sdk"] = "none"
    balance: Annotated[int, Field(ge=1, le=2**62)] = 1_000_000_000_000
    per_connection: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class Transaction(BaseModel):
    """How a transaction is made.

    Attributes:
        kind: "payload": the text of a key and a value, as the published load tool sends it; "bank-send": a
            signed transfer; "python": what the function `make` returns.
        fee: fee of each transaction, in the chain's denomination.
        gas: gas limit of each transaction.
        make: "FILE.py:FUNCTION" or "MODULE:FUNCTION"; a relative file path starts at the adapter's folder.
    """

    model_config = _SECTION

    kind: Literal["payload", "bank-send", "python"] = "payload"
    fee: Annotated[int, Field(ge=0, le=2**62)] = 0
    gas: Annotated[int, Field(ge=0, le=2**62)] = 200_000
    make: str = ""


class Adapter(BaseModel):
    """All properties that are specific to an application.

    Placeholders in commands and values: ``{node}`` a node's name, ``{home}`` its folder, ``{address}`` its IP address,
    ``{chain_id}``, ``{denom}``, ``{group}``, ``{operator}``, ``{balance}`` and ``{stake}`` with denomination. A word
    that is empty once they are filled in is omitted.

    Attributes:
        name: name of the application, which reports show.
        program: which program the nodes run; omitted: CometBFT's own, with the profile's `node.app` or
            `application.command`.
        files: values of TOML files, by path below a node's home, section and key.
    """

    model_config = _SECTION

    name: Annotated[str, Field(min_length=1)]
    program: ProgramOf | None = None
    chain: ChainNames = ChainNames()
    home: HomeLayout | None = None
    validator: Validator = Validator()
    start: Start | None = None
    files: dict[str, dict[str, Scalar]] = {}
    accounts: Accounts = Accounts()
    transaction: Transaction = Transaction()

    @model_validator(mode="after")
    def _a_program_can_be_started(self) -> Adapter:
        if self.program is not None and (self.home is None or self.start is None):
            missing = "home" if self.home is None else "start"
            raise ValueError(f"`program` names a program, but the section `{missing}` is missing")
        return self

    @model_validator(mode="after")
    def _transactions_can_be_made(self) -> Adapter:
        if self.transaction.kind == "bank-send":
            if not (self.chain.prefix and self.chain.denom):
                raise ValueError('`transaction.kind = "bank-send"` needs `chain.prefix` and `chain.denom`')
            if self.accounts.genesis == "none":
                raise ValueError('`transaction.kind = "bank-send"` needs `accounts.genesis = "cosmos-sdk"`')
        if (self.transaction.kind == "python") != (":" in self.transaction.make):
            raise ValueError(
                '`transaction.kind = "python"` and `transaction.make = "FILE.py:FUNCTION"` require each other'
            )
        return self

    def __str__(self) -> str:
        return self.name

    def accounts_per_connection(self, rate: int, duration_s: float) -> int:
        """How many accounts each connection has.

        Args:
            rate: transactions per second and connection.
            duration_s: of the whole load, s.
        """
        return self.accounts.per_connection or max(1, int(rate * min(REUSE_S, duration_s)))

    def workload(self) -> dict[str, Scalar | list[Scalar]]:
        """Properties that two runs must share."""
        reported = {"application": self.name, **self._parts("accounts"), **self._parts("transaction")}
        return {key: value for key, value in reported.items() if key != "transaction.make"}

    def _parts(self, section: str) -> dict[str, Scalar]:
        return {f"{section}.{key}": value for key, value in getattr(self, section).model_dump().items()}


def shipped_adapters() -> list[str]:
    """The names of the adapters that come with chainmark."""
    folder = files("chainmark.systems.cometbft") / "applications"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def installed_adapters() -> list[str]:
    """The names of the adapters that installed packages offer."""
    return sorted({point.name for point in entry_points(group=ENTRY_POINT_GROUP)})


def adapter_of(given: object) -> Adapter:
    """An adapter by its name or its file's path, or a table with its content.

    Raises:
        UsageError: there is none, or it has an error: with its line if it is in a file.
    """
    if isinstance(given, Adapter):
        return given
    if isinstance(given, str):
        return _checked(_read(given), *_text_of(given))
    if isinstance(given, Mapping):
        base = given.get(EXTENDS)
        own = {key: value for key, value in given.items() if key != EXTENDS}
        merged = _merged(_read(_name(base, "application.adapter")), own) if base else own
        # Line numbers are known only if the content is that of one file.
        place, text = _text_of(base) if isinstance(base, str) and not own else ("", "")
        return _checked(merged, place, text)
    raise UsageError(f"`application.adapter` is {given!r}, which is not an application", _hint())


def _name(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"`{EXTENDS}` in {place} is {value!r}, which is not the name or file of an adapter", _hint())
    return value


def _text_of(reference: str) -> tuple[str, str]:
    """An adapter's name in messages, and its text: "" if it is from a package."""
    if reference in shipped_adapters():
        source = files("chainmark.systems.cometbft") / "applications" / f"{reference}.toml"
        return f"the adapter `{reference}`", source.read_text(encoding="utf-8")
    if _is_installed(reference):
        return f"the installed adapter `{reference}`", ""
    path = Path(reference).expanduser()
    try:
        return str(path), path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"there is no application `{reference}`", _hint(reference)) from error


def _hint(reference: str = "") -> str:
    known = [*shipped_adapters(), *installed_adapters()]
    if close := difflib.get_close_matches(reference, known, n=1):
        return f"did you mean `{close[0]}`?"
    return f"give a known name ({', '.join(known)}) or the path of an adapter file"


def _is_installed(reference: str) -> bool:
    return reference in installed_adapters() and reference not in shipped_adapters()


def _content_of_package(name: str, place: str) -> dict[str, Any]:
    """The table that a package offers by an entry point, or that its function returns."""
    (point, *others) = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if others:
        raise UsageError(f"several packages provide an adapter `{name}`", "uninstall all but one of them")
    try:
        parsed = point.load()
        content = parsed() if callable(parsed) else parsed
    except Exception as error:
        raise UsageError(f"{place} (`{point.value}`) failed: {type(error).__name__}: {error}") from error
    if not isinstance(content, Mapping):
        raise UsageError(f"{place} (`{point.value}`) is {type(content).__name__}, not a table of adapter keys")
    return dict(content)


def _read(reference: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """An adapter's content merged into the one that it extends."""
    place, text = _text_of(reference)
    try:
        content = _content_of_package(reference, place) if _is_installed(reference) else tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{place} is not valid TOML: {error}") from error
    base = content.pop(EXTENDS, None)
    folder = Path(reference).expanduser().parent
    _make_absolute(content, folder)
    if base is None:
        return content
    base = _name(base, place)
    if base.endswith(".toml") and not Path(base).expanduser().is_absolute():
        base = str(folder / base)
    if base in seen:
        raise UsageError(f"{place} extends itself", "remove one of the `extends`")
    return _merged(_read(base, (*seen, reference, base)), content)


def _make_absolute(content: Mapping[str, Any], folder: Path) -> None:
    """Find the file of a function next to the adapter, independent of the working directory."""
    section = content.get("transaction")
    make = section.get("make") if isinstance(section, dict) else None
    if isinstance(section, dict) and isinstance(make, str) and ".py:" in make:
        section["make"] = str((folder / make).absolute())


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables key by key; other values come from the adapter itself."""
    merged = dict(base)
    for key, value in own.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _checked(content: Mapping[str, Any], place: str, text: str) -> Adapter:
    try:
        return Adapter.model_validate(content)
    except ValidationError as error:
        raise _error(error, place, text) from error


def _error(error: ValidationError, place: str, text: str) -> UsageError:
    """The first error: file, line and key, if known."""
    first = error.errors()[0]
    location = tuple(str(part) for part in first["loc"])
    line = line_of(text, location)
    where = f"{place}, line {line}: " if line else f"{place}: " if place else "`application.adapter`: "
    key = ".".join(location)
    if first["type"] == "extra_forbidden":
        known = _known_keys(location[:-1])
        close = difflib.get_close_matches(location[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean `{close[0]}`?" if close else f"known keys here: {', '.join(known)}"
        return UsageError(f"{where}`{key}` is not a key of an application adapter", hint)
    if first["type"] == "missing":
        return UsageError(
            f"{where}`{key}` is missing", "use `extends` for an adapter that differs only slightly from another one"
        )
    if first["type"] == "value_error":
        return UsageError(f"{where}{first['ctx']['error']}")
    requirement = first["msg"].removeprefix("Input should be ")
    return UsageError(f"{where}`{key}` is {first['input']!r}, but must be {requirement}")


def _known_keys(section: tuple[str, ...]) -> list[str]:
    model: type[BaseModel] = Adapter
    for name in section:
        field = model.model_fields[name]
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        model = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
    return [*model.model_fields, *([EXTENDS] if model is Adapter else [])]


def line_of(text: str, location: tuple[str, ...]) -> int | None:
    """The line on which a TOML file sets a key, or begins its section; None if it does neither."""
    section: tuple[str, ...] = ()
    begins: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            section = _parts_of(header[1])
            begins = number if section == location or (section and section == location[:-1]) else begins
        elif key := re.match(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""", line):
            whole = (*section, *_parts_of(key[1]))
            if location[: len(whole)] == whole:
                return number
    return begins


def _parts_of(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", dotted))
