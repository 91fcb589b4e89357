"""Our samples of blocks beside those that blockperf or openblockperf wrote, figure by figure."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from chainmark.systems.cardano.host.results import Beside, SampleDifference
from chainmark.systems.cardano.host.sample_files import BlockSample

_EXACT = ("block_number", "slot", "block_size")
_DELTAS = ("header_delta", "block_request_delta", "block_response_delta", "block_adopt_delta")
_PEERS = (("header_remote_addr", "header_remote_port"), ("block_remote_addr", "block_remote_port"))
# They cut times to microseconds and delays, which they hold as binary fractions of a second, to milliseconds.
_TOLERANCE_MS = 1


def set_beside(ours: Sequence[BlockSample], theirs: Sequence[BlockSample], lives: pl.DataFrame, file: str) -> Beside:
    """Compare the samples of the same blocks.

    Args:
        ours, theirs: samples.
        lives: what the host knew of every block, with its `class`, which says why one is no sample here.
        file: how theirs are called.
    """
    known = {one.block_hash: one for one in ours}
    others = {one.block_hash.strip('"'): one for one in theirs}
    common = [name for name in known if name in others]
    heard = dict(zip(lives["block"], lives["class"], strict=True))
    alone = [one for name, one in others.items() if name not in known]
    unheard = [one.block_number for one in alone if one.block_hash.strip('"') not in heard]
    heights: list[int] = lives["block_no"].drop_nulls().to_list()
    low, high = min(heights, default=0), max(heights, default=0)
    inside = [height for height in unheard if low < height < high]
    return Beside(
        file=file,
        common=len(common),
        figures=len(common) * (len(_EXACT) + len(_DELTAS)),
        differences=[one for name in common for one in _differences(known[name], others[name])],
        only_ours=sorted(one.block_number for name, one in known.items() if name not in others),
        only_theirs=sorted(
            (one.block_number, heard[name]) for one in alone if (name := one.block_hash.strip('"')) in heard
        ),
        not_in_log=sorted(inside),
        outside=len(unheard) - len(inside),
        masked=sum(_peer(known[name], pair) != _peer(others[name], pair) for name in common for pair in _PEERS),
    )


def _peer(sample: BlockSample, names: tuple[str, str]) -> tuple[str, str]:
    return getattr(sample, names[0]), getattr(sample, names[1])


def _differences(ours: BlockSample, theirs: BlockSample) -> list[SampleDifference]:
    found = []
    for name in (*_EXACT, *_DELTAS):
        own, other = getattr(ours, name), getattr(theirs, name)
        if not _equal(name, own, other):
            found.append(
                SampleDifference(
                    block_number=ours.block_number,
                    block_hash=ours.block_hash,
                    field=name,
                    ours=str(own),
                    theirs=str(other),
                )
            )
    return found


def _equal(name: str, own: int, other: int) -> bool:
    if name in _EXACT:
        return own == other
    if name == "block_adopt_delta" and other == 0 and own < 0:
        return True  # blockperf shows an adoption before the end of the fetch as 0
    return abs(own - other) <= _TOLERANCE_MS
