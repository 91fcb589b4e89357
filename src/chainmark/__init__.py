"""chainmark as a library: everything that the commands do, with documents and runs as results.

    import chainmark as cm

    document = cm.compare("v0.38.17", "v1.0.1")
    print(document.verdict, document.sentence)
    document.save("report.html")

The names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainmark.api.bisecting import bisect
    from chainmark.api.clusters import cluster_check
    from chainmark.api.comparing import compare
    from chainmark.api.context import Cancellation
    from chainmark.api.experimenting import aa, aa_of_history, experiment
    from chainmark.api.following import block, host, request, transaction
    from chainmark.api.history import annotate, history, note, notes, pin, unnote
    from chainmark.api.learning import margins
    from chainmark.api.loading import LoadResult, check_corpus, corpus, load
    from chainmark.api.measure import attach, ingest, run
    from chainmark.api.modelling import explain, fault_kinds, predict, synth
    from chainmark.api.planned_loads import load_plan
    from chainmark.api.publishing import publish
    from chainmark.api.qualifying import Experiment, qualify, saturation
    from chainmark.api.releasing import Signature, release
    from chainmark.api.runs import (
        Run,
        export_figures,
        figures,
        import_run,
        import_samples,
        open_run,
        open_runs,
        remove_run,
        remove_unfinished,
        runs,
    )
    from chainmark.api.systems import catalogue, install, installed, profiles
    from chainmark.api.tailing import follow
    from chainmark.api.verifying import verify_against
    from chainmark.capacity.access import Access
    from chainmark.core.catalogue import Catalogue
    from chainmark.core.errors import ChainmarkError
    from chainmark.core.manifest import Manifest
    from chainmark.core.verdict import Verdict
    from chainmark.network.server_watch import ServerSources
    from chainmark.report.document import Document
    from chainmark.serve.server import Dashboard, serve
    from chainmark.store.runs import Store

__all__ = [
    "Access",
    "Cancellation",
    "Catalogue",
    "ChainmarkError",
    "Dashboard",
    "Document",
    "Experiment",
    "LoadResult",
    "Manifest",
    "Run",
    "ServerSources",
    "Signature",
    "Store",
    "Verdict",
    "aa",
    "aa_of_history",
    "annotate",
    "attach",
    "bisect",
    "block",
    "catalogue",
    "check_corpus",
    "cluster_check",
    "compare",
    "corpus",
    "experiment",
    "explain",
    "export_figures",
    "fault_kinds",
    "figures",
    "follow",
    "history",
    "host",
    "import_run",
    "import_samples",
    "ingest",
    "install",
    "installed",
    "load",
    "load_plan",
    "margins",
    "note",
    "notes",
    "open_run",
    "open_runs",
    "pin",
    "predict",
    "profiles",
    "publish",
    "qualify",
    "release",
    "remove_run",
    "remove_unfinished",
    "request",
    "run",
    "runs",
    "saturation",
    "serve",
    "synth",
    "transaction",
    "unnote",
    "verify_against",
]

_HOMES = {
    "chainmark.api.bisecting": ["bisect"],
    "chainmark.api.clusters": ["cluster_check"],
    "chainmark.api.comparing": ["compare"],
    "chainmark.api.context": ["Cancellation"],
    "chainmark.api.following": ["block", "host", "request", "transaction"],
    "chainmark.api.history": ["annotate", "history", "note", "notes", "pin", "unnote"],
    "chainmark.api.learning": ["margins"],
    "chainmark.api.loading": ["LoadResult", "check_corpus", "corpus", "load"],
    "chainmark.api.experimenting": ["aa", "aa_of_history", "experiment"],
    "chainmark.api.measure": ["attach", "ingest", "run"],
    "chainmark.api.modelling": ["explain", "fault_kinds", "predict", "synth"],
    "chainmark.api.planned_loads": ["load_plan"],
    "chainmark.api.publishing": ["publish"],
    "chainmark.api.qualifying": ["Experiment", "qualify", "saturation"],
    "chainmark.api.releasing": ["Signature", "release"],
    "chainmark.api.runs": [
        "Run",
        "export_figures",
        "figures",
        "import_run",
        "import_samples",
        "open_run",
        "open_runs",
        "remove_run",
        "remove_unfinished",
        "runs",
    ],
    "chainmark.api.systems": ["catalogue", "install", "installed", "profiles"],
    "chainmark.api.verifying": ["verify_against"],
    "chainmark.api.tailing": ["follow"],
    "chainmark.capacity.access": ["Access"],
    "chainmark.core.catalogue": ["Catalogue"],
    "chainmark.core.errors": ["ChainmarkError"],
    "chainmark.core.manifest": ["Manifest"],
    "chainmark.core.verdict": ["Verdict"],
    "chainmark.network.server_watch": ["ServerSources"],
    "chainmark.report.document": ["Document"],
    "chainmark.serve.server": ["Dashboard", "serve"],
    "chainmark.store.runs": ["Store"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


class _Library(ModuleType):
    """The package, whose functions `compare` and `serve` are not hidden by imported packages of these names."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'chainmark' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
