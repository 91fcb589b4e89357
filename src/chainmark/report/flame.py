"""A flame graph of two sides: the positions of the calls, their widths, and their changes."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.profiled import Frame, ProfileChange
from chainmark.report.chart import Axis, Chart, Layer, Tooltip, columns_of

# From blue over grey to orange, distinguishable with every kind of colour blindness; black text is readable on all.
_LESS, _SAME, _MORE, _REST = (86, 180, 233), (232, 232, 232), (255, 140, 66), "#f5f5f5"
_STEPS = 6
_ROW_PX = 17
_NOTE = (
    "Each call is on top of its caller. Its width is the mean of both sides. Orange: {candidate} uses more than "
    "{baseline}. Blue: less. Full colour: only one side has the call. Click a call to show it alone. Double-click to "
    "show all calls."
)


def flame_graph(change: ProfileChange, labels: Sequence[str]) -> Chart:
    """The tree of calls of one kind of profile.

    Args:
        change: the change with its frames.
        labels: of both sides, the baseline's first.
    """
    unit = units.display_unit(change.unit, [change.baseline, change.candidate])
    rows = [_row(frame, change, unit, labels) for frame in change.frames]
    depth = max((frame.depth for frame in change.frames), default=0) + 1
    baseline, candidate = labels
    tips = [Tooltip("call", "function"), *(Tooltip(label, f"side{index}") for index, label in enumerate(labels))]
    return Chart(
        id=f"flame-{change.kind}",
        title=f"{change.label[:1].upper()}{change.label[1:]} by call, {baseline} and {candidate}",
        x=Axis(title=f"{change.label} per {change.per}, {unit.symbol or 'number'}"),
        y=Axis(domain=(0.0, float(depth)), bare=True),
        layers=[
            Layer(
                "flame",
                data="frames",
                x="begin",
                x2="end",
                y="depth",
                y2="top",
                ink="ink",
                text="function",
                tips=[*tips, Tooltip("change", "change")],
            )
        ],
        data={"frames": columns_of(rows)},
        note=_NOTE.format(baseline=baseline, candidate=candidate),
        wide=True,
        height=_ROW_PX * depth,
    )


def _row(
    frame: Frame, change: ProfileChange, unit: units.DisplayUnit, labels: Sequence[str]
) -> dict[str, str | float | int]:
    return {
        "function": frame.function,
        "begin": units.rounded(frame.begin * unit.factor),
        "end": units.rounded(frame.end * unit.factor),
        "depth": frame.depth,
        "top": frame.depth + 1,
        "ink": _REST if frame.is_rest else _ink(frame.baseline, frame.candidate),
        "side0": units.quantity(frame.baseline, change.unit),
        "side1": units.quantity(frame.candidate, change.unit),
        "change": units.percent((frame.candidate - frame.baseline) / frame.baseline if frame.baseline > 0 else None),
    }


def _ink(baseline: float, candidate: float) -> str:
    """Grey if both sides are equal, the full colour if a call is on one side alone."""
    both = baseline + candidate
    share = (candidate - baseline) / both if both > 0.0 else 0.0
    share = round(share * _STEPS) / _STEPS
    end = _MORE if share > 0.0 else _LESS
    mixed = [round(same + abs(share) * (full - same)) for same, full in zip(_SAME, end, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)
