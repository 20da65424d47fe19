"""Views as the messages of a hop. Pure."""

from __future__ import annotations

from macaron.conversation import Media, Message, Text, text_of
from macaron.engine.base import ChatMessage
from macaron.engine.messages import messages_from_items
from macaron.mol.route import Question
from macaron.mol.view import Head, View


def view_messages(view: View, *, merge_system: bool = True, reasoning: bool = False) -> list[ChatMessage]:
    """The messages of an answer hop: the head's system run, then the body, block by block.

    A longer view of the same head has these messages as its beginning.
    """
    messages = _merged(view.head) if merge_system else _separate(view.head)
    for block in view.body:
        messages += messages_from_items(block, reasoning=reasoning)
    return messages


def question_messages(question: Question) -> list[ChatMessage]:
    """The messages of a route hop."""
    system = [{"role": "system", "content": question.system}] if question.system else []
    return [*system, {"role": "user", "content": question.user}]


def _merged(head: Head) -> list[ChatMessage]:
    if any(isinstance(part, Media) for message in head.system for part in message.parts):
        return _separate(head)
    texts = [head.identity, *(text_of(message.parts) for message in head.system)]
    text = "\n\n".join(text for text in texts if text)
    return [{"role": "system", "content": text}] if text else []


def _separate(head: Head) -> list[ChatMessage]:
    identity = (Message("system", (Text(head.identity),)),) if head.identity else ()
    return messages_from_items((*identity, *head.system))
