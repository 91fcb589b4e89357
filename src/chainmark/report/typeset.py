"""Data set on paper by Typst: fonts, templates and data come from the package alone, never from the machine."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Mapping

import typst

from chainmark.report.page import template_text


@functools.cache
def _template(name: str) -> bytes:
    """A template of this package."""
    return template_text(name).encode()


def typeset(template: str, data: Mapping[str, object], time: datetime.datetime | None = None) -> bytes:
    """A PDF; the same data and time give the same bytes.

    Args:
        template: a file of this package's templates.
        data: what the template reads as ``report``.
        time: when the file says it was made; None for a template that leaves this out.
    """
    compiled = typst.compile(
        _template(template),
        format="pdf",
        sys_inputs={"report": json.dumps(data, ensure_ascii=False, sort_keys=True)},
        ignore_system_fonts=True,
        timestamp=time,
    )
    if not isinstance(compiled, bytes):  # a list of pages is returned for images only
        raise TypeError("the PDF was not compiled into one file")
    return compiled
