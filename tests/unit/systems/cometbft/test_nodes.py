"""Node binaries: errors from Go are reported in one sentence, and a modified binary is not run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Subject
from chainmark.store.files import json_bytes
from chainmark.systems.cometbft import nodes

PACKAGE = "go: github.com/cometbft/cometbft/cmd/cometbft@v9.9.9: "


@pytest.mark.parametrize(
    "output",
    [
        PACKAGE + "invalid version: unknown revision v9.9.9",
        PACKAGE + "reading …/v9.9.9.info: 404 Not Found\n\tserver response: not found: v9.9.9",
        PACKAGE + "reading …/v9.9.9.info: 403 Forbidden\n\tserver response: This module version is not available.",
    ],
)
def test_an_unknown_version_is_a_usage_error(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_known_versions", lambda: ["v0.38.17", "v1.0.0", "v1.0.1"])
    error = nodes._build_error("v9.9.9", output)
    assert isinstance(error, UsageError)
    assert error.message == "CometBFT has no version `v9.9.9`"
    assert error.hint == "the newest versions are v0.38.17, v1.0.0, v1.0.1"
    assert nodes._build_error("v1.0.2", output).hint == "did you mean `v1.0.1`?"


def test_an_unknown_name_is_refused_with_the_valid_forms_of_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who writes the name of a branch wants a checkout of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="`main` is not a version of CometBFT") as caught:
        nodes.install("main")
    assert "`git:PATH@REF`" in (caught.value.hint or "")


def test_a_network_failure_is_not_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_known_versions", list)
    output = PACKAGE.replace("v9.9.9", "v1.0.1") + "dial tcp 127.0.0.1:1: connect: connection refused"
    error = nodes._build_error("v1.0.1", output)
    assert isinstance(error, EnvironmentFailure)
    assert error.message == "CometBFT v1.0.1 could not be built: dial tcp 127.0.0.1:1: connect: connection refused"


def test_a_changed_binary_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a report would name a version that was not measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    binary = nodes.binary_path("v1.0.1")
    binary.parent.mkdir(parents=True)
    binary.write_bytes(b"as built")
    digest = hashlib.sha256(b"as built").hexdigest()
    subject = Subject(system="cometbft", name="CometBFT", version="v1.0.1", binary_sha256=digest)
    binary.with_name("binary.json").write_bytes(json_bytes({"subject": subject.model_dump(mode="json")}))
    assert nodes.install("v1.0.1") == subject
    assert nodes.installed() == [(subject, binary)]
    binary.write_bytes(b"changed")
    with pytest.raises(EnvironmentFailure, match="has changed since it was built"):
        nodes.install("v1.0.1")


def test_versions_are_sorted_by_number_including_those_missing_from_a_mirror(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodes, "_known_versions", lambda: ["v0.38.26", "v1.0.0-rc10", "v1.0.0-rc2", "v1.0.0", "v0.9.0"])
    assert nodes.published(("v0.38.17", "v1.0.0", "main", "./node")) == [
        "v0.9.0", "v0.38.17", "v0.38.26", "v1.0.0-rc2", "v1.0.0-rc10", "v1.0.0",
    ]  # fmt: skip
    monkeypatch.setattr(nodes, "_known_versions", list)
    with pytest.raises(EnvironmentFailure, match="the module proxy does not respond"):
        nodes.published()
