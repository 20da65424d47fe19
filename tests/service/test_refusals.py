"""Services that cannot be: the reason on one line, status 1, nothing left behind, nobody else disturbed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from macaron.profiles import find_profile
from tests.processes import PATIENCE, Home, serving

Profile = Callable[..., str]


def refusal(home: Home, *arguments: str, **variables: str) -> str:
    """What a service that does not start says; it says it without a traceback and leaves no process."""
    before = home.alive()
    done = home.run("serve", "--port", "0", *arguments, seconds=PATIENCE, **variables)
    assert done.returncode == 1, done
    assert done.stderr.startswith("macaron: ")
    assert "Traceback" not in done.stderr
    assert "ready" not in done.stdout
    assert home.alive() == before
    assert list(home.runtime.glob("*")) == [] or before
    return done.stderr


def embedded(folder: Path, weights: bytes) -> str:
    """A copy of the profile `demi` with other weights."""
    shutil.copytree(find_profile("demi").parent, folder)
    document = folder / "profile.toml"
    text = document.read_text()
    head, _, _ = text.partition("[engine.weights]")
    text = head.replace("base_fingerprint", "# base_fingerprint")
    document.write_text(f'{text}[engine.weights]\nfile = "base.gguf"\npath = "base.gguf"\n')
    (folder / "base.gguf").write_bytes(weights)
    return str(folder)


def test_a_second_service_on_the_port_is_refused_and_the_first_one_goes_on(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as first:
        said = refusal(home, "--profile", profile(), "--port", str(first.port), "--store", "memory:")
        assert f"Port {first.port} on 127.0.0.1 is in use" in said
        assert first.http().chat("still there?").status == 200
        assert first.control()["pid"] == first.process.pid


def test_a_second_service_on_the_store_is_refused_and_the_first_one_goes_on(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as first:
        said = refusal(home, "--profile", profile())
        assert "in use by another service" in said
        assert str(first.process.pid) in said
        assert first.http().chat("still there?").status == 200


def test_a_key_file_that_is_named_must_exist(tmp_path: Path, profile: Profile) -> None:
    missing = str(tmp_path / "missing")
    said = refusal(Home(tmp_path), "--profile", profile(), MOL_API_KEY_FILE=missing)
    assert missing in said
    assert "No such file" in said


def test_a_key_file_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path, profile: Profile) -> None:
    keys = tmp_path / "keys"
    keys.write_text("k" * 32)
    keys.chmod(0o644)
    assert f"chmod 600 {keys}" in refusal(Home(tmp_path), "--profile", profile(), MOL_API_KEY_FILE=str(keys))


def test_a_key_file_that_cannot_be_made_is_refused(tmp_path: Path, profile: Profile) -> None:
    (tmp_path / ".config").write_text("a file, not a folder")
    said = refusal(Home(tmp_path), "--profile", profile())
    assert "cannot be made" in said
    assert "MOL_API_KEY_FILE" in said


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_key_file_that_cannot_be_read_is_refused(tmp_path: Path, profile: Profile) -> None:
    keys = tmp_path / "keys"
    keys.write_text("k" * 32)
    keys.chmod(0o000)
    assert "cannot be read" in refusal(Home(tmp_path), "--profile", profile(), MOL_API_KEY_FILE=str(keys))


def test_open_mode_is_for_loopback_only(home: Home, profile: Profile) -> None:
    said = refusal(home, "--profile", profile(), "--host", "0.0.0.0")
    assert "MOL_ALLOW_UNAUTHENTICATED" in said
    assert "loopback" in said


def test_several_workers_are_refused_with_the_embedded_engine(home: Home) -> None:
    assert "--workers must be 1 with the embedded engine" in refusal(home, "--workers", "2")


def test_several_workers_are_refused_with_a_store_in_memory(home: Home, profile: Profile) -> None:
    said = refusal(home, "--profile", profile(), "--workers", "2", "--store", "memory:")
    assert "--workers must be 1 with the store `memory:`" in said


def test_several_workers_are_refused_where_one_process_remembers(home: Home, profile: Profile) -> None:
    said = refusal(home, "--profile", profile("[store]\nchat = 'digests'"), "--workers", "2")
    assert '[store] chat = "digests"' in said


def test_an_unknown_profile_is_refused_with_the_nearest_name(home: Home) -> None:
    assert "did you mean 'demi'" in refusal(home, "--profile", "demo")


def test_all_problems_of_a_profile_are_told_at_once(home: Home, profile: Profile) -> None:
    path = Path(profile("[store]\nchat = 'some'\n[service]\nmax_active = 0\nspeed = 3"))
    said = refusal(home, "--profile", str(path))
    assert all(word in said for word in ("store.chat", "service.speed", "profile.toml"))


def test_an_engine_address_is_refused_with_the_embedded_engine(home: Home) -> None:
    assert "brings its own" in refusal(home, "--engine", "http://127.0.0.1:9")


@pytest.mark.parametrize("address", ["nonsense", "ftp://127.0.0.1:1", "http://"])
def test_an_engine_address_that_is_none_is_refused(address: str, home: Home, profile: Profile) -> None:
    assert address in refusal(home, "--profile", profile(), "--engine", address)


def test_a_store_that_is_no_database_is_refused(home: Home, profile: Profile, tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, whatever its name says" * 200)
    said = refusal(home, "--profile", profile(), "--store", f"sqlite://{broken}")
    assert str(broken) in said


def test_a_worker_that_cannot_start_tells_why(home: Home, profile: Profile) -> None:
    store = home.folder / "other.db"
    with serving(home, "--profile", profile(), "--store", f"sqlite://{store}"):
        pass
    with sqlite3.connect(store) as database:
        database.execute("DROP TABLE config")
    database.close()
    said = refusal(home, "--profile", profile(), "--store", f"sqlite://{store}", "--workers", "2")
    assert "A worker did not start: " in said
    assert str(store) in said


def test_a_folder_that_cannot_hold_the_control_socket_is_refused(home: Home, profile: Profile) -> None:
    (home.folder / "s").write_text("a file, not a folder")
    assert "XDG_STATE_HOME" in refusal(home, "--profile", profile())


def test_a_path_too_long_for_the_control_socket_is_refused(home: Home, profile: Profile) -> None:
    long = str(home.folder / ("long" * 30))
    assert "longer than the 107 bytes" in refusal(home, "--profile", profile(), XDG_STATE_HOME=long)


def test_a_log_level_that_is_none_is_refused(home: Home, profile: Profile) -> None:
    assert "'loud' is not one of" in refusal(home, "--profile", profile(), "--log-level", "loud")


def test_a_wrong_option_is_told_with_the_usage(home: Home) -> None:
    done: subprocess.CompletedProcess[str] = home.run("serve", "--port", "70000")
    assert done.returncode == 2
    assert "Error: Invalid value for '--port'" in done.stderr


@pytest.mark.engine
def test_weights_that_are_damaged_are_refused_with_the_reason(home: Home, tmp_path: Path, weights: Path) -> None:
    said = refusal(home, "--profile", embedded(tmp_path / "mine", weights.read_bytes()[:2_000_000]))
    assert "the engine ended with status 1 while loading" in said
    assert "base.gguf" in said


@pytest.mark.engine
def test_a_file_that_holds_no_weights_is_refused_with_the_reason(home: Home, tmp_path: Path) -> None:
    said = refusal(home, "--profile", embedded(tmp_path / "mine", b"not a model"))
    assert "base.gguf" in said
