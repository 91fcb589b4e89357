"""The locations of chainmark's files: data separate from caches."""

from __future__ import annotations

import os
from pathlib import Path

NOTES = "history.json"  # in a store's folder


def _base(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable)
    return Path(value) if value else Path.home() / fallback


def data_directory() -> Path:
    """The store's folder: ``$CHAINMARK_STORE``, else ``$XDG_DATA_HOME/chainmark``."""
    explicit = os.environ.get("CHAINMARK_STORE")
    return Path(explicit) if explicit else _base("XDG_DATA_HOME", ".local/share") / "chainmark"


def cache_directory() -> Path:
    """Data that can be regenerated (node binaries): ``$XDG_CACHE_HOME/chainmark``."""
    return _base("XDG_CACHE_HOME", ".cache") / "chainmark"
