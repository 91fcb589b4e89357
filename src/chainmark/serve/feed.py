"""The verdicts of all workloads as an Atom feed: an entry for the newest release of each."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from chainmark.report.xml_text import clean
from chainmark.serve.workloads import Card

_ATOM = "http://www.w3.org/2005/Atom"


def atom(cards: Sequence[Card], base: str) -> str:
    """The feed.

    Args:
        cards: those with a verdict become entries.
        base: the server's address, without a trailing slash.
    """
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed")
    judged = [card for card in cards if card.sentence]
    _add(feed, "id", f"{base}/feed.atom")
    _add(feed, "title", "chainmark: verdicts")
    _add(feed, "updated", max((card.started_at for card in judged), default="1970-01-01T00:00:00Z"))
    ET.SubElement(_add(feed, "author", ""), f"{{{_ATOM}}}name").text = "chainmark"
    for card in judged:
        entry = _add(feed, "entry", "")
        _add(entry, "id", f"{base}/runs/{card.newest_run}")
        _add(entry, "title", f"{card.word}: {card.title} {card.newest}")
        _add(entry, "updated", card.started_at)
        _add(entry, "summary", card.sentence)
        ET.SubElement(entry, f"{{{_ATOM}}}link", href=f"{base}{card.address}")
    return ET.tostring(feed, encoding="unicode", xml_declaration=True)


def _add(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}")
    element.text = clean(text) or None
    return element
