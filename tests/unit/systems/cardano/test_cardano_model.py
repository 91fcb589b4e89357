"""Predictions and explanations of networks whose parameters are known, because the simulator generated them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.systems.capabilities import ModelRequest, ModelSource, WhatIf
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.evidence import evidence
from chainmark.systems.cardano.explain import explain
from chainmark.systems.cardano.figures import ADOPTION, KNOWN
from chainmark.systems.cardano.formula import fit_formula, formula_for
from chainmark.systems.cardano.model.results import Explanation, Prediction
from chainmark.systems.cardano.predict import predict
from chainmark.systems.cardano.profile import CardanoProfile
from chainmark.systems.cardano.record import record
from chainmark.systems.cardano.simulation import Simulator, default_blocks

from tests.unit.systems.cardano.made_up import BLOCKS, QUIET, measured, order, profile, report, sealed_run, write

ONE_REGION = (
    'network.regions=[{name="EU"}]',
    "network.rtt_s=[[0.0002]]",
    "network.rtt_spread_s=[[0.0]]",
    "network.hosts=12",
)


def _predict(*changes: WhatIf, of: CardanoProfile | None = None, together: bool = False) -> Prediction:
    source = ModelSource("the profile", profile=of or profile())
    return predict(source, order(*changes, together=together), QUIET, SYSTEM.catalogue())


def _explain(figures: dict[str, float], folder: Path, of: CardanoProfile | None = None) -> Explanation:
    """Explain a run with another seed than the one that generated it: agreement is only statistical."""
    source = ModelSource("the run", run=sealed_run(folder, figures, of=of))
    return explain(source, ModelRequest(blocks=640, seed=5), QUIET, SYSTEM.catalogue())


# --- predictions -------------------------------------------------------------------------------------------------


def test_a_prediction_contains_every_metric_of_the_model_with_its_error() -> None:
    prediction = _predict()
    assert {row.metric_id for row in prediction.rows} == KNOWN
    assert [scenario.label for scenario in prediction.scenarios] == ["base"]
    assert (prediction.scenarios[0].hosts, prediction.scenarios[0].blocks) == (52, BLOCKS)
    for row in prediction.rows:
        assert row.measured is None
        assert row.cells[0].change is None
        assert row.cells[0].modelled.standard_error >= 0.0
    adoption = [row.cells[0].modelled for row in prediction.rows if row.metric_id in ADOPTION]
    assert [modelled.value for modelled in adoption] == sorted(modelled.value for modelled in adoption)
    assert all(0.0 < modelled.standard_error < 0.05 for modelled in adoption)


def test_the_parts_of_a_prediction_add_up() -> None:
    """A stacked bar must end at the figure that is printed next to it."""
    prediction = _predict(WhatIf("rtt", "+20%"))
    values = {row.metric_id: [cell.modelled.value for cell in row.cells] for row in prediction.rows}
    for scenario in (0, 1):
        parts = [part.values for part in prediction.contributions if part.scenario == scenario]
        for place, metric in enumerate(prediction.contribution_metric_ids):
            assert sum(values[place] for values in parts) == pytest.approx(values[metric][scenario], abs=1e-6)
    for curve in prediction.curves:
        assert curve.values == sorted(curve.values)
        assert curve.fractions[-1] == 1.0
        assert curve.values[-1] == pytest.approx(values["adoption_p100_s"][curve.scenario])


def test_changes_are_predicted_separately_and_together() -> None:
    changes = (WhatIf("stage", "fetched-to-adopted=+10ms"), WhatIf("rtt", "EU-AP=+20ms"))
    labels = [scenario.label for scenario in _predict(*changes).scenarios]
    both = "stage fetched-to-adopted=+10ms and rtt EU-AP=+20ms"
    assert labels == ["base", "stage fetched-to-adopted=+10ms", "rtt EU-AP=+20ms", both]
    assert [scenario.label for scenario in _predict(*changes, together=True).scenarios] == ["base", both]


def test_a_slower_adoption_shifts_every_centile_by_the_same_amount() -> None:
    """Pairing makes this exact to a fraction of a millisecond, far below the noise of either side."""
    prediction = _predict(WhatIf("stage", "fetched-to-adopted=+10ms"))
    for row in prediction.rows:
        if row.metric_id in ADOPTION:
            change = row.cells[1].change
            assert change is not None
            assert change.value == pytest.approx(0.010, abs=0.0015)
            assert change.standard_error < 0.2 * row.cells[0].modelled.standard_error
            assert row.cells[1].changed


def test_metrics_that_do_not_depend_on_the_change_are_unchanged() -> None:
    prediction = _predict(WhatIf("rtt", "EU-AP=+20ms"))
    cells = {row.metric_id: row.cells[1] for row in prediction.rows}
    assert not cells["slot_to_announced_s"].changed
    assert cells["adoption_p80_s"].changed


def test_a_prediction_does_not_depend_on_the_number_of_threads() -> None:
    source = ModelSource("the profile", profile=profile())
    texts = [
        predict(
            source,
            ModelRequest((WhatIf("rtt", "x1.1"),), blocks=64, seed=3, threads=threads),
            QUIET,
            SYSTEM.catalogue(),
        )
        for threads in (1, 2)
    ]
    assert texts[0].model_dump_json() == texts[1].model_dump_json()


def test_a_cluster_in_one_region_can_be_predicted() -> None:
    """There is no round trip between regions, and the output must not contain an invented value for it."""
    prediction = _predict(of=profile("cardano/value", *ONE_REGION))
    text = json.dumps(prediction.model_dump(mode="json"), allow_nan=False)
    assert '"hosts": 12' in text
    assert all(cell.formula is None for row in prediction.rows for cell in row.cells)


def test_the_formula_is_applied_only_to_supported_changes() -> None:
    prediction = _predict(WhatIf("stage", "fetched-to-adopted=+10ms"), WhatIf("rtt", "x2"), WhatIf("block-size", "2x"))
    row = next(row for row in prediction.rows if row.metric_id == "adoption_p80_s")
    base, adopted, distance, size, together = (cell.formula for cell in row.cells)
    assert base is not None
    assert adopted == pytest.approx(base + 0.010)
    assert distance is size is together is None


def test_limits_of_the_model_are_stated() -> None:
    notes = " ".join(_predict(WhatIf("block-size", "2x"), WhatIf("nodes", "104")).notes)
    for words in (
        "other sizes follow from TCP's rules",
        "no published run has more than 52 hosts",
        "all CPU-bound stages stay the same",
    ):
        assert words in notes


def test_large_clusters_get_fewer_blocks() -> None:
    assert (default_blocks(52), default_blocks(200)) == (3328, 6400)
    assert 64 <= default_blocks(5000) < default_blocks(1000) < 3328
    assert [Simulator().blocks_per_batch(hosts) for hosts in (35, 52, 200)] == [105, 104, 200]


def test_a_change_to_an_impossible_network_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "split.json",
        {"coreNodes": [{"name": f"node-{i}", "region": "EU", "producers": [f"node-{i ^ 1}"]} for i in range(4)]},
    )
    with pytest.raises(UsageError, match="the topology is not connected"):
        _predict(WhatIf("topology", str(path)))
    with pytest.raises(UsageError, match="there is no stage `x`"):
        _predict(WhatIf("stage", "x=1ms"))


# --- explanations ------------------------------------------------------------------------------------------------


def test_a_known_network_is_recovered_from_its_stages(tmp_path: Path) -> None:
    """No table contains services, share and round trip; a run of a known network must give them back."""
    pinged = profile("cardano/plutus")
    scenario = pinged.scenario(1)
    rtt = [list(row) for row in scenario.cluster.rtt_s]
    rtt[0][2] = rtt[2][0] = 0.275
    parameters = scenario.parameters.model_copy(
        update={"header_service_s": 0.005, "body_service_s": 0.012, "server_share": 0.4}
    )
    cluster = scenario.cluster.model_copy(update={"rtt_s": rtt})
    true = scenario.model_copy(update={"cluster": cluster, "parameters": parameters})
    explanation = _explain(measured(true, 960), tmp_path, pinged)
    assert explanation.explained
    assert all(abs(row.error) < 0.02 for row in explanation.whole)
    assert "the cause is the routing, not the node" in explanation.sentence
    far = next(row for row in explanation.round_trips if row.inferred)
    assert (far.link, far.measured_s, far.differs) == ("EU–AP", 0.241, True)
    assert far.inferred_s == pytest.approx(0.275, abs=0.006)
    assert 0.007 <= far.standard_error_s < 0.009
    services = [float(number) for number in re.findall(r"([\d.]+) ms to", explanation.notes[0])]
    assert services == pytest.approx([5.0, 12.0], abs=0.2)
    calibrated = {row.metric_id: row for row in explanation.parts}
    assert calibrated["peer_fetch_s"].modelled.value == pytest.approx(calibrated["peer_fetch_s"].measured, rel=0.01)
    assert calibrated["forge_sending_s"].calibrated
    assert not calibrated["peer_sending_s"].calibrated


def test_a_link_that_bodies_can_avoid_is_reported_as_uncertain(tmp_path: Path) -> None:
    """EU–US–AP is 290 ms: beyond that, fetch durations say nothing about EU–AP, and the reader must know."""
    pinged = profile("cardano/plutus")
    scenario = pinged.scenario(1)
    rtt = [list(row) for row in scenario.cluster.rtt_s]
    rtt[0][2] = rtt[2][0] = 0.300
    true = scenario.model_copy(update={"cluster": scenario.cluster.model_copy(update={"rtt_s": rtt})})
    explanation = _explain(measured(true, 960), tmp_path, pinged)
    far = next(row for row in explanation.round_trips if row.inferred)
    assert abs(far.inferred_s - 0.300) < 2.0 * far.standard_error_s
    assert "it may be longer: the route through a third region takes 290 ms" in explanation.notes[0]


def test_a_total_that_the_parts_do_not_explain_is_flagged(tmp_path: Path) -> None:
    """Single late hosts appear in no stage's mean; the check must not explain them away."""
    pinged = profile("cardano/plutus")
    figures = measured(pinged.scenario(1), 640)
    figures["adoption_p100_s"] *= 1.2
    explanation = _explain(figures, tmp_path, pinged)
    assert not explanation.explained
    assert [row.metric_id for row in explanation.whole if row.flagged] == ["adoption_p100_s"]
    assert "1.00 adoption came later than the stages explain: model −1" in explanation.sentence
    assert "routing" not in explanation.sentence


