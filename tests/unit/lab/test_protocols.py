"""What a system supports determines how versions are installed and profiles pinned; a server is not read as a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from chainmark.core.errors import UsageError
from chainmark.core.manifest import Subject
from chainmark.lab.protocols import ImportRequest, installed_for, pinned

from tests.unit.lab.stand_in import Profile, StandIn

PROFILE = Profile(system="cometbft", name="quick", rate=3)


class _Choosing(StandIn):
    """A system whose profiles name programs and further versions."""

    def install_for(self, version: str, profile: BaseModel) -> Subject:
        """The version of the profile's program."""
        assert profile is PROFILE
        return self.install(f"{version}-of-the-program")

    def pinned(self, profile: BaseModel) -> BaseModel:
        """The profile with another version."""
        assert profile is PROFILE
        return PROFILE.model_copy(update={"name": "pinned"})


def test_a_version_is_one_of_the_program_that_the_profile_names() -> None:
    """Otherwise a search among versions of one program would build another one."""
    assert installed_for(StandIn(), "v1", PROFILE).version == "v1"
    assert installed_for(_Choosing(), "v1", PROFILE).version == "v1-of-the-program"


def test_the_versions_in_a_profile_are_pinned() -> None:
    """Otherwise runs of one experiment could be of different builds of a branch."""
    assert pinned(StandIn(), PROFILE) is PROFILE
    assert pinned(_Choosing(), PROFILE) == Profile(system="cometbft", name="pinned", rate=3)


def test_a_server_is_not_read_as_a_file() -> None:
    assert ImportRequest(Path("logs")).path == Path("logs")
    with pytest.raises(UsageError) as refused:
        _ = ImportRequest("http://localhost:9090").path
    assert refused.value.message == "`http://localhost:9090` is a server, but this system can only read files"
    hint = "give a folder of logs or one file; `chainmark ingest --help` lists the supported sources"
    assert refused.value.hint == hint
