"""The path of a block from host to host and the parts of a change by stages, with values computed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from chainmark.compare.split import PartEffect
from chainmark.core.units import plain_percent
from chainmark.systems.cardano.chain import NS
from chainmark.systems.cardano.figures import ADOPTION, CENTILES
from chainmark.systems.cardano.formula import Formula, formula_for
from chainmark.systems.cardano.split.parted import lacks, published_parts
from chainmark.systems.cardano.split.paths import ADOPTING, BETWEEN, COLUMNS, FORGING, PASSING, WITHIN, Ways, trace
from chainmark.systems.cardano.split.stages import stage_split, why_not

P50, P80 = (CENTILES.index(name) for name in ("p50", "p80"))
TIMELINES = {
    "block": pl.String, "slot": pl.Int64, "slot_start_ns": pl.Int64, "host": pl.String, "region": pl.String,
    "role": pl.String, "accepted": pl.Boolean, "fetched_host": pl.String, "fetched_ns": pl.Int64,
    "announced_ns": pl.Int64, "adopted_ns": pl.Int64, "switched_ns": pl.Int64,
}  # fmt: skip
REGIONS = {"a": "EU", "b": "EU", "c": "AP", "d": "AP"}


class Times(NamedTuple):
    """The times of a block on one host, in s after the slot's start. `came_from` is None on the forger."""

    host: str
    came_from: str | None
    fetched: float | None
    announced: float | None
    adopted: float | None = None
    switched: float | None = None


FIRST = [
    Times("a", None, None, 0.3, 0.35),
    Times("b", "a", 0.4, 0.45, 0.5),
    Times("c", "b", 0.8, 0.86, 0.9),
    Times("d", "c", 0.95, 1.0, 1.1),
]
# d forged the block. Two hosts received it from d, the last one through the other region.
SECOND = [
    Times("d", None, None, 0.2, 0.25),
    Times("c", "d", 0.24, 0.26, 0.3),
    Times("a", "d", 0.5, 0.52, 0.53),
    Times("b", "a", 0.6, 0.63, 0.7),
]


def _rows(
    times: Sequence[Times],
    slot: int = 10,
    *,
    block: str = "x",
    accepted: bool = True,
    regions: Mapping[str, str] = REGIONS,
) -> pl.DataFrame:
    """One block's rows."""
    start_ns = slot * NS
    rows = [
        (
            *(block, slot, start_ns, row.host, regions.get(row.host), "observer" if row.came_from else "forger"),
            *(accepted, row.came_from),
            *(None if seconds is None else start_ns + round(seconds * NS) for seconds in row[2:]),
        )
        for row in times
    ]
    return pl.DataFrame(rows, schema=TIMELINES, orient="row")


def _trace(*timelines: pl.DataFrame, switches_count: bool = True) -> Ways:
    return trace(pl.concat(timelines).lazy(), switches_count=switches_count)


def _changed(times: Sequence[Times], host: str, **changes: Any) -> list[Times]:
    """The times with some values of one host replaced."""
    return [row._replace(**changes) if row.host == host else row for row in times]


def _steps(ways: Ways, fraction: int, block: int = 0) -> dict[int, float]:
    return dict(enumerate(ways.steps[fraction][block].tolist()))


def test_the_schema_matches_the_events() -> None:
    assert {*TIMELINES} == {*COLUMNS}


def test_a_path_is_followed_from_host_to_host_to_the_forger() -> None:
    """The third of four hosts is the median, the last is every higher centile."""
    ways = _trace(_rows(FIRST))
    assert _steps(ways, P50) == pytest.approx({FORGING: 0.3, WITHIN: 0.1, PASSING: 0.05, BETWEEN: 0.35, ADOPTING: 0.1})
    for fraction in range(P80, len(CENTILES)):
        assert _steps(ways, fraction) == pytest.approx(
            {FORGING: 0.3, WITHIN: 0.19, PASSING: 0.11, BETWEEN: 0.35, ADOPTING: 0.15}
        )
    assert (ways.hops[P50].tolist(), ways.hops[P80].tolist()) == ([2.0], [3.0])
    assert (ways.far_hops[P50].tolist(), ways.far_hops[P80].tolist()) == ([1.0], [1.0])
    assert (ways.within.tolist(), ways.within_counts.tolist()) == ([pytest.approx(0.19)], [2.0])
    assert (ways.blocks, ways.traced, ways.regions, ways.known) == (1, 1, 2, True)
    assert ways.within_mean_s == pytest.approx(0.095)


