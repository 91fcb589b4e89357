"""Imports of logs with lost lines, duplicate lines or wrong times: all that the logs report is still measured."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from chainmark.core.errors import UsageError
from chainmark.core.manifest import GateStatus, Status
from chainmark.lab.importing import ImportedRun
from chainmark.systems.cardano.block_work import METRICS as BLOCK_WORK
from chainmark.systems.cardano.published.figures import figures_of

from tests.unit.systems.cardano.clusters import changed, ingest, make_cluster

HOSTS = 3
FORGED = '"Forge.Loop.ForgedBlock"'
_PLACED = re.compile(r'"Forge.Loop.(?:ForgedBlock|BlockContext)"|"ChainSync.Client.DownloadedHeader"')
Lines = list[str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some forty blocks."""
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", hosts=HOSTS, slots=400)


@pytest.fixture(scope="module")
def whole(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> ImportedRun:
    return ingest(tmp_path_factory.mktemp("store"), cluster)


def edited(cluster: Path, folder: Path, edit: Callable[[Lines, int], Lines]) -> Path:
    """A copy of the cluster with changes to each host's lines."""

    def change(copy: Path) -> None:
        for number in range(HOSTS):
            path = copy / f"node-{number}" / "stdout"
            lines = path.read_text(encoding="utf-8").splitlines()
            path.write_text("".join(f"{line}\n" for line in edit(lines, number)), encoding="utf-8")

    return changed(cluster, folder, change)


def all_lines(folder: Path) -> Lines:
    return [line for path in sorted(folder.glob("node-*/stdout")) for line in path.read_text().splitlines()]


def chain_of(cluster: Path) -> dict[str, int]:
    """The actual main chain: the number of every block."""
    return dict(_on_chain(cluster).select("block", "block_no").iter_rows())


def _on_chain(cluster: Path) -> pl.DataFrame:
    truth = pl.read_parquet(cluster / "truth.parquet").filter((pl.col("record") == "block") & pl.col("on_chain"))
    return truth.select("block", "block_no", "slot").unique().sort("block_no")


def figures(imported: ImportedRun) -> dict[str, tuple[int, float]]:
    summaries = imported.run.summaries()
    return {
        name: (summary.distribution.n, summary.distribution.mean)
        for name, summary in summaries.items()
        if summary.distribution
    }


def counts(imported: ImportedRun, account: str) -> dict[str, int]:
    return dict(imported.run.manifest.counts[account])


def gate(imported: ImportedRun, gate_id: str) -> Any:
    return next(gate for gate in imported.run.manifest.gates if gate.id == gate_id)


def restamped(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values}, separators=(",", ":"))


