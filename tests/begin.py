"""The order in which test files start if several run concurrently.

A worker runs a whole file, so the stage ends late if a long file starts last. By default, xdist starts with the files
that contain the most tests. A file with networks contains few tests, but each takes a minute. A network leaves most of
a processor idle and a computation does not, so files of both kinds alternate. Files that are not listed here start
after these. List a file if it takes longer than half a minute.
"""

from __future__ import annotations

import pytest

FIRST = (
    "tests/real/test_cometbft_hosts.py",
    "tests/oracle/test_published_adoption.py",
    "tests/real/test_cometbft_failures.py",
    "tests/oracle/test_two_questions_by_history.py",
    "tests/real/test_cometbft_disturbed.py",
    "tests/oracle/test_release_pages.py",
    "tests/real/test_library_examples.py",
    "tests/oracle/test_verify_against.py",
    "tests/real/test_cometbft_verdicts.py",
    "tests/oracle/test_cluster_truth.py",
    "tests/real/test_cometbft_shapes.py",
    "tests/real/test_wheel.py",
    "tests/real/test_cometbft_applications.py",
    "tests/oracle/test_analysed_runs.py",
    "tests/real/test_cometbft_faults.py",
    "tests/real/test_cometbft_runs.py",
    "tests/real/test_cometbft_qa.py",
    "tests/oracle/test_slow_down.py",
    "tests/real/test_cometbft_saturation.py",
    "tests/real/test_readme.py",
    "tests/oracle/test_cluster_analysis.py",
    "tests/real/test_cometbft_bisect.py",
    "tests/real/test_cometbft_profiles.py",
    "tests/oracle/test_history_of_releases.py",
    "tests/real/test_prometheus_live.py",
    "tests/oracle/test_one_host.py",
    "tests/real/test_cometbft_experiment.py",
    "tests/real/test_cometbft_builds.py",
    "tests/real/test_cluster.py",
)
_PLACES = {name: place for place, name in enumerate(FIRST)}


def place(item: pytest.Item) -> int:
    """The position of a test's file; tests with equal positions keep their order."""
    return _PLACES.get(item.nodeid.partition("::")[0], len(FIRST))
