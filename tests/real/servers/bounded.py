"""A server limited by one resource: `python bounded.py cpu|pool|disk|idle|postgres PORT …`; ready once it listens.

cpu: a response needs 2 ms of processor time. pool: a response holds one of four places for 100 ms, and `/metrics` shows
how many places are in use. disk: a response is repeatedly written to a file and flushed to the disk. idle: a response
takes 5 ms without any resource. postgres: one of four connections to the database sleeps for 100 ms.
"""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLACES = 4
HELD_S = 0.1  # long compared with the delays of a busy machine
CPU_S = 0.002
IDLE_S = 0.005
WRITES, BLOCK = 20, b"x" * 65_536


class Pool:
    """A fixed number of places; a request without a place waits."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(PLACES)
        self._lock = threading.Lock()
        self.active = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place."""
        with self._free:
            with self._lock:
                self.active += 1
            try:
                yield
            finally:
                with self._lock:
                    self.active -= 1


POOL = Pool()


def cpu() -> None:
    """Use the processor."""
    end_s = time.thread_time() + CPU_S
    while time.thread_time() < end_s:
        pass


def pool() -> None:
    """Hold a place."""
    with POOL.place():
        time.sleep(HELD_S)


def idle() -> None:
    """Use nothing."""
    time.sleep(IDLE_S)


def disk_in(folder: str) -> Callable[[], None]:
    """Write to a separate file per thread, and flush it to the disk."""
    own = threading.local()

    def write() -> None:
        if not hasattr(own, "file"):
            own.file = os.open(f"{folder}/{threading.get_ident()}", os.O_CREAT | os.O_WRONLY)
        for _ in range(WRITES):
            os.pwrite(own.file, BLOCK, 0)
            os.fsync(own.file)

    return write


def postgres_at(dsn: str) -> Callable[[], None]:
    """Query the database through a pool of connections."""
    import psycopg  # noqa: PLC0415 - an extra

    connections: queue.Queue[psycopg.Connection[tuple[object, ...]]] = queue.Queue()
    for _ in range(PLACES):
        connections.put(psycopg.connect(dsn, autocommit=True, application_name="bounded"))

    def ask() -> None:
        connection = connections.get()
        try:
            connection.execute(f"select pg_sleep({HELD_S}), 'a text of this request'")
        finally:
            connections.put(connection)

    return ask


def serve(work: Callable[[], None], port: int) -> None:
    """Serve until the process is stopped."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet per response

        def do_GET(self) -> None:
            """Respond with the work's result, or with the metrics."""
            if self.path == "/metrics":
                pool_usage = {"pool_active": POOL.active, "pool_max": PLACES}
                body = "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in pool_usage.items()).encode()
            else:
                work()
                body = b'{"right":true}'
            self.send_response(200)
            self.send_header("Content-Type", "text/plain" if self.path == "/metrics" else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as its class calls it
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    Server(("127.0.0.1", port), Handler).serve_forever()


def main() -> None:
    """Run the server that the command line describes."""
    kind, port = sys.argv[1], int(sys.argv[2])
    if kind == "cpu":
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    if kind == "disk":
        with tempfile.TemporaryDirectory(dir=sys.argv[3]) as folder:
            serve(disk_in(folder), port)
    works = {"cpu": cpu, "pool": pool, "idle": idle}
    serve(postgres_at(sys.argv[3]) if kind == "postgres" else works[kind], port)


if __name__ == "__main__":
    main()
