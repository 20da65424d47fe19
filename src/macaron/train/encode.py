"""Rows as token ids, with the positions that carry loss."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from macaron.engine.base import ChatMessage
from macaron.engine.llamacpp.choices import ChoicePlan, plan_choice
from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.mol.dialogue import labels_in, route_messages
from macaron.mol.route import RouteTemplate
from macaron.registry.cards import Registry
from macaron.train.data.rows import PreferenceRow, RouteRow, SftRow
from macaron.train.render import ChatTemplate, chat_messages, shown_tools


class Tokenizer(Protocol):
    """What encoding needs of a tokenizer: control tokens in a text are the real ones, and nothing is added to it."""

    end: int

    def ids(self, text: str) -> list[int]:
        """Token ids of a text."""
        ...

    def text(self, token: int) -> str:
        """What one token stands for; may be empty for part of a character."""
        ...


class Encoded(NamedTuple):
    """A row, encoded.

    Attributes:
        ids: token ids.
        learned: positions in `ids`, ascending, of the tokens that carry loss; never 0, which nothing predicts.
        choices: for a route row, the token that decides for each label.
        decides: for a route row, the index in `learned` of the token that decides.
    """

    ids: list[int]
    learned: list[int]
    choices: tuple[int, ...] = ()
    decides: int = 0


class Pair(NamedTuple):
    """A preference row, encoded: token ids of the prompt and of the two answers."""

    prompt: list[int]
    chosen: list[int]
    rejected: list[int]


class RouteQuestion(NamedTuple):
    """One way to ask for a label.

    Attributes:
        template: with the instruction filled in.
        names: what each of the profile's labels is called.
        targets: the tokens that answer each shown label after the prefill.
        prefill: what the answer begins with.
        entry: the profile's entry label.
        context: whether the past is shown.
    """

    template: RouteTemplate
    names: Mapping[str, str]
    targets: Mapping[str, list[int]]
    prefill: str
    entry: str
    context: bool


class SftEncoder:
    """Encodes conversations of one specialist."""

    def __init__(self, template: ChatTemplate, tokenizer: Tokenizer, identity: str, *, merge_system: bool) -> None:
        self._template = template
        self._tokenizer = tokenizer
        self._identity = identity
        self._merge = merge_system

    def encode(self, row: SftRow) -> Encoded:
        """Loss is on content, calls and the end token of the assistant's messages that are not given.

        Raises:
            BadRequest, ConfigError: the row cannot be shown, or the template loses the mask.
        """
        return self._encode(row.messages, row.tools, row.given)

    def encode_pair(self, row: PreferenceRow) -> Pair:
        """Both answers after the same prompt.

        Raises:
            BadRequest, ConfigError: as for `encode`, or an answer is not what an assistant says.
        """
        answers = []
        for place, messages in (("chosen", row.chosen), ("rejected", row.rejected)):
            if not messages or any(message.get("role") != "assistant" for message in messages):
                raise ConfigError(f"{place} must be messages of the assistant", param=place)
            answers.append(self._encode((*row.prompt, *messages), row.tools, len(row.prompt)))
        chosen, rejected = answers
        start = chosen.learned[0]
        if rejected.ids[: rejected.learned[0]] != chosen.ids[:start]:
            raise ConfigError("the template shows the prompt differently before the two answers", param="prompt")
        return Pair(chosen.ids[:start], chosen.ids[start:], rejected.ids[start:])

    def _encode(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]], given: int) -> Encoded:
        shown = chat_messages(self._identity, messages, merge_system=self._merge)
        before = sum(message.get("role") == "assistant" for message in messages[:given])
        ids: list[int] = []
        learned: list[int] = []
        for at, segment in enumerate(self._template.segments(shown, shown_tools(tools))):
            # A piece is encoded by itself, as in serving, where the prompt is encoded before the answer exists.
            tokens = self._tokenizer.ids(segment.text)
            if segment.learned:
                said = self._until_end(tokens)
                if at // 2 >= before:
                    learned += range(len(ids), len(ids) + said)
            ids += tokens
        if not learned:
            raise ConfigError("no token carries loss: no message is the assistant's", param="messages", code="no_loss")
        return Encoded(ids[: learned[-1] + 1], learned)

    def _until_end(self, tokens: list[int]) -> int:
        if self._tokenizer.end not in tokens:
            end = self._tokenizer.text(self._tokenizer.end)
            raise ConfigError(
                f"the template loses the assistant mask: {end!r} does not end the assistant's message, so that the "
                "model would not learn to stop",
                param="engine.llamacpp.chat_template_path",
                code="mask_lost",
            )
        return len(tokens) - tokens[::-1].index(self._tokenizer.end)


class RouteEncoder:
    """Encodes questions for a label."""

    def __init__(self, template: ChatTemplate, tokenizer: Tokenizer) -> None:
        self._template = template
        self._tokenizer = tokenizer

    def encode(self, row: RouteRow, asked: RouteQuestion) -> Encoded:
        """Loss is on the whole label and the end token, so that a label is written also where nothing enforces it.

        Raises:
            ConfigError: the row cannot be shown, or one of its labels is none of the question's.
        """
        if not row.messages or row.messages[-1].get("role") != "user":
            raise ConfigError("the last message must be the user's request", param="messages")
        for label in (row.label, *labels_in(row.messages, asked.entry)):
            if label not in asked.names:
                raise ConfigError(f"label {label!r} is none of {', '.join(asked.names)}", param="label")
        messages = route_messages(asked.template, row.messages, asked.names, entry=asked.entry, context=asked.context)
        text = self._template.prompt(messages)
        asking, prompt = self._tokenizer.ids(text), self._tokenizer.ids(text + asked.prefill)
        ids = prompt + asked.targets[asked.names[row.label]]
        begun = len(asking) if prompt[: len(asking)] == asking else len(prompt)
        choices = tuple(tokens[0] for tokens in asked.targets.values())
        return Encoded(ids, list(range(begun, len(ids))), choices, decides=len(prompt) - begun)


def route_question(loaded: Loaded, registry: Registry, names: Mapping[str, str], tokenizer: Tokenizer) -> RouteQuestion:
    """How a profile asks for one of the labels of `registry`, which `names` gives for its own labels.

    Raises:
        EngineError: there are no labels.
    """
    mol = loaded.contract.mol
    template = RouteTemplate(
        instruction=registry.fill(loaded.text("mol.route.prompt_path")),
        shape=mol.route.shape,
        prefill=mol.route.prefill,
        input_tokens=mol.route_input_tokens,
    )

    async def tokenize(text: str) -> list[tuple[int, str]]:
        return [(token, tokenizer.text(token)) for token in tokenizer.ids(text)]

    plan = _ended(plan_choice(registry.labels, template.prefill, tokenize))
    targets = {label: _target(label, plan, tokenizer) for label in registry.labels}
    return RouteQuestion(template, names, targets, plan.prefill, mol.entry, mol.route_context == "labels")


def _ended(coroutine: Coroutine[Any, Any, ChoicePlan]) -> ChoicePlan:
    """The result of a coroutine that waits for nothing, with or without an event loop running."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        plan: ChoicePlan = end.value
        return plan
    raise RuntimeError("the coroutine waits for something")


def _target(label: str, plan: ChoicePlan, tokenizer: Tokenizer) -> list[int]:
    """The tokens of a label after what is prefilled, cut as the whole label is where the cut falls between tokens."""
    tokens = tokenizer.ids(label)
    text = ""
    while text != plan.begun and plan.begun.startswith(text) and tokens:
        text += tokenizer.text(tokens.pop(0))
    rest = tokens if text == plan.begun and tokens else tokenizer.ids(label[len(plan.begun) :])
    return [*rest, tokenizer.end]
