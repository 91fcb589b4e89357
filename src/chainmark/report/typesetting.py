"""Typst as a program that `chainmark.report.typeset` runs: it holds 130 MB for the lifetime of its process.

It imports nothing of the package. The first line of its standard input is JSON: the template, the time, and the
template's ``drawings``; the rest is its ``report``. It writes the PDF.
"""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any


def pdf_of(order: dict[str, Any], data: str) -> bytes:
    """Compile a template with data, without the machine's fonts."""
    import typst  # noqa: PLC0415 - 6 MB, which a process that has others set it does not need

    compiled = typst.compile(
        order["template"].encode(),
        format="pdf",
        sys_inputs={"report": data, "drawings": order["drawings"]},
        ignore_system_fonts=True,
        timestamp=order["time"] and datetime.datetime.fromisoformat(order["time"]),
    )
    if not isinstance(compiled, bytes):  # a list of pages is returned for images only
        raise TypeError("the PDF was not compiled into one file")
    return compiled


if __name__ == "__main__":
    first = json.loads(sys.stdin.buffer.readline())
    sys.stdout.buffer.write(pdf_of(first, sys.stdin.buffer.read().decode()))
