"""A small Mesh server that misbehaves on demand, as real servers do not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CLOSE = "close the connection without an answer"

# A response: status, content type and body, or CLOSE.
Reply = tuple[int, str, str] | str
Script = Mapping[str, Callable[[dict[str, Any]], Reply]]

NETWORK = {"blockchain": "cardano", "network": "preprod"}
NOT_FOUND = {"code": 4001, "message": "Block not found", "retriable": False}


def answer(document: Any, status: int = 200) -> Reply:
    return status, "application/json", json.dumps(document)


def chain(height: int = 100, pruned_below: int = 0) -> dict[str, Callable[[dict[str, Any]], Reply]]:
    """A chain of empty blocks with a transaction in every tenth. Pruned blocks are refused, but not announced."""

    def block(body: dict[str, Any]) -> Reply:
        index = body["block_identifier"]["index"]
        if not pruned_below <= index <= height:
            return answer(NOT_FOUND, 500)
        operation = {"operation_identifier": {"index": 0}, "account": {"address": f"a{index % 7}"}}
        transaction = {"transaction_identifier": {"hash": f"t{index}"}, "operations": [operation]}
        document = {
            "block_identifier": _identifier(index),
            "parent_block_identifier": _identifier(max(0, index - 1)),
            "timestamp": 1,
            "transactions": [transaction] if index % 10 == 0 else [],
        }
        return answer({"block": document})

    def status(_: dict[str, Any]) -> Reply:
        current = {"current_block_identifier": _identifier(height), "current_block_timestamp": 1}
        return answer({**current, "genesis_block_identifier": _identifier(0), "peers": []})

    version = {"rosetta_version": "1.5.1", "node_version": "9"}
    return {
        "/network/list": lambda _: answer({"network_identifiers": [NETWORK]}),
        "/network/options": lambda _: answer({"version": version, "allow": {"operation_types": [], "errors": []}}),
        "/network/status": status,
        "/block": block,
    }


def _identifier(index: int) -> dict[str, Any]:
    return {"index": index, "hash": f"b{index}"}


def _unknown(_: dict[str, Any]) -> Reply:
    return 404, "text/plain", "404 page not found"


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """The URL of a server that follows the script. Other paths get a 404 in plain text."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: two packets would wait for each other's acknowledgement

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            reply = script.get(self.path, _unknown)(json.loads(content))
            if isinstance(reply, str):
                self.close_connection = True
                return
            status, content_type, text = reply
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Ignore the message."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
