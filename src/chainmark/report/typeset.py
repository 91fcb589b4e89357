"""The input of a PDF, and the PDF: fonts, template and data come from the package, never from the machine.

It imports little: the process that sets a PDF at the end holds nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.report import typesetting
from chainmark.report.apart import finish_apart, start_apart
from chainmark.report.drawing import Drawing
from chainmark.report.drawn import svgs_of


@dataclass(frozen=True)
class Paper:
    """An order for a PDF; the same order gives the same bytes.

    Attributes:
        template: the Typst source.
        report: JSON, which the template reads as ``report``.
        drawings: specifications of charts; the template reads them rendered, as the list ``drawings``.
        time: when the file was made, ISO 8601; None: omitted.
        svgs: the drawings, if they are already rendered.
    """

    template: str
    report: str
    drawings: Sequence[Drawing] = ()
    time: str | None = None
    svgs: Sequence[str] = ()


def typeset(paper: Paper) -> bytes:
    """The PDF.

    Raises:
        EnvironmentFailure, InternalError: as `chainmark.report.apart.finish_apart`.
    """
    drawn = paper.svgs or svgs_of(paper.drawings)
    order = {"template": paper.template, "time": paper.time, "drawings": json.dumps(drawn)}
    task = "\n".join([json.dumps(order), paper.report]).encode()
    del drawn, order  # it is as large again, while Typst works
    return finish_apart(start_apart(typesetting.__file__), task, "typesetting the PDF")