def test_a_forger_that_is_the_centile_announces_and_adopts() -> None:
    """This occurs with one or two hosts. The forger's steps for its own block are not a hop."""
    ways = _trace(_rows([Times("a", None, 0.1, 0.3, 0.55), Times("b", "a", 0.4, 0.45, 0.5)]))
    assert _steps(ways, P50) == pytest.approx({FORGING: 0.3, WITHIN: 0.0, PASSING: 0.0, BETWEEN: 0.0, ADOPTING: 0.25})
    assert ways.hops[P50].tolist() == [0.0]


def test_the_blocks_of_a_run_are_not_mixed_up() -> None:
    """The same hosts receive two blocks on different paths, in any row order. A third block, on a fork, is ignored."""
    shuffled = pl.concat([_rows(SECOND, 20, block="y"), _rows(FIRST), _rows(SECOND, 15, block="z", accepted=False)])
    ways = trace(shuffled.sort("host", descending=True).lazy(), switches_count=True)
    assert (ways.blocks, ways.traced) == (2, 2)
    assert ways.steps[P80].sum(axis=1) == pytest.approx([1.1, 0.7])
    assert ways.steps[P50].sum(axis=1) == pytest.approx([0.9, 0.53])
    assert _steps(ways, P80, 1) == pytest.approx(
        {FORGING: 0.2, WITHIN: 0.08, PASSING: 0.02, BETWEEN: 0.3, ADOPTING: 0.1}
    )
    assert ways.within_counts.tolist() == [2.0, 2.0]
    assert ways.within == pytest.approx([0.19, 0.12])
    # Two hosts forged in one slot, or one hash was reported for two slots: each is a separate block.
    for other in (_rows(SECOND, 10, block="y"), _rows(SECOND, 20, block="x")):
        _assert_joined(_trace(_rows(FIRST), other), [_trace(_rows(FIRST)), _trace(other)])


def _assert_joined(ways: Ways, single: Sequence[Ways]) -> None:
    """Check that blocks that are traced together have the same paths as those traced alone, in this order."""
    assert ways.steps == pytest.approx(np.concatenate([each.steps for each in single], axis=1))
    for name in ("hops", "far_hops"):
        assert getattr(ways, name).tolist() == np.concatenate([getattr(each, name) for each in single], axis=1).tolist()
    assert ways.within == pytest.approx(np.concatenate([each.within for each in single]))
    assert ways.within_counts.tolist() == np.concatenate([each.within_counts for each in single]).tolist()


def test_blocks_are_in_chronological_order_however_many_hosts_adopted_them() -> None:
    """Their names are in the opposite order. The last block is known only to its forger."""
    blocks = [
        _rows((FIRST if number % 3 else SECOND)[: 2 + number % 2 * 2], 10 + 5 * number, block=f"x{99 - number}")
        for number in range(12)
    ]
    blocks.append(_rows(SECOND[:1], 100, block="last"))
    _assert_joined(_trace(*blocks[::-1]), [_trace(block) for block in blocks])


def test_a_block_that_only_its_forger_knows_has_its_steps() -> None:
    ways = _trace(_rows(FIRST[:1]))
    assert _steps(ways, P50) == pytest.approx({FORGING: 0.3, WITHIN: 0.0, PASSING: 0.0, BETWEEN: 0.0, ADOPTING: 0.05})
    assert (ways.blocks, ways.traced, ways.within_counts.tolist()) == (1, 1, [0.0])


