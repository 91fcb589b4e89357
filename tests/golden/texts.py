"""Every text of a document that is kept, and the one place that takes the machine out of a text."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from pydantic import BaseModel

from chainmark.core.qa_report import QaReport
from chainmark.report.layouts import document_of
from chainmark.store.files import json_bytes

WIDTHS = (100, 140)
_BLOCK_END = re.compile(r"</(?:p|h[1-6]|li|tr|div|section|header|footer|summary|figcaption|dt|dd|caption)>|<br ?/?>")


def terminal(result: BaseModel, width: int) -> str:
    """What a terminal of that width shows, without colours."""
    return document_of(result).text(width)


def markdown(result: BaseModel) -> str:
    """The Markdown; a release's page names its figures."""
    if isinstance(result, QaReport):
        return document_of(result).markdown_page("figures")[0]
    return document_of(result).markdown()


def junit(result: BaseModel) -> str:
    """The JUnit XML."""
    return document_of(result).junit()


def json_file(result: BaseModel) -> str:
    """What `--json-file` writes, to the digits that every processor gives alike."""
    return json.dumps(_rounded(json.loads(json_bytes(result))), indent=1, ensure_ascii=False) + "\n"


def _rounded(content: Any) -> Any:
    if isinstance(content, float):
        return float(f"{content:.10g}")
    if isinstance(content, dict):
        return {key: _rounded(value) for key, value in content.items()}
    return [_rounded(item) for item in content] if isinstance(content, list) else content


def html_words(result: BaseModel) -> str:
    """What a reader of the HTML page finds written: no tags, no scripts, a line for each paragraph or row."""
    page = re.sub(r"<(script|style|svg|head)\b.*?</\1>", " ", document_of(result).html(), flags=re.DOTALL)
    told = re.sub(r"<[^>]+>", " ", _BLOCK_END.sub("\0", re.sub(r"\s+", " ", page)))
    lines = (re.sub(r"\s+", " ", html.unescape(line)).strip() for line in told.split("\0"))
    return "".join(f"{line}\n" for line in lines if line)
