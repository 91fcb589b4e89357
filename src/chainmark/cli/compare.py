"""`chainmark compare`: two sides that were already run."""

from __future__ import annotations

from typing import Annotated

import typer

from chainmark.cli.common import AsJson, Html, JsonFile, Markdown, Pdf, Reports, compare_and_report, open_store
from chainmark.core.errors import UsageError
from chainmark.store.runs import SealedRun, Store


def compare_command(
    baseline: Annotated[
        str, typer.Argument(help="A run, a version, an experiment or one of its sides (EXPERIMENT/baseline).")
    ],
    candidate: Annotated[
        str | None, typer.Argument(help="The same for the candidate; left out for an experiment with two sides.")
    ] = None,
    html: Html = None,
    pdf: Pdf = None,
    md: Markdown = None,
    json_file: JsonFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare a candidate with a baseline and say: pass, fail, inconclusive or invalid.

    Example: `chainmark compare v0.38.17 v1.0.1 --html report.html --pdf report.pdf`
    """
    store = open_store()
    sides = _sides(store, baseline, candidate)
    reports = Reports(html=html, pdf=pdf, markdown=md, json_file=json_file)
    raise typer.Exit(compare_and_report(*sides, reports, as_json))


def _sides(store: Store, baseline: str, candidate: str | None) -> tuple[list[SealedRun], list[SealedRun]]:
    if candidate is not None:
        return store.select(baseline), store.select(candidate)
    runs = store.select(baseline)
    sides: dict[str, list[SealedRun]] = {
        side: [run for run in runs if (place := run.manifest.experiment) and place.side == side]
        for side in ("baseline", "candidate")
    }
    if not sides["baseline"] or not sides["candidate"]:
        raise UsageError(
            f"`{baseline}` is not an experiment with two sides", "name the candidate, too: `chainmark compare A B`"
        )
    return sides["baseline"], sides["candidate"]
