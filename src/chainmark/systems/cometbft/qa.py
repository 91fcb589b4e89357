"""The qualification of a release of CometBFT: the shipped plans, and their requirements."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from chainmark.core.errors import ChainmarkError
from chainmark.network.emulation import available
from chainmark.systems.cometbft import extensions
from chainmark.systems.cometbft.nodes import MODULE, VERSION_PATTERN, build_of
from chainmark.systems.cometbft.profile import CometBFTProfile

PLANS = ("quick", "standard", "full")
_FOLDER = Path(__file__).with_name("qa_plans")
# Measured with four nodes: until all respond, until all mempools are empty and two more blocks are made, and until the
# network has stopped; each further node adds some of that again. The next network starts during the analysis.
_AROUND_LOAD_S = 7.0
_PER_NODE_S = 0.7
_LINKS_S = 15.0  # round trips are measured before the network starts


@cache
def _read(name: str) -> Mapping[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def plan(name: str) -> Mapping[str, object]:
    """The content of a shipped plan, with the plots of the published reports."""
    return {**_read(name), "name": name, "plot": list(plots())}


def plots() -> Sequence[Mapping[str, object]]:
    """The plots of the published reports' metrics section, with their limits."""
    results: list[Mapping[str, object]] = _read("plots")["plot"]
    return results


def lacking(need: str, versions: Sequence[str]) -> str:
    """The missing part of a requirement; "" if none."""
    if need == "namespaces":
        return _lacking_namespaces()
    if need == "vote-extensions":
        return _lacking_extensions(versions)
    return f"`{need}`, which is not a known requirement of {' and '.join(versions)}"


def _lacking_namespaces() -> str:
    availability = available()
    return "" if availability.backends else availability.lacks or "network namespaces"


def _lacking_extensions(versions: Sequence[str]) -> str:
    """Whether there is an application that extends votes by a selected size; the first time it is built."""
    for version in versions:
        try:
            extensions.install(version, 1)
        except ChainmarkError as error:
            return error.message
    return ""


def commit(version: str) -> str:
    """The commit of a version, for a release as the module proxy reported it when it was fetched; "" if unknown."""
    if not VERSION_PATTERN.match(version):
        return build_of(version).commit or ""
    root = os.environ.get("GOMODCACHE") or str(Path(os.environ.get("GOPATH") or Path.home() / "go") / "pkg" / "mod")
    path = Path(root) / "cache" / "download" / MODULE / "@v" / f"{version}.info"
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
        return str(parsed.get("Origin", {}).get("Hash", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def expected_seconds(profile: CometBFTProfile) -> float:
    """Approximate duration of one run on an idle machine."""
    load, network = profile.load, profile.network
    links = _LINKS_S if network.in_namespaces else 0.0
    return load.warm_up_s + load.duration_s + _AROUND_LOAD_S + links + _PER_NODE_S * (network.nodes + network.seeds)
