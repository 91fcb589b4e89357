"""Data set on paper by Typst: fonts, templates and data come from the package alone, never from the machine."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping

from chainmark.report import typesetting
from chainmark.report.apart import run_apart
from chainmark.report.page import template_text


def typeset(template: str, data: Mapping[str, object], time: datetime.datetime | None = None) -> bytes:
    """A PDF; the same data and time give the same bytes.

    Args:
        template: a file of this package's templates.
        data: what the template reads as ``report``.
        time: when the file says it was made; None for a template that leaves this out.

    Raises:
        EnvironmentFailure, InternalError: as `chainmark.report.apart.run_apart`.
    """
    order = {"template": template_text(template), "time": time and time.isoformat()}
    task = "\n".join([json.dumps(order), json.dumps(data, sort_keys=True)]).encode()
    del data  # as large again, while Typst works
    return run_apart(typesetting.__file__, task, "setting the PDF")
