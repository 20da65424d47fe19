"""The plain path of the Responses API."""

from __future__ import annotations

from tests.doubles.engine_double import by_words
from tests.server.conftest import Standing
from tests.server.responses.asking import create, kinds, said, stream


async def test_a_response_is_answered_and_kept(stand: Standing) -> None:
    async with stand(by_words({}, answer="one two")) as running:
        reply = await create(running, input="hi")
        assert reply.status == 200, reply.body
        assert reply.body["status"] == "completed"
        (message,) = reply.body["output"]
        assert message["content"] == [{"type": "output_text", "text": "one two", "annotations": [], "logprobs": []}]
        again = await running.client.get(f"/v1/responses/{reply.body['id']}")
        assert again.body == reply.body


async def test_a_stream_has_the_public_events_in_order(stand: Standing) -> None:
    async with stand(by_words({}, answer="one two")) as running:
        events = await stream(running, input="hi")
        assert kinds(events) == [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        again = await running.client.get(f"/v1/responses/{events[0]['response']['id']}")
        assert again.body == events[-1]["response"]


async def test_a_continuation_sees_what_came_before(stand: Standing) -> None:
    async with stand(by_words({}, answer="my answer")) as running:
        first = await create(running, input="first question")
        second = await create(running, input="second question", previous_response_id=first.body["id"])
        assert second.body["previous_response_id"] == first.body["id"]
        assert said(running) == [
            ("user", "first question"),
            ("assistant", "my answer"),
            ("user", "second question"),
        ]
