"""A real server of the S3 protocol from another project, on loopback, with a folder as its bucket."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.mesh_servers import OBJECT_STORE_PACKAGE, build
from tests.support import wait_until

BUCKET = "logs"


@contextmanager
def object_store(folder: Path) -> Iterator[dict[str, str]]:
    """The variables with which a process reaches the server; ``folder`` is the content of ``s3://logs``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = f"127.0.0.1:{port}"
    options = ["-host", address, "-backend", "directfs", "-directfs.path", str(folder), "-directfs.bucket", BUCKET]
    # The kernel ends it with this process.
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", str(build("object-store", OBJECT_STORE_PACKAGE)), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_open() -> bool:
        with socket.socket() as probe:
            return process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(is_open, "the object store")
        yield {
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",  # it answers a missing folder as if it failed itself
        }
    finally:
        process.kill()
        process.wait()