def test_limits_follow_the_recorded_errors_of_the_model(tmp_path: Path) -> None:
    small = _explain(measured(profile("cardano/plutus").scenario(1)), tmp_path / "a", profile("cardano/plutus"))
    large = _explain(measured(profile("cardano/value").scenario(1)), tmp_path / "b", profile("cardano/value"))
    # The standard error is a thousandth of the measured value. The limits include it twice.
    for explanation, limits in ((small, (0.02,) * 6 + (0.03, 0.09)), (large, (0.03,) + (0.02,) * 7)):
        assert [row.limit for row in explanation.whole] == pytest.approx([math.hypot(limit, 0.002) for limit in limits])


@pytest.mark.parametrize("settings", [ONE_REGION, (*ONE_REGION, "workload.block_bytes=20")])
def test_one_region_and_tiny_blocks_can_be_explained(tmp_path: Path, settings: tuple[str, ...]) -> None:
    alone = profile("cardano/plutus", *settings)
    explanation = _explain(measured(alone.scenario(1), 640), tmp_path, alone)
    assert explanation.round_trips == []
    assert explanation.explained
    json.dumps(explanation.model_dump(mode="json"), allow_nan=False)


def test_a_report_without_the_forgers_sending_is_enough(tmp_path: Path) -> None:
    figures = measured(profile("cardano/plutus").scenario(1))
    known_figures = {
        name: value for name, value in figures.items() if name not in {"forge_sending_s", "adoption_p98_s"}
    }
    path = write(tmp_path / "r.json", report({"10.6": known_figures}))
    source = ModelSource("the report", document=path)
    explanation = explain(source, order(), QUIET, SYSTEM.catalogue())
    assert len(explanation.whole) == 7
    assert "the network is assumed to be the benchmark cluster: 52 hosts" in " ".join(explanation.notes)
    predicted = predict(source, order(), QUIET, SYSTEM.catalogue())
    assert {row.metric_id: row.measured for row in predicted.rows}["adoption_p98_s"] is None


