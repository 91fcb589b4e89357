"""Access to a server: sources of header values, rejected values, and hidden secrets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from chainmark.capacity import access as access_module
from chainmark.capacity.access import RENEWED_AFTER_S, Access, hidden_in_errors
from chainmark.core.errors import EnvironmentFailure, UsageError


@dataclass
class Clock:
    """A clock that only a test advances."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        """The current time."""
        return self.now_s


def test_values_come_from_the_environment_files_and_users(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n", encoding="utf-8")
    environment = {"TOKEN": "abcdef", "PASSWORD": "pass word"}
    access = Access(
        ["Authorization: Bearer ${TOKEN}", f"X-Key: @{tmp_path}/key", "X-Plain: yes"], environment=environment
    )
    assert access.values() == [("Authorization", "Bearer abcdef"), ("X-Key", "from-a-file"), ("X-Plain", "yes")]
    assert access.described() == "Authorization: [hidden], X-Key: [hidden], X-Plain: yes"
    assert access.hide("abcdef and from-a-file, yes") == "[hidden] and [hidden], yes"
    basic = Access(user="tester:${PASSWORD}", environment=environment)
    assert basic.values() == [("Authorization", "Basic dGVzdGVyOnBhc3Mgd29yZA==")]
    assert basic.hide("tester: pass word, pass+word") == "tester: [hidden], [hidden]"
    assert basic.hide("dGVzdGVyOnBhc3Mgd29yZA==") == "[hidden]"


def test_a_command_is_run_again_when_its_value_may_have_expired(tmp_path: Path) -> None:
    """Tokens of hosted APIs expire within minutes, and a load test takes an hour."""
    script, clock = tmp_path / "token.sh", Clock()
    script.write_text(
        f'echo run >> {tmp_path}/runs; echo "Bearer token-$(wc -l < {tmp_path}/runs)"\n', encoding="utf-8"
    )
    access = Access(commands=[f"Authorization: sh {script}"], clock=clock)
    assert access.values() == access.values() == [("Authorization", "Bearer token-1")]
    clock.now_s += RENEWED_AFTER_S
    assert access.values() == [("Authorization", "Bearer token-2")]
    assert access.hide("token-1 token-2") == "[hidden] [hidden]"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (["Authorization Bearer"], "is not a header"),
        (["X-Token: ${NO_SUCH}"], "`NO_SUCH`, which `[$][{]NO_SUCH[}]` uses, is not set"),
        (["X-Token: @/no/such/file"], "cannot be read"),
        (["X-Token: ${BROKEN}"], "line break"),
        (["X-Name: ü"], "not ASCII"),
        (["A: 1", "a: 2"], "given twice"),
        (["Content-Length: 3"], "cannot be set"),
    ],
)
def test_headers_that_cannot_be_sent_are_rejected(headers: list[str], message: str) -> None:
    """Rejected before the first request. No message repeats a secret."""
    with pytest.raises(UsageError, match=message) as refused:
        Access(headers, environment={"BROKEN": "secret\r\nX: 1"})
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("command", "message"),
    [("false", "ended with 1"), ("no-such-program", "cannot be run"), ("true", "printed nothing")],
)
def test_a_command_that_gives_no_value_stops_the_test(command: str, message: str) -> None:
    with pytest.raises(EnvironmentFailure, match=message):
        Access(commands=[f"Authorization: {command}"]).values()


def test_certificates_are_checked_before_the_load(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        Access(certificate=tmp_path / "none.pem")
    with pytest.raises(UsageError, match="requires `--cert`"):
        Access(key=tmp_path / "none.pem")
    (tmp_path / "both.pem").touch()
    assert set(Access(certificate=tmp_path / "both.pem").files().values()) == {str(tmp_path / "both.pem")}


def test_an_api_key_given_as_a_user_name_without_a_password_is_hidden() -> None:
    """Some APIs expect the key as a user name."""
    access = Access(user="${KEY}:", environment={"KEY": "abcdefgh"})
    assert access.hide("you are abcdefgh") == "you are [hidden]"


def test_every_cookie_is_hidden() -> None:
    assert Access(["Cookie: id=abcdef; theme=purple"]).hide("abcdef likes purple") == "[hidden] likes [hidden]"


def test_a_notebook_shows_no_secret_of_an_access() -> None:
    """A notebook prints the value of the last expression of a cell."""
    access = Access(["X-Api-Key: 123456"], ["Authorization: sh token.sh"], certificate=None)
    assert repr(access) == "Access('X-Api-Key: [hidden], Authorization: [hidden]')"
    assert "123456" not in repr(Access(user="tester:123456"))


def test_spaces_around_a_value_are_removed() -> None:
    """HTTP does not allow them there, and libraries repeat rejected values in their errors."""
    assert Access(["X-Key: ${KEY}"], environment={"KEY": "  abcdef "}).values() == [("X-Key", "abcdef")]


def test_errors_of_a_command_do_not_repeat_its_arguments(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure) as failed:
        Access(commands=[f"Authorization: ls {tmp_path} --user=root:s3cret-word"]).values()
    assert "`ls …`" in str(failed.value.hint)
    assert "root:s3cret" not in str(failed.value.hint)


def test_a_command_that_does_not_end_is_killed_with_its_child_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "COMMAND_LONGEST_S", 0.5)
    script, started = tmp_path / "token.sh", tmp_path / "started"
    script.write_text(f"sleep 60 & echo $! > {started}\nwait\n", encoding="utf-8")
    with pytest.raises(EnvironmentFailure, match="did not end within"):
        Access(commands=[f"Authorization: sh {script}"]).values()
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(started.read_text(encoding="utf-8"))).wait(timeout=10)


def test_a_rejected_header_is_computed_again_at_once(tmp_path: Path) -> None:
    script = tmp_path / "token.sh"
    script.write_text(f'echo run >> {tmp_path}/runs; echo "token-$(wc -l < {tmp_path}/runs)"\n', encoding="utf-8")
    access = Access(["X-Plain: yes"], [f"Authorization: sh {script}"], clock=Clock())
    assert access.values()[1] == ("Authorization", "token-1")
    access.outdate()
    assert access.values()[1] == ("Authorization", "token-2")


def test_a_raised_error_contains_no_secret() -> None:
    accesses = [Access(user="tester:first-word"), Access(user="tester:second-word")]
    with pytest.raises(UsageError) as left, hidden_in_errors(accesses):
        raise UsageError("first-word and second-word", "second-word")
    assert (left.value.message, left.value.hint) == ("[hidden] and [hidden]", "[hidden]")
    assert str(left.value) == left.value.message
    with pytest.raises(UsageError, match="plain") as left, hidden_in_errors(accesses):
        raise UsageError("plain")
    assert left.value.hint is None
