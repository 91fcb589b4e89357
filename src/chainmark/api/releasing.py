"""A release judged by imported runs: all its workloads, one verdict, and the page that a team publishes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date as calendar_date
from pathlib import Path

from chainmark.api.comparing import How, pair_comparison, sealed_runs
from chainmark.api.context import as_choice, store_at
from chainmark.api.noting import caveats_noted
from chainmark.compare.narrative import narrative
from chainmark.compare.workloads import Matched, Pair, joined, matched
from chainmark.core.by_workload import ByWorkload
from chainmark.core.catalogue import Margins
from chainmark.core.caveats import Caveats
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Manifest
from chainmark.core.release_page import PublishedPart, ReleasePage
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict, worst
from chainmark.core.wording import enumerated
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import PublishingSystem, importable

__all__ = ["Signature", "release"]

_PAGE_HINT = 'for example `author = "Ada Lovelace"`, `statement = """…"""` and `date = 2026-02-16`'
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
Groups = Sequence[Sequence[SealedRun]]


@dataclass(frozen=True)
class Signature:
    """The team's additions to its page.

    Attributes:
        author: the author.
        statement: text before all figures.
        date: the day of the analysis, "2026-02-16"; "": the day on which the candidate's newest run was sealed.
    """

    author: str = ""
    statement: str = ""
    date: str = ""

    @classmethod
    def read(cls, path: Path | str | None = None, **texts: str) -> Signature:
        """Read a TOML file with ``author``, ``statement`` and ``date``, each a text (the date may be a TOML date).

        Args:
            path: the file; None: there is none.
            texts: replace those of the file.

        Raises:
            UsageError: the file cannot be read, or has other contents.

        Example:
            >>> page = Path("page.toml")
            >>> _ = page.write_text('author = "Ada Lovelace"', encoding="utf-8")
            >>> cm.Signature.read(page, date="2026-02-16")
            Signature(author='Ada Lovelace', statement='', date='2026-02-16')
        """
        return replace(cls(**_page_texts(path) if path else {}), **{name: text for name, text in texts.items() if text})


def _page_texts(path: Path | str) -> dict[str, str]:
    try:
        parsed = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the page's file `{path}` cannot be read ({error})", _PAGE_HINT) from error
    names = {field.name for field in fields(Signature)}
    texts = {key: value.isoformat() if isinstance(value, calendar_date) else value for key, value in parsed.items()}
    wrong = next((key for key, value in texts.items() if key not in names or not isinstance(value, str)), None)
    if wrong is not None:
        raise UsageError(f"the page's file `{path}` has the unknown key `{wrong}`", _PAGE_HINT)
    return {key: str(value).strip() for key, value in texts.items()}


def release(
    system: str,
    candidate: str,
    baselines: Sequence[str] = (),
    *,
    margins: Margins | Sequence[str] | None = None,
    signature: Signature | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """Judge a release by imported runs, under all its workloads, and write its page.

    Args:
        system: the system of the runs.
        candidate: the version to judge.
        baselines: the versions to compare it with, the main one first; none: the previous release with runs
            under the same workloads. If there are enough releases, each is the level of those up to it.
        margins: by metric id, the relative change to accept instead of the catalogue's margin; or ``["learnt"]``, as
            in `compare`.
        signature: author, statement and date of the page.
        store: where the runs are.

    Raises:
        UsageError: there is no run of a version, or no workload that two of them share.

    Example:
        >>> runs = cm.ingest("cardano", releases)
        >>> made = cm.release("cardano", "9.9.0", signature=cm.Signature("Ada Lovelace", date="2026-02-16"))
        >>> made.title, made.subtitle
        ('Cardano 9.9.0 against 9.8.0', 'Ada Lovelace · 2026-02-16')
    """
    importing_system = importable(load_system(system))
    run_store, signed = store_at(store), signature or Signature()
    groups = _groups(run_store, candidate, importing_system.name)
    names = list(baselines) or [_last_before(run_store, candidate, groups, importing_system.name)]
    result = {name: _as_run(matched(_groups(run_store, name, importing_system.name), groups)) for name in names}
    without = [name for name, item in result.items() if not item.pairs]
    if without:
        raise UsageError(
            f"{enumerated(without)} and {candidate} have no workload in common",
            "`chainmark runs list` shows the profiles of each version",
        )
    days = _days([run for group in groups for run in group], result.values(), _checked(signed.date))
    parts = (
        _parts(importing_system, list(result.values()), days) if isinstance(importing_system, PublishingSystem) else []
    )
    how = How(accepted=as_choice(margins))
    results = [_result(item, parts, run_store, how) for item in result.values()]
    date = _checked(signed.date) or max(run.sealed_on for group in groups for run in group)
    page = _page(results, [part.published for part in parts], _alone(groups, results), signed, date)
    noted = [list(caveats_noted(part.manifests, run_store).sentences) for part in parts]
    return document_of(page.model_copy(update={"noted": noted}))


def _groups(store: Store, version: str, system: str) -> list[list[SealedRun]]:
    """The runs of a version by workload and machine.

    Raises:
        UsageError: they are of another system.
    """
    groups = store.groups(version)
    other = next((run for group in groups for run in group if run.manifest.subject.system != system), None)
    if other is not None:
        raise UsageError(f"`{version}` is a version of {other.manifest.subject.name}, not of `{system}`")
    return groups


def _as_run(result: Matched) -> Matched:
    """The workloads in the order of the candidate's runs."""
    return replace(result, pairs=sorted(result.pairs, key=lambda pair: pair.candidate[0].manifest.started_at))


