"""The PostgreSQL database behind a server: sessions, locks, reads and writes, and its most expensive statements.

Read with one connection of its own, once a second, from the database's statistics views; nothing is ever written to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.network.server_series import Name, Readings, Resource, SeriesRecorder, Sort, Statement, by_name
from chainmark.network.server_usage import NoReading

if TYPE_CHECKING:
    import psycopg

POSTGRES = "postgres"
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_MS = 2000
MOST_APPLICATIONS = 20
_TEXT_LONGEST = 200
_HIDDEN = "[hidden]"
_FORM = "for example `--postgres 'host=127.0.0.1 dbname=app user=monitor'`, with the password in `PGPASSWORD`"
# In each of our statements, to separate them from the server's.
_OURS = "/* chainmark */"
_SESSIONS = """
select /* chainmark */ application_name, state, wait_event_type, count(*) from pg_stat_activity
where backend_type = 'client backend' and pid <> pg_backend_pid() group by 1, 2, 3"""
_LOCKS = "select /* chainmark */ count(*) from pg_locks where not granted"
_DATABASE = """
select /* chainmark */ xact_commit, xact_rollback, blks_read * current_setting('block_size')::bigint,
blks_hit * current_setting('block_size')::bigint, temp_bytes, deadlocks
from pg_stat_database where datname = current_database()"""
_LIMITS = """
select /* chainmark */ current_setting('max_connections')::float8,
current_setting('superuser_reserved_connections')::float8"""
# The extension may be in any schema; without the extension there is no row.
_FIND = """
select /* chainmark */ set_config('search_path', 'pg_catalog, ' || quote_ident(nspname), false)
from pg_extension join pg_namespace on pg_namespace.oid = extnamespace where extname = 'pg_stat_statements'"""
_COSTS = """
select /* chainmark */ queryid::text, sum(total_exec_time) / 1000.0, sum(calls)::float8 from pg_stat_statements(false)
where dbid = (select oid from pg_database where datname = current_database()) and queryid is not null
group by 1 order by 2 desc limit 50"""
_TEXTS = "select /* chainmark */ queryid::text, query from pg_stat_statements where queryid::text = any(%s)"

_GAUGES = {
    "connections": "connections",
    "active": "sessions",
    "idle": "sessions",
    "idle in transaction": "sessions",
}
_WAITING = {"waiting for a lock": "sessions", "locks not granted": "lock requests"}
_COUNTERS = {
    "commits": "/s",
    "rollbacks": "/s",
    "blocks read": "bytes/s",
    "blocks hit": "bytes/s",
    "temporary files": "bytes/s",
    "deadlocks": "/s",
}
_LITERAL = re.compile(r"(?:[eEbBxXnN]|[uU]&)?'(?:[^'\\]|''|\\.)*'|\$(\w*)\$.*?\$\1\$", re.DOTALL)


class PostgresUsage:
    """One database, monitored over its own connection.

    Args:
        dsn: a connection string or URI for libpq; its password is used, and never shown.

    Raises:
        UsageError: it is invalid, or the library for PostgreSQL is not installed.
        EnvironmentFailure: the database cannot be reached.
    """

    source = POSTGRES
    glances = False

    def __init__(self, dsn: str) -> None:
        self._library = _library()
        self._parameters = self._parsed(dsn)
        self._connection = self._connected()
        info = self._connection.info
        self.what = f"PostgreSQL {info.server_version // 10000}, database `{info.dbname}` at {info.host}:{info.port}"
        largest, reserved = self._rows(_LIMITS)[0]
        self._limit = largest - reserved
        self._texts: dict[str, str] = {}

    def read(self, recorder: SeriesRecorder) -> None:
        """One reading of all values.

        Raises:
            Silent: it does not respond now; the next query is a second later.
        """
        try:
            if self._connection.closed:
                self._connection = self._connected()
            self._read(recorder)
        except (self._library.Error, EnvironmentFailure) as error:
            raise NoReading(self._hidden(str(error)).splitlines()[0] if str(error) else "no response") from None

    def _read(self, recorder: SeriesRecorder) -> None:
        sessions = self._rows(_SESSIONS)
        time_ns = time.time_ns()
        for name, value in _of_sessions(sessions).items():
            recorder.add(time_ns, name, value)
        recorder.add(time_ns, _name("locks not granted"), float(self._rows(_LOCKS)[0][0]))
        values = self._rows(_DATABASE)[0]
        for counter, value in zip(_COUNTERS, values, strict=True):
            recorder.add(time_ns, _name(counter), float(value or 0))
        if self._has_statements:
            self._read_statements(recorder)

    def _read_statements(self, recorder: SeriesRecorder) -> None:
        """Numbers only; a text is queried once."""
        rows = self._rows(_COSTS)
        time_ns = time.time_ns()
        unknown = [id_ for id_, _, _ in rows if id_ not in self._texts]
        if unknown:
            texts = self._connection.execute(_TEXTS.encode(), [unknown]).fetchall()
            self._texts |= {id_: text for id_, text in texts if text is not None}
        for id_, seconds, calls in rows:
            if _OURS not in self._texts.get(id_, _OURS):
                recorder.add(time_ns, Name(POSTGRES, f"statement {id_} time", "s/s", "counter"), seconds)
                recorder.add(time_ns, Name(POSTGRES, f"statement {id_} calls", "/s", "counter"), calls)

    def glance(self) -> None:
        """Nothing more."""

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def resources(self, series: Collection[Readings]) -> Iterator[Resource]:
        """The readings, with their limits: for an application's pool its size, if it can be determined."""
        read = by_name(series, POSTGRES)
        for name, reading_series in read.items():
            if name.startswith("in use by "):
                application = name.removeprefix("in use by ")
                pool = read.get(f"connections of {application}")
                label = f"the connection pool of `{application}`" if application != "-" else "the connection pool"
                yield Resource(label, reading_series, *_pool_size(pool))
        labels = {
            "connections": "PostgreSQL's connections",
            "active": "PostgreSQL's active sessions",
            "idle in transaction": "sessions idle in transaction",
            "waiting for a lock": "a lock in PostgreSQL",
            "locks not granted": "PostgreSQL's locks",
            **{name: f"PostgreSQL's {name}" for name in _COUNTERS},
        }
        for name, label in labels.items():
            if name in read:
                has_limit = name == "connections"
                limit_is = "`max_connections` without reserved ones" if has_limit else ""
                yield Resource(label, read[name], self._limit if has_limit else None, limit_is)

    def statements(self, series: Collection[Readings]) -> Iterator[Statement]:
        """The most expensive statements, with their texts."""
        read = by_name(series, POSTGRES)
        for id_, text in sorted(self._texts.items()):
            seconds, calls = read.get(f"statement {id_} time"), read.get(f"statement {id_} calls")
            if seconds and calls:
                yield Statement(without_values(text), seconds, calls)

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement.encode()).fetchall()

    def _parsed(self, dsn: str) -> dict[str, Any]:
        try:
            return dict(self._library.conninfo.conninfo_to_dict(dsn))
        except self._library.Error:
            # libpq's message may contain part of the password.
            raise UsageError("the value of `--postgres` is not a valid connection string", _FORM) from None

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        options = f"{self._parameters.get('options') or ''} -c statement_timeout={STATEMENT_TIMEOUT_MS}".strip()
        settings = {"connect_timeout": CONNECT_TIMEOUT_S, **self._parameters, "options": options}
        try:
            connection: psycopg.Connection[tuple[Any, ...]]
            connection = self._library.connect(**{**settings, "application_name": "chainmark"}, autocommit=True)
            self._has_statements = connection.execute(_FIND.encode()).fetchone() is not None
        except self._library.Error as error:
            reported = self._hidden(str(error).strip().splitlines()[-1])
            raise EnvironmentFailure(f"the database of `--postgres` cannot be reached: {reported}", _FORM) from None
        return connection

    def _hidden(self, text: str) -> str:
        password = self._parameters.get("password")
        return text.replace(str(password), _HIDDEN) if password else text


