"""A comment for a pull request: the verdict and its basis, with a link to everything else."""

from __future__ import annotations

from dataclasses import replace

from chainmark.report.document import Document

_SHOWN = ("verdict", "verdicts", "moved", "next", "judged")


def comment(document: Document, address: str) -> str:
    """The deciding parts of a document, as Markdown that ends with a link.

    Args:
        document: any.
        address: of the complete page.
    """
    chosen = [section for section in document.sections if section.id in _SHOWN]
    short = replace(document, sections=chosen or document.sections[:1], notes=[], is_page=False)
    return f"{short.markdown().rstrip()}\n\n[All figures, charts and runs]({address})\n"
