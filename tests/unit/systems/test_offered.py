"""Additions of systems to the commands: options, examples and texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.systems import offered
from chainmark.systems.offered import Addition, Offer, SystemOption

SLOTS = SystemOption("slots", "Slots.", kind="number", default=2000)
OFFERS = (
    Offer("chain", {"synth": Addition(("chainmark synth chain",), "Chain: text.", (SLOTS,))}),
    Offer("other", {"synth": Addition((), "", (SLOTS, SystemOption("log-format", "Format.", key="formats")))}),
)


@pytest.fixture
def _offers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "offers", lambda: OFFERS)


@pytest.mark.usefixtures("_offers")
def test_options_that_are_not_given_have_the_declared_defaults() -> None:
    assert offered.values_for("chain", "synth", {}) == {"slots": 2000}
    assert offered.values_for("other", "synth", {"slots": 5, "formats": ["a"]}) == {"slots": 5, "formats": ["a"]}


@pytest.mark.usefixtures("_offers")
def test_an_option_of_another_system_is_refused_by_its_name_on_the_command_line() -> None:
    """Otherwise the option would have no effect, and nobody would notice."""
    with pytest.raises(UsageError, match="`--log-format` is not an option of `chainmark synth chain`") as caught:
        offered.values_for("chain", "synth", {"formats": ["a"]})
    assert caught.value.hint == "its own options: `--slots`"
    with pytest.raises(UsageError, match="`slot` is not an option") as caught:
        offered.values_for("third", "synth", {"slot": 1})
    assert caught.value.hint == "`third` adds no options to `chainmark synth`"


@pytest.mark.usefixtures("_offers")
def test_an_option_of_two_systems_is_shown_once_with_both() -> None:
    option, systems = offered.options_of("synth")["slots"]
    assert (option.help, systems) == ("Slots.", ["chain", "other"])
    assert list(offered.options_of("synth")) == ["slots", "log_format"]


@pytest.mark.usefixtures("_offers")
def test_examples_follow_the_summary_and_texts_end_the_help() -> None:
    text = offered.full_help("synth", "Summary.\n\n    More.\n    ")
    assert text == "Summary.\n\nExample: `chainmark synth chain`\n\nMore.\n\nChain: text."
    assert offered.full_help("compare", "Summary.\n\n    More.\n    ") == "Summary.\n\nMore."


def test_a_misspelt_option_of_the_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`slot` is not an option of `chainmark synth cardano`"):
        cm.synth("cardano", tmp_path / "logs", slot=100)
    assert not (tmp_path / "logs").exists()
