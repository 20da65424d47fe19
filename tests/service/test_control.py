"""The supervisor's control socket."""

from __future__ import annotations

import signal
import stat
from collections.abc import Callable

from macaron.server.supervisor import control_path, prepare_control
from tests.processes import Home, serving

Profile = Callable[..., str]


def test_only_its_owner_can_open_it(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as service:
        path = control_path(home.runtime, service.port)
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o700


def test_it_tells_the_processes(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile(), "--workers", "2") as service:
        told = service.control()
        assert told["pid"] == service.process.pid
        assert sorted([told["pid"], *told["workers"]]) == sorted(home.alive())
        assert (told["engine"], told["worker_restarts"]) == (None, 0)


def test_it_stops_the_service(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as service:
        assert service.control("stop") == {"stopping": True}
        assert service.ended(5) == 0
        assert not control_path(home.runtime, service.port).exists()


def test_an_unknown_command_is_answered_with_the_known_ones(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as service:
        assert "status and stop" in service.control("dance")["error"]


def test_the_socket_of_a_killed_service_is_replaced(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as service:
        service.process.send_signal(signal.SIGKILL)
        service.ended(5)
        stale = control_path(home.runtime, service.port)
        assert stale.exists()
    with serving(home, "--profile", profile(), "--port", str(service.port)) as again:
        assert again.control()["pid"] == again.process.pid


def test_what_is_in_the_way_of_the_socket_is_removed(home: Home) -> None:
    path = prepare_control(home.runtime, 1)
    path.write_text("left over")
    assert prepare_control(home.runtime, 1) == path
    assert not path.exists()
