"""Profiles of a run's nodes: their kinds, and the stored record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import UsageError
from chainmark.core.wording import enumerated

# The location of a run's profiles: the table of stacks, and the record.
EVENTS = DOCUMENT = "profiles"
NO_PROFILES = "none"


@dataclass(frozen=True)
class ProfileKind:
    """One kind of profile.

    Attributes:
        label: meaning of its values.
        unit: of its values.
        per_work: its values are summed over the window, and are shown per unit of work; others are the amount at
            its end.
        is_waiting: each stack is a place where something waits. What waits longer at one place waits less at another,
            so only the changes of places have a meaning, not their sum.
    """

    label: str
    unit: str
    per_work: bool = False
    is_waiting: bool = False


CPU, HEAP, GOROUTINE, MUTEX, BLOCK = "cpu", "heap", "goroutine", "mutex", "block"
KINDS: Mapping[str, ProfileKind] = {
    CPU: ProfileKind("CPU time", "s", per_work=True),
    HEAP: ProfileKind("heap in use", "B"),
    GOROUTINE: ProfileKind("goroutines", "", is_waiting=True),
    MUTEX: ProfileKind("time waited for mutexes", "s", per_work=True),
    BLOCK: ProfileKind("time blocked", "s", per_work=True),
}


def profile_kinds(text: str, known: Sequence[str] = tuple(KINDS)) -> tuple[str, ...]:
    """The kinds in a text: "cpu,heap"; "none" gives an empty result.

    Args:
        text: kinds, separated by commas.
        known: the permitted ones.

    Raises:
        UsageError: one is not known.
    """
    kinds = tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
    if kinds == (NO_PROFILES,):
        return ()
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown is not None or not kinds:
        supported = enumerated([f"`{kind}`" for kind in known])
        raise UsageError(
            f"`{unknown or text}` is not a kind of profile", f"valid kinds: {supported}, and `{NO_PROFILES}`"
        )
    return kinds


class ProfilesRecord(BaseModel):
    """The record of a run's profiles besides their stacks (``documents/profiles.json``).

    Attributes:
        kinds: the requested ones.
        missing: profiles that could not be taken, in a sentence each.
        empty: kinds without data from the nodes.
        work: the network's units of work in the window, 0 if unknown; ``work_label`` is one.
        cost_metric: the metric that shows the cost of profiling; "" if there is none.
    """

    model_config = ConfigDict(frozen=True)

    kinds: list[str]
    missing: list[str] = []
    empty: list[str] = []
    work: float = 0.0
    work_label: str = ""
    cost_metric: str = ""
