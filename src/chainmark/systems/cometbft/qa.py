"""How a release of CometBFT is qualified: the shipped plans, and what they need."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from chainmark.systems.cometbft.profile import Profile

PLANS = ("quick", "standard", "full")
_FOLDER = Path(__file__).with_name("qa_plans")
# Measured with four nodes: until all answer, until all mempools are empty and two blocks more are made, and until all
# is analysed; each further node takes some of that again.
_AROUND_LOAD_S = 15.0
_PER_NODE_S = 0.7


@cache
def _read(name: str) -> Mapping[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def plan(name: str) -> Mapping[str, object]:
    """The content of a shipped plan, with the plots of the published reports."""
    return {**_read(name), "name": name, "plot": list(plots())}


def plots() -> Sequence[Mapping[str, object]]:
    """The plots of the published reports' metrics section, with their limits."""
    found: list[Mapping[str, object]] = _read("plots")["plot"]
    return found


def lacking(need: str, versions: Sequence[str]) -> str:
    """What of a need is not there; "" if nothing."""
    if need == "namespaces":
        return _lacking_namespaces()
    return f"`{need}`, which no version offers ({' and '.join(dict.fromkeys(versions))})"


def _lacking_namespaces() -> str:
    if os.geteuid() != 0:
        return "network namespaces, for which chainmark must run as root"
    return "" if Path("/dev/net/tun").exists() else "network namespaces with TUN devices (/dev/net/tun is missing)"


def expected_seconds(profile: Profile) -> float:
    """How long one run takes on an idle machine, about."""
    load = profile.load
    return load.warm_up_s + load.duration_s + _AROUND_LOAD_S + _PER_NODE_S * profile.network.nodes
