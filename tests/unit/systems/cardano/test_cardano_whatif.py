"""What-if changes: each changes exactly what it states, and impossible ones are rejected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.systems.capabilities import WhatIf
from chainmark.systems.cardano.scenario import Scenario
from chainmark.systems.cardano.whatif import KEYS, apply_edits, parse_change

from tests.unit.systems.cardano.made_up import profile

BASE = profile("cardano/value").scenario(1)
RTT = BASE.cluster.rtt_s


def _changed(*changes: tuple[str, str], base: Scenario = BASE) -> Scenario:
    return apply_edits(base, [parse_change(WhatIf(*change), base) for change in changes])


@pytest.mark.parametrize(
    ("value", "eu_us", "eu_ap"),
    [
        ("+20%", 1.2 * RTT[0][1], 1.2 * RTT[0][2]),
        ("-10%", 0.9 * RTT[0][1], 0.9 * RTT[0][2]),
        ("x1.5", 1.5 * RTT[0][1], 1.5 * RTT[0][2]),
        ("1.5x", 1.5 * RTT[0][1], 1.5 * RTT[0][2]),
        ("+5ms", RTT[0][1] + 0.005, RTT[0][2] + 0.005),
        ("EU-AP=+20ms", RTT[0][1], RTT[0][2] + 0.020),
        ("AP–EU=0.25s", RTT[0][1], 0.25),
        ("eu-central-1-ap-southeast-2=+10%", RTT[0][1], 1.1 * RTT[0][2]),
    ],
)
def test_round_trips_change_for_the_named_regions(value: str, eu_us: float, eu_ap: float) -> None:
    after = _changed(("rtt", value)).cluster.rtt_s
    assert after[0][1] == after[1][0] == pytest.approx(eu_us)
    assert after[0][2] == after[2][0] == pytest.approx(eu_ap)


@pytest.mark.parametrize(
    ("value", "size"),
    [("2x", 2 * 88_963), ("120kB", 120_000), ("+50%", 1.5 * 88_963), ("-10kB", 78_963), ("1KiB", 1024)],
)
def test_the_size_of_blocks_changes_without_the_processors(value: str, size: float) -> None:
    after = _changed(("block-size", value))
    assert after.block_bytes == pytest.approx(size)
    assert after.block_bytes_variation > 0.0
    assert _changed(("block-size-spread", "none"), ("block-size", value)).block_bytes_variation == 0.0
    assert (after.stages, after.parameters) == (BASE.stages, BASE.parameters)
    assert "all CPU-bound stages stay the same" in parse_change(WhatIf("block-size", value), BASE).notes[0]


def test_size_dependent_stages_scale_on_request() -> None:
    after = _changed(("block-size", "2x:scale-cpu"))
    assert after.stages.adopted_s == pytest.approx(2 * BASE.stages.adopted_s)
    assert after.parameters.body_service_s == pytest.approx(2 * BASE.parameters.body_service_s)
    assert after.stages.request_s == BASE.stages.request_s


@pytest.mark.parametrize(
    ("value", "stage", "expected"),
    [
        ("fetched-to-adopted=+10ms", "adopted_s", BASE.stages.adopted_s + 0.010),
        ("ticking=2x", "ticked_s", 2 * BASE.stages.ticked_s),
        ("Ledger ticking=5ms", "ticked_s", 0.005),
        ("forge_snapshot_s=-50%", "snapshot_s", 0.5 * BASE.stages.snapshot_s),
    ],
)
def test_a_stage_can_be_named_by_name_label_or_metric(value: str, stage: str, expected: float) -> None:
    after = _changed(("stage", value))
    assert getattr(after.stages, stage) == pytest.approx(expected)
    assert after.model_copy(update={"stages": BASE.stages}) == BASE


def test_the_remaining_kinds_of_changes() -> None:
    assert _changed(("nodes", "200")).cluster.hosts == 200
    assert _changed(("lose-region", "us-east-1")).cluster.counts() == {0: 18, 2: 17}
    assert _changed(("initial-window", "1000")).parameters.window_limit_segments == 1000
    assert not _changed(("no-pipelining", "")).parameters.pipelining
    assert _changed(("fetch-concurrency", "1")).parameters.fetch_concurrency == 1
    assert _changed(("window-memory", "none")).parameters.window_memory_s == 0
    assert _changed(("window-memory", "1500ms")).parameters.window_memory_s == pytest.approx(1.5)
    assert _changed(("stage", "header-service=x3")).parameters.header_service_s == pytest.approx(0.0117)


def test_a_topology_is_applied_before_a_number_of_hosts(tmp_path: object) -> None:
    """The order in which the user writes the two does not matter."""
    listed = BASE.cluster.model_copy(
        update={"topology": {"kind": "listed", "hosts": [{"name": "a", "region": "EU", "producers": []}]}}
    )
    base = Scenario.model_validate({**dict(BASE), "cluster": dict(listed)})
    after = _changed(("nodes", "60"), ("topology", "random:4+1"), base=base)
    assert after.cluster.hosts == 60
    with pytest.raises(UsageError, match="the hosts are those of a topology file"):
        _changed(("nodes", "60"), base=base)


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        ("rt", "+20%", "`rt` cannot be changed", "did you mean `rtt`?"),
        ("weather", "rain", "`weather` cannot be changed", "block-size"),
        ("rtt", "fast", "`fast` is not an amount", "EU-AP=+20ms"),
        ("rtt", "250ms", "would give every link the same round trip", "EU-AP=250ms"),
        ("rtt", "EU-MARS=+5ms", "`EU-MARS` is not a pair of regions", "known regions: EU, US, AP"),
        ("rtt", "EU-AP=-5s", "makes the round trip EU–AP", "EU-AP=+20ms"),
        ("rtt", "-100%", "must be more than 0", "x1.2"),
        ("rtt", "+20kB", "is not an amount", "x1.2"),
        ("block-size", "2x:faster", "`faster` is not an option", "scale-cpu"),
        ("block-size", "-1MB", "makes blocks of", "120kB"),
        ("nodes", "many", "`many` is not a whole number from 2", "nodes 40"),
        ("nodes", "1", "is not a whole number from 2 to 100,000", "nodes"),
        ("topology", "ring", "the topology `ring` is neither a rule nor a readable file", "torus-dense"),
        ("lose-region", "MARS", "there is no region `MARS`", "known regions: EU, US, AP"),
        ("fetch-concurrency", "100", "from 1 to 64", "fetch-concurrency"),
        ("initial-window", "0", "from 1 to", "initial-window"),
        ("no-pipelining", "yes", "does not accept a value", "alone"),
        ("window-memory", "long", "is not an amount", "forever"),
        ("window-memory", "-10s", "makes the memory", "none"),
        ("stage", "ticking", "does not state the new duration of the stage", "ticking=2x"),
        ("stage", "tacking=2x", "there is no stage `tacking`", "ticking, snapshotting"),
        ("stage", "ticking=-1s", "makes a stage −0.9786 s long", "between 0 and 600 s"),
    ],
)
def test_an_impossible_change_is_refused(key: str, value: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_change(WhatIf(key, value), BASE)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_at_least_one_region_must_remain() -> None:
    with pytest.raises(UsageError, match="`lose-region AP` leaves no region"):
        _changed(("lose-region", "EU"), ("lose-region", "US"), ("lose-region", "AP"))


@given(
    key=st.sampled_from(sorted(KEYS)), value=st.text(max_size=16) | st.from_regex(r"[+x-]?[0-9.]{1,6}[a-zA-Z%]{0,4}")
)
def test_any_text_is_a_change_or_is_refused_clearly(key: str, value: str) -> None:
    try:
        edit = parse_change(WhatIf(key, value), BASE)
    except UsageError as error:
        refusal = error
    else:
        assert apply_edits(BASE, [edit]).json_text()
        return
    assert refusal.hint