def _library() -> Any:
    try:
        import psycopg  # noqa: PLC0415 - an extra
        import psycopg.conninfo  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "`--postgres` needs the library psycopg, which is not installed", "`pip install 'chainmark[postgres]'`"
        ) from error
    return psycopg


def _name(series: str, unit: str = "") -> Name:
    if series in _COUNTERS:
        return Name(POSTGRES, series, _COUNTERS[series], "counter")
    sort: Sort = "waiting" if series in _WAITING else "gauge"
    return Name(POSTGRES, series, unit or _WAITING.get(series) or _GAUGES[series], sort)


def _of_sessions(rows: Collection[tuple[Any, ...]]) -> dict[Name, float]:
    """Sessions by state, and the connections of each application: total and in use."""
    result = dict.fromkeys([*map(_name, _GAUGES), _name("waiting for a lock")], 0.0)
    applications: dict[str, list[float]] = {}
    for application, row, wait, count in rows:
        state = str(row or "active").removesuffix(" (aborted)")
        result[_name("connections")] += count
        if state in _GAUGES:
            result[_name(state)] += count
        result[_name("waiting for a lock")] += count if wait == "Lock" else 0
        its = applications.setdefault(application or "-", [0.0, 0.0])
        its[0] += count
        its[1] += count if state in {"active", "idle in transaction"} else 0
    largest = sorted(applications.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_APPLICATIONS]
    for application, (held, used) in largest:
        result[_name(f"connections of {application}", "connections")] = held
        result[_name(f"in use by {application}", "connections")] = used
    return result


def _pool_size(pool: Readings | None) -> tuple[float | None, str]:
    """The maximum number of connections of an application, if it had that many most of the time: otherwise it grew.

    None: unknown.
    """
    if pool is None or not len(pool.values):
        return None, ""
    size = float(pool.values.max())
    return (size, "its largest observed size") if (pool.values == size).mean() >= 0.5 and size > 1 else (None, "")


def without_values(text: str) -> str:
    """A statement on one line, without literals: PostgreSQL keeps those of statements that it does not normalise."""
    short = " ".join(_LITERAL.sub("?", text).split())
    return short if len(short) <= _TEXT_LONGEST else short[: _TEXT_LONGEST - 1] + "…"
