"""Text for XML documents that pipelines read."""

from __future__ import annotations

import datetime
import re

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNKNOWN_TIME = "1970-01-01T00:00:00"


def clean(words: str) -> str:
    """The text without the characters that XML forbids."""
    return _NOT_XML.sub("\ufffd", words)


def token(words: str) -> str:
    """One line that is not empty: a name."""
    return " ".join(clean(words).split()) or "unnamed"


def timestamp(started_at: str) -> str:
    """UTC without a zone, as the schema requires."""
    try:
        time = datetime.datetime.fromisoformat(started_at.replace("Z", "+00:00"))
    except ValueError:
        return _UNKNOWN_TIME
    if time.tzinfo is not None:
        try:
            time = time.astimezone(datetime.UTC)
        except OverflowError:
            return _UNKNOWN_TIME
    return time.replace(tzinfo=None, microsecond=0).isoformat()
