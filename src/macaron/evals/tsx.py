"""Whether an answer is a card that UI4A could run: TSX that parses, exports a component and imports what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = 64 * 1024
FENCES: Final = ("tsx", "ui4a/tsx")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


UI4A: Final[Mapping[str, frozenset[str]]] = {
    "react": _names(
        "Children Component Fragment StrictMode Suspense cloneElement createContext createElement createRef forwardRef "
        "isValidElement lazy memo startTransition use useActionState useCallback useContext useDeferredValue useEffect "
        "useEffectEvent useId useImperativeHandle useInsertionEffect useLayoutEffect useMemo useOptimistic useReducer "
        "useRef useState useSyncExternalStore useTransition "
        "CSSProperties ChangeEvent ComponentProps Dispatch FC FormEvent JSX KeyboardEvent MouseEvent PropsWithChildren "
        "ReactElement ReactNode RefObject SetStateAction"
    ),
    "$ui4a/ui": _names(
        "Badge Button Card Checkbox Dialog Disclosure Field Grid RadioGroup Row Select Slider Stack Stat Switch Table "
        "Tabs Textarea Toast"
    ),
    "$ui4a/ui/charts": _names(
        "Area AreaChart Bar BarChart CartesianGrid Cell ChartContainer ComposedChart Legend Line LineChart Pie "
        "PieChart ReferenceDot ReferenceLine Tooltip XAxis YAxis"
    ),
    "$ui4a/ui/katex": frozenset(("LaTeX", "MathBlock")),
    "$ui4a/chat": frozenset(("sendAction", "sendMessage")),
    "$ui4a/state": frozenset(("usePersistedState",)),
}
"""What a card may import: the names that each module exports. Only `react` has a default export."""

_FUNCTIONS: Final = frozenset(
    ("function_declaration", "function_expression", "arrow_function", "class_declaration", "class")
)
_CLASSES_AND_FUNCTIONS: Final = _FUNCTIONS - {"arrow_function"}
_WRAPPERS: Final = frozenset(("as_expression", "satisfies_expression", "parenthesized_expression"))
_JSX: Final = frozenset(("jsx_opening_element", "jsx_self_closing_element"))
_BINDING: Final = frozenset(("identifier", "shorthand_property_identifier_pattern"))
_BINDS: Final[Mapping[str, str]] = {
    "variable_declarator": "name",
    "required_parameter": "pattern",
    "optional_parameter": "pattern",
    "arrow_function": "parameter",
    "catch_clause": "parameter",
    "pair_pattern": "value",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
}
_BINDS_ALL: Final = _names(
    "import_clause import_specifier namespace_import import_require_clause array_pattern object_pattern rest_pattern"
)


class TsxReport(Struct, frozen=True):
    """What is wrong with a card.

    Attributes:
        reasons: short fixed phrases, in the order of the checks; none of them if the card is clean.
        modules: every module the card names, in order of appearance.
        undefined: components and hooks that are used, but neither imported nor declared.
    """

    reasons: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.reasons


def check_tsx(source: str) -> TsxReport:
    """Read `source` as one TSX module of at most 64 KB. Never raises for anything it holds."""
    data = source.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        return TsxReport(("larger than 64 KB",))
    root = _parse(data)
    if root.has_error:
        return TsxReport(("does not parse",))
    nodes = list(_walk(root))
    reasons = [*_export_faults(nodes), *_import_faults(nodes)]
    undefined = _undefined(nodes)
    if undefined:
        reasons.append("uses what is not defined")
    modules = [_module(node) or "" for node in nodes if _names_module(node)]
    return TsxReport(tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(modules)), undefined)


def find_card(text: str) -> str | None:
    """The source of the card in an answer: the first TSX block that exports a default, else the first TSX block, else
    the whole answer if it is a bare module. A block that is not closed ends with the answer."""
    blocks = [body for info, body in _fences(text) if info in FENCES]
    for body in blocks:
        if "export default" in body or "as default" in body:
            return body
    if blocks:
        return blocks[0]
    bare = text.strip()
    return bare if bare.startswith(("import ", "export ")) else None


def _parse(data: bytes) -> Node:
    import tree_sitter_typescript
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_typescript.language_tsx())).parse(data).root_node


def _walk(root: Node) -> Iterator[Node]:
    """Every node, parents first; without recursion, for a hostile source nests as deep as it likes."""
    cursor = root.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node else ""


def _export_faults(nodes: list[Node]) -> Iterator[str]:
    exported = list(_default_exports(nodes))
    if not exported:
        yield "no default export"
    elif len(exported) > 1:
        yield "several default exports"
    elif not _is_component(exported[0], nodes):
        yield "the default export is not a component"
    if not any(node.type in ("jsx_element", "jsx_self_closing_element") for node in nodes):
        yield "no JSX"


def _default_exports(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.type == "export_statement" and any(child.type == "default" for child in node.children):
            value = node.child_by_field_name("value") or node.child_by_field_name("declaration")
            if value:
                yield value
        elif node.type == "export_specifier":
            alias, name = node.child_by_field_name("alias"), node.child_by_field_name("name")
            if name and _text(alias or name) == "default":
                yield name


def _is_component(value: Node, nodes: list[Node]) -> bool:
    """A function or class, one wrapped by calls such as `memo(…)`, or the name of such a declaration."""
    value = _unwrapped(value)
    if value.type in _FUNCTIONS:
        return True
    return value.type == "identifier" and any(_declares_component(node, _text(value)) for node in nodes)


def _unwrapped(value: Node) -> Node:
    """The first argument of a call, the inside of a parenthesis or of a type assertion."""
    while True:
        inside = value.child_by_field_name("arguments") if value.type == "call_expression" else value
        if value.type not in _WRAPPERS and value.type != "call_expression":
            return value
        if inside is None or not inside.named_children:
            return value
        value = inside.named_children[0]


def _declares_component(node: Node, name: str) -> bool:
    if node.type not in _FUNCTIONS and node.type != "variable_declarator":
        return False
    if _text(node.child_by_field_name("name")) != name:
        return False
    # A name that stands for another name is not followed: `const a = a` would never end.
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else node
    return value is not None and _unwrapped(value).type in _FUNCTIONS


def _names_module(node: Node) -> bool:
    """Whether the node brings a module in: a static, re-exporting, dynamic or CommonJS import."""
    match node.type:
        case "import_statement":
            return True
        case "export_statement":
            return node.child_by_field_name("source") is not None
        case "call_expression":
            function = node.child_by_field_name("function")
            return function is not None and (function.type == "import" or _is_require(function))
    return False


def _is_require(node: Node) -> bool:
    return node.type == "identifier" and _text(node) == "require"


def _module(node: Node) -> str | None:
    """The module a node names, None if it is computed or not written plainly."""
    source = node.child_by_field_name("source")
    if node.type == "import_statement" and source is None:
        clause = next((child for child in node.named_children if child.type == "import_require_clause"), None)
        source = clause.child_by_field_name("source") if clause else None
    if node.type == "call_expression":
        arguments = node.child_by_field_name("arguments")
        source = arguments.named_children[0] if arguments and arguments.named_children else None
    if source is None or source.type != "string":
        return None
    parts = source.named_children
    return _text(parts[0]) if len(parts) == 1 and parts[0].type == "string_fragment" else None


def _import_faults(nodes: list[Node]) -> Iterator[str]:
    for node in filter(_names_module, nodes):
        module = _module(node)
        if module is None:
            yield "imports a computed module"
        elif module not in UI4A:
            yield "imports a module that is not there"
        elif node.type != "call_expression":
            yield from _name_faults(node, module)
    calls = sum(node.type == "call_expression" and _is_require(node.children[0]) for node in nodes)
    if calls < sum(map(_is_require, nodes)):
        yield "uses require as a value"


def _name_faults(node: Node, module: str) -> Iterator[str]:
    for child in _walk(node):
        if child.type in ("import_specifier", "export_specifier"):
            name = _text(child.child_by_field_name("name"))
            if name not in UI4A[module] and not (name == "default" and module == "react"):
                yield "imports a name that is not there"
        elif module != "react" and child.type == "import_clause" and _binds_default(child):
            yield "imports a default that is not there"


def _binds_default(clause: Node) -> bool:
    return any(part.type == "identifier" for part in clause.children)


def _undefined(nodes: list[Node]) -> tuple[str, ...]:
    declared = {name for node in nodes for name in _declared(node)}
    return tuple(dict.fromkeys(name for node in nodes for name in _used(node) if name not in declared))


def _declared(node: Node) -> Iterator[str]:
    """The names a node brings into some scope. Scopes are not told apart: a name declared anywhere counts."""
    if node.type in _BINDS_ALL:
        yield from (_text(child) for child in node.children if child.type in _BINDING)
    elif node.type in _CLASSES_AND_FUNCTIONS:
        yield _text(node.child_by_field_name("name"))
    elif node.type in _BINDS:
        target = node.child_by_field_name(_BINDS[node.type])
        if target and target.type in _BINDING:
            yield _text(target)


def _used(node: Node) -> Iterator[str]:
    """The components and hooks a node uses. A lower-case tag is an HTML element."""
    if node.type in _JSX:
        name = node.child_by_field_name("name")
        member = name is not None and name.type == "member_expression"
        root = _text(name).split(".")[0].strip()
        if root and (member or not root[0].islower()):
            yield root
    elif node.type == "call_expression":
        function = node.child_by_field_name("function")
        called = _text(function) if function and function.type == "identifier" else ""
        if called.startswith("use") and called[3:4].isupper():
            yield called


def _fences(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of an answer as (info string, body). A fence may be glued to the sentence before it, and code
    to the fence's own line."""
    position = 0
    while (start := text.find("```", position)) >= 0:
        end = start
        while end < len(text) and text[end] == "`":
            end += 1
        ticks, line = end - start, _line_end(text, end)
        close = text.find("`" * ticks, end, line)
        close, position = (close, close + ticks) if close >= 0 else _closing(text, line, ticks)
        first = text[end : min(line, close)]
        info = first.split(maxsplit=1)[0] if first and not first[0].isspace() else ""
        yield info, text[end + len(info) : close].strip()


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _closing(text: str, line: int, ticks: int) -> tuple[int, int]:
    """Where a block's body ends and where the text after the block begins, looking behind the line that ends at `line`.
    Only a fence that begins its line closes."""
    while line < len(text):
        begin, end = line + 1, _line_end(text, line + 1)
        mark = text[begin:end].lstrip()
        run = len(mark) - len(mark.lstrip("`"))
        if run >= ticks:
            return line, end - (len(mark) - run)
        line = end
    return len(text), len(text)
