"""Write NOTICE: packages installed with chainmark or compiled into it, with licences; `make notice` runs it."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Without extras, on the oldest Python version: newer ones need fewer packages.
_HERE = {"extra": "", "python_version": "3.11", "python_full_version": "3.11.0"}
ROOT = Path(__file__).resolve().parents[1]
NOTICE = ROOT / "NOTICE"
HEAD = """chainmark
Copyright the chainmark authors
Licensed under the Apache License, Version 2.0; see LICENSE.

This list is written by `make notice`.
"""


def _license_of(package: str) -> str:
    """A package's licence: the expression in its metadata, else its classifiers, else the first line of its text."""
    about = metadata(package).json
    if expression := about.get("license_expression"):
        return str(expression)
    classified = [line for line in about.get("classifier", []) if line.startswith("License :: OSI Approved :: ")]
    names = [line.rpartition(" :: ")[2] for line in classified]
    return ", ".join(names) or str(about.get("license") or "not stated").split("\n")[0]


def python_packages() -> list[str]:
    """The Python packages installed with chainmark, including indirect dependencies, one per line."""
    waiting, packages = ["chainmark"], set[str]()
    while waiting:
        needed = (Requirement(line) for line in requires(waiting.pop()) or [])
        names = {canonicalize_name(each.name) for each in needed if each.marker is None or each.marker.evaluate(_HERE)}
        waiting += names - packages
        packages |= names
    return [f"{name} · {_license_of(name)}" for name in sorted(packages)]


def rust_crates() -> list[str]:
    """The crates compiled into the wheel, one per line."""
    command = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]
    listing = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    packages = {package["id"]: package for package in listing["packages"]}
    needs = {
        node["id"]: [need["pkg"] for need in node["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"])]
        for node in listing["resolve"]["nodes"]
    }
    waiting = [key for key, package in packages.items() if package["name"] == "chainmark-python"]
    reached: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in reached:
            reached.add(key)
            waiting += needs[key]
    others = [packages[key] for key in reached if packages[key]["source"]]
    return sorted(f"{each['name']} {each['version']} · {each['license'] or 'see its file'}" for each in others)


def content() -> str:
    """The content of the whole file."""
    parts = [HEAD, "Python packages that are installed with it:", *python_packages(), ""]
    return "\n".join([*parts, "Rust crates that are compiled into it:", *rust_crates(), ""])


if __name__ == "__main__":
    NOTICE.write_text(content(), encoding="utf-8")
