"""A real PostgreSQL server in a temporary folder, with a password, for the duration of a test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import wait_until

PASSWORD = "secret-of-the-database"  # noqa: S105 - of a database that lives for a test
_WANTED = "`apt install postgresql postgresql-contrib`"


def programs() -> Path:
    """The folder of `initdb` and `postgres`. A test that needs them is skipped if they are missing."""
    beside = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = [Path(program).parent for program in [shutil.which("initdb")] if program]
    for folder in [*beside, *on_path]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip(f"PostgreSQL is not installed: {_WANTED}")


def _has_statements(folder: Path) -> bool:
    process = subprocess.run([folder / "pg_config", "--pkglibdir"], capture_output=True, text=True, check=False)
    return (Path(process.stdout.strip() or "/nowhere") / "pg_stat_statements.so").exists()


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def postgres() -> Iterator[str]:
    """Run the server and return its connection string, which contains the password."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, _running(Path(folder)) as dsn:
        yield dsn


@contextmanager
def _running(folder: Path) -> Iterator[str]:
    pytest.importorskip("psycopg", reason="`pip install 'psycopg[binary]'`")
    binaries = programs()
    # PostgreSQL refuses to run as root.
    other_user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.getuid() == 0 else []
    if other_user:
        shutil.chown(folder, "nobody", "nogroup")
    data, words, port = folder / "data", folder / "password", free_port()
    words.write_text(PASSWORD, encoding="utf-8")
    words.chmod(0o644)
    initdb_options = ["-D", str(data), "-U", "tester", "--auth", "scram-sha-256", f"--pwfile={words}", "-N"]
    subprocess.run([*other_user, binaries / "initdb", *initdb_options], check=True, capture_output=True, cwd=folder)
    settings = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": "", "fsync": "off"}
    if _has_statements(binaries):
        settings["shared_preload_libraries"] = "pg_stat_statements"
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *other_user, binaries / "postgres", "-D", str(data), *options],
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    dsn = f"postgresql://tester:{PASSWORD}@127.0.0.1:{port}/postgres"
    try:
        wait_until(lambda: _answers(dsn), "PostgreSQL answers", timeout_s=30)
        yield dsn
    finally:
        server.terminate()
        server.wait(20)


def _answers(dsn: str) -> bool:
    import psycopg  # noqa: PLC0415 - an extra

    try:
        with psycopg.connect(dsn, connect_timeout=2, autocommit=True) as connection:
            if connection.execute("select 1 from pg_available_extensions where name = 'pg_stat_statements'").fetchone():
                connection.execute("create extension if not exists pg_stat_statements")
    except psycopg.OperationalError:
        return False
    return True