def test_newer_releases_have_fewer_slow_blocks(tmp_path: Path) -> None:
    figures = measured(profile("cardano/plutus").scenario(1))
    paths = [write(tmp_path / f"{version}.json", report({version: figures})) for version in ("10.7.1", "11.0.1")]
    old, new = (predict(ModelSource("r", document=path), order(), QUIET, SYSTEM.catalogue()) for path in paths)
    tails = [
        next(part.values[-1] for part in prediction.contributions if part.stage == "slow blocks and stragglers")
        for prediction in (old, new)
    ]
    assert tails[1] < tails[0]


def test_a_source_without_a_measured_total_cannot_be_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a profile, which has no measurements"):
        explain(ModelSource("cardano/value", profile=profile()), order(), QUIET, SYSTEM.catalogue())
    figures = {name: value for name, value in measured(profile().scenario(1), 32).items() if name not in ADOPTION}
    path = write(tmp_path / "r.json", report({"10.6": figures}))
    with pytest.raises(UsageError, match="has no adoption centile"):
        explain(ModelSource("r", document=path), order(), QUIET, SYSTEM.catalogue())
    with pytest.raises(UsageError, match="does not accept changes"):
        explain(ModelSource("r", document=path), order(WhatIf("rtt", "x2")), QUIET, SYSTEM.catalogue())


