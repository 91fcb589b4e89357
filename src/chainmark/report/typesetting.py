"""The program that `chainmark.report.typeset` runs: Typst, which keeps 130 MB for as long as its process lives.

It imports nothing of the package. The first line of its standard input is JSON: the template and the time; the rest is
what the template reads as ``report``. It writes the PDF.
"""

from __future__ import annotations

import datetime
import json
import sys

import typst

if __name__ == "__main__":
    order = json.loads(sys.stdin.buffer.readline())
    time = order["time"] and datetime.datetime.fromisoformat(order["time"])
    compiled = typst.compile(
        order["template"].encode(),
        format="pdf",
        sys_inputs={"report": sys.stdin.buffer.read().decode()},
        ignore_system_fonts=True,
        timestamp=time,
    )
    if not isinstance(compiled, bytes):  # a list of pages is returned for images only
        raise TypeError("the PDF was not compiled into one file")
    sys.stdout.buffer.write(compiled)
