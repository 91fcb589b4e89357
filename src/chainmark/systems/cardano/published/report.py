"""A report in the published style, from runs and from published reports alike."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import PublishedFile
from chainmark.systems.cardano.published.joined import compare_published
from chainmark.systems.cardano.published.printed import printed_report
from chainmark.systems.cardano.published.results import PublishedReport, ReportStyle, chosen, find_version
from chainmark.systems.cardano.published.text import worded


def published_report(
    parts: Sequence[Sequence[SealedRun] | PublishedFile], style: str | None, catalogue: Catalogue, tool_version: str
) -> PublishedReport:
    """Versions as the published reports show them.

    Args:
        parts: the runs of a version, or a published report with its versions; the first version is the baseline.
        style: None uses that of the given reports, or the current one.
        catalogue: the metrics, found in printed reports by their labels.
        tool_version: recorded in the result.

    Raises:
        UsageError: there is no such style, a file is not such a report, there is only one version, or a part cannot be
            shown in the style.
    """
    read = [_read(part, catalogue, tool_version) if isinstance(part, PublishedFile) else part for part in parts]
    return worded(compare_published(read, _style(style, read), tool_version=tool_version))


def _read(file: PublishedFile, catalogue: Catalogue, tool_version: str) -> PublishedReport:
    report = printed_report(file.path, catalogue, tool_version)
    return report if file.version is None else chosen(report, [find_version(report, file.version)])


def _style(name: str | None, parts: Sequence[object]) -> ReportStyle:
    if name is None:
        printed = {part.style for part in parts if isinstance(part, PublishedReport)}
        return ReportStyle.ORG if ReportStyle.ORG in printed else ReportStyle.TYPST
    if name not in set(ReportStyle):
        raise UsageError(f"there is no published style `{name}`", f"there are {', '.join(ReportStyle)}")
    return ReportStyle(name)
