"""A run's figures, from a published report or from a run of our own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import caveats_of
from chainmark.core.errors import UsageError
from chainmark.stats.rounding import rounding_error
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.figures import ADOPTION, KNOWN, NEEDED, USED, Figures, with_announced
from chainmark.systems.cardano.published.content import RowContent, metrics_by_label, row_name
from chainmark.systems.cardano.published.files import read_content

SYSTEM_NAME = "cardano"
# A printed number: its digits, its decimals, and its power of ten.
NUMBER = re.compile(r"([+-]?\d*)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?", re.IGNORECASE)


class ReportFigures:
    """A published comparison of releases: one column per version, one row per metric.

    Args:
        path: the report: JSON, a PDF, or text of one.
        catalogue: the metrics, found in the report by their labels.

    Raises:
        UsageError: the file cannot be read, or is not such a report.
    """

    def __init__(self, path: Path, catalogue: Catalogue) -> None:
        self._path = path
        self._report = read_content(path, catalogue)
        self._metrics = {label: metric.id for label, metric in metrics_by_label(catalogue).items()}
        self._labels = {metric.id: metric.label for metric in catalogue.metrics}
        self.workload = self._report.workload

    @property
    def versions(self) -> list[str]:
        """The columns."""
        return self._report.versions

    def figures(self, version: str | None = None) -> Figures:
        """The figures of one version; None uses the last one, which is the release that the report is about.

        Raises:
            UsageError: there is no such version, a stage has no row, or a cell is not a number.
        """
        column = self._column(version)
        texts = {metric: row.values[column] for metric, row in self._rows() if column < len(row.values)}
        numbers = {metric: self._number(metric, str(text), column) for metric, text in texts.items()}
        values = with_announced({metric: value for metric, (value, _) in numbers.items()})
        missing = next((metric for metric in NEEDED if metric not in values), None)
        if missing is not None:
            raise UsageError(
                f"{self._path} has no `{self._labels[missing]}` for {self.versions[column]}",
                "the model needs the times from slot start to announced or forged and from fetched to adopted, and "
                "the block size",
            )
        name = self.versions[column]
        return Figures(
            label=f"{name}, {self.workload}" if self.workload else name,
            version=name,
            workload=self.workload,
            values=values,
            standard_errors={metric: error for metric, (_, error) in numbers.items()},
            blocks=_whole(self._manifest_value("Blocks analysed", column)),
            hosts=_whole(self._manifest_value("Machines", column)) or 52,
            started=" ".join(
                self._manifest_value(f"Cluster system start {part}", column) for part in ("date", "time")
            ).strip(),
        )

    def _column(self, version: str | None) -> int:
        if version is None:
            return len(self.versions) - 1
        if version not in self.versions:
            raise UsageError(f"{self._path} has no version `{version}`", f"its versions are {', '.join(self.versions)}")
        return self.versions.index(version)

    def _rows(self) -> Iterator[tuple[str, RowContent]]:
        for table in self._report.tables.values():
            for row in table.rows:
                metric = self._metrics.get(row_name(row), "")
                if metric in KNOWN:
                    yield metric, row

    def _manifest_value(self, key: str, column: int) -> str:
        values = self._report.manifest.get(key, [])
        return str(values[column]) if column < len(values) else ""

    def _number(self, metric: str, text: str, column: int) -> tuple[float, float]:
        """A printed number, and the standard error from the digits that were not printed."""
        match = NUMBER.fullmatch(text.strip())
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if match is None or not math.isfinite(value):
            raise UsageError(
                f"{self._path} has `{text}` for `{self._labels[metric]}` of {self.versions[column]}, "
                "which is not a number",
                "figures must be decimal numbers in seconds or bytes, such as 0.01234",
            )
        return value, rounding_error(10.0 ** (int(match[3] or 0) - len(match[2] or "")))


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def is_report(path: Path, catalogue: Catalogue) -> bool:
    """Whether a file is a published report, even without a usable row: its reader reports what it lacks."""
    try:
        ReportFigures(path, catalogue)
    except UsageError:
        return False
    return True


def run_figures(run: SealedRun) -> Figures:
    """The figures of a run of our own: the means of its ``metrics.json``.

    Raises:
        UsageError: the run is of another system, or lacks a metric that the model needs.
    """
    manifest = run.manifest
    if manifest.subject.system != SYSTEM_NAME:
        raise UsageError(
            f"run `{run.run_id}` is of `{manifest.subject.system}`, but the model is of `{SYSTEM_NAME}`",
            "`chainmark runs list` shows every run's system",
        )
    summaries = run.summaries()
    values: dict[str, float] = {}
    errors: dict[str, float] = {}
    for metric in (*USED, *sorted(KNOWN.difference(USED))):
        summary = summaries.get(metric)
        if summary is None or summary.distribution is None:
            continue
        values[metric] = summary.distribution.mean
        estimate = summary.estimates.get("mean")
        if estimate is not None and estimate.standard_error is not None:
            errors[metric] = estimate.standard_error
    values = with_announced(values)
    missing = next((metric for metric in NEEDED if metric not in values), None)
    if missing is not None:
        raise UsageError(
            f"run `{run.run_id}` has no value of `{missing}`, which the model needs",
            f"`chainmark runs show {run.run_id}` shows what was measured",
        )
    version = manifest.subject.version
    workload = _workload(manifest.profile, manifest.workload)
    counted = summaries.get(ADOPTION[0])
    return Figures(
        label=f"{version}, {workload}" if workload else version,
        version=version,
        workload=workload,
        values=values,
        standard_errors=errors,
        sampling_known=True,
        blocks=counted.distribution.n if counted is not None and counted.distribution is not None else None,
        started=manifest.started_at,
        caveats=caveats_of([manifest]),
    )


def _workload(profile: Mapping[str, object], workload: Mapping[str, object]) -> str:
    section = profile.get("workload")
    named = section.get("name") if isinstance(section, dict) else None
    return str(named or workload.get("workload.name") or "")
