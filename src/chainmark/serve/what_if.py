"""A model's prediction of a run's network under changes: a form of sliders, and the prediction's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chainmark.api.modelling import modelled_systems, predict
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.report.document import Document
from chainmark.serve.reading import ReadStore
from chainmark.systems.capabilities import ModelledSystem
from chainmark.systems.offered import ChangeOption, Slider, offers

_BLOCKS = 48  # simulated per network: a user waits for the result
_MOST_RUNS = 50


@dataclass(frozen=True)
class Knob:
    """A change that can be made: with a slider if it is one figure, otherwise as text."""

    name: str
    help: str
    amount: str | None
    slider: Slider | None
    value: str


@dataclass(frozen=True)
class OfferedSource:
    """A run or profile for a model fit; ``hindrance`` says why it is impossible, "" if it is possible."""

    name: str
    hindrance: str = ""


def sources(store: ReadStore, profiles: Sequence[str]) -> list[OfferedSource]:
    """The possible inputs of a model fit: runs, the newest first, and profiles; then the runs that lack something."""
    known = {system.name: system for system in modelled_systems()}
    newest = [entry for entry in reversed(store.now().whole) if entry.system in known and not entry.profiles]
    runs = [
        OfferedSource(entry.run_id, _hindrance(known[entry.system], entry.run_id, store))
        for entry in newest[:_MOST_RUNS]
    ]
    able = [*runs, *(OfferedSource(profile) for profile in profiles if profile.partition("/")[0] in known)]
    return sorted(able, key=lambda source: source.hindrance != "")


def _hindrance(system: ModelledSystem, run_id: str, store: ReadStore) -> str:
    run = store.run(run_id)
    return system.hinders_model(run) if store.readable([run]) else "its documents cannot be read"


def knobs(system: str, query: Mapping[str, Sequence[str]]) -> list[Knob]:
    """The changes that a system's model supports, with their values."""
    options = [change for offer in offers() if offer.system == system for change in offer.of("predict").changes]
    return [Knob(option.name, option.help, option.amount, option.slider, _set(option, query)) for option in options]


def _set(option: ChangeOption, query: Mapping[str, Sequence[str]]) -> str:
    given = next(iter(query.get(option.name, ())), "")
    return given if given or option.slider is None else units.tidy(option.slider.neutral)


def changes_of(settings: Sequence[Knob]) -> list[tuple[str, str]]:
    """The changes that are not neutral, in the model's format.

    Raises:
        UsageError: a slider's value is not a figure within its range.
    """
    changes = []
    for knob in settings:
        if knob.slider is None:
            changes += [(knob.name, "" if knob.amount is None else knob.value)] if knob.value else []
        elif (amount := _amount(knob, knob.slider)) is not None:
            changes.append((knob.name, amount))
    return changes


def _amount(knob: Knob, slider: Slider) -> str | None:
    try:
        value = float(knob.value)
    except ValueError:
        return knob.value  # as text, in the command's syntax
    if not slider.low <= value <= slider.high:
        low, high = (units.tidy(end) for end in (slider.low, slider.high))
        raise UsageError(f"{knob.name} is {knob.value}", f"choose a value between {low} and {high}")
    text = knob.value.strip()
    sign = "+" if slider.is_change and not text.startswith(("-", "+")) else ""
    return None if value == slider.neutral else f"{sign}{text}{slider.behind}"


def predicted(source: str, settings: Sequence[Knob], store: ReadStore) -> Document:
    """The network of a source unchanged and with all changes at once, next to the measured one."""
    return predict(source, changes_of(settings), together=True, blocks=_BLOCKS, threads=1, store=store)
