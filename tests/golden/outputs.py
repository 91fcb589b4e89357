"""The golden outputs: the name of every file, and the function that generates its text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from chainmark.report.document import Document

from tests.golden import commands, inputs, texts

RETAINED = Path(__file__).parent / "stored"
WITH_HTML = ("compare-followed", "compare-explained", "sample-fail")
WITH_JSON = "compare-followed"


@cache
def document(name: str) -> Document:
    """One of the documents, laid out once for all its renderings."""
    return inputs.DOCUMENTS[name]()


def _terminal(name: str, width: int) -> str:
    return texts.terminal(document(name), width)


def _markdown(name: str) -> str:
    return texts.markdown(document(name))


def _html_words(name: str) -> str:
    return texts.html_words(document(name))


def _json(name: str) -> str:
    return texts.json_file(document(name))


def _junit(name: str) -> str:
    return texts.junit(document(name))


def _printed(name: str, width: int) -> str:
    return commands.all_printed(width)[name]


def outputs() -> dict[str, Callable[[], str]]:
    """Every golden file, by its path below `KEPT`."""
    renderers: dict[str, Callable[[], str]] = {}
    for name in inputs.DOCUMENTS:
        renderers |= {f"documents/{name}.{width}.txt": partial(_terminal, name, width) for width in texts.WIDTHS}
        renderers[f"documents/{name}.md"] = partial(_markdown, name)
        renderers[f"documents/{name}.junit.xml"] = partial(_junit, name)
    renderers |= {f"documents/{name}.html.txt": partial(_html_words, name) for name in WITH_HTML}
    renderers[f"documents/{WITH_JSON}.json"] = partial(_json, WITH_JSON)
    for width, lines in commands.BY_WIDTH.items():
        renderers |= {f"commands/{name}.{width}.txt": partial(_printed, name, width) for name in lines}
    return renderers