def test_a_run_without_accepted_blocks_has_no_paths() -> None:
    ways = _trace(_rows(FIRST, accepted=False))
    assert (ways.blocks, ways.traced, ways.regions, ways.known) == (0, 0, 0, False)


def test_a_single_host_that_received_a_block_from_a_host_without_logs_has_no_path() -> None:
    ways = _trace(_rows([Times("b", "a", 0.4, 0.45, 0.5)]))
    assert (ways.blocks, ways.traced) == (1, 0)


def test_hosts_of_another_role_are_not_steps() -> None:
    silent = _rows([Times("e", "a", 0.1, 0.1, 0.1)], regions={"e": "US"}).with_columns(role=pl.lit("relay"))
    ways = _trace(_rows(FIRST), silent)
    assert ways.steps[P50].sum() == pytest.approx(0.9)
    assert ways.regions == 2


@pytest.mark.parametrize(
    ("host", "changes"),
    [
        ("b", {"came_from": "e"}),  # a host on the path received it from a host without logs
        ("c", {"came_from": "e"}),
        ("b", {"fetched": None}),
        ("b", {"announced": None}),
        ("a", {"announced": None}),
        ("d", {"fetched": None}),
        ("b", {"came_from": "c"}),  # two hosts received it from each other: such a path never reaches the forger
    ],
)
def test_a_block_with_a_missing_step_is_omitted_with_all_its_centiles(host: str, changes: dict[str, Any]) -> None:
    """The block is counted: the report shows how many blocks the parts cover."""
    ways = _trace(_rows(_changed(FIRST, host, **changes)), _rows(SECOND, 20, block="y"))
    assert (ways.blocks, ways.traced) == (2, 1)
    assert ways.steps[P80].sum(axis=1) == pytest.approx([0.7])
    assert ways.within_counts.tolist() == [2.0]


def test_a_block_is_omitted_if_a_host_on_the_path_does_not_report_the_sender() -> None:
    unknown = pl.when(pl.col("host") != "c").then("fetched_host").alias("fetched_host")
    ways = _trace(_rows(FIRST).with_columns(unknown))
    assert (ways.blocks, ways.traced) == (1, 0)


def test_a_hop_of_a_host_without_a_region_is_not_attributed() -> None:
    """The hop could be due to the network or the nodes. The analysis does not guess."""
    for host in ("b", "c"):
        ways = _trace(_rows(FIRST, regions={name: region for name, region in REGIONS.items() if name != host}))
        assert (ways.blocks, ways.traced) == (1, 0)
    assert _trace(_rows(FIRST, regions={})).regions == 0


def test_unadopted_blocks_are_ignored_and_switches_are_adoptions_if_they_count() -> None:
    late = _changed(_changed(FIRST, "d", adopted=None, switched=1.3), "c", switched=2.0)
    never = _rows([row._replace(adopted=None) for row in SECOND], 20, block="y")
    counted = _trace(_rows(late), never)
    assert counted.blocks == 1
    assert counted.steps[P80].sum(axis=1) == pytest.approx([1.3])
    assert counted.steps[P50].sum(axis=1) == pytest.approx([0.9]), "the earlier of both times on a host that has both"
    plain = _trace(_rows(late), switches_count=False)
    assert plain.steps[P80].sum(axis=1) == pytest.approx([0.9]), "the last of three adopters"


def test_hosts_that_adopt_at_the_same_time_are_ordered_by_name() -> None:
    """Otherwise the parts of a centile would depend on the order of the files."""
    even = _changed(_changed(FIRST, "c", adopted=1.1), "d", adopted=1.1)
    assert _trace(_rows(even)).hops[P50].tolist() == [2.0]
    assert _trace(_rows(even[::-1])).hops[P50].tolist() == [2.0]


