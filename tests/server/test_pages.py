"""The small endpoints, and what every response has in common."""

from __future__ import annotations

import asyncio
import random
import re
import string
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from macaron.errors import StoreError
from tests.doubles.engine_double import EngineDouble, Reply, by_words
from tests.harness import serve, write_profile
from tests.server.conftest import Stand, Standing, until
from tests.server.raw import ask, chat_body, request

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]


async def numbers(running: Stand) -> dict[tuple[str, ...], float]:
    """Every sample of `/metrics`: its name, its label values in the order of the labels' names, and its value."""
    async with running.client.session.get(running.url + "/metrics") as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/plain")
        text = await response.text()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in samples}


# --- liveness and readiness


async def test_health_asks_nobody(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        before = len(running.double.others)
        running.double.healthy = False
        reply = await running.client.get("/health")
        assert (reply.status, reply.body) == (200, {"status": "ok"})
        assert len(running.double.others) == before


async def test_a_ready_service_says_who_it_is(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.get("/ready")
        digest = running.service.loaded.digest
    assert reply.status == 200
    assert reply.body["status"] == "ready"
    assert reply.body["problems"] == []
    assert (reply.body["model"], reply.body["engine"], reply.body["contract"]) == ("test-model", "vllm", digest)
    assert [item["label"] for item in reply.body["specialists"]] == ["L0", "L1", "L2", "L3"]


@pytest.mark.parametrize("how", ["sick", "gone", "adapter"])
async def test_a_service_without_its_engine_is_not_ready_and_says_why(stand: Standing, how: str) -> None:
    async with stand(by_words({})) as running:
        match how:
            case "sick":
                running.double.healthy = False
            case "gone":
                await running.double.__aexit__()
            case _:
                running.double.adapters = ("L0", "L1", "L3")
        reply = await running.client.get("/ready")
    assert (reply.status, reply.body["status"]) == (503, "not ready")
    assert len(reply.body["problems"]) == 1
    assert reply.body["problems"][0].startswith("engine: ")
    assert ("adapter L2 is not loaded" in reply.body["problems"][0]) == (how == "adapter")


async def test_a_service_whose_store_fails_is_not_ready(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> None:
        raise StoreError("The disk is gone.")

    async with stand(by_words({})) as running:
        monkeypatch.setattr(running.service.store, "ping", broken)
        reply = await running.client.get("/ready")
    assert (reply.status, reply.body["problems"]) == (503, ["store: The disk is gone."])


async def test_a_service_gets_ready_again(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("macaron.server.service.HEALTH_SECONDS", 0.0)
    async with stand(by_words({})) as running:
        running.double.healthy = False
        assert (await running.client.get("/ready")).status == 503
        running.double.healthy = True
        assert (await running.client.get("/ready")).status == 200


async def test_many_probes_ask_the_engine_once(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        running.double.others.clear()
        replies = await asyncio.gather(*(running.client.get("/ready") for _ in range(50)))
        assert {reply.status for reply in replies} == {200}
        assert [seen.path for seen in running.double.others] == ["/health", "/v1/models"]


async def test_prompt_only_specialists_are_ready_and_named(tmp_path: Path) -> None:
    async with EngineDouble(by_words({}), adapters=()) as double:
        document = await asyncio.to_thread(write_profile, tmp_path, double.origin)
        text = re.sub(r'engine_name = "L\d"\n', "", document.read_text()).replace(
            '"vllm"', '"openai"\nbase_model = "base"'
        )
        document.write_text(text)
        async with serve(document) as running:
            reply = await running.client.get("/ready")
    assert reply.status == 200
    assert reply.body["prompt_only"]


# --- models


async def test_the_served_model_is_listed_first_and_found_by_its_name(stand: Standing) -> None:
    async with stand(by_words({}), mol='aliases = ["org/other"]') as running:
        listed = await running.client.get("/v1/models")
        one = await running.client.get("/v1/models/test-model")
        alias = await running.client.get("/v1/models/org/other")
        missing = await running.client.get("/v1/models/gpt-5")
        chat = await running.client.post({"model": "org/other", "messages": HI})
    assert listed.body["object"] == "list"
    assert listed.body["data"][0] == one.body == alias.body
    assert (one.body["id"], one.body["object"], one.body["owned_by"]) == ("test-model", "model", "macaron")
    assert isinstance(one.body["created"], int)
    assert (missing.status, missing.body["error"]["code"]) == (404, "model_not_found")
    assert (chat.status, chat.body["model"]) == (200, "test-model")


# --- paths, methods, names of requests


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/nowhere", "/health/", "/v1/chat/completions/", "/%00", "/..", "//"])
async def test_an_unknown_path_is_404_in_the_apis_shape(stand: Standing, path: str) -> None:
    async with stand(by_words({})) as running:
        for method in ("GET", "POST"):
            answer = await ask(running.port, request(method, path, body=b"{}" if method == "POST" else None))
            assert (answer.status, answer.error["code"]) == (404, "unknown_path")
            assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/", "HEAD"),
        ("GET", CHAT, "POST"),
        ("PUT", CHAT, "POST"),
        ("DELETE", CHAT, "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/metrics", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_405_and_says_the_right_one(
    stand: Standing, method: str, path: str, allowed: str
) -> None:
    async with stand(by_words({})) as running:
        answer = await ask(running.port, request(method, path, body=b"{}"))
    assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")
    assert sorted(answer.headers["allow"].split(", ")) == sorted(allowed.split(", "))


async def test_every_response_names_its_request(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        replies = [
            await running.client.chat(HI),
            await running.client.chat([]),
            *[await running.client.get(path) for path in ("/health", "/ready", "/v1/models", "/nowhere")],
        ]
        async with running.client.stream(HI) as response:
            names = [response.headers["x-request-id"]]
    names += [reply.headers["x-request-id"] for reply in replies]
    assert len(set(names)) == 7


async def test_a_clients_harmless_name_is_kept_and_any_other_is_not(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        kept = await running.client.chat(HI, headers={"x-request-id": "job-1.a_b"})
        assert kept.headers["x-request-id"] == "job-1.a_b"
        for name in ("", "a b", "x" * 65, 'a"b', "ä", "a;b"):
            answer = await ask(running.port, request("POST", CHAT, {"x-request-id": name}, chat_body()))
            assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", answer.headers["x-request-id"])
            assert answer.headers["x-request-id"] != name


# --- metrics


async def test_hops_tokens_and_routes_are_counted_by_specialist(stand: Standing) -> None:
    async with stand(by_words({"code": "L2"}, answer="one two three")) as running:
        await running.client.chat([{"role": "user", "content": "write code"}])
        async with running.client.stream(HI) as response:
            await response.read()
        seen = await numbers(running)
    assert seen["macaron_hops_total", "L0", "route", "ok"] == 2
    assert seen["macaron_hops_total", "L2", "answer", "ok"] == 1
    assert seen["macaron_hops_total", "L0", "answer", "ok"] == 1
    assert seen["macaron_turns_total", "L2", "routed"] == 1
    assert seen["macaron_tokens_total", "L2", "answer", "completion"] == 3
    assert seen["macaron_tokens_total", "L0", "route", "prompt"] > 0
    assert seen["macaron_requests_total", "chat", "200"] == 2
    assert seen["macaron_time_to_first_token_seconds_count", "L0"] == 1
    assert ("macaron_time_to_first_token_seconds_count", "L2") not in seen, "it was not streamed"
    assert seen["macaron_hop_seconds_count", "L2", "answer"] == 1
    assert seen["macaron_request_seconds_count", "chat"] == 2
    assert seen["macaron_active_requests",] == 0
    assert seen["macaron_queued_requests",] == 0


async def test_fallbacks_are_counted(stand: Standing) -> None:
    async with stand(by_words({}, default="nonsense")) as running:
        await running.client.chat(HI)
        seen = await numbers(running)
    assert seen["macaron_events_total", "route_retry"] == 1
    assert seen["macaron_events_total", "route_fallback"] == 1
    assert seen["macaron_turns_total", "L2", "fallback"] == 1
    assert seen["macaron_hops_total", "L0", "route", "fallback"] == 1


async def test_speculation_is_counted_by_what_became_of_it(stand: Standing) -> None:
    async with stand(by_words({"code": "L2"}, default="L1"), mol="speculate = true") as running:
        await running.client.chat([{"role": "user", "content": "write code"}])
        await running.client.chat(HI)
        seen = await numbers(running)
    assert seen["macaron_speculation_total", "hit"] == 1
    assert seen["macaron_speculation_total", "miss"] == 1


async def test_requests_that_fail_are_counted_by_their_status(stand: Standing) -> None:
    async with stand(lambda seen: Reply("L1") if seen.is_route else Reply(status=500)) as running:
        await running.client.chat(HI)
        await running.client.chat([])
        await running.client.post({"model": "other", "messages": HI})
        seen = await numbers(running)
    assert [seen["macaron_requests_total", "chat", status] for status in ("400", "404", "502")] == [1, 1, 1]
    assert seen["macaron_hops_total", "L1", "answer", "failed"] == 1


async def test_running_and_waiting_requests_are_shown(stand: Standing) -> None:
    gate = asyncio.Event()
    async with stand(
        lambda seen: Reply("L1") if seen.is_route else Reply("ok", gate=gate), service={"max_active": 1}
    ) as running:
        tasks = [asyncio.create_task(running.client.chat(HI)) for _ in range(3)]
        await until(lambda: running.service.admission.queued == 2)
        seen = await numbers(running)
        gate.set()
        await asyncio.gather(*tasks)
    assert (seen["macaron_active_requests",], seen["macaron_queued_requests",]) == (1, 2)


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.slow)])
async def test_what_clients_make_up_adds_no_series(stand: Standing, rounds: int) -> None:
    generator = random.Random(1)

    def word() -> str:
        return "".join(generator.choices(string.ascii_letters, k=12))

    async with stand(by_words({})) as running:
        await running.client.chat(HI)
        await running.client.chat([])
        await running.client.post({"model": "other", "messages": HI})
        before = set(await numbers(running))
        for _ in range(rounds):
            await asyncio.gather(*(running.client.get(f"/{word()}/{word()}") for _ in range(10)))
            await running.client.chat([{"role": word(), "content": "x"}])
            await running.client.post({"model": word(), "messages": HI})
            await running.client.chat(HI, user=word(), headers={"x-session-id": word(), "x-macaron-adapter": word()})
        after = set(await numbers(running))
    assert after == before
