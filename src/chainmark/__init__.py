"""chainmark's public Python API: what a notebook imports.

    import chainmark

    store = chainmark.Store(chainmark.data_directory())
    comparison = chainmark.compare_runs(store.select("v0.38.17"), store.select("v1.0.1"), tool_version="notebook")
    print(comparison.verdict, comparison.sentence)

The names are loaded on first use, so that importing one room does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainmark.compare import compare as compare_runs
    from chainmark.compare.joined import compare_published
    from chainmark.compare.qa import qa_report
    from chainmark.compare.saturation import saturation_report
    from chainmark.compare.side_by_side import compare_side_by_side
    from chainmark.core.catalogue import Catalogue
    from chainmark.core.comparison import Comparison, Outcome
    from chainmark.core.errors import ChainmarkError
    from chainmark.core.load_report import LoadReport
    from chainmark.core.manifest import Manifest
    from chainmark.core.prediction import Evidence, Explanation, Prediction
    from chainmark.core.published import PublishedReport, ReportStyle
    from chainmark.core.qa_report import QaReport
    from chainmark.core.saturation import SaturationReport
    from chainmark.core.side_by_side import SideBySide
    from chainmark.core.verdict import Verdict
    from chainmark.report.layouts import document_of
    from chainmark.report.published_text import worded
    from chainmark.stats.summarise import summarise
    from chainmark.store.paths import data_directory
    from chainmark.store.runs import SealedRun, Store

__all__ = [
    "Catalogue",
    "ChainmarkError",
    "Comparison",
    "Evidence",
    "Explanation",
    "LoadReport",
    "Manifest",
    "Outcome",
    "Prediction",
    "PublishedReport",
    "QaReport",
    "ReportStyle",
    "SaturationReport",
    "SealedRun",
    "SideBySide",
    "Store",
    "Verdict",
    "compare_published",
    "compare_runs",
    "compare_side_by_side",
    "data_directory",
    "document_of",
    "qa_report",
    "saturation_report",
    "summarise",
    "worded",
]

_HOMES = {
    "chainmark.compare.joined": ["compare_published"],
    "chainmark.compare.qa": ["qa_report"],
    "chainmark.compare.saturation": ["saturation_report"],
    "chainmark.compare.side_by_side": ["compare_side_by_side"],
    "chainmark.core.catalogue": ["Catalogue"],
    "chainmark.core.comparison": ["Comparison", "Outcome", "Verdict"],
    "chainmark.core.errors": ["ChainmarkError"],
    "chainmark.core.load_report": ["LoadReport"],
    "chainmark.core.manifest": ["Manifest"],
    "chainmark.core.prediction": ["Evidence", "Explanation", "Prediction"],
    "chainmark.core.published": ["PublishedReport", "ReportStyle"],
    "chainmark.core.qa_report": ["QaReport"],
    "chainmark.core.saturation": ["SaturationReport"],
    "chainmark.core.side_by_side": ["SideBySide"],
    "chainmark.report.layouts": ["document_of"],
    "chainmark.report.published_text": ["worded"],
    "chainmark.stats.summarise": ["summarise"],
    "chainmark.store.paths": ["data_directory"],
    "chainmark.store.runs": ["SealedRun", "Store"],
}
# The package `chainmark.compare` already has the function's own name here.
_HOME_OF = {"compare_runs": ("chainmark.compare", "compare")} | {
    name: (module, name) for module, names in _HOMES.items() for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'chainmark' has no attribute {name!r}")
    module, attribute = _HOME_OF[name]
    return getattr(import_module(module), attribute)
