"""The contents of a store without opening its runs: an index that is regenerated if it does not match.

The index is a cache that can be deleted: an entry is valid if the run's seal is the file that was indexed.
Neither it nor this module needs the libraries that read samples, so listing and choosing runs starts at once.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.labels import cell_of
from chainmark.core.noted import Noted
from chainmark.core.verdict import PRINTED, PROFILED, SYNTHETIC
from chainmark.store.caches import read_cache, write_cache

SEAL = "SEALED"
# Imports in progress; their names depend on the order, so that a second attempt finds a killed one's leftovers.
STAGED = "importing-"
INDEX = "index.json"
DAMAGED = "damaged"
_LAYOUT = "index 7"  # an index of another layout is regenerated
_NAMED_MOST = 3  # runs in a sentence
MOST_BUILDS = 64  # in a series of releases
# A comma separates two terms only if a term follows, so that a value may contain commas.
_TERMS = re.compile(r",\s*(?=[a-z_]+:)")
_SAME_KEY = {"release": "version"}
MANY_BUILDS = 8  # number of builds from which on the steps between them are evidence about the noise

Stamp = tuple[int, int, int]
Seal = tuple[str, Stamp]  # of a run's name


@dataclass(frozen=True)
class Entry:
    """The index entry of a sealed run.

    Attributes:
        side, repetition, position: its position in its experiment; "" and 0 without one.
        status: of the manifest, or "damaged" if that cannot be read; then all else is empty.
        workload, sources, build: digests; equal if the runs' workload, raw material, and subject with its configuration
            are.
        machine: its processor.
        badges: caveats for a list: the run is synthetic, its label is contradicted.
        aliases: other names of the version, one per line.
        profiles: kinds of profiles that it has; such runs are not judged, and not used for the noise.
        labels: of the manifest, as JSON; "" without any.
        origin: "imported" if its raw files were outside the store, otherwise "measured".
    """

    run_id: str
    system: str = ""
    subject: str = ""
    version: str = ""
    profile: str = ""
    status: str = DAMAGED
    started_at: str = ""
    ended_at: str = ""
    experiment: str = ""
    side: str = ""
    repetition: int = 0
    position: int = 0
    workload: str = ""
    sources: str = ""
    build: str = ""
    machine: str = ""
    badges: str = ""
    aliases: str = ""
    profiles: str = ""
    labels: str = ""
    origin: str = ""

    @cached_property
    def known_labels(self) -> dict[str, list[str]]:
        """The labels of the manifest by key."""
        results: dict[str, list[str]] = json.loads(self.labels) if self.labels else {}
        return results

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """The terms for selectors, besides its version: its labels, system, profile and status."""
        words = {"version": self.names, "system": [self.system], "profile": [self.profile], "status": [self.status]}
        words["experiment"] = [self.experiment]
        return {**self.known_labels, **words}

    @property
    def names(self) -> list[str]:
        """All names of the version."""
        return [self.version, *filter(None, self.aliases.split("\n"))]

    @property
    def noted(self) -> Noted:
        """The key of the notes on the run."""
        return Noted(self.system, self.run_id, self.names, self.started_at, self.ended_at)


_NAMES = tuple(field.name for field in fields(Entry))
_TYPES = tuple(int if field.name in {"repetition", "position"} else str for field in fields(Entry))


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _entry(path: Path) -> Entry:
    """A run's entry, from its manifest."""
    try:
        manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        subject, place = manifest["subject"], manifest.get("experiment") or {}
        sources = [(source["path"], source["blake3"]) for source in manifest.get("sources", [])]
        effective = manifest.get("configuration", {}).get("effective", {})
        labels = manifest.get("labels", {})
        entry = Entry(
            run_id=path.name,
            system=subject["system"],
            subject=subject["name"],
            version=subject["version"],
            profile=manifest["profile_name"],
            status=manifest["status"],
            started_at=manifest["started_at"],
            ended_at=manifest["ended_at"],
            experiment=place.get("id", ""),
            side=place.get("side", ""),
            repetition=place.get("repetition", 0),
            position=place.get("position", 0),
            workload=_workload(manifest),
            sources=_digest(manifest.get("identity") or sources) if sources else path.name,
            build=_digest(
                [
                    subject.get("release") or subject["version"],
                    subject.get("build"),
                    subject.get("binary_sha256"),
                    effective,
                ]
            ),
            machine=manifest["host"]["cpu_model"],
            badges=_badges(manifest),
            aliases="\n".join(subject.get("aliases", [])),
            profiles=",".join(manifest.get("profiles", [])),
            labels=json.dumps(labels, sort_keys=True, ensure_ascii=False) if labels else "",
            origin="imported" if any(not path.startswith("raw/") for path, _ in sources) else "measured",
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Entry(path.name)
    return entry if _is_typed(_row(entry)) else Entry(path.name)


def _workload(manifest: Mapping[str, Any]) -> str:
    """The common properties of repetitions: the workload, and the cell if there is one."""
    cell = cell_of(manifest.get("labels", {}))
    return _digest([manifest["workload"], cell] if cell else manifest["workload"])


def _badges(manifest: Mapping[str, Any]) -> str:
    """The badges in a list of runs next to the status, which a reader must know."""
    result = {
        SYNTHETIC: manifest.get("synthetic"),
        PRINTED: manifest.get("printed"),
        PROFILED: manifest.get("profiles"),
        "contradicted label": manifest.get("contradictions"),
    }
    return ", ".join(badge for badge, applies in result.items() if applies)


def _row(entry: Entry) -> tuple[str | int, ...]:
    return tuple(getattr(entry, name) for name in _NAMES)


def _is_typed(row: Sequence[object]) -> bool:
    return len(row) == len(_TYPES) and all(type(value) is kind for value, kind in zip(row, _TYPES, strict=True))


def is_sealed(path: Path) -> bool:
    """Whether a folder is a run; an import that was killed after sealing does not have its name yet."""
    return (path / SEAL).is_file() and not path.name.startswith(STAGED)


def stamp_of(file: str) -> Stamp | None:
    """Distinguishes a file from another without reading it; None if it does not exist."""
    try:
        stat = os.stat(file)  # noqa: PTH116 - of thousands of files
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


@dataclass(frozen=True)
class Contents:
    """The folders of a store: sealed runs, oldest first, and the names of the others."""

    sealed: list[Entry]
    unfinished: list[str]


class Index:
    """The runs of a store for selectors and lists.

    Args:
        root: the store's folder.
    """

    def __init__(self, root: Path) -> None:
        self._runs = root / "runs"
        self._path = root / INDEX
        self._stamp: Stamp | None = None
        self._entries: dict[Seal, Entry] = {}

    def contents(self) -> Contents:
        """The current contents; only runs that are not in the index are opened, and then added."""
        seals, unfinished = self._look()
        cached = self._known()
        entries = {item: cached.get(item) or _entry(self._runs / item[0]) for item in seals}
        # A damaged run may be repaired under the same seal: it is read each time.
        sound = {item: entry for item, entry in entries.items() if entry.status != DAMAGED}
        if sound.keys() != cached.keys():
            self._write(sound)
            self._stamp, self._entries = stamp_of(str(self._path)), sound
        return Contents(sorted(entries.values(), key=_age), unfinished)

    def _look(self) -> tuple[list[Seal], list[str]]:
        """The seals of all sealed runs, and the names of all other folders."""
        seals: list[Seal] = []
        unfinished = []
        try:
            with os.scandir(self._runs) as scandir_iterator:
                folders = [(item.name, item.path) for item in scandir_iterator if item.is_dir()]
        except FileNotFoundError:
            return [], []
        for name, path in sorted(folders):
            stamp = None if name.startswith(STAGED) else stamp_of(f"{path}/{SEAL}")
            if stamp is None:
                unfinished.append(name)
            else:
                seals.append((name, stamp))
        return seals, unfinished

    def _known(self) -> dict[Seal, Entry]:
        """The entries of the index; read again if the file has changed."""
        stamp = stamp_of(str(self._path))
        if stamp != self._stamp:
            self._stamp, self._entries = stamp, self._read()
        return self._entries

    def _read(self) -> dict[Seal, Entry]:
        """The entries of the index by name and seal; empty if it is damaged or of another layout."""
        body = read_cache(self._path, _LAYOUT)
        try:
            rows = json.loads(body or b"[]")
            entries: dict[Seal, Entry] = {}
            for stamp, row in rows:
                if not _is_typed(row):
                    return {}
                entries[row[0], (stamp[0], stamp[1], stamp[2])] = Entry(*row)
        except (ValueError, TypeError, IndexError):
            return {}
        return entries

    def _write(self, entries: Mapping[Seal, Entry]) -> None:
        """Replace the index, unless another process is doing that; a read-only store has none."""
        rows = [(stamp, _row(entry)) for (_, stamp), entry in entries.items()]
        write_cache(self._path, _LAYOUT, json.dumps(rows, separators=(",", ":")).encode())


def _age(entry: Entry) -> tuple[str, str]:
    return entry.started_at, entry.run_id


def _grouped(named: Iterable[tuple[str, Entry]]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for name, entry in named:
        groups.setdefault(name, []).append(entry)
    return groups


class Selection:
    """The runs of a store at one moment, and the resolution of references to them.

    Args:
        contents: of the store.
    """

    def __init__(self, contents: Contents) -> None:
        self.sealed = contents.sealed
        self.unfinished = contents.unfinished

    @cached_property
    def _folders(self) -> list[str]:
        return sorted([*(entry.run_id for entry in self.sealed), *self.unfinished])

    @cached_property
    def _by_name(self) -> dict[str, list[Entry]]:
        return _grouped((entry.run_id, entry) for entry in self.sealed)

    @cached_property
    def _by_version(self) -> dict[str, list[Entry]]:
        """The readable runs by every name of their version."""
        return _grouped((name, entry) for entry in self.sealed if entry.status != DAMAGED for name in set(entry.names))

    @cached_property
    def _by_experiment(self) -> dict[str, list[Entry]]:
        return _grouped((entry.experiment, entry) for entry in self.sealed)

    @property
    def _versions(self) -> list[str]:
        return list(self._by_version)

    @staticmethod
    def _hint(reference: str, known: Sequence[str]) -> str:
        close = difflib.get_close_matches(reference, known, n=1, cutoff=0.7)
        return f"did you mean `{close[0]}`?" if close else "`chainmark runs list` shows all runs"

    def find(self, reference: str) -> str:
        """The name of the one run, finished or not, whose id is, or begins with, ``reference``.

        Raises:
            UsageError: none or several match.
        """
        begin = bisect_left(self._folders, reference)
        if self._folders[begin : begin + 1] == [reference]:
            return reference
        matches = list(takewhile(lambda name: name.startswith(reference), self._folders[begin:]))
        if not matches:
            if reference in self._by_version:
                hint = f"it is a version: `chainmark runs list {reference}` shows the IDs of its runs"
                raise UsageError(f"no run has the ID `{reference}`", hint)
            raise UsageError(f"no run matches `{reference}`", self._hint(reference, [*self._folders, *self._versions]))
        if len(matches) > 1:
            names = ", ".join(matches[:_NAMED_MOST])
            raise UsageError(f"`{reference}` matches {len(matches)} runs: {names} …", "give more characters of the ID")
        return matches[0]

    def select(self, reference: str) -> list[Entry]:
        """The sealed runs of a reference, see `chainmark.store.runs.Store.select`."""
        experiment, _, side = reference.partition("/")
        members = [entry for entry in self.members([experiment]) if side in ("", entry.side)] if experiment else []
        if members:
            return sorted(self._whole(members), key=lambda entry: entry.position)
        if (terms := terms_of(reference)) is not None:
            return _newest_group(self._matching(terms))
        version = reference.removeprefix("version:")
        of_version = self._of_version(version)
        if of_version:
            return _newest_group(self._whole(of_version))
        if reference.startswith("version:"):
            raise UsageError(f"no run of version `{version}`", self._hint(version, self._versions))
        name = self.find(reference)
        entries = self._by_name.get(name)
        if entries is None:
            raise InvalidRunError(
                f"run `{name}` is unfinished and cannot be compared",
                f"`chainmark runs remove {name}` deletes it",
            )
        return entries

    def all_of(self, reference: str) -> list[Entry]:
        """Every sealed run of a reference, oldest first: for a version or labels not only the newest group.

        Raises:
            UsageError: there is none.
        """
        if (terms := terms_of(reference)) is not None:
            return self._matching(terms)
        if reference in {entry.experiment for entry in self.sealed}:
            return self.select(reference)
        return self._of_version(reference.removeprefix("version:")) or self.select(reference)

    def _of_version(self, version: str) -> list[Entry]:
        entries = self._by_version.get(version, [])
        return [entry for entry in entries if not entry.profiles] or entries

    def _matching(self, terms: Mapping[str, str]) -> list[Entry]:
        """The runs that have all of these terms.

        Raises:
            UsageError: there is none; the hint lists the existing terms.
        """
        entries = [entry for entry in self._whole(self.sealed) if not entry.profiles]
        for key, value in terms.items():
            values = list(dict.fromkeys(word for entry in entries for word in entry.words.get(key, [])))
            entries = [entry for entry in entries if value.casefold() in map(str.casefold, entry.words.get(key, []))]
            if not entries:
                reported = ", ".join(f"`{word}`" for word in values) or "none"
                raise UsageError(f"no run has the {key} `{value}`", f"values in the runs selected so far: {reported}")
        return entries

    def groups(self, reference: str) -> list[list[Entry]]:
        """The sealed runs of a version by profile, workload and machine, each as `select` takes the newest of them.

        Any other reference is one group. The group with the newest run comes last.
        """
        entries = self.all_of(reference)
        if terms_of(reference) is None:
            chosen = self.select(reference)
            version = reference.removeprefix("version:")
            if not chosen or version not in chosen[0].names or reference in {entry.run_id for entry in chosen}:
                return [chosen]
        result: dict[tuple[str, ...], list[Entry]] = {}
        for entry in entries:
            if not entry.profiles:
                result.setdefault((entry.profile, *_place(entry)), []).append(entry)
        return sorted(map(_newest_group, result.values()), key=lambda group: group[-1].started_at)

    def identified(self, identity: str) -> list[Entry]:
        """The imports of one published run; see `Manifest.identity`."""
        return [entry for entry in self.sealed if entry.sources == _digest(identity)]

    def members(self, experiments: Iterable[str]) -> list[Entry]:
        """The sealed runs of experiments, oldest first."""
        ids = set(experiments) - {""}
        entries = [entry for name in ids for entry in self._by_experiment.get(name, [])]
        return sorted(entries, key=_age)

    def alike(self, run_ids: Iterable[str]) -> list[Entry]:
        """Runs that may show the noise between runs like the given ones: same system and workload, repeated builds.

        A build that was run once shows none, unless there are many builds: then the steps between them do. Imported
        runs state only a part of their workload, so all of a system's are returned. The caller decides which of them
        count after reading them.
        """
        ids = set(run_ids)
        chosen = [entry for entry in self.sealed if entry.run_id in ids]
        places, systems = {_place(entry) for entry in chosen}, {entry.system for entry in chosen}
        near = [entry for entry in self._whole(self.sealed) if _place(entry) in places and not entry.profiles]
        times = Counter((_place(entry), entry.build) for entry in near)
        repeated = {entry.run_id for entry in near if times[_place(entry), entry.build] > 1}
        releases = {entry.run_id for place in places for entry in _latest_builds(near, place)}
        printed = {entry.run_id for entry in self.sealed if entry.system in systems and PRINTED in entry.badges}
        wanted = repeated | releases | printed
        return [entry for entry in self.sealed if entry.run_id in wanted]

    def series(self, run_ids: Iterable[str]) -> list[Entry]:
        """All runs of the systems, workloads and machines of the given ones; all imported reports of their systems."""
        ids = set(run_ids)
        chosen = [entry for entry in self.sealed if entry.run_id in ids]
        places, systems = {_place(entry) for entry in chosen}, {entry.system for entry in chosen}
        return [
            entry
            for entry in self._whole(self.sealed)
            if not entry.profiles and (_place(entry) in places or (entry.system in systems and PRINTED in entry.badges))
        ]

    def profiled(self, run_ids: Iterable[str]) -> list[Entry]:
        """Runs with profiles like the given ones: of their side of their experiment, or else of a version.

        Those of a version share its profile, workload and machine.
        """
        ids = set(run_ids)
        chosen = [entry for entry in self.sealed if entry.run_id in ids]
        taken = [entry for entry in self.sealed if entry.profiles]
        sides = {(entry.experiment, entry.side) for entry in chosen if entry.experiment}
        versions = {(entry.profile, entry.version, *_place(entry)) for entry in chosen}
        return [entry for entry in taken if (entry.experiment, entry.side) in sides] or [
            entry for entry in taken if (entry.profile, entry.version, *_place(entry)) in versions
        ]

    def shows_noise(self, system: str, workload: Mapping[str, object], cpu_model: str) -> bool:
        """Whether some build was run twice or more under this workload on this kind of processor."""
        place = (system, _digest(workload), cpu_model)
        builds = Counter(entry.build for entry in self.sealed if _place(entry) == place and not entry.profiles)
        return any(times > 1 for times in builds.values())

    def _whole(self, entries: list[Entry]) -> list[Entry]:
        """The same, after checking that no run is overlooked.

        Raises:
            InvalidRunError: the manifest of a run in the store cannot be read, so its contents are unknown.
        """
        for entry in self.sealed:
            if entry.status == DAMAGED:
                raise InvalidRunError(
                    f"run `{entry.run_id}` is damaged: manifest.json cannot be read",
                    f"`chainmark runs verify {entry.run_id}` shows what changed",
                )
        return entries


def terms_of(reference: str) -> dict[str, str] | None:
    """The terms of a selector such as "release:v1.2.9,hardware:mid,endpoint:/block"; None if it is not a selector.

    A version alone, "version:v1.2.9", is the same as without the key, and not a selector.
    """
    result = {}
    for part in _TERMS.split(reference):
        key, mark, value = part.partition(":")
        if not (mark and value.strip() and key.isidentifier()):
            return None
        result[_SAME_KEY.get(key, key)] = value.strip()
    return None if reference.startswith("version:") and len(result) == 1 else result


def _place(entry: Entry) -> tuple[str, str, str]:
    return entry.system, entry.workload, entry.machine


def _latest_builds(entries: Sequence[Entry], place: tuple[str, str, str]) -> list[Entry]:
    """The newest run of each of the latest builds at a place; empty if there are few builds."""
    newest = {entry.build: entry for entry in entries if _place(entry) == place}
    return list(newest.values())[-MOST_BUILDS:] if len(newest) >= MANY_BUILDS else []


def _newest_group(entries: list[Entry]) -> list[Entry]:
    """Of the runs of one version, those like the newest one: same profile, experiment, side and workload.

    Runs from the same sources are one run: for logs that were imported twice, the last import counts.
    """

    def group(entry: Entry) -> tuple[str, str, str, str]:
        return entry.profile, entry.experiment, entry.side, entry.workload

    newest = [entry for entry in entries if group(entry) == group(entries[-1])]
    return list({entry.sources: entry for entry in newest}.values())
