"""The first sentence of a verdict: which users notice what, how much, how certain that is, and the next step."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.metric import Better
from chainmark.core.verdict import Verdict
from chainmark.core.wording import (
    ChangeText,
    capitalised,
    change_text,
    change_with_interval,
    enumerated,
    name_of,
    sentence_of,
    some_of,
    with_interval,
)

_NAMED = 3  # changes in a sentence; the table has all
_DECIDED = frozenset({Outcome.EQUAL, Outcome.BETTER})


def effect(item: Judgement, catalogue: Catalogue) -> str:
    """A change in the words of affected users: "blocks reach half of the hosts 20 % later (90 % interval 9–32 %)".

    For a metric whose catalogue has no such words: its name, the change and the interval.
    """
    metric = catalogue.metric(item.metric_id)
    if item.change is None or item.low is None or item.high is None:
        return f"{name_of(catalogue, item)} {change_with_interval(item, metric)}"
    text = change_text(item, units.display_unit(metric.unit, [item.baseline.value, item.candidate.value]))
    words = metric.rises if item.change > 0.0 else metric.falls
    return noticed(words, name_of(catalogue, item), text, item.statistic, (item.low, item.high))


def noticed(words: str, name: str, text: ChangeText, statistic: str, interval: tuple[float, float]) -> str:
    """A change and its interval in a catalogue's words for its direction; without such words by the figure's name.

    Args:
        words: "blocks reach half of the hosts {} later", or "".
        name: of the figure.
        text: the change and the ends of its interval.
        statistic: named if the words do not include it, except for "mean".
        interval: its ends.
    """
    if not words:
        return f"{name} {with_interval(text.change, text.low, text.high, text.unit)}"
    low, high = interval
    ends = [text.low, text.high]
    if low * high > 0.0:  # the words include the direction
        ends = [end.lstrip(f"+{units.MINUS}") for end in (ends if low > 0.0 else ends[::-1])]
        between = "–".join(ends)
    else:
        between = " … ".join(ends)
    change = f"{text.change.lstrip(f'+{units.MINUS}')} {text.unit}".rstrip()
    which = "" if statistic == "mean" else f" at {statistic}"
    return f"{words.format(change)}{which} (90 % interval {between} {text.unit}".rstrip() + ")"


def effects(items: Sequence[Judgement], catalogue: Catalogue) -> str:
    """The clearest changes, relative to their noise."""
    ordered = sorted(items, key=lambda item: item.clearness, reverse=True)
    return some_of([effect(item, catalogue) for item in ordered], _NAMED)


def undecided(gating: Sequence[Judgement], catalogue: Catalogue, labels: tuple[str, str], next_step: str) -> str:
    """The state of an undecided candidate: the likely change, the open metrics, the next step.

    Args:
        gating: all gating metrics, of which some are not decided.
        catalogue: for their names and words.
        labels: of the baseline and the candidate.
        next_step: what would decide; "" if nothing is known to.
    """
    candidate, baseline = labels[1], labels[0]
    if not gating:
        return f"{candidate} against {baseline} is undecided: the catalogue has no gating metric"
    open_ = [item for item in gating if item.outcome not in _DECIDED]
    likely = [item for item in open_ if _is_likely(item, catalogue)]
    unclear = [item for item in open_ if item not in likely]
    judged = units.plural(len(gating), "gating metric")
    more = "more " if likely else ""
    rest = f"{len(unclear)} {more}of {judged} {'is' if len(unclear) == 1 else 'are'} undecided"
    if len(unclear) == len(gating) > 1:
        rest = f"none of {judged} is decided"
    if len(unclear) <= _NAMED:
        rest += f": {enumerated([name_of(catalogue, item) for item in unclear])}"
    if likely:
        parts = [f"{candidate} may be worse than {baseline} by more than the margin: {effects(likely, catalogue)}"]
        parts += [rest] if unclear else []
    else:
        parts = [f"{candidate} against {baseline} is undecided: {rest}"]
        if likely_changes := [item for item in unclear if item.outcome is Outcome.INCONCLUSIVE and item.clearness]:
            clearest = max(likely_changes, key=lambda item: item.clearness)
            clear, is_noise = effect(clearest, catalogue), not clearest.beyond_noise
            if len(gating) > 1:
                parts += [f"the clearest change{', within noise,' if is_noise else ''} is {clear}"]
            else:
                within = ", which is within noise" if is_noise else ""
                parts = [f"{candidate} against {baseline} is undecided: {clear}{within}"]
    return "; ".join([*parts, *filter(None, [next_step])])


def predicate(verdict: Verdict, count: int = 1) -> str:
    """How one or several comparisons ended, in a sentence; those that judge nothing show costs."""
    if verdict is Verdict.INFORMATIONAL:
        return "is shown with its costs" if count == 1 else "are shown with their costs"
    return verdict.predicate(count)


def most_telling(parts: Sequence[tuple[str, Verdict, str]]) -> str:
    """The sentence of the first of the worst parts of a verdict; of a pass the sentences of all parts, if they are few.

    Args:
        parts: each with its title, "" if its sentence names it, its verdict and its sentence.
    """
    for verdict in (Verdict.FAIL, Verdict.INVALID, Verdict.INCONCLUSIVE):
        for title, part_verdict, sentence in parts:
            if part_verdict is verdict and sentence:
                return _titled(title, sentence)
    passed = [_titled(title, sentence) for title, verdict, sentence in parts if verdict is Verdict.PASS and sentence]
    return "".join(passed) if len(passed) <= _NAMED else ""


def _titled(title: str, sentence: str) -> str:
    return f" {capitalised(title)}: {sentence_of(sentence)}" if title else f" {sentence_of(sentence)}"


def _is_likely(item: Judgement, catalogue: Catalogue) -> bool:
    """Whether the whole interval is worse."""
    if item.outcome not in {Outcome.WORSE, Outcome.INCONCLUSIVE} or item.low is None or item.high is None:
        return False
    is_lower_better = catalogue.metric(item.metric_id).better is Better.LOWER
    return item.low > 0.0 if is_lower_better else item.high < 0.0