def test_a_lost_forging_line_affects_only_dependent_figures_and_names_the_block(
    cluster: Path, whole: ImportedRun, tmp_path: Path
) -> None:
    lost: list[dict[str, Any]] = []

    def edit(lines: Lines, host: int) -> Lines:
        if host != 1:
            return lines
        forged = [line for line in lines if FORGED in line]
        lost.append(json.loads(forged[len(forged) // 2])["data"])
        return [line for line in lines if line != forged[len(forged) // 2]]

    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", edit))
    before, after = figures(whole), figures(imported)
    assert after["adoption_p50_s"][0] == before["adoption_p50_s"][0]
    assert after["block_size_bytes"] == before["block_size_bytes"], "the forge loop's adoption has the size"
    assert after["forge_started_s"][0] == before["forge_started_s"][0] - 1
    assert counts(imported, "heights of the chain")["forger in no log"] == 1
    assert any(f"{lost[0]['blockNo']} ({lost[0]['block'][:12]}…)" in text for text in imported.run.manifest.warnings)
    assert gate(imported, "chain_complete").status is GateStatus.PASS


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_block_at_the_end_of_the_chain_is_known_from_its_child(cluster: Path, tmp_path: Path, end: str) -> None:
    """No log contains its slot: the import must not need it. The published values end at the last known slot."""
    chained = _on_chain(cluster)[:-1]  # without the tip
    lost = str(chained["block"][0 if end == "low" else -1])

    def edit(lines: Lines, _: int) -> Lines:
        return [line for line in lines if lost not in line or f'"blockPrev":"{lost}"' in line]

    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", edit))
    assert counts(imported, "heights of the chain")["forger in no log"] == 1
    slots = chained.filter(pl.col("block") != lost)["slot"]
    assert (
        _domain(imported, "bpDomainSlots.ddRaw")
        == _domain(imported, "bpDomainSlots.ddFiltered")
        == (slots[0], slots[-1])
    )
    assert _domain(imported, "bpDomainBlocks.ddRaw") == (chained["block_no"][0], chained["block_no"][-1])


def _domain(imported: ImportedRun, name: str) -> tuple[float, ...]:
    published = figures_of(imported.run)
    assert published is not None
    return tuple(published.figures[f"{name}.{end}"].mean for end in ("low", "high"))


def test_a_duplicated_forging_line_is_counted_and_changes_no_figure(
    cluster: Path, whole: ImportedRun, tmp_path: Path
) -> None:
    def edit(lines: Lines, _: int) -> Lines:
        return [copy for line in lines for copy in ([line, line] if FORGED in line else [line])]

    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", edit))
    assert figures(imported) == figures(whole)
    forged = sum(FORGED in line for line in all_lines(cluster))
    repeated = "not used: repetition"
    assert counts(imported, "messages")[repeated] == counts(whole, "messages")[repeated] + forged


@pytest.mark.parametrize(("seed", "lost", "twice"), [(1, 0.02, 0.02), (2, 0.05, 0.0), (3, 0.3, 0.1), (4, 0.6, 0.2)])
def test_every_height_that_a_line_mentions_is_recovered(
    cluster: Path, tmp_path: Path, seed: int, lost: float, twice: float
) -> None:
    rng = random.Random(seed)

    def edit(lines: Lines, _: int) -> Lines:
        remaining = [line for line in lines if rng.random() >= lost]
        return [copy for line in remaining for copy in ([line, line] if rng.random() < twice else [line])]

    folder = edited(cluster, tmp_path / "logs", edit)
    imported = ingest(tmp_path / "store", folder)
    chain = chain_of(cluster)
    text = "\n".join(line for line in all_lines(folder) if _PLACED.search(line))
    numbers = {number for block, number in chain.items() if block in text}
    heights = counts(imported, "heights of the chain")
    tip = max(numbers)
    assert heights["block in no log"] <= tip - len(numbers - {tip})
    assert sum(heights.values()) == tip, "every height below the tip, from the first block on"
    if lost <= 0.05:
        samples = pl.read_parquet(imported.run.path / "samples" / "chained.parquet")
        assert set(samples["block"]) == {block for block, number in chain.items() if number < tip}


@pytest.mark.parametrize(("missing", "status"), [(1, GateStatus.WARN), (3, GateStatus.FAIL)])
def test_coverage_counts_the_heights_with_a_remaining_line(
    cluster: Path, tmp_path: Path, missing: int, status: GateStatus
) -> None:
    chain = chain_of(cluster)
    gone = [block for block, number in chain.items() if 10 <= number < 10 + missing]

    def edit(lines: Lines, _: int) -> Lines:
        return [line for line in lines if not any(block in line for block in gone)]

    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", edit))
    passed = max(chain.values())
    heights = counts(imported, "heights of the chain")
    assert (heights["block in no log"], sum(heights.values())) == (missing, passed)
    assert gate(imported, "chain_complete").status is status
    assert gate(imported, "chain_complete").measured.startswith(f"{passed - missing} of {passed} heights")
    assert (imported.run.manifest.status is Status.INVALID) == (status is GateStatus.FAIL)


def test_a_sample_stamped_a_day_ahead_changes_no_mean_and_is_reported(
    cluster: Path, whole: ImportedRun, tmp_path: Path
) -> None:
    """Before, it created 86,399 slots and changed the share of the forge loop's starts from 0.996 to 0.666."""

    def edit(lines: Lines, host: int) -> Lines:
        place = [number for number, line in enumerate(lines) if '"ns":"Resources"' in line][50]
        if host == 1:
            ahead = json.loads(lines[place])["at"].replace("2026-02-05", "2026-02-06")
            lines[place] = restamped(lines[place], at=ahead)
        return lines

    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", edit))
    before, after = figures(whole), figures(imported)
    # The cost of a block is a value per host, computed from all samples of the host.
    moved = {name for name, figure in after.items() if figure != before[name]} - set(BLOCK_WORK)
    # One sample is missing, and the rates of the next one cover two seconds.
    assert {name: after[name][0] - before[name][0] for name in moved} == dict.fromkeys(moved, -1)
    assert not moved & {"forge_loop_starts", "block_gap_slots", "adoption_p50_s"}
    assert counts(imported, "messages")["not used: implausible time"] == 1
    assert gate(imported, "no_gaps").status is GateStatus.PASS
    assert any("(implausible time): node-1 1" in text for text in imported.run.manifest.warnings)


def test_messages_for_future_slots_are_reported_and_the_sums_hold(
    cluster: Path, whole: ImportedRun, tmp_path: Path
) -> None:
    def edit(lines: Lines, host: int) -> Lines:
        line = next(line for line in lines if "NodeNotLeader" in line)
        message = json.loads(line)
        ahead = [restamped(line, data={**message["data"], "slot": 500 + number}) for number in range(1000)]
        place = lines.index(line)
        return [*lines[:place], *ahead, *lines[place:]] if host == 2 else lines

    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", edit))
    assert figures(imported) == figures(whole)
    assert counts(imported, "messages")["not used: slot not begun"] == 1000
    assert sum(counts(imported, "messages").values()) == counts(imported, "lines")["decoded"]
    assert any("(slot not begun): node-2 1000" in text for text in imported.run.manifest.warnings)


@pytest.mark.parametrize("magic", ["42", "NetworkMagic {unNetworkMagic = 42}", "NetworkMagic 42", "unknown", 42])
def test_a_magic_is_compared_as_a_number_and_an_unreadable_one_is_ignored(
    cluster: Path, tmp_path: Path, magic: str | int
) -> None:
    imported = ingest(tmp_path / "store", edited(cluster, tmp_path / "logs", _with_magic(magic)))
    assert imported.run.manifest.status is Status.VALID


def test_another_magic_in_haskell_notation_is_another_network(cluster: Path, tmp_path: Path) -> None:
    folder = edited(cluster, tmp_path / "logs", _with_magic("NetworkMagic {unNetworkMagic = 764824073}"))
    with pytest.raises(UsageError, match="their network magic is 764824073, its is 42"):
        ingest(tmp_path / "store", folder)


def _with_magic(magic: str | int) -> Callable[[Lines, int], Lines]:
    def edit(lines: Lines, _: int) -> Lines:
        first = next(line for line in lines if line.startswith('{"at"'))
        data = {"kind": "BasicInfoCommon", "networkMagic": magic}
        return [lines[0], restamped(first, ns="Startup.Common", data=data, sev="Info"), *lines[1:]]

    return edit
