"""What lets requests in: where its values come from, what is refused, and what is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from chainmark.capacity.access import RENEWED_AFTER_S, Access
from chainmark.core.errors import EnvironmentFailure, UsageError


@dataclass
class Clock:
    """Seconds that pass only when a test says so."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        """The time now."""
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


def test_a_command_is_run_again_when_its_value_may_be_too_old(tmp_path: Path) -> None:
    """Tokens of hosted APIs live for minutes, and a load test takes an hour."""
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
        (["X-Token: ${NO_SUCH}"], "has no `NO_SUCH`"),
        (["X-Token: @/no/such/file"], "cannot be read"),
        (["X-Token: ${BROKEN}"], "line break"),
        (["X-Name: ü"], "not ASCII"),
        (["A: 1", "a: 2"], "given twice"),
        (["Content-Length: 3"], "cannot be set"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused(headers: list[str], message: str) -> None:
    """Before anything is asked; and no message repeats a secret."""
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


def test_certificates_are_looked_for_before_the_load(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        Access(certificate=tmp_path / "none.pem")
    with pytest.raises(UsageError, match="without its certificate"):
        Access(key=tmp_path / "none.pem")
    (tmp_path / "both.pem").touch()
    assert set(Access(certificate=tmp_path / "both.pem").files().values()) == {str(tmp_path / "both.pem")}
