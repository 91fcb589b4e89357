"""Reports' descriptions of machines: of the load generator, and of those of load-tested servers."""

from __future__ import annotations

from urllib.parse import urlsplit

from chainmark.capacity.model import Target
from chainmark.capacity.profile import LoadProfile
from chainmark.core import units
from chainmark.core.manifest import Fact, HostFacts
from chainmark.network.addresses import is_own

LABEL = "Hardware"
NOT_STATED = "not stated"


def server_hardware(profile: LoadProfile, target: Target) -> Fact:
    """The server's machine: from the profile, or that it is this one; it cannot be inspected from here."""
    stated = profile.hardware if isinstance(profile.hardware, str) else profile.hardware.get(target.name, "")
    if stated:
        return Fact(label=LABEL, value=f"{stated} (stated, not read)")
    if target.socket_path or is_own(urlsplit(target.url).hostname or ""):
        return Fact(label=LABEL, value="the machine that made the load, unless forwarded")
    return Fact(label=LABEL, value=NOT_STATED)


def hardware_words(profile: LoadProfile, target: Target) -> list[str]:
    """The name of the server's machine, and the machine itself; the latter alone if it has no name."""
    stated = profile.hardware if isinstance(profile.hardware, str) else profile.hardware.get(target.name, "")
    machine = stated or server_hardware(profile, target).value
    return [profile.hardware_profile, machine] if profile.hardware_profile else [machine]


def machine_facts(host: HostFacts) -> list[Fact]:
    """The load generator's machine, as in a report."""
    return [
        Fact(label="Processor", value=f"{host.cpu_model} × {host.cores}"),
        Fact(label="Memory", value=f"{units.number(host.memory_bytes / 2**30, 0)} GiB"),
        Fact(label="System", value=f"{host.operating_system}, kernel {host.kernel}"),
    ]
