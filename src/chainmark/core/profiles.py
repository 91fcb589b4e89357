"""Profiles of a run's nodes: which kinds there are, and what a run keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import UsageError
from chainmark.core.wording import enumerated

# Where a run keeps what it knows of its profiles: the table of stacks, and the record beside it.
EVENTS = DOCUMENT = "profiles"
NO_PROFILES = "none"


@dataclass(frozen=True)
class ProfileKind:
    """One kind of profile.

    Attributes:
        label: what its values are.
        unit: of its values.
        per_work: its values are summed over the window, and are shown per unit of work; others are what is there at
            its end.
    """

    label: str
    unit: str
    per_work: bool = False


CPU, HEAP, GOROUTINE, MUTEX, BLOCK = "cpu", "heap", "goroutine", "mutex", "block"
KINDS: Mapping[str, ProfileKind] = {
    CPU: ProfileKind("CPU time", "s", per_work=True),
    HEAP: ProfileKind("heap in use", "B"),
    GOROUTINE: ProfileKind("goroutines", ""),
    MUTEX: ProfileKind("time waited for mutexes", "s", per_work=True),
    BLOCK: ProfileKind("time blocked", "s", per_work=True),
}


def profile_kinds(text: str, known: Sequence[str] = tuple(KINDS)) -> tuple[str, ...]:
    """The kinds that a text names: "cpu,heap"; "none" is no kind at all.

    Args:
        text: kinds, separated by commas.
        known: those that can be asked for.

    Raises:
        UsageError: one is not known.
    """
    asked = tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
    if asked == (NO_PROFILES,):
        return ()
    stranger = next((kind for kind in asked if kind not in known), None)
    if stranger is not None or not asked:
        there = enumerated([f"`{kind}`" for kind in known])
        raise UsageError(f"`{stranger or text}` is not a kind of profile", f"there are {there}, and `{NO_PROFILES}`")
    return asked


class ProfilesRecord(BaseModel):
    """What a run knows of its profiles besides their stacks (``documents/profiles.json``).

    Attributes:
        kinds: that were asked for.
        missing: what could not be taken, in a sentence each.
        empty: kinds of which the nodes record nothing.
        work: units of work that the network did in the window, 0 where that is not known; ``work_label`` is one.
        cost_metric: the metric that shows what profiling costs; "" where none does.
    """

    model_config = ConfigDict(frozen=True)

    kinds: list[str]
    missing: list[str] = []
    empty: list[str] = []
    work: float = 0.0
    work_label: str = ""
    cost_metric: str = ""