def _checked(day: str) -> str:
    """Raises UsageError if it is not a day."""
    try:
        return calendar_date.fromisoformat(day).isoformat() if day else ""
    except ValueError as error:
        raise UsageError(f"`{day}` is not a valid date", "write it as 2026-02-16") from error


def _last_before(store: Store, candidate: str, groups: Groups, system: str) -> str:
    """The newest lower version with all workloads of the candidate, or else with some; newest by its runs.

    A candidate without a version number comes after all versions that began before it.

    Raises:
        UsageError: there is none.
    """
    names = {name for run in _runs(groups) for name in (run.manifest.subject.version, *run.manifest.subject.aliases)}
    began, numbers = min(run.manifest.started_at for run in _runs(groups)), _numbers(candidate)
    earlier = [
        entry.version
        for entry in reversed(store.selection().sealed)
        if entry.system == system
        and not names & set(entry.names)
        and (_numbers(entry.version) < numbers if numbers else entry.started_at < began)
    ]
    result = {version: matched(store.groups(version), groups) for version in dict.fromkeys(earlier)}
    partners = {version: len({id(pair.candidate) for pair in item.pairs}) for version, item in result.items()}
    chosen = next((version for version in result if partners[version] == len(groups)), None)
    chosen = chosen or next((version for version in result if partners[version]), None)
    if chosen is None:
        raise UsageError(
            f"no earlier release than {candidate} has runs with the same workloads",
            "import one with `chainmark ingest` from logs or published reports, or give `--baseline V`",
        )
    return chosen


def _numbers(version: str) -> tuple[int, ...]:
    """10.5.4 is after 10.5, which is 10.5.0, and before 10.6-pre; a name without a number is before all."""
    match = _NUMBERS.search(version)
    parts = [int(part) for part in match[0].split(".")] if match else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _runs(groups: Groups) -> Iterable[SealedRun]:
    return (run for group in groups for run in group)


def _days(candidates: Iterable[SealedRun], matches: Iterable[Matched], date: str) -> dict[str, str]:
    """When runs from logs were analysed: the candidate's on the page's day if that is given."""
    candidate_ids = {run.run_id for run in candidates}
    runs = [run for item in matches for pair in item.pairs for run in sealed_runs([*pair.baseline, *pair.candidate])]
    return {
        run.run_id: date if date and run.run_id in candidate_ids else run.sealed_on
        for run in runs
        if not run.manifest.printed
    }


@dataclass(frozen=True)
class WorkloadPart:
    """One workload: the candidate's first run, which identifies it, and the content about all sides' runs."""

    run_id: str
    published: PublishedPart
    manifests: Sequence[Manifest]


def _parts(system: PublishingSystem, matches: Sequence[Matched], days: Mapping[str, str]) -> list[WorkloadPart]:
    """Each workload of the candidate in the form of the published reports, with all baselines that have it."""
    sides: dict[str, list[list[SealedRun]]] = {}
    for pair in (pair for item in matches for pair in item.pairs):
        runs = sealed_runs(pair.candidate)
        sides.setdefault(runs[0].run_id, [runs]).insert(-1, sealed_runs(pair.baseline))
    return [
        WorkloadPart(
            name,
            system.published_part(group, days, tool_version()),
            [run.manifest for side in group for run in side],
        )
        for name, group in sides.items()
    ]


def _result(result: Matched, parts: Sequence[WorkloadPart], store: Store, how: How) -> ByWorkload:
    """The comparisons with one baseline."""
    labels = {part.run_id: part.published.workload() for part in parts}
    reported = list(labels.values())
    pairs = [_called(pair, labels, reported) for pair in result.pairs]
    comparisons = [
        pair_comparison(sealed_runs(pair.baseline), sealed_runs(pair.candidate), store, how) for pair in pairs
    ]
    return joined(pairs, comparisons, result.alone)


def _called(pair: Pair, labels: Mapping[str, str], reported: Sequence[str]) -> Pair:
    """The pair by the reports' name of its workload, if that is unique."""
    name = labels.get(sealed_runs(pair.candidate)[0].run_id, "")
    return replace(pair, label=name) if name and reported.count(name) == 1 else pair


def _alone(groups: Groups, results: Sequence[ByWorkload]) -> list[str]:
    """The candidate's workloads without a baseline, by profile."""
    judged = {run.run_id for by_workload in results for each in by_workload.comparisons for run in each.candidate.runs}
    return [group[0].manifest.profile_name for group in groups if not judged & {run.run_id for run in group}]


def _page(
    results: list[ByWorkload], parts: list[PublishedPart], alone: Sequence[str], signed: Signature, date: str
) -> ReleasePage:
    subject, label = results[0].comparisons[0].candidate.subject, results[0].comparisons[0].labels[1]
    versions = [result.comparisons[0].labels[0] for result in results]
    verdict = worst([*(result.verdict for result in results), *([Verdict.INCONCLUSIVE] if alone else [])])
    messages = [f"Against {version}, {result.sentence}" for version, result in zip(versions, results, strict=True)]
    messages += [f"No baseline was run under {enumerated(alone)}."] if alone else []
    return ReleasePage(
        tool_version=results[0].tool_version,
        title=f"{subject.name} {label} against {enumerated(versions)}",
        author=signed.author,
        statement=signed.statement,
        date=date,
        verdict=verdict,
        sentence=" ".join(messages) if len(messages) > 1 else results[0].sentence,
        against=results,
        text=narrative(results, [text for part in parts if (text := part.setting())]),
        published=parts,
        caveats=Caveats.joined([result.caveats for result in results]),
    )
