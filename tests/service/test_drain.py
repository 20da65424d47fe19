"""The end of a service: what runs is finished, what takes too long is told, nothing stays behind."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import time
from collections.abc import Callable
from queue import Queue
from threading import Thread

import pytest

from tests.processes import Answer, Home, Service, finished, serving, until

Profile = Callable[..., str]
ONE_SECOND = [{"role": "user", "content": "@n=20 @every=50"}]
FOR_EVER = [{"role": "user", "content": "@n=900 @every=100"}]
BRIEF = "[service]\ndrain_timeout = 1.0"


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def begun(service: Service, messages: list[dict[str, str]], stream: bool = True) -> http.client.HTTPResponse:
    """A streamed answer of which the first piece has come."""
    response = service.http().begin(messages, stream=stream)
    assert response.readline().startswith(b"data: ")
    return response


def interrupt(service: Service) -> None:
    service.signal(signal.SIGINT)


def terminate(service: Service) -> None:
    service.process.send_signal(signal.SIGTERM)


class Waiting:
    """A request that is not streamed, sent and admitted, whose answer has not come."""

    def __init__(self, service: Service) -> None:
        self._answers: Queue[Answer] = Queue()
        self._thread = Thread(target=lambda: self._answers.put(service.http().chat("@n=900 @every=100")))
        self._thread.start()
        metrics = service.http()
        until(lambda: "macaron_active_requests 1.0" in metrics.get("/metrics").text, 5, "the request is admitted")

    def answer(self) -> Answer:
        self._thread.join()
        return self._answers.get_nowait()


@pytest.mark.parametrize("end", [interrupt, terminate])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_running_answer_is_finished_and_new_connections_are_refused(
    end: Callable[[Service], None], workers: str, home: Home, profile: Profile
) -> None:
    with serving(home, "--profile", profile(), "--workers", workers) as service:
        response = begun(service, ONE_SECOND)
        end(service)
        until(lambda: refused(service.port), 0.7, "new connections are refused")
        assert service.process.poll() is None
        rest = finished(response)
        assert rest.events[-1]["choices"][0]["finish_reason"] == "stop"
        assert rest.text.rstrip().endswith("data: [DONE]")
        assert service.ended(5) == 0
        assert home.alive() == []
        assert re.fullmatch(r"Stopping\. [^\n]*\n", service.log)


def test_an_idle_service_ends_at_once(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as service:
        kept = service.http()
        assert kept.chat("hello").status == 200
        began = time.monotonic()
        terminate(service)
        assert service.ended(5) == 0
        assert time.monotonic() - began < 2


def test_a_stream_longer_than_the_time_limit_ends_with_an_error_event(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile(BRIEF)) as service:
        response = begun(service, FOR_EVER)
        began = time.monotonic()
        terminate(service)
        rest = finished(response)
        assert 0.5 < time.monotonic() - began < 3
        assert [event["error"]["code"] for event in rest.events if "error" in event] == ["stopping"]
        assert rest.events[-1]["choices"][0]["finish_reason"] == "error"
        assert service.ended(5) == 0


def test_a_whole_answer_longer_than_the_time_limit_is_a_503(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile(BRIEF)) as service:
        waiting = Waiting(service)
        terminate(service)
        answer = waiting.answer()
        assert (answer.status, answer.json["error"]["code"]) == (503, "stopping")
        assert service.ended(5) == 0


def test_what_a_client_was_sent_of_an_answer_that_was_cut_off_is_kept(home: Home, profile: Profile) -> None:
    named = {"x-session-id": "cut"}
    with serving(home, "--profile", profile(BRIEF)) as service:
        response = service.http().begin(FOR_EVER, headers=named, stream=True)
        assert response.readline().startswith(b"data: ")
        terminate(service)
        finished(response)
        assert service.ended(5) == 0
    with serving(home, "--profile", profile(BRIEF)) as service:
        (step,) = service.http().get("/v1/macaron/sessions/cut").json["steps"]
        assert step["status"] == "cancelled"


def test_who_asks_twice_does_not_wait(home: Home, profile: Profile) -> None:
    with serving(home, "--profile", profile()) as service:
        begun(service, FOR_EVER)
        interrupt(service)
        until(lambda: "Stopping" in service.log, 2, "the first is heard")
        interrupt(service)
        assert service.ended(3) == 0
        assert home.alive() == []


@pytest.mark.engine
def test_a_service_that_is_stopped_while_its_engine_loads_ends_quietly(home: Home, small: str) -> None:
    service = Service(home, "--profile", small)
    until(lambda: list(home.runtime.glob("*.sock")), 20, "it has begun")
    terminate(service)
    assert service.ended(5) == 0
    assert home.alive() == []
    assert service.log == ""


@pytest.mark.engine
@pytest.mark.slow
def test_ctrl_c_lets_the_embedded_engine_finish_an_answer_and_ends_it(home: Home, small: str) -> None:
    with serving(home, "--profile", small) as service:
        messages = [{"role": "user", "content": "Write a long story about a fox."}]
        response = service.http().begin(messages, "macaron-demi", stream=True, max_tokens=60)
        assert response.readline().startswith(b"data: ")
        engine = service.control()["engine"]
        assert engine in home.alive()
        interrupt(service)
        assert finished(response).events[-1]["choices"][0]["finish_reason"]
        assert service.ended(10) == 0
        assert home.alive() == []
