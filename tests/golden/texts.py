"""The text of every stored output, and the one function that removes machine-dependent parts from it."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from chainmark.core.qa_report import QaReport
from chainmark.report.document import Document
from chainmark.store.files import json_bytes

from tests.unit.report.pages import unfolded

WIDTHS = (100, 140)
_BLOCK_END = re.compile(r"</(?:p|h[1-6]|li|tr|div|section|header|footer|summary|figcaption|dt|dd|caption)>|<br ?/?>")


def terminal(document: Document, width: int) -> str:
    """What a terminal of this width shows, without colours."""
    return document.text(width)


def markdown(document: Document) -> str:
    """The Markdown; a release's page includes the names of its figures."""
    is_release = isinstance(document.result, QaReport)
    return _undigested(document.markdown_page("figures")[0] if is_release else document.markdown(), document)


def junit(document: Document) -> str:
    """The JUnit XML."""
    return document.junit()


def json_file(document: Document) -> str:
    """The file of `--json-file`, with as many digits as all processors have in common."""
    return json.dumps(_rounded(json.loads(json_bytes(document.plain()))), indent=1, ensure_ascii=False) + "\n"


def _undigested(text: str, document: Document) -> str:
    """The text without the digest of the JSON, whose last digits depend on the processor. Other digests are kept."""
    return text.replace(document.digest, "DIGEST")


def _rounded(content: Any) -> Any:
    if isinstance(content, float):
        return float(f"{content:.10g}")
    if isinstance(content, dict):
        return {key: _rounded(value) for key, value in content.items()}
    return [_rounded(item) for item in content] if isinstance(content, list) else content


def html_words(document: Document) -> str:
    """The visible text of an HTML page, unfolded: no tags, no scripts, one line per paragraph or row."""
    page = document.html()
    page = unfolded(page) if 'id="folded-data"' in page else page
    page = re.sub(r"<(script|style|svg|head)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", _BLOCK_END.sub("\0", re.sub(r"\s+", " ", page)))
    lines = (re.sub(r"\s+", " ", html.unescape(line)).strip() for line in text.split("\0"))
    return _undigested("".join(f"{line}\n" for line in lines if line), document)