def test_logs_without_fetch_sources_are_recognised() -> None:
    assert not trace(_rows(FIRST).lazy().with_columns(fetched_host=pl.lit(None, pl.String)), switches_count=True).known
    assert trace(_rows(FIRST).lazy(), switches_count=True).known


def test_the_parts_of_an_adoption_match_hand_computed_values() -> None:
    """A far hop costs the nodes as much as a near one, 0.31 s / 4. Hop time beyond the reference is the nodes'."""
    ways = _trace(_rows(FIRST), _rows(SECOND, 20, block="y"))
    mean, reference_s = 0.31 / 4.0, 0.05
    moved = [(0.19 - 2.0 * mean) / 2.0, (0.12 - 2.0 * mean) / 2.0]
    own = [mean + moved[0], mean + moved[1]]
    expected = [
        [0.35 - own[0], 3 * reference_s, 0.3, 0.19 + own[0] - 3 * reference_s, 0.11, 0.15],
        [0.30 - own[1], 2 * reference_s, 0.2, 0.08 + own[1] - 2 * reference_s, 0.02, 0.1],
    ]
    assert ways.parts(P80, reference_s) == pytest.approx(np.array(expected))
    # If no path crosses regions, the duration of a near hop changes nothing.
    near = replace(ways, far_hops=np.zeros_like(ways.far_hops))
    assert near.parts(P80, 0.0)[:, 0] == pytest.approx([0.35, 0.3])
    # The mean over blocks does not depend on the error of single blocks, even if the numbers of hops differ.
    uneven = replace(ways, within_counts=np.array([3.0, 1.0]), far_hops=np.array([[1.0, 3.0]] * len(CENTILES)))
    assert uneven.parts(P80, 0.0)[:, 0].mean() == pytest.approx((0.35 + 0.3) / 2.0 - 2.0 * uneven.within_mean_s)
    assert uneven.parts(P80, 0.0)[0, 0] == pytest.approx(0.35 - mean - 2.0 * (0.19 - 3.0 * mean) / 2.0)


def _many(blocks: int, traced: int) -> Ways:
    """Blocks of which only some can be traced."""
    ways = _trace(_rows(FIRST))
    steps, hops, far_hops = (np.repeat(value, traced, axis=1) for value in (ways.steps, ways.hops, ways.far_hops))
    within, counts = (np.repeat(value, traced) for value in (ways.within, ways.within_counts))
    return Ways(steps, hops, far_hops, within, counts, blocks, ways.regions, ways.known)


@pytest.mark.parametrize(
    ("blocks", "traced", "reason"),
    [
        (20, 20, ""),
        (20, 19, ""),
        (20, 18, "only 90.0 % of a run's blocks can be traced back to their forgers from host to host"),
        (19, 19, "a run has 19 blocks, but at least 20 are needed"),
        (0, 0, "a run has 0 blocks, but at least 20 are needed"),
    ],
)
def test_at_least_twenty_blocks_and_95_percent_must_be_traced(blocks: int, traced: int, reason: str) -> None:
    assert lacks(_many(blocks, traced)) == reason.replace("90.0 %", plain_percent(0.9))


# --- by the stages ---------------------------------------------------------------------------------------------------

BASE = {
    "block_size_bytes": 0.0, "slot_to_announced_s": 0.10, "peer_adopted_s": 0.08, "peer_fetch_s": 0.30,
    "peer_fetch_first_s": 0.16, "peer_notice_first_s": 0.12, "peer_request_s": 0.01, "adoption_p80_s": 0.9,
}  # fmt: skip
OTHER = {**BASE, "slot_to_announced_s": 0.11, "peer_adopted_s": 0.1, "peer_fetch_s": 0.36, "peer_fetch_first_s": 0.17}
OTHER |= {"adoption_p80_s": 1.05}


@pytest.fixture(name="formula")
def _formula() -> Formula:
    formula = formula_for(88_975.0) or formula_for(89_000.0)
    assert formula is not None
    return formula


def _sized(figures: dict[str, float], formula: Formula) -> dict[str, float]:
    return {**figures, "block_size_bytes": formula.block_bytes}


