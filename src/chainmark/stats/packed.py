"""Lossless compact encoding of integers and ascending floats.

Numbers are folded (0, -1, 1, -2 … as 0, 1, 2, 3 …) and stored as planes: all lowest bytes, then all next ones, as bytes
of the same significance resemble each other. The first byte is the number of planes.
"""

from __future__ import annotations

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray

_BITS = 255  # instead of a number of decimals: the floats' own bits
_MOST_DECIMALS = 9  # times have at most nanosecond precision


def packed(values: IntArray) -> bytes:
    """Encode integers, shape (n,)."""
    numbers = values.astype(np.int64)
    folded = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    planes = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
    return bytes([planes]) + folded.astype("<u8").view(np.uint8).reshape(-1, 8).T[:planes].tobytes()


def unpacked(content: bytes) -> IntArray:
    """Decode integers."""
    planes = np.frombuffer(content, dtype=np.uint8, offset=1).reshape(content[0], -1)
    if len(planes) == 1:  # most counts: this takes half the time
        small: IntArray = planes[0].astype(np.int64)
        return np.asarray((small >> 1) ^ -(small & 1))
    folded = np.zeros((planes.shape[1], 8), dtype=np.uint8)
    folded[:, : len(planes)] = planes.T
    numbers = folded.view("<u8").ravel().astype(np.uint64)
    return (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)


def packed_floats(values: FloatArray) -> bytes:
    """Encode finite floats, shape (n,), as steps between decimals, or between their bits if they are not decimals."""
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = np.rint(values * 10.0**decimals)
        if np.abs(scaled).max(initial=0.0) >= 2**53:
            break
        numbers = scaled.astype(np.int64)  # without the sign of a negative zero
        if np.array_equal((numbers / 10.0**decimals).view(np.int64), values.view(np.int64)):
            return bytes([decimals]) + packed(_steps(numbers))
    return bytes([_BITS]) + packed(_steps(values.view(np.int64)))


def _steps(numbers: IntArray) -> IntArray:
    return np.append(numbers[:1], np.diff(numbers))


def unpacked_floats(content: bytes) -> FloatArray:
    """Decode floats."""
    numbers = np.cumsum(unpacked(content[1:]))
    floats: FloatArray = numbers.view(np.float64) if content[0] == _BITS else numbers / 10.0 ** content[0]
    return floats
