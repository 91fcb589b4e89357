"""A version is the name of a release, a binary, a checkout, a module or a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.lab.versions import (
    BinaryFile,
    Checkout,
    ModuleVersion,
    Named,
    Release,
    Target,
    parse_version,
    plain_name,
)

DB = "github.com/cometbft/cometbft-db"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("v1.0.1", Release("v1.0.1")),
        ("1.0.1", Release("1.0.1")),
        ("v0.38.0-rc.1", Release("v0.38.0-rc.1")),
        ("./build/cometbft", BinaryFile(Path("build/cometbft"))),
        ("/opt/simd", BinaryFile(Path("/opt/simd"))),
        ("github.com/somebody/cometbft@v1.2.3", ModuleVersion("github.com/somebody/cometbft", "v1.2.3")),
        ("git:/nowhere", Checkout(Path("/nowhere"))),
        ("git:/nowhere@feature/x", Checkout(Path("/nowhere"), "feature/x")),
        ("git:../repo@HEAD~3", Checkout(Path("../repo"), "HEAD~3")),
        ("git:/nowhere@HEAD@{1}", Checkout(Path("/nowhere"), "HEAD@{1}")),
        (f"git:/a@v1?replace={DB}=../db", Checkout(Path("/a"), "v1", ((DB, "../db"),))),
        (
            f"git:/a?replace={DB}={DB}@v1.0.0&replace=x.org/y=/y",
            Checkout(Path("/a"), None, ((DB, f"{DB}@v1.0.0"), ("x.org/y", "/y"))),
        ),
        ("main@4f2cb01+dirty-1a2b3c4", Named("main@4f2cb01+dirty-1a2b3c4")),
        ("1.0.1@sha-1a2b3c4", Named("1.0.1@sha-1a2b3c4")),
        ("main", Named("main")),
    ],
)
def test_the_kind_of_a_version_follows_from_its_form(text: str, target: Target) -> None:
    assert parse_version(text) == target


def test_a_folder_with_an_at_sign_in_its_name_is_a_folder(tmp_path: Path) -> None:
    """Go's module cache has an ``@`` in every path."""
    folder = tmp_path / "cometbft@v1.0.1"
    folder.mkdir()
    assert parse_version(f"git:{folder}") == Checkout(folder)
    assert parse_version(f"git:{folder}@main") == Checkout(folder, "main")


def test_a_file_below_the_working_directory_needs_no_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "node").touch()
    monkeypatch.chdir(tmp_path)
    assert parse_version("build/node") == BinaryFile(Path("build/node"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the version is empty"),
        ("git:", "does not name a checkout"),
        ("git:/nowhere@", "does not name a commit"),
        ("git:/nowhere?replace=x", "is not a valid replacement"),
        ("git:/nowhere?with=x=y", "is not a valid replacement"),
    ],
)
def test_a_version_with_a_missing_part_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_version(text)
    assert caught.value.hint


def test_a_branch_becomes_one_word_in_a_name() -> None:
    """The name is used as a folder, in a run's id and as a shell argument."""
    assert plain_name("feature/x y@{1}") == "feature-x-y-1"
    assert plain_name("é") == "unnamed"
    assert len(plain_name("x" * 300)) == 64
