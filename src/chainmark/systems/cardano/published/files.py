"""The file formats of published reports: JSON, PDF, and text that was extracted from a PDF."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.systems.cardano.published.content import ReportContent, metrics_by_label
from chainmark.systems.cardano.published.extracted import PDF, TEXT, Labels, extracted_content, text_of

DOCUMENT_HINT = "a published report has `versions`, a `workload` and `tables` whose rows have a `label` and `values`"
JSON = ".json"
SUFFIXES = (JSON, PDF, TEXT)
LARGEST_BYTES = 32 << 20  # a report is a few hundred kilobytes, with its charts a few megabytes


def read_content(path: Path, catalogue: Catalogue) -> ReportContent:
    """A report's content.

    Args:
        path: JSON, a PDF, or text that was extracted from one.
        catalogue: the metrics, found in a text by their labels.

    Raises:
        UsageError: the file cannot be read, or is not such a report.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise UsageError(f"the report {path} cannot be read: {error.strerror}") from error
    if state.st_size > LARGEST_BYTES:
        raise UsageError(f"{path} is not a published report: it is too large for one", DOCUMENT_HINT)
    if path.suffix.lower() not in {PDF, TEXT}:
        return _read_json(path)
    labels = tuple(sorted((label, metric.id, metric.table) for label, metric in metrics_by_label(catalogue).items()))
    titles = tuple((table.id, table.title) for table in catalogue.tables)
    try:
        return _read_text(path, (state.st_mtime_ns, state.st_size), labels, titles)
    except OSError as error:
        raise UsageError(f"the report {path} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=256)
def _read_text(
    path: Path, stamp: tuple[int, int], labels: Labels, titles: tuple[tuple[str, str], ...]
) -> ReportContent:
    """The content of a text; cached per unchanged file, because a report is read for every column."""
    return extracted_content(text_of(path), str(path), labels, dict(titles))


def _read_json(path: Path) -> ReportContent:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the report {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a published report: it is not JSON ({error})", DOCUMENT_HINT) from error
    try:
        report = ReportContent.model_validate(content)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "its content"
        raise UsageError(f"{path} is not a published report: `{place}` is invalid", DOCUMENT_HINT) from error
    if not report.versions:
        raise UsageError(f"{path} is not a published report: it names no versions", DOCUMENT_HINT)
    return report
