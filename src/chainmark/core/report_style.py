"""The styles of published reports; apart, for a command's options need nothing else of them."""

from __future__ import annotations

from enum import StrEnum


class ReportStyle(StrEnum):
    """The two styles that published reports have had, named after what they were set with."""

    TYPST = "typst"  # values rounded, changes of full averages
    ORG = "org"  # values cut to six characters, changes of what is left
