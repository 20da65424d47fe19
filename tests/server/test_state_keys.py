"""The file of the keys that seal what clients keep for the service."""

from __future__ import annotations

import stat
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from macaron.errors import ConfigError
from macaron.server.state_keys import create_state_key_file, read_state_keys

WriteKeys = Callable[[str], Path]
ONE, TWO = bytes(range(200, 232)), b"\xff" * 32


def line(key: bytes) -> str:
    return b64encode(key).decode()


def test_keys_come_in_the_order_of_their_lines(key_file: WriteKeys) -> None:
    path = key_file(f"# the new one\n{line(TWO)}\n\n  {line(ONE)}\n")
    assert read_state_keys(path) == (TWO, ONE)


def test_both_alphabets_of_base64_are_read(key_file: WriteKeys) -> None:
    assert read_state_keys(key_file(urlsafe_b64encode(TWO).decode())) == (TWO,)


@pytest.mark.parametrize(
    "text", ["", "# none\n", "short\n", line(ONE[:31]), line(ONE + b"x"), f"name:{line(ONE)}", "ü" * 44, line(ONE)[:-1]]
)
def test_a_file_without_a_whole_key_is_refused(key_file: WriteKeys, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_state_keys(key_file(text))
    assert not text or text.strip("# \n") not in str(raised.value) or text == "# none\n"


def test_a_bad_line_is_named_by_its_number_and_not_shown(key_file: WriteKeys) -> None:
    with pytest.raises(ConfigError, match="line 2: the key must be 32 bytes in base64") as raised:
        read_state_keys(key_file(f"{line(ONE)}\nsecret\n"))
    assert "secret" not in str(raised.value)


def test_a_key_that_appears_twice_is_refused(key_file: WriteKeys) -> None:
    with pytest.raises(ConfigError, match="line 2: this key appears twice"):
        read_state_keys(key_file(f"{line(ONE)}\n{line(ONE)}\n"))


def test_more_keys_than_anybody_needs_are_refused(key_file: WriteKeys) -> None:
    with pytest.raises(ConfigError, match="it must hold 1 to 64"):
        read_state_keys(key_file("\n".join(line(bytes([number]) * 32) for number in range(65))))


def test_a_file_that_others_can_read_is_refused(key_file: WriteKeys) -> None:
    path = key_file(line(ONE))
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        read_state_keys(path)


def test_a_new_file_has_one_key_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "state.keys"
    create_state_key_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(read_state_keys(path)) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["state.keys"]


def test_services_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    path = tmp_path / "state.keys"
    found: list[tuple[bytes, ...]] = []

    def start() -> None:
        create_state_key_file(path)
        found.append(read_state_keys(path))

    threads = [Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.keys"]
