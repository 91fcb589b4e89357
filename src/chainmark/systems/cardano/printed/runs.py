"""A column of a published report as a sealed run: one estimate per metric, and the report's facts about the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, Gate, GateStatus, HostFacts, Scalar, Source, Subject
from chainmark.core.metric import Kind, Metric
from chainmark.core.progress import Progress
from chainmark.core.times import NS, nanoseconds_of_time
from chainmark.core.wording import some_of
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.stats.rounding import METHOD, rounding_error
from chainmark.store.files import hash_file
from chainmark.systems.cardano.analyse import catalogue_for
from chainmark.systems.cardano.documents import PACKAGES, UNKNOWN
from chainmark.systems.cardano.printed.analysed import analysed_column, summary_at
from chainmark.systems.cardano.printed.columns import REVISION, PrintedRun, columns_of, report_files
from chainmark.systems.cardano.published.files import SUFFIXES
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.unread import LOG_LIKE, readable_name

NOT_STATED = "not stated"
PROFILE = "cardano/published"
_NAMED_MOST = 3
# The reports' names of workloads, and those in their runs' descriptions.
_WORKLOADS = {
    "value-only": "value-only",
    "Plutus countdown loop": "plutus",
    "Plutus SECP loop": "plutus-secp",
    "Plutus BLST loop": "plutus-blst",
    "Plutus RIPEMD-160 loop": "plutus-ripemd",
}
# Keys of a workload, and the rows that state them.
_STATED = {
    "workload.tps": ("TPS",),
    "workload.tx_inputs": ("Tx inputs",),
    "workload.tx_outputs": ("Tx Outputs",),
    "workload.tx_payload_bytes": ("Extra tx payload",),
    "ledger.utxo_entries": ("Stuffed UTxO size", "Starting UTxO set size"),
    "ledger.delegators": ("Delegation map size",),
    "ledger.dreps": ("DRep count",),
    "network.hosts": ("Machines",),
    "analysis.conditions": ("Number of filters applied",),
}


def parts_of(order: ImportRequest, catalogue: Catalogue) -> list[str]:
    """The names of the runs in published reports, the oldest first; empty if the source is another kind of file.

    Raises:
        UsageError: a report cannot be read, or has no column of the requested version.
    """
    if not isinstance(order.source, Path) or not (columns := _columns(order.source, catalogue)):
        return []
    identities = [column.identity for column in columns if order.version is None or order.version in column.names]
    if not identities:
        versions = ", ".join(dict.fromkeys(name for column in columns for name in column.names))
        raise UsageError(f"`{order.source}` has no column `{order.version}`", f"it has {versions}")
    return identities


def _columns(source: Path, catalogue: Catalogue) -> list[PrintedRun]:
    """The runs in published reports, and in the analysis files that they are made from."""
    summary = summary_at(source)
    if summary is not None:
        return [analysed_column(summary, catalogue)]
    return columns_of(report_files(source, catalogue), catalogue)


def left_beside_reports(order: ImportRequest, catalogue: Catalogue) -> str:
    """The files of a folder that were not read because it holds published reports, in a sentence; "" if there are none.

    Logs next to reports would otherwise be assumed to be imported.
    """
    if not isinstance(order.source, Path) or not order.source.is_dir() or summary_at(order.source) is not None:
        return ""
    reports = set(report_files(order.source, catalogue))
    if not reports:
        return ""
    left = [
        readable_name(path.relative_to(order.source))
        for path in sorted(order.source.rglob("*"))
        if path.is_file() and path not in reports and (path.suffix.lower() in SUFFIXES or LOG_LIKE.fullmatch(path.name))
    ]
    if not left:
        return ""
    return (
        f"not read, because `{order.source}` contains published reports and these are not: "
        f"{some_of(left, _NAMED_MOST)}; import a folder of logs separately"
    )


def ingest_printed(order: ImportRequest, catalogue: Catalogue, progress: Progress) -> Imported:
    """One run of published reports.

    Raises:
        UsageError: the reports have no such run.
    """
    columns = _columns(order.path, catalogue)
    column = next((item for item in columns if item.identity == order.part), None)
    if column is None:
        raise UsageError(f"`{order.source}` has no run `{order.part}`")
    progress.stage(f"reading {column.names[0]}")
    hosts = _whole(column.facts.get("Machines"))
    metrics = [_mean_only(metric) for metric in catalogue.metrics if metric.id in column.cells]
    by_population: dict[str, list[str]] = {}
    for metric in metrics:
        by_population.setdefault(metric.population, []).append(metric.id)
    own = catalogue_for(catalogue.sampled(by_population), Rules(published=True), hosts or 0)
    return _imported(column, own.model_copy(update={"metrics": metrics, "trails": []}))


def _mean_only(metric: Metric) -> Metric:
    return metric.model_copy(update={"statistics": ["mean"], "judged_by": ["mean"], "charts": []})


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _number(text: str) -> Scalar:
    whole = _whole(text)
    try:
        return whole if whole is not None else float(text)
    except ValueError:
        return text


def _stated(facts: Mapping[str, str], label: str) -> str | None:
    """A row's value; None if it states that it is unknown."""
    value = facts.get(label)
    return None if value in {None, "", UNKNOWN} else value


