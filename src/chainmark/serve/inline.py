"""A drawing as a part of a page: without what only a file needs, and with the keys of its marks for the script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from chainmark.report.chart import Chart, Layer, rows_of

_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_OF_A_FILE = {"version", "class", "role"}  # and everything about the accessibility of parts: the whole is one picture
_EMPTY = {"background", "foreground"}  # of plots without a frame
_MARKS = "mark-symbol role-mark"


def inlined(svg: str, chart: Chart) -> Markup:
    """The drawing of a chart, as a picture with the chart's title as its text.

    The marks of a layer with keys have their key, and their tooltip as a title.
    """
    root = ET.fromstring(svg.replace(_NAMESPACE, "", 1))  # noqa: S314 - what our own engine has drawn
    keyed = [layer for layer in chart.layers if layer.key]
    for layer, group in zip(keyed, _groups(root) if keyed else (), strict=True):
        _name_marks(group, layer, rows_of(chart.data[layer.data]))
    _reduce(root)
    root.attrib |= {"class": "drawn", "role": "img", "aria-label": chart.title}
    text = ET.tostring(root, "unicode")
    return Markup(re.sub(r'(id="|url\(#)clip', rf"\1{chart.id}-clip", text))  # noqa: S704 - what ElementTree escaped


def _groups(root: ET.Element) -> Iterator[ET.Element]:
    """The points, layer by layer."""
    return (group for group in root.iter("g") if group.get("class", "").startswith(_MARKS))


def _name_marks(group: ET.Element, layer: Layer, rows: Sequence[Mapping[str, Any]]) -> None:
    for mark, row in zip(group, rows, strict=True):
        mark.set("data-key", str(row[layer.key]))
        ET.SubElement(mark, "title").text = "; ".join(str(row[tip.column]) for tip in layer.tips)


def _reduce(element: ET.Element) -> None:
    """Remove what is not visible: empty parts, names of classes and roles, and groups without an effect."""
    children = []
    for child in element:
        if child.get("class") in _EMPTY:
            continue
        _reduce(child)
        children += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = children
    if element.get("transform") == "translate(0,0)":
        del element.attrib["transform"]
    for name in [name for name in element.attrib if name in _OF_A_FILE or name.startswith("aria-")]:
        del element.attrib[name]
