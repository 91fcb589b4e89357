"""Contents of chainmark: systems with their metrics, profiles, and the node binaries on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainmark.api.context import resolve_profile
from chainmark.core.catalogue import Catalogue
from chainmark.core.manifest import Subject
from chainmark.lab.profiles import shipped_profiles
from chainmark.lab.protocols import LaunchableSystem
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import launchable

__all__ = ["catalogue", "install", "installed", "profiles"]


def catalogue(system: str) -> Catalogue:
    """Every metric of a system: its definition, judgement and source.

    Raises:
        UsageError: there is no such system.

    Example:
        >>> cm.catalogue("cometbft").title
        'CometBFT'
    """
    return load_system(system).catalogue()


def profiles() -> dict[str, dict[str, Any]]:
    """The shipped profiles by name, resolved.

    Example:
        >>> cm.profiles()["cometbft/demo"]["system"]
        'cometbft'
    """
    return {name: resolve_profile(name)[1].model_dump(mode="json") for name in shipped_profiles()}


def install(system: str, version: str) -> Subject:
    """Build a node binary and cache it, checked and hashed; a cached one is reused.

    Raises:
        UsageError: chainmark cannot run nodes of that system, or there is no such version.
        EnvironmentFailure: it could not be built.

    Example:
        >>> cm.install("cometbft", "v1.0.1").version
        'v1.0.1'
    """
    return launchable(load_system(system)).install(version)


def installed() -> list[tuple[Subject, Path]]:
    """The cached builds of all systems with their paths: a binary, or the folder of a whole checkout.

    Example:
        >>> all(path.exists() for subject, path in cm.installed())
        True
    """
    systems = [load_system(name) for name in system_names()]
    return [pair for system in systems if isinstance(system, LaunchableSystem) for pair in system.installed()]