def _effects(baseline: dict[str, float], candidate: dict[str, float], runs: tuple[int, int]) -> dict[str, PartEffect]:
    (change,) = stage_split(baseline, candidate, runs)
    assert change.metric_id == "adoption_p80_s"
    return {effect.part.id: effect for effect in change.effects}


def test_parts_by_stages_match_hand_computed_values(formula: Formula) -> None:
    """The first fetch costs the nodes 0.03 s and 0.04 s. The rest of a fetch counts as network, times k."""
    k, k_error = formula.k["adoption_p80_s"], formula.k_error["adoption_p80_s"]
    effects = _effects(_sized(BASE, formula), _sized(OTHER, formula), (2, 4))
    values = {
        "network": (k * 0.27, k * 0.32),
        "node": (0.9 - k * 0.27, 1.05 - k * 0.32),
        "forging": (0.10, 0.11),
        "hops": (k * 0.03, k * 0.04),
        "adopting": (0.08, 0.1),
        "unreported": (0.9 - k * 0.30 - 0.18, 1.05 - k * 0.36 - 0.21),
    }
    assert {name: (effect.baseline, effect.candidate) for name, effect in effects.items()} == {
        name: pytest.approx(pair) for name, pair in values.items()
    }
    missed = formula.step_error_s["adoption_p80_s"] * math.sqrt((1.0 / 2.0 + 1.0 / 4.0) / 2.0)
    error = math.hypot(k_error * 0.05, missed)
    errors = {"network": error, "node": error, "forging": 0.0, "hops": k_error * 0.01, "adopting": 0.0}
    assert {name: effect.standard_error for name, effect in effects.items()} == pytest.approx(
        {**errors, "unreported": error}
    )
    assert {effect.degrees_of_freedom for effect in effects.values()} == {formula.runs - 2.0}


def test_without_a_first_fetch_the_whole_fetch_is_network(formula: Formula) -> None:
    """A table without the first fetch does not show the nodes' share: the part is omitted, not shown as 0."""
    k = formula.k["adoption_p80_s"]
    for missing in ("peer_fetch_first_s", "peer_notice_first_s", "peer_request_s"):
        without = {name: value for name, value in _sized(BASE, formula).items() if name != missing}
        for pair in ((without, _sized(OTHER, formula)), (_sized(OTHER, formula), without)):
            effects = _effects(*pair, (1, 1))
            assert "hops" not in effects
            assert sorted([effects["network"].baseline, effects["network"].candidate]) == pytest.approx(
                [k * 0.3, k * 0.36]
            )


def test_only_centiles_of_both_sides_are_split_and_only_with_one_formula(formula: Formula) -> None:
    base, other = _sized(BASE, formula), _sized(OTHER, formula)
    assert [change.metric_id for change in stage_split({**base, ADOPTION[0]: 0.5}, other)] == ["adoption_p80_s"]
    assert [change.metric_id for change in stage_split(base, {**other, ADOPTION[0]: 0.5})] == ["adoption_p80_s"]
    (change,) = stage_split(base, other)
    assert change.basis == f"the formula's errors over {formula.runs} published runs"
    assert change.effects == stage_split(base, other, (1, 1))[0].effects
    unlike = {**other, "block_size_bytes": 20_000.0}
    assert stage_split(base, unlike) == stage_split(unlike, base) == stage_split(unlike, unlike) == []
    assert why_not(base, unlike) == "there is no formula for blocks of these sizes"
    for name in ("peer_fetch_s", "slot_to_announced_s", "peer_adopted_s", "block_size_bytes"):
        without = {key: value for key, value in base.items() if key != name}
        assert stage_split(base, without) == stage_split(without, base) == []
        assert why_not(base, without) == why_not(without, base) == f"a side has no `{name}`"
    parted = published_parts(base, unlike)
    assert (parted.title, parted.changes, parted.reason) == ("Network or node", (), why_not(base, unlike))
