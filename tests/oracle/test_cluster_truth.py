"""`chainmark ingest` against the generator's truth, by fault: remaining values are equal, lost ones are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.lab.synthetic import synthetic
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system

from tests.oracle.cluster_faults import FAULTS, Fault, all_rows
from tests.oracle.cluster_runs import generate, ingest
from tests.oracle.cluster_truth import Truth


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """The import of the cluster without faults."""
    folder = tmp_path_factory.mktemp("plain")
    return ingest(generate(folder / "logs"), folder / "store")


def test_every_kind_of_fault_is_tested() -> None:
    known = {kind.name for kind in synthetic(load_system("cardano")).fault_kinds()}
    assert {fault.kind for fault in FAULTS} == known | {"none"}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.kind for fault in FAULTS])
def test_remaining_data_is_exact_and_lost_data_is_reported_for_every_fault(
    plain: SealedRun, tmp_path: Path, fault: Fault
) -> None:
    folder = generate(tmp_path / "logs", faults=(fault.order,) if fault.order else ())
    truth = Truth(folder)
    rows = all_rows(truth, plain, ingest(folder, tmp_path / "store"), fault)
    assert len(rows) >= 60, "too few values were compared"
    assert {row.what: row.wrong[:3] for row in rows if not row.equal} == {}


@pytest.mark.parametrize("version", ["10.4", "10.7", "legacy"])
def test_every_format_matches_the_truth(plain: SealedRun, tmp_path: Path, version: str) -> None:
    """Old nodes print times in hundredths of a second; the truth accounts for it."""
    folder = generate(tmp_path / "logs", formats=(version,))
    run = ingest(folder, tmp_path / "store")
    rows = all_rows(Truth(folder), plain, run, Fault(""))
    unequal = {row.what: row.wrong[:3] for row in rows if not row.equal}
    if version == "legacy":
        # Half of a hundredth of a second is more than the difference between clocks under NTP.
        unequal.pop("gates that warn", None)
    assert unequal == {}
