"""Values in the text form of the published reports: truncated, never rounded."""

from __future__ import annotations

from fractions import Fraction

import pytest

from chainmark.systems.cardano.documents import Meta
from chainmark.systems.cardano.facts import cut, cut_duration, cut_number, workload_name

PICOSECONDS = 10**12


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        # The published report of 10.6.2: 99,886,898 messages on 52 hosts, 48,025 of 63,901 s analysed.
        (Fraction(99_886_898, 52), 12, "1920901.8846"),
        (Fraction(48_025, 63_901), 4, "0.75"),
        (Fraction(56_055, 71_896), 4, "0.77"),
        (4050952.5192 / 63895.6, 6, "63.399"),
        (12.0, 7, "12.0"),
        (0.85, 7, "0.85"),
    ],
)
def test_numbers_are_truncated(value: float | Fraction, width: int, text: str) -> None:
    assert cut_number(value, width) == text


@pytest.mark.parametrize(
    ("picoseconds", "width", "text"),
    [
        (63_895_612_345_678_901, 7, "63895.6"),
        (PICOSECONDS // 2, 9, ".5"),
        (5 * PICOSECONDS, 9, "5"),
        (0, 9, "0"),
        (12_345_678_900 * PICOSECONDS, 9, "12345678>"),
        (1_234_567_890 * PICOSECONDS + 1, 9, "123456789"),
        (123_456_789 * PICOSECONDS, 9, "123456789"),
        (-PICOSECONDS // 2, 9, "-.5"),
    ],
)
def test_durations_are_truncated_without_a_leading_zero(picoseconds: int, width: int, text: str) -> None:
    assert cut_duration(picoseconds, width) == text


def test_trailing_letters_s_are_removed_from_texts() -> None:
    assert cut("mess", 32) == "me"
    assert cut("taX", 32) == "taX"
    assert cut("0.21.6.1", 5) == "0.21."


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (None, "value-only"),
        ("Loop2024", "plutus"),
        ("EcdsaSecp256k1Loop", "plutus-secp"),
        ("Ripemd160", "plutus-ripemd"),
        ("Sudoku", "plutus-other"),
    ],
)
def test_workloads_are_named_as_in_the_published_reports(script: str | None, name: str) -> None:
    plutus = {"type": "LimitSaturationLoop" if script else None, "script": script}
    meta = Meta.model_validate({"profile_content": {"generator": {"tps": 1, "plutus": plutus}}})
    assert workload_name(meta) == name
    assert workload_name(Meta()) is None
