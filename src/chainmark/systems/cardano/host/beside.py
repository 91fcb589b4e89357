"""Compare our samples of blocks with those of blockperf or openblockperf, figure by figure."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from chainmark.systems.cardano.host.results import Beside, SampleDifference
from chainmark.systems.cardano.host.sample_files import BlockSample

_EXACT = ("block_number", "slot", "block_size")
_DELTAS = ("header_delta", "block_request_delta", "block_response_delta", "block_adopt_delta")
_PEERS = (("header_remote_addr", "header_remote_port"), ("block_remote_addr", "block_remote_port"))
# They cut times to microseconds and delays, stored as binary fractions of a second, to milliseconds.
_TOLERANCE_MS = 1


def set_beside(
    ours: Sequence[BlockSample], theirs: Sequence[BlockSample], data_frame: pl.DataFrame, file: str
) -> Beside:
    """Compare the samples of the same blocks.

    Args:
        ours, theirs: samples.
        data_frame: the host's data on every block, with its `class`, which says why one is not a sample here.
        file: name of theirs.
    """
    known = {item.block_hash: item for item in ours}
    others = {item.block_hash.strip('"'): item for item in theirs}
    common = [name for name in known if name in others]
    classes = dict(zip(data_frame["block"], data_frame["class"], strict=True))
    alone = [sample for name, sample in others.items() if name not in known]
    unknown = [sample.block_number for sample in alone if sample.block_hash.strip('"') not in classes]
    heights: list[int] = data_frame["block_no"].drop_nulls().to_list()
    low, high = min(heights, default=0), max(heights, default=0)
    inside = [height for height in unknown if low < height < high]
    return Beside(
        file=file,
        common=len(common),
        figures=len(common) * (len(_EXACT) + len(_DELTAS)),
        differences=[difference for name in common for difference in _differences(known[name], others[name])],
        only_ours=sorted(sample.block_number for name, sample in known.items() if name not in others),
        only_theirs=sorted(
            (sample.block_number, classes[name])
            for sample in alone
            if (name := sample.block_hash.strip('"')) in classes
        ),
        not_in_log=sorted(inside),
        outside=len(unknown) - len(inside),
        masked=sum(_peer(known[name], pair) != _peer(others[name], pair) for name in common for pair in _PEERS),
    )


def _peer(sample: BlockSample, names: tuple[str, str]) -> tuple[str, str]:
    return getattr(sample, names[0]), getattr(sample, names[1])


def _differences(ours: BlockSample, theirs: BlockSample) -> list[SampleDifference]:
    sample_differences = []
    for name in (*_EXACT, *_DELTAS):
        own, other = getattr(ours, name), getattr(theirs, name)
        if not _equal(name, own, other):
            sample_differences.append(
                SampleDifference(
                    block_number=ours.block_number,
                    block_hash=ours.block_hash,
                    field=name,
                    ours=str(own),
                    theirs=str(other),
                )
            )
    return sample_differences


def _equal(name: str, own: int, other: int) -> bool:
    if name in _EXACT:
        return own == other
    if name == "block_adopt_delta" and other == 0 and own < 0:
        return True  # blockperf shows an adoption before the end of the fetch as 0
    return abs(own - other) <= _TOLERANCE_MS
