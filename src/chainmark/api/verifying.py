"""Figures of a run compared with those of another analysis of the same material."""

from __future__ import annotations

from pathlib import Path

from chainmark.api.context import store_at
from chainmark.api.noting import noted
from chainmark.api.runs import RunReference, open_run
from chainmark.core.errors import UsageError
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import verifiable

__all__ = ["verify_against"]


def verify_against(file: Path | str, run: RunReference, *, store: Store | Path | str | None = None) -> Document:
    """Compare another analysis with the run's figures by the same rules, figure by figure.

    Args:
        file: the output of the other analysis.
        run: from the same logs, by its id, a beginning of it, or a version with one run.
        store: where the run is.

    Returns:
        A document whose verdict is a pass if all figures in both agree within their stated rounding,
        and a fail otherwise; missing figures are listed.

    Raises:
        UsageError: the file has another form, or is of another run or workload.

    Example:
        >>> (run,) = cm.ingest("cardano", logs)
        >>> cm.verify_against(summary, run).word
        'PASS'
    """
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`", "give the file first, then the run")
    run_store = store_at(store)
    sealed = open_run(run, run_store).sealed
    document = verifiable(load_system(sealed.manifest.subject.system)).verify(sealed, path, tool_version())
    return noted(document, [sealed], run_store)
