"""Workers on other machines: the offset of their clocks, and addresses that are open to the network."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.cluster.connection import check_address, is_open
from chainmark.cluster.survey import offset
from chainmark.core.errors import UsageError

DELAY_NS = st.integers(0, 10**9)


@given(
    ahead_ns=st.integers(-(10**12), 10**12),
    delays=st.lists(st.tuples(DELAY_NS, DELAY_NS), min_size=1, max_size=20),
)
def test_the_true_offset_is_within_the_stated_error_for_asymmetric_delays(
    ahead_ns: int, delays: list[tuple[int, int]]
) -> None:
    times = [(at, at + there + ahead_ns, at + there + back) for at, (there, back) in enumerate(delays)]
    estimate_s, error_s = offset(times)
    assert abs(estimate_s - ahead_ns / 1e9) <= error_s + 1e-9
    assert error_s <= min(there + back for there, back in delays) / 2e9 + 1e-9


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tcp://10.0.0.1:8786", True),
        ("tcp://scheduler.example:8786", True),
        ("tls://10.0.0.1:8786", False),
        ("wss://10.0.0.1:8786", False),
    ],
)
def test_only_a_remote_address_without_tls_is_open(address: str, expected: bool) -> None:
    assert is_open(address) is expected


@pytest.mark.parametrize("address", ["", "10.0.0.1:8786", "tcp://10.0.0.1", "http://10.0.0.1:8786", "tcp://:x"])
def test_an_invalid_scheduler_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a cluster's scheduler"):
        check_address(address)
