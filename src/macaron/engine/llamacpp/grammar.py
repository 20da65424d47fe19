"""Grammars in llama.cpp's GBNF: for labels, for JSON that follows a schema, and for tool calls.

Of JSON Schema the parts that say which shape a value has are followed: type, properties, required, items, enum, const,
anyOf and oneOf, local `$ref`, minItems and maxItems. What only narrows a value (pattern, minimum, format, …) is not
enforced. A shape this module does not know (allOf, not, patternProperties, …), and whatever lies deeper or is larger
than the bounds, may be any JSON value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

MAX_RULES = 1024
MAX_BYTES = 131_072
MAX_DEPTH = 24
MAX_ITEMS = 64
MAX_CALLS = 16
CALL_OPEN = "<tool_call>"
CALL_CLOSE = "</tool_call>"

_JSON = r"""
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ( "," ws string ":" ws value )* )? "}"
array ::= "[" ws ( value ( "," ws value )* )? "]"
string ::= "\"" ( [^"\\\x00-\x1F\x7F] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} ) )* "\""
number ::= integer ( "." [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,3} )?
integer ::= "-"? ( "0" | [1-9] [0-9]{0,15} )
ws ::= " "?
"""
_SCALARS = {"string": "string", "number": "number", "integer": "integer", "null": '"null"'}
_UNKNOWN_SHAPES = ("allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas")


class _TooComplexError(Exception):
    """The schema needs more rules than a grammar may have."""


def literal(text: str) -> str:
    """`text` as a GBNF string."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def labels_grammar(labels: Iterable[str]) -> str:
    """Exactly one of the labels, and then the end."""
    return "root ::= " + " | ".join(map(literal, labels))


def json_grammar(schema: Mapping[str, Any] | bool | None) -> str:
    """A JSON value that follows `schema`; any object where it is None."""
    if schema is None:
        return "root ::= object" + _JSON
    return _assemble(lambda rules: f"root ::= {rules.of(schema)}", "root ::= value")


def calls_grammar(tools: Sequence[Mapping[str, Any]], *, single: bool, instead: Mapping[str, Any] | None = None) -> str:
    """One call, or up to `MAX_CALLS`, of these functions, each with `name` and perhaps `parameters`; or a JSON value
    `instead`, which is a `response_format` as the client wrote it.
    """

    several = "" if single else f' ( "\\n" call ){{0,{MAX_CALLS - 1}}}'

    def root(rules: _Rules) -> str:
        call = " | ".join(_call(tool["name"], rules.arguments(tool.get("parameters"))) for tool in tools)
        other = "" if instead is None else f" | {rules.of(schema_of_format(instead) or {'type': 'object'})}"
        return f"root ::= call{several}{other}\ncall ::= {call}"

    loose = " | ".join(_call(tool["name"], "object") for tool in tools)
    other = "" if instead is None else " | value"
    return _assemble(root, f"root ::= call{several}{other}\ncall ::= {loose}")


def schema_of_format(response_format: Mapping[str, Any]) -> Any:
    """The schema of a `response_format` in the Chat shape; None for `json_object`, which is any object."""
    if response_format.get("type") != "json_schema":
        return None
    described = response_format.get("json_schema")
    return described.get("schema") if isinstance(described, dict) else None


def _call(name: str, arguments: str) -> str:
    opening = f'{CALL_OPEN}{{"name": {_json(name)}, "arguments": '
    return f"{literal(opening)} {arguments} {literal('}' + CALL_CLOSE)}"


def _assemble(root: Callable[[_Rules], str], loose: str) -> str:
    try:
        rules = _Rules()
        grammar = "\n".join([root(rules), *rules.lines]) + _JSON
    except _TooComplexError:
        return loose + _JSON
    return grammar if len(grammar) <= MAX_BYTES else loose + _JSON


class _Rules:
    """Collects the rules of one grammar. Every method returns what stands for a schema inside a rule."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._root: Any = None
        # References followed since the last bracket: one that leads back to one of them would never write anything.
        self._open: set[str] = set()

    def of(self, schema: Any) -> str:
        """The expression for a whole schema, to which its local references refer."""
        self._root = schema
        self._names = {}
        return self._value(schema, 0)

    def arguments(self, schema: Any) -> str:
        """The same for a function's parameters, which are always an object."""
        rule = self.of(schema)
        return "object" if rule == "value" else rule

    def _add(self, body: str) -> str:
        if len(self.lines) >= MAX_RULES:
            raise _TooComplexError
        self.lines.append("")
        name = f"r{len(self.lines)}"
        self.lines[-1] = f"{name} ::= {body}"
        return name

    def _value(self, schema: Any, depth: int) -> str:
        if not isinstance(schema, dict) or depth > MAX_DEPTH or any(key in schema for key in _UNKNOWN_SHAPES):
            return "value"
        match schema:
            case {"$ref": str(pointer)}:
                return self._reference(pointer, depth)
            case {"const": constant}:
                return literal(_json(constant))
            case {"enum": [_, *_] as values}:
                return self._either(literal(_json(value)) for value in values)
            case {"anyOf": [_, *_] as options} | {"oneOf": [_, *_] as options}:
                return self._either(self._value(option, depth + 1) for option in options)
            case {"type": list(kinds)}:
                return self._either(self._value({**schema, "type": kind}, depth + 1) for kind in kinds) or "value"
            case _:
                return self._typed(schema, depth)

    def _typed(self, schema: dict[str, Any], depth: int) -> str:
        kind = schema.get("type", "object" if "properties" in schema else None)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "boolean":
            return '( "true" | "false" )'
        return _SCALARS.get(kind, "value") if isinstance(kind, str) else "value"

    def _either(self, options: Iterable[str]) -> str:
        alternatives = list(options)
        return self._add(" | ".join(alternatives)) if alternatives else ""

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        item = self._inside(schema.get("items"), depth)
        least, most = _count(schema.get("minItems")) or 0, _count(schema.get("maxItems"))
        if most == 0:
            return '"[]"'
        span = f"{{{max(least - 1, 0)},{'' if most is None else max(most - 1, least - 1, 0)}}}"
        items = f'{item} ( "," ws {item} ){span}'
        return self._add(f'"[" {items} "]"' if least else f'"[" ( {items} )? "]"')

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return self._map(schema, depth)
        required = schema.get("required")
        needed = set(filter(lambda name: isinstance(name, str), required)) if isinstance(required, list) else set()
        pairs = [
            (f"{literal(_json(name) + ':')} ws {self._inside(value, depth)}", name in needed)
            for name, value in properties.items()
        ]
        return self._add(f'"{{" {self._members(pairs)} "}}"')

    def _members(self, pairs: list[tuple[str, bool]]) -> str:
        # From the last member to the first: what may follow when something, or nothing, stands before it.
        following = leading = '""'
        for pair, needed in reversed(pairs):
            begin = f"{pair} {following}"
            leading = self._add(begin if needed else f"{begin} | {leading}")
            follow = f'"," ws {pair} {following}'
            following = self._add(follow if needed else f"{follow} | {following}")
        return leading

    def _map(self, schema: dict[str, Any], depth: int) -> str:
        additional = schema.get("additionalProperties")
        if additional is False:
            return '"{}"'
        if not isinstance(additional, dict):
            return "object"
        pair = f'string ":" ws {self._inside(additional, depth)}'
        return self._add(f'"{{" ( {pair} ( "," ws {pair} )* )? "}}"')

    def _reference(self, pointer: str, depth: int) -> str:
        if pointer in self._open:
            return "value"
        if pointer not in self._names:
            name = self._names[pointer] = self._add("value")
            index = len(self.lines) - 1
            self._open.add(pointer)
            self.lines[index] = f"{name} ::= {self._value(_resolve(self._root, pointer), depth + 1)}"
            self._open.discard(pointer)
        return self._names[pointer]

    def _inside(self, schema: Any, depth: int) -> str:
        """The expression for a value inside brackets."""
        around, self._open = self._open, set()
        expression = self._value(schema, depth + 1)
        self._open = around
        return expression


def _resolve(root: Any, pointer: str) -> Any:
    """RFC 6901 inside the schema; None where it leads nowhere or out of it."""
    if pointer != "#" and not pointer.startswith("#/"):
        return None
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        root = root.get(key) if isinstance(root, dict) else None
    return root


def _count(number: Any) -> int | None:
    return min(number, MAX_ITEMS) if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
