"""A page stores lists of figures as steps. The document that a reader downloads must be identical to the original."""

from __future__ import annotations

import base64
import gzip
import json

from hypothesis import given
from hypothesis import strategies as st

from chainmark.report.page import packed
from chainmark.report.steps import MARK, in_steps

from tests.unit.report.pages import written_out

FIGURES = st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.decimals(-1000, 1000, places=4).map(float))


@given(st.dictionaries(st.text(), FIGURES | st.lists(st.integers() | st.text()) | st.text(), max_size=4))
def test_any_json_round_trips(document: dict[str, object]) -> None:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    assert written_out(in_steps(text)) == text


@given(st.binary())
def test_a_compressed_part_is_base85_that_any_reader_decodes(content: bytes) -> None:
    letters = str(packed(content))
    assert "<" not in letters
    assert gzip.decompress(base64.b85decode(letters.replace(",", "<"))) == content


def test_a_long_list_is_stored_as_its_differences() -> None:
    text = json.dumps([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, -2.0], separators=(",", ":"))
    assert in_steps(text) == f"[{MARK}2:9]".encode() + b"\0" + bytes([0, *[50] * 7, 749 % 256, *[0] * 8, 749 // 256])


def test_lists_that_differences_cannot_restore_stay_unchanged() -> None:
    for number in ("-0.0", "9007199254740993.5", "1e-07", "null"):
        text = f"[{number},0.25,0.5,0.75,1.0,1.25,1.5,1.75,2.0]"
        assert in_steps(text) == text.encode() + b"\0"
