"""chainmark as a library: everything that the commands do, with documents and runs as results.

    import chainmark as cm

    document = cm.compare("v0.38.17", "v1.0.1")
    print(document.verdict, document.sentence)
    document.save("report.html")

The names are those that the modules of `chainmark.api` list in their ``__all__``, and some types. They are loaded on
first use, so that importing the package costs nothing; `__init__.pyi`, which `make docs` writes, tells type checkers.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_ELSEWHERE = {
    "Access": "chainmark.capacity.access",
    "Catalogue": "chainmark.core.catalogue",
    "ChainmarkError": "chainmark.core.errors",
    "Dashboard": "chainmark.serve.server",
    "Document": "chainmark.report.document",
    "Manifest": "chainmark.core.manifest",
    "ServerSources": "chainmark.network.server_watch",
    "Store": "chainmark.store.runs",
    "Verdict": "chainmark.core.verdict",
    "serve": "chainmark.serve.server",
}


@cache
def _homes() -> dict[str, str]:
    """The module of every name; the modules are read, not loaded."""
    import re  # noqa: PLC0415 - importing the package costs nothing
    from pathlib import Path  # noqa: PLC0415

    listed = re.compile(r"\n__all__ = \[([^]]*)\]")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "api").glob("*.py")}
    functions = {
        name: f"chainmark.api.{module}"
        for module, text in texts.items()
        if (found := listed.search(text))
        for name in re.findall(r'"(\w+)"', found[1])
    }
    return dict(sorted({**_ELSEWHERE, **functions}.items()))


class _Library(ModuleType):
    """The package, whose functions `compare` and `serve` are not hidden by imported packages of these names."""

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, ModuleType):  # a loaded module is found below
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_homes())
    module = sys.modules.get(f"{__name__}.{name}")
    if name.startswith("__") or (name not in _homes() and module is None):
        raise AttributeError(f"module 'chainmark' has no attribute {name!r}")
    return getattr(import_module(_homes()[name]), name) if name in _homes() else module


def __dir__() -> list[str]:
    return list(_homes())