def _samples(facts: Mapping[str, str]) -> dict[str, int]:
    """The number of samples of each population, as far as the reports state it."""
    blocks, hosts, slots = (_whole(facts.get(label)) for label in ("Blocks analysed", "Machines", "Slots analysed"))
    result = {
        "block": blocks,
        "host": hosts,
        "slot_host": hosts * slots if hosts and slots else None,
    }
    return {population: count for population, count in result.items() if count}


def _summaries(column: PrintedRun, catalogue: Catalogue) -> list[MetricSummary]:
    samples = _samples(column.facts)
    summaries = []
    for metric in catalogue.metrics:
        cell = column.cells[metric.id]
        value, error = float(cell.text), rounding_error(cell.unit)
        logarithmic = error / value if metric.kind is Kind.POSITIVE and value > 0.0 else None
        estimate = Estimate(value=value, standard_error=error, log_standard_error=logarithmic, method=METHOD)
        n = samples.get(metric.population)
        summaries.append(
            MetricSummary(
                metric_id=metric.id,
                distribution=None,
                estimates={"mean": estimate},
                total=value * n if n and metric.kind is Kind.COUNT else None,
                samples=n,
            )
        )
    return summaries


def _workload(column: PrintedRun) -> dict[str, Scalar | list[Scalar]]:
    facts = column.facts
    stated = {
        key: _number(value)
        for key, labels in _STATED.items()
        if (value := next((reported for label in labels if (reported := _stated(facts, label))), None))
    }
    script = _stated(facts, "Plutus script")
    other = "plutus-other" if column.workload.startswith("Plutus") else column.workload
    name = _WORKLOADS.get(column.workload, other)
    return {
        **({"workload.name": name} if name else {}),
        **({"workload.plutus_script": script} if script and script[0].isalpha() else {}),
        **stated,
        "analysis.rules": "published",
        "analysis.count_switches": False,
    }


def _packages(facts: Mapping[str, str]) -> dict[str, Scalar | list[Scalar]]:
    """The packages with their commits; the node's own is the subject's: builds of one release may differ in it."""
    scalars: dict[str, Scalar | list[Scalar]] = {}
    for package in PACKAGES:
        version, commit = _stated(facts, f"{package} version"), _stated(facts, f"{package} git")
        if package == PACKAGES[0]:
            commit = None
        if version or commit:
            scalars[package] = f"{version or UNKNOWN} ({commit})" if commit else str(version)
    return scalars


def _imported(column: PrintedRun, catalogue: Catalogue) -> Imported:
    facts, workload = column.facts, _workload(column)
    first_ns = nanoseconds_of_time(column.started)
    lasted_s = _whole(facts.get("Run time, s")) or 0
    release, compiler = _stated(facts, "cardano-node version"), _stated(facts, "GHC version")
    era = _stated(facts, "Era")
    return Imported(
        subject=Subject(
            system=catalogue.system,
            name=catalogue.title,
            version=column.names[0],
            revision=_stated(facts, REVISION),
            build=f"ghc {compiler}" if compiler else None,
            release=release if release != column.names[0] else None,
            aliases=list(column.names[1:]),
        ),
        profile_name=f"{PROFILE}-{workload['workload.name']}" if "workload.name" in workload else PROFILE,
        profile={"system": catalogue.system, "name": PROFILE, **_sections(workload)},
        workload=workload,
        conditions={key: value for key, value in (("era", era), ("compiler", compiler)) if value},
        configuration=Configuration(effective={"packages": packages} if (packages := _packages(facts)) else {}),
        counts={"figures of the reports": {"read": len(column.cells), "not read": len(column.unread)}},
        facts=[Fact(label=label, value=value) for label, value in facts.items()],
        gates=[_complete(column)],
        sources=[
            Source(path=path.name, size_bytes=path.stat().st_size, blake3=hash_file(path)) for path in column.files
        ],
        host=HostFacts(cpu_model=NOT_STATED, cores=0, memory_bytes=0, kernel=NOT_STATED, operating_system=NOT_STATED),
        first_ns=first_ns,
        last_ns=first_ns + lasted_s * NS,
        options={},
        catalogue=catalogue,
        summaries=_summaries(column, catalogue),
        printed=True,
        identity=f"{catalogue.system} {column.identity}",
        warnings=[f"a row could not be read: {line}" for line in column.unread],
    )


def _sections(workload: Mapping[str, Scalar | list[Scalar]]) -> dict[str, object]:
    sections: dict[str, dict[str, object]] = {}
    for key, value in workload.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    return dict(sections)


def _complete(column: PrintedRun) -> Gate:
    return Gate(
        id="complete",
        label="every row of the reports was read",
        status=GateStatus.WARN if column.unread else GateStatus.PASS,
        measured=f"{units.count(len(column.unread))} not read",
        limit="0 not read",
    )
