"""Figures of a run beside those that somebody else's analysis computed of the same material."""

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
from chainmark.systems.capabilities import verified


def verify_against(file: Path | str, run: RunReference, *, store: Store | Path | str | None = None) -> Document:
    """Set what another analysis computed beside the run's figures by the same rules, figure by figure.

    Args:
        file: what the other analysis wrote; of Cardano `blockprop.json`, `clusterperf.json`, `summary.json`, or a CDF.
        run: made from the same logs, by its id, a beginning of it, or a version with one run.
        store: where the run is.

    Returns:
        A document whose verdict is a pass when all figures that both have agree within the rounding that it states,
        and a fail otherwise; what one side lacks is listed.

    Raises:
        UsageError: the file is not what it should be, or is of another run or workload.

    Example:
        >>> (run,) = cm.ingest("cardano", logs)
        >>> cm.verify_against(summary, run).word
        'AGREES'
    """
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`", "give the file first, then the run")
    retained = store_at(store)
    sealed = open_run(run, retained).sealed
    document = verified(load_system(sealed.manifest.subject.system)).verify(sealed, path, tool_version())
    return noted(document, [sealed], retained)