def test_a_stage_that_a_node_does_not_report_may_be_absent(tmp_path: Path) -> None:
    """Releases before 10 do not log announcements, others no snapshots: the other stages still explain the total."""
    absent = {"forge_snapshot_s", "forge_self_adopted_s", "peer_announced_s"}
    figures = {
        name: value for name, value in measured(profile("cardano/value").scenario(1)).items() if name not in absent
    }
    path = write(tmp_path / "r.json", report({"10.6": figures}))
    explanation = explain(ModelSource("r", document=path), ModelRequest(blocks=640), QUIET, SYSTEM.catalogue())
    assert explanation.explained, explanation.sentence
    assert not absent & {row.metric_id for row in explanation.parts}
    assert (
        "so the model has no separate duration for: `Mempool snapshotting`, `Forged to self-adopted`"
        in explanation.notes[2]
    )
    without = {name: value for name, value in figures.items() if name not in ("peer_fetch_s", "peer_notice_first_s")}
    path = write(tmp_path / "w.json", report({"10.6": without}))
    again = explain(ModelSource("r", document=path), ModelRequest(blocks=640), QUIET, SYSTEM.catalogue())
    assert again.round_trips == []
    assert all(abs(row.error) < 0.05 for row in again.whole)


def test_the_error_of_a_prediction_includes_the_error_of_the_model() -> None:
    """A Monte Carlo error of 0.1 % for a model that is off by 1 % would promise too much."""
    prediction = _predict(WhatIf("rtt", "+20%"))
    for row in prediction.rows:
        base, change = row.cells[0].modelled, row.cells[1].change
        own = record(profile().workload.block_bytes).get(row.metric_id, 0.0)
        assert base.standard_error >= own * base.value
        assert change is not None
        assert change.standard_error >= own * abs(change.value)
        assert (row.metric_id in ADOPTION) == (own > 0.0)


# --- evidence and the formula ------------------------------------------------------------------------------------


def test_a_run_in_two_reports_counts_once(tmp_path: Path) -> None:
    figures = measured(profile().scenario(1))
    day = {"Cluster system start date": ["2025-01-29", "2026-02-12"], "Cluster system start time": ["09:00", "10:00"]}
    both = report({"10.2": figures, "10.6": figures}, manifest=day)
    again = report({"10.2-again": figures}, manifest={name: run_ids[:1] for name, run_ids in day.items()})
    paths = [write(tmp_path / "a.json", both), write(tmp_path / "b.json", again), write(tmp_path / "c.json", {})]
    model = evidence(paths, order(blocks=64), QUIET, SYSTEM.catalogue())
    assert [(row.group, row.method, row.runs) for row in model.rows] == [
        ("value-only, ≤ 10.2 (fitted)", "model", 1),
        ("value-only, ≤ 10.2 (fitted)", "with its release's late hosts", 1),
        ("value-only, ≤ 10.2 (fitted)", "formula", 1),
        ("value-only, from 10.3", "model", 1),
        ("value-only, from 10.3", "with its release's late hosts", 1),
        ("value-only, from 10.3", "formula", 1),
        ("value-only, from 10.3", "previous run", 1),
    ]
    assert model.rows[-1].overall == 0.0
    assert [run.label for run in model.runs] == ["10.2, value-only", "10.6, value-only"]
    assert any("1 of 3 files are not published reports" in note for note in model.notes)
    with pytest.raises(UsageError, match="none of the files is a published report"):
        evidence(paths[2:], order(), QUIET, SYSTEM.catalogue())


def test_the_formula_is_recovered_by_its_fit() -> None:
    formula = formula_for(2_996.0)
    assert formula is not None
    runs = []
    for fetch in (0.10, 0.12, 0.13, 0.15):
        figures = {
            "slot_to_announced_s": 0.03,
            "peer_adopted_s": 0.05,
            "peer_fetch_s": fetch,
            "block_size_bytes": 2_996.0,
        }
        runs.append({**figures, **formula.adoption_s(figures)})
    again = fit_formula("again", runs)
    assert again.k == pytest.approx(formula.k)
    assert again.constant_s == pytest.approx(formula.constant_s)
    with pytest.raises(ValueError, match="cannot be fitted to 2 runs"):
        fit_formula("few", runs[:2])


@pytest.mark.parametrize("size", [20.0, 2_000.0, 45_000.0, 200_000.0])
def test_there_is_no_formula_for_other_sizes(size: float) -> None:
    assert formula_for(size) is None


def test_a_simulator_error_is_reported_to_the_user_with_a_hint() -> None:
    """Whatever the simulator rejects, the user reads one sentence and a hint."""
    cluster = profile().network.cluster().model_copy(update={"hosts": 1})
    scenario = profile().scenario(1).model_copy(update={"cluster": cluster})
    with pytest.raises(UsageError, match="a cluster of 1 host has nobody to send a block to") as caught:
        Simulator(32).run(scenario)
    assert caught.value.hint == "at least 2 hosts are needed"
