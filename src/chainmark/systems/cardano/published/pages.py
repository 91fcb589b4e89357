"""The text of a PDF by its layout: line by line, with wide gaps between the columns of a table.

PDFium gives the position of every piece of text; a page description does not order pieces by lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chainmark.core.errors import UsageError

if TYPE_CHECKING:
    import pypdfium2  # type: ignore[import-untyped]

_MOST_PAGES = 200
_BREAK = "\u200b"  # soft hyphen: invisible
_SAME_LINE = 0.4  # of the height of a line's tallest piece, from the middle of one piece to that of another
# Between two pieces, of the height of the line: more than between two words, and more than within a word.
_GAP, _SPACE = 0.6, 0.12


@dataclass(frozen=True)
class _Piece:
    """Text on one line, in points from the page's lower left corner."""

    left: float
    right: float
    middle: float
    height: float
    text: str


def text_of_pdf(path: Path) -> str:
    """The text of all pages.

    Raises:
        UsageError: it is not a readable PDF, or has more pages than a report.
        OSError: the file cannot be read.
    """
    import pypdfium2  # noqa: PLC0415 - 8 MB, which only reading a PDF needs

    content = path.read_bytes()
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        hint = "the file must be complete and without a password"
        raise UsageError(f"{path} cannot be read as a PDF: {error}", hint) from error
    with document:
        if len(document) > _MOST_PAGES:
            raise UsageError(f"{path} has {len(document)} pages, too many for a published report")
        return "\n".join(line for page in document for line in _lines(_pieces(page)))


def _pieces(page: pypdfium2.PdfPage) -> Iterator[_Piece]:
    text = page.get_textpage()
    for index in range(text.count_rects()):
        left, bottom, right, top = text.get_rect(index)
        result = text.get_text_bounded(left, bottom, right, top).replace(_BREAK, "").strip()
        if result:
            yield _Piece(left, right, (bottom + top) / 2.0, top - bottom, result)


def _lines(pieces: Iterable[_Piece]) -> Iterator[str]:
    """Pieces whose middles have about the same height form a line, from the top down."""
    line: list[_Piece] = []
    for piece in sorted(pieces, key=lambda item: (-item.middle, item.left)):
        if line and line[0].middle - piece.middle > _SAME_LINE * max(item.height for item in [*line, piece]):
            yield _laid_out(line)
            line = []
        line.append(piece)
    if line:
        yield _laid_out(line)


def _laid_out(line: Sequence[_Piece]) -> str:
    text, end, height = "", 0.0, max(piece.height for piece in line)
    for piece in sorted(line, key=lambda item: item.left):
        if text:
            gap = (piece.left - end) / height
            text += "   " if gap > _GAP else " " if gap > _SPACE else ""
        text, end = text + piece.text, piece.right
    return text
